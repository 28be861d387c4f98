"""The support bundle: what somebody who helps needs to know, without anything that is the owner's or secret.

Everything in it is chosen, nothing is filtered out of something larger: a setting that is a secret shows only
that it is set, a log line keeps the fields named here, a traceback its places and its kind. As a second wall
the values of all known secrets, and whatever looks like a token, are blotted out of every member.
"""

import base64
import io
import json
import re
import zipfile
from collections.abc import Iterable, Mapping
from typing import Any

from pydantic import SecretBytes, SecretStr

from connector.settings import Settings

MAX_LOG_LINES = 2_000
BLOT = "***"

LOGGED_FIELDS = frozenset(
    {
        *("time", "level", "logger", "request_id", "method", "path", "status", "ms", "step", "outcome"),
        *("error", "code", "client_id", "client_name", "grant_id", "generation", "tool", "provider"),
        *("service", "records", "events", "file", "form", "public_url", "mcp", "mend"),
    }
)
"""What is kept of a log line; anything else that a later version may log stays out until it is named here."""
_PRIVATE_SETTINGS = frozenset({"allowed_emails", "allowed_uids", "allowed_domains"})
"""Not secret, but about people."""
_TOKENS = re.compile(
    r"""vmc_(?:code|refresh|pat)_[\w.~-]* | eyJ[\w-]{8,}(?:\.[\w-]*)* | AIza[\w-]{30,}
    | (?i:bearer|basic)\ +[\w.~+/=-]{8,}""",
    re.VERBOSE,
)
_EMAIL = re.compile(r"[\w.+-]+@[\w-]+(?:\.[\w-]+)+")
_EVENT = re.compile(r"[a-z][a-z0-9_.]*")
_KIND = re.compile(r"([A-Za-z_][\w.]*(?:Error|Exception))(?::|$)")
_PLACE = re.compile(r'^ *File "(.+)", line \d+, in .+$')


def masked(settings: Settings) -> dict[str, Any]:
    """Every setting; of a secret, and of what names people, only whether it is set."""
    shown: dict[str, Any] = {}
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr | SecretBytes) or name in _PRIVATE_SETTINGS:
            shown[name] = "set" if value else "not set"
        elif isinstance(value, tuple):
            shown[name] = [str(each) for each in value]
        else:
            shown[name] = value if isinstance(value, bool | int | None) else str(value)
    return shown


def secrets_of(settings: Settings) -> list[str]:
    """The values of all secret settings, as they may be written somewhere."""
    found = []
    for name in type(settings).model_fields:
        value = getattr(settings, name)
        if isinstance(value, SecretStr):
            found.append(value.get_secret_value())
        elif isinstance(value, SecretBytes):
            found += spellings(value.get_secret_value())
    return [secret for secret in found if secret]


def spellings(key: bytes) -> list[str]:
    """The ways to write down a key."""
    standard, url = base64.b64encode(key).decode(), base64.urlsafe_b64encode(key).decode()
    return [key.hex(), standard, standard.rstrip("="), url, url.rstrip("=")]


def log_lines(lines: Iterable[str]) -> list[dict[str, Any]]:
    """The last lines that are ours, each with the fields that are known to be harmless.

    Args:
        lines: as the server writes them, also with what journalctl puts before.
    """
    kept: list[dict[str, Any]] = []
    for line in lines:
        try:
            entry = json.loads(line[line.index("{") :])
        except ValueError:
            continue
        if isinstance(entry, dict) and isinstance(entry.get("event"), str):
            kept.append(_known(entry))
            del kept[:-MAX_LOG_LINES]
    return kept


def _known(entry: Mapping[str, Any]) -> dict[str, Any]:
    known = {name: value for name, value in entry.items() if name in LOGGED_FIELDS}
    # Ours are fixed names; what a library says may quote what it was given.
    known["event"] = entry["event"] if _EVENT.fullmatch(entry["event"]) else "…"
    if isinstance(traceback := entry.get("traceback"), str):
        known["traceback"] = _places(traceback)
    return known


def _places(traceback: str) -> list[str]:
    """Where it went wrong and what kind of error it was; the error's own words may quote a memory."""
    lines = traceback.splitlines()
    places = [line.strip() for line in lines if _PLACE.match(line)]
    kinds = [match[1] for match in map(_KIND.match, lines) if match is not None]
    return [*places, *kinds[-1:]]


def bundle(members: Mapping[str, Any], secrets: Iterable[str]) -> bytes:
    """A zip of JSON documents, with whatever looks like a secret blotted out.

    Args:
        members: file names, and what to write there.
        secrets: values that must not be in it, however they came to be there.
    """
    known = sorted((secret for secret in secrets if len(secret) >= 4), key=len, reverse=True)
    written = io.BytesIO()
    with zipfile.ZipFile(written, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, content in members.items():
            archive.writestr(name, json.dumps(_blotted(content, known), ensure_ascii=False, indent=1) + "\n")
    return written.getvalue()


def _blotted(value: Any, secrets: list[str]) -> Any:
    """The same without them; in keys too."""
    if isinstance(value, Mapping):
        return {_blotted(str(key), secrets): _blotted(each, secrets) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_blotted(each, secrets) for each in value]
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, BLOT)
        return _EMAIL.sub(BLOT, _TOKENS.sub(BLOT, value))
    return value
