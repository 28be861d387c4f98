"""Redirect URIs: which may be registered, and which of them a request names.

OAuth 2.1 §2.3.1 and §8.4.2, RFC 8252 §7.3, RFC 9700 §4.1: compared as strings; on loopback the port is free.
"""

import re
from collections.abc import Collection, Iterable
from urllib.parse import unquote

from oauth.errors import InvalidRedirectURI

MAX_REDIRECT_URIS = 20
MAX_REDIRECT_URI_LENGTH = 2000

APP_REDIRECT_URIS = ("cursor://anysphere.cursor-mcp/oauth/callback",)
"""App-scheme URIs accepted as they stand: any other app may claim the scheme, so each is a decision."""

RESPONSE_PARAMETERS = frozenset({"code", "state", "iss", "error", "error_description", "error_uri"})

_LOOPBACK = re.compile(r"(http)://(127\.0\.0\.1|\[::1\]|localhost)(?::([0-9]{1,5}))?(/[^?#]*)?(\?[^#]*)?")
_HTTPS = re.compile(
    r"https://(?:[A-Za-z0-9](?:[A-Za-z0-9.-]*[A-Za-z0-9])?|\[[0-9A-Fa-f:.]+\])(?::([0-9]{1,5}))?(/[^?#]*)?(\?[^#]*)?"
)
_URI_CHARACTERS = re.compile(r"(?:[A-Za-z0-9._~:/?@!$&'()+,;=\[\]-]|%[0-9A-Fa-f]{2})+")


def check_registrable(uri: object, app_redirect_uris: Collection[str] = APP_REDIRECT_URIS) -> str:
    """The URI, if codes may be sent there: https, http on loopback, or a listed app scheme.

    Raises:
        InvalidRedirectURI: any other scheme or host, user info, fragment, wildcard, dot segments, illegal
            characters, or a query that would double a parameter of the response.
    """
    if not isinstance(uri, str) or len(uri) > MAX_REDIRECT_URI_LENGTH:
        raise InvalidRedirectURI("a redirect URI is not a string, or too long")
    if uri in app_redirect_uris:
        return uri
    match = _LOOPBACK.fullmatch(uri) or _HTTPS.fullmatch(uri)
    if match is None or not _URI_CHARACTERS.fullmatch(uri):
        raise InvalidRedirectURI("redirect URIs are https, or http on a loopback address")
    port, path, query = match.groups()[-3:]
    if not _is_port(port) or _has_dot_segment(path or ""):
        raise InvalidRedirectURI("a redirect URI has an impossible port or dot segments")
    if _names(query or "") & RESPONSE_PARAMETERS:
        raise InvalidRedirectURI("a redirect URI carries a parameter of the response")
    return uri


def _is_port(port: str | None) -> bool:
    return port is None or 0 < int(port) <= 65535


def _has_dot_segment(path: str) -> bool:
    return any(unquote(segment) in (".", "..") for segment in path.split("/"))


def _names(query: str) -> set[str]:
    return {unquote(pair.partition("=")[0].replace("+", " ")) for pair in query[1:].split("&")}


def is_registered(uri: str, registered: Iterable[str]) -> bool:
    """Whether a request's URI is one of the registered ones (RFC 9700 §2.1, RFC 8252 §7.3)."""
    requested = _loopback_without_port(uri)
    return any(
        uri == known or (requested is not None and requested == _loopback_without_port(known))
        for known in registered
    )


def _loopback_without_port(uri: str) -> tuple[str, ...] | None:
    match = _LOOPBACK.fullmatch(uri)
    if match is None or not _is_port(match[3]):
        return None
    scheme, host, _, path, query = match.groups()
    return scheme, host, path or "/", query or ""


def is_loopback(uri: str) -> bool:
    """Whether the code goes to a program on the owner's own machine, which anybody may claim to be."""
    return _LOOPBACK.fullmatch(uri) is not None
