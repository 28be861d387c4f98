"""What comes over the wire, parsed strictly: forms, query strings and JSON bodies.

RFC 6749 §3.1, §3.2 and appendix B: parameters are UTF-8 and form-encoded, sent at most once, and an empty
value means the parameter was left out. `resource` alone may repeat (RFC 8707 §2).
"""

import json
import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, NoReturn
from urllib.parse import unquote_to_bytes

from authlib.oauth2.rfc6749 import OAuth2Request
from authlib.oauth2.rfc6749.requests import BasicOAuth2Payload

from oauth.errors import InvalidClientMetadata, InvalidRequest

MAX_PARAMETERS = 100

_FORM = re.compile(rb"(?:[!-$&-~]|%[0-9A-Fa-f]{2})*")


def parse_form(raw: bytes) -> list[tuple[str, str]]:
    """The name-value pairs of a form-encoded body or query string, in order, repeats included.

    Raises:
        InvalidRequest: broken escapes, bytes outside printable ASCII, invalid UTF-8, NUL, or far too many.
    """
    if not _FORM.fullmatch(raw):
        raise InvalidRequest("the parameters are not form-encoded")
    pairs = [pair.partition(b"=") for pair in raw.split(b"&") if pair]
    if len(pairs) > MAX_PARAMETERS:
        raise InvalidRequest("too many parameters")
    return [(_decode(name), _decode(value)) for name, _, value in pairs]


def _decode(encoded: bytes) -> str:
    try:
        text = unquote_to_bytes(encoded.replace(b"+", b" ")).decode()
    except UnicodeDecodeError:
        raise InvalidRequest("a parameter is not UTF-8") from None
    check_text(text)
    return text


def check_text(text: str) -> None:
    """Refuses what no identifier, token or state may hold, however it came in.

    Raises:
        InvalidRequest: a NUL or half a surrogate pair.
    """
    if "\x00" in text or any("\ud800" <= character <= "\udfff" for character in text):
        raise InvalidRequest("a parameter holds characters that are never valid")


def single(params: Sequence[tuple[str, str]], name: str) -> str | None:
    """The parameter's value; None when it is absent or empty.

    Raises:
        InvalidRequest: it was sent twice (RFC 6749 §3.1).
    """
    values = [value for key, value in params if key == name]
    if len(values) > 1:
        raise InvalidRequest("a parameter was sent more than once")
    return values[0] or None if values else None


def refuse_repeats(params: Sequence[tuple[str, str]]) -> None:
    """Every parameter at most once, but for `resource`.

    Raises:
        InvalidRequest: one was sent twice (RFC 6749 §3.1, §3.2).
    """
    counts = Counter(name for name, _ in params if name != "resource")
    if any(count > 1 for count in counts.values()):
        raise InvalidRequest("a parameter was sent more than once")


def resources(params: Sequence[tuple[str, str]]) -> tuple[str, ...]:
    """Every `resource` that was sent (RFC 8707 §2)."""
    return tuple(value for name, value in params if name == "resource" and value)


def parse_json(raw: bytes) -> dict[str, Any]:
    """A JSON object.

    Raises:
        InvalidClientMetadata: anything else, a member named twice, NaN, or half a surrogate pair.
    """
    try:
        value = json.loads(raw.decode(), object_pairs_hook=_members, parse_constant=_no_constant)
        json.dumps(value, ensure_ascii=False).encode()
    except (ValueError, RecursionError):
        raise InvalidClientMetadata("the body is not JSON") from None
    if not isinstance(value, dict):
        raise InvalidClientMetadata("the body is not a JSON object")
    return value


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise ValueError("a member is named twice")
    return members


def _no_constant(name: str) -> NoReturn:
    raise ValueError(f"{name} is not JSON")


class FormRequest(OAuth2Request):
    """A POST to a token endpoint, in the shape that Authlib's grants and endpoints read."""

    payload: BasicOAuth2Payload  # type: ignore[assignment]  # Authlib fills it in later

    def __init__(
        self, uri: str, params: Sequence[tuple[str, str]], headers: Mapping[str, str] | None = None
    ) -> None:
        """Refuses repeats. `uri` is built from the issuer, never from the `Host` header."""
        super().__init__("POST", uri, headers=headers)
        refuse_repeats(params)
        self.resources = resources(params)
        self._form = {name: value for name, value in params if value}
        self.payload = BasicOAuth2Payload(self._form)

    @property
    def form(self) -> dict[str, str]:
        """The parameters that have a value."""
        return self._form
