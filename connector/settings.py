"""The settings: read once from the environment, checked together, never changed.

A value comes from `VADEMECUM_X`, from the file that `VADEMECUM_X_FILE` names, or from a systemd credential
called `VADEMECUM_X`. Nothing else in the project reads the environment.
"""

import base64
import binascii
import ipaddress
import os
from collections.abc import Mapping
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretBytes,
    SecretStr,
    ValidationError,
    model_validator,
)

PREFIX = "VADEMECUM_"
FIRESTORE_EMULATOR = "FIRESTORE_EMULATOR_HOST"
"""The one variable of another's that matters here."""
CLIENT_TOKEN = "VADEMECUM_TOKEN"  # noqa: S105 - the name, not a token
"""Read by commands that call a server as a client does; no setting of this one."""
STATE_KEY_BYTES = 32
MAX_DIMENSIONS = 2048
"""What Firestore can index; the same everywhere, so that an installation can move."""


class SettingsError(Exception):
    """The configuration cannot be served; `problems` names every reason, one line each."""

    def __init__(self, problems: list[str]) -> None:
        super().__init__("\n".join(problems))
        self.problems = problems


def is_loopback(hostname: str) -> bool:
    """Whether a URL's host is this machine: `localhost`, 127.0.0.0/8 or ::1."""
    try:
        return hostname == "localhost" or ipaddress.ip_address(hostname).is_loopback
    except ValueError:
        return False


def _origin(value: str) -> str:
    """An origin spelled the one way that is compared byte for byte: no trailing slash, lower-case host."""
    parts = urlsplit(value.strip())
    if parts.scheme not in ("https", "http") or not parts.hostname:
        raise ValueError("must be a URL such as https://memory.example.org")
    if parts.path not in ("", "/") or parts.query or parts.fragment or "@" in parts.netloc:
        raise ValueError("must be an origin: scheme, host and port, nothing after them")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("must be https, except on this machine (127.0.0.1, localhost, ::1)")
    default_port = 443 if parts.scheme == "https" else 80
    host = f"[{parts.hostname}]" if ":" in parts.hostname else parts.hostname
    port = f":{parts.port}" if parts.port not in (None, default_port) else ""
    return f"{parts.scheme}://{host}{port}"


def _service_url(value: str) -> str:
    """Where keys and memories are sent: never in the clear, except to this machine."""
    parts = urlsplit(value.strip())
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://api.example.org/v1")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("must be https, except on this machine (127.0.0.1, localhost, ::1)")
    return value.strip().rstrip("/")


def _words(value: Any) -> Any:
    return tuple(value.replace(",", " ").split()) if isinstance(value, str) else value


def _state_key(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        key = base64.urlsafe_b64decode(value.strip() + "=" * (-len(value.strip()) % 4))
    except binascii.Error as error:
        raise ValueError("must be base64url") from error
    if len(key) != STATE_KEY_BYTES:
        raise ValueError(f"must be {STATE_KEY_BYTES} random bytes in base64url, {len(key)} found")
    return key


def _seconds(value: Any) -> Any:
    if not isinstance(value, str):
        return value
    try:
        return timedelta(seconds=int(value))
    except (ValueError, OverflowError):
        raise ValueError("must be a number of seconds") from None


def _default_state_dir(environ: Mapping[str, str]) -> str:
    """systemd's StateDirectory=, else the XDG state directory."""
    if state_directory := environ.get("STATE_DIRECTORY"):
        return state_directory.split(":")[0]
    return str(Path(environ.get("XDG_STATE_HOME") or "~/.local/state") / "vademecum")


Origin = Annotated[str, BeforeValidator(_origin)]
ServiceUrl = Annotated[str, BeforeValidator(_service_url)]
Network = IPv4Network | IPv6Network
_NAMED_NETWORKS = {
    "loopback": ("127.0.0.0/8", "::1/128"),
    "uniquelocal": ("10.0.0.0/8", "172.16.0.0/12", "192.168.0.0/16", "fc00::/7"),
}


def _networks(value: Any) -> Any:
    """Addresses, networks, and the two names; never everybody."""
    if not isinstance(value, str):
        return value
    found: list[Network] = []
    for word in value.replace(",", " ").split():
        for spelled in _NAMED_NETWORKS.get(word, (word,)):
            try:
                found.append(ip_network(spelled))
            except ValueError:
                raise ValueError(f"{word} is no address or network, nor loopback or uniquelocal") from None
    if any(network.prefixlen == 0 for network in found):
        raise ValueError("not everybody can be a trusted proxy")
    return tuple(found)


Networks = Annotated[tuple[Network, ...], BeforeValidator(_networks)]
Lifetime = Annotated[timedelta, BeforeValidator(_seconds)]
"""Given in seconds."""
Origins = Annotated[tuple[Origin, ...], BeforeValidator(_words)]


class Settings(BaseModel):
    """Everything a deployment can decide; deploy/vademecum.env lists and explains each."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    public_url: Origin = "http://127.0.0.1:8788"
    host: str = "127.0.0.1"
    port: int = Field(default=8788, ge=0, le=65535)
    state_dir: Path
    state_key: Annotated[SecretBytes | None, BeforeValidator(_state_key)] = None
    store: Literal["sqlite", "firestore"] = "sqlite"
    firestore_project: str = ""
    firestore_database: str = "(default)"
    identity: Literal["passphrase"] = "passphrase"
    embedder: Literal["local", "gemini", "openai", "none"] = "local"
    embedding_model: str | None = None
    embedding_dimensions: int | None = Field(default=None, ge=1, le=MAX_DIMENSIONS)
    openai_base_url: ServiceUrl = "https://api.openai.com/v1"
    openai_api_key: SecretStr | None = None
    gemini_api_key: SecretStr | None = None
    gemini_project: str | None = None
    gemini_location: str | None = None
    gemini_base_url: ServiceUrl | None = None
    language_model: str | None = None
    tool_surface: Literal["default", "full"] = "default"
    query_log: bool = False
    allowed_origins: Origins = ()
    trusted_proxies: Networks = ()
    access_token_lifetime: Lifetime = Field(
        default=timedelta(hours=1), gt=timedelta(0), le=timedelta(hours=1)
    )
    refresh_idle_lifetime: Lifetime = Field(default=timedelta(days=30), gt=timedelta(0))
    refresh_absolute_lifetime: Lifetime = Field(default=timedelta(days=365), gt=timedelta(0))
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _plain_http_stays_on_this_machine(self) -> "Settings":
        if not self.is_https and not is_loopback(self.host):
            raise ValueError("HOST listens beyond this machine, so PUBLIC_URL must be an https address")
        return self

    @model_validator(mode="after")
    def _gemini_can_be_reached(self) -> "Settings":
        uses_gemini = self.embedder == "gemini" or self.language_model is not None
        if uses_gemini and self.gemini_api_key is None and self.gemini_project is None:
            raise ValueError("Gemini needs GEMINI_API_KEY, or GEMINI_PROJECT for Vertex AI")
        return self

    @model_validator(mode="after")
    def _a_model_of_the_embedder(self) -> "Settings":
        if self.embedder in ("local", "none") and (self.embedding_model or self.embedding_dimensions):
            raise ValueError(
                "EMBEDDING_MODEL and EMBEDDING_DIMENSIONS are for the embedders gemini and openai"
            )
        return self

    @model_validator(mode="after")
    def _firestore_is_in_a_project(self) -> "Settings":
        if self.store == "firestore" and not self.firestore_project:
            raise ValueError("STORE is firestore, so FIRESTORE_PROJECT must name its Google Cloud project")
        return self

    @model_validator(mode="after")
    def _state_dir_is_expanded(self) -> "Settings":
        # A frozen model: the one place that may still shape a field.
        object.__setattr__(self, "state_dir", self.state_dir.expanduser().absolute())
        return self

    @property
    def is_https(self) -> bool:
        """Whether the public URL is https, so that cookies are `Secure` and pages send HSTS."""
        return self.public_url.startswith("https://")

    @property
    def resource(self) -> str:
        """The resource identifier of the MCP endpoint (RFC 8707), which is also the URL a person types."""
        return self.public_url + "/mcp"

    @property
    def database_path(self) -> Path:
        """The one SQLite file."""
        return self.state_dir / "vademecum.db"

    @classmethod
    def from_env(cls, environ: Mapping[str, str] = os.environ) -> "Settings":
        """Reads and checks everything.

        Raises:
            SettingsError: with every problem found, not only the first.
        """
        values, problems = _collect(environ)
        values.setdefault("state_dir", _default_state_dir(environ))
        if "port" in values and "host" not in values:
            values.setdefault("public_url", f"http://127.0.0.1:{values['port']}")
        try:
            settings = cls.model_validate(values)
        except ValidationError as error:
            problems += [_problem(detail["loc"], detail["msg"]) for detail in error.errors()]
        else:
            # Google's client obeys this variable whoever has set it, and an emulator knows no passwords.
            if environ.get(FIRESTORE_EMULATOR) and not is_loopback(
                urlsplit(settings.public_url).hostname or ""
            ):
                problems.append(f"{FIRESTORE_EMULATOR}: an emulator serves this machine only, not PUBLIC_URL")
        if problems:
            raise SettingsError(problems)
        return settings


def _problem(location: tuple[int | str, ...], message: str) -> str:
    name = f"{PREFIX}{str(location[0]).upper()}" if location else PREFIX.rstrip("_")
    if message == "Extra inputs are not permitted":
        return f"{name}: no such setting"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _collect(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The raw values by field name, and the problems met while gathering them."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    sources = {name: value for name, value in environ.items() if name.startswith(PREFIX)}
    sources.pop(CLIENT_TOKEN, None)
    if directory := environ.get("CREDENTIALS_DIRECTORY"):
        for path in sorted(Path(directory).glob(f"{PREFIX}*")):
            sources.setdefault(f"{path.name}_FILE", str(path))
    for name, value in sources.items():
        field = name.removeprefix(PREFIX).lower()
        if not field.endswith("_file"):
            values[field] = value
            continue
        if name.removesuffix("_FILE") in sources:
            problems.append(f"{name}: {name.removesuffix('_FILE')} is set as well; keep one of the two")
        try:
            values[field.removesuffix("_file")] = Path(value).read_text(encoding="utf-8").strip()
        except (OSError, UnicodeDecodeError) as error:
            problems.append(f"{name}: {error}")
    return values, problems
