"""The settings: read once from the environment, checked together, never changed.

A value comes from `VADEMECUM_X`, from the file that `VADEMECUM_X_FILE` names, or from a systemd credential
called `VADEMECUM_X`. Nothing else in the project reads the environment, but for systemd.py.
"""

import base64
import binascii
import ipaddress
import os
import re
from collections.abc import Collection, Mapping
from datetime import timedelta
from ipaddress import IPv4Network, IPv6Network, ip_network
from pathlib import Path
from typing import Annotated, Any, Literal
from urllib.parse import urlsplit

from pydantic import (
    AfterValidator,
    BaseModel,
    BeforeValidator,
    ConfigDict,
    Field,
    SecretBytes,
    SecretStr,
    ValidationError,
    model_validator,
)

from connector.unsafe_settings import UnsafeSettings, find_problems

PREFIX = "VADEMECUM_"
FIRESTORE_EMULATOR = "FIRESTORE_EMULATOR_HOST"
"""The one variable of another's that matters here."""
FOREIGN_NAMES = {"FIREBASE_AUTH_EMULATOR_HOST": "firebase_auth_emulator_host"}
"""What Google's own tools call it; ignoring it silently would be no safer than obeying it."""
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


def _issuer(value: str) -> str:
    """An OpenID issuer, kept byte for byte: it is compared with what the issuer says of itself."""
    parts = urlsplit(value)
    if parts.scheme not in ("https", "http") or not parts.hostname or parts.query or parts.fragment:
        raise ValueError("must be a URL such as https://accounts.google.com")
    if parts.scheme == "http" and not is_loopback(parts.hostname):
        raise ValueError("must be https, except on this machine (127.0.0.1, localhost, ::1)")
    return value


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


def _contact(value: Any) -> Any:
    """An e-mail address or a page, as an address that a link and security.txt can hold (RFC 9116 §2.5.3)."""
    if not isinstance(value, str) or not value.strip():
        return value and value.strip()
    given = value.strip()
    mailbox = given.removeprefix("mailto:")
    if re.fullmatch(r"[^\s@<>:/?]+@[^\s@<>:/?]+", mailbox):
        return f"mailto:{mailbox}"
    parts = urlsplit(given)
    if parts.scheme == "https" and parts.hostname and not re.search(r"[\s<>]", given):
        return given
    raise ValueError("must be an e-mail address or an https address")


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
Words = Annotated[tuple[str, ...], BeforeValidator(_words)]
FirebaseMethod = Literal["google", "password"]


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
    identity: Literal["passphrase", "firebase", "oidc"] = "passphrase"
    allowed_emails: Words = ()
    allowed_uids: Words = ()
    allowed_domains: Words = ()
    open_sign_up: bool = False
    firebase_project: str = Field(default="", pattern=r"^([a-z0-9][a-z0-9-]{2,62})?$")
    firebase_api_key: str = Field(default="", pattern=r"^[A-Za-z0-9_-]*$")
    firebase_auth_domain: str = Field(default="", pattern=r"^([a-z0-9-]+(\.[a-z0-9-]+)+(:[0-9]+)?)?$")
    firebase_methods: Annotated[tuple[FirebaseMethod, ...], BeforeValidator(_words)] = ("google", "password")
    firebase_sdk: Literal["own", "cdn"] = "own"
    firebase_auth_emulator_host: str = Field(
        default="", pattern=r"^([A-Za-z0-9.-]+|\[[0-9a-f:]+\])?(:[0-9]+)?$"
    )
    oidc_issuer: Annotated[str, AfterValidator(_issuer)] | None = None
    oidc_client_id: str = ""
    oidc_client_secret: SecretStr | None = None
    oidc_name: str = ""
    oidc_prompt: Words = ()
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
    operator: str = ""
    contact: Annotated[str, BeforeValidator(_contact)] = ""
    privacy_text: str = ""
    terms_text: str = ""
    support_text: str = ""
    text_language: str = Field(default="en", pattern=r"^[A-Za-z]{2,8}(-[A-Za-z0-9]{1,8})*$")
    openai_apps_challenge: str = Field(default="", pattern=r"^[\x21-\x7e]*$")
    metrics_port: int | None = Field(default=None, ge=1, le=65535)
    log_level: Literal["debug", "info", "warning", "error"] = "info"

    @model_validator(mode="after")
    def _settings_are_safe_together(self) -> "Settings":
        if problems := find_problems(self):
            raise UnsafeSettings(problems)
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
    def is_on_this_machine_only(self) -> bool:
        """Whether nobody else can reach the server: both its address and where it listens are loopback."""
        return is_loopback(urlsplit(self.public_url).hostname or "") and is_loopback(self.host)

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
            problems += _problems(error)
            bad = {str(detail["loc"][0]) for detail in error.errors() if detail["loc"]}
            problems += cls._further_problems({name: values[name] for name in values.keys() - bad}, bad)
        # Google's client obeys this variable whoever has set it, and an emulator knows no passwords.
        if environ.get(FIRESTORE_EMULATOR) and not _is_for_this_machine(values.get("public_url")):
            problems.append(f"{FIRESTORE_EMULATOR}: an emulator serves this machine only, not PUBLIC_URL")
        if problems:
            raise SettingsError(problems)
        return settings

    @classmethod
    def _further_problems(cls, values: dict[str, Any], bad: set[str]) -> list[str]:
        """What is unsafe among the settings that could be read, where some could not."""
        try:
            if bad:
                cls.model_validate(values)
        except ValidationError as error:
            return _problems(error, bad)
        return []


def _is_for_this_machine(public_url: str | None) -> bool:
    """Whether a public URL as it was given, or the default one, is this machine's."""
    return public_url is None or is_loopback(urlsplit(public_url.strip()).hostname or "")


def _problems(error: ValidationError, left_out: Collection[str] = ()) -> list[str]:
    """One line for each; without what depends on settings that are already known to be wrong."""
    found = []
    for detail in error.errors():
        unsafe = detail.get("ctx", {}).get("error")
        if isinstance(unsafe, UnsafeSettings):
            found += [problem.text for problem in unsafe.problems if not problem.fields & {*left_out}]
        else:
            found.append(_problem(detail["loc"], detail["msg"]))
    return found


def _problem(location: tuple[int | str, ...], message: str) -> str:
    name = f"{PREFIX}{str(location[0]).upper()}" if location else PREFIX.rstrip("_")
    if message == "Extra inputs are not permitted":
        return f"{name}: no such setting"
    return f"{name}: {message.removeprefix('Value error, ')}"


def _collect(environ: Mapping[str, str]) -> tuple[dict[str, Any], list[str]]:
    """The raw values by field name, and the problems met while gathering them."""
    values: dict[str, Any] = {}
    problems: list[str] = []
    values |= {field: environ[name] for name, field in FOREIGN_NAMES.items() if environ.get(name)}
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
