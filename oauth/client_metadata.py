"""What a client says about itself (RFC 7591 §2), whether it registers or publishes a document.

Lenient where that is harmless (unknown members, scopes and methods), strict where a code could go astray.
"""

import re
import unicodedata
from collections.abc import Collection, Mapping
from typing import Any

from authlib.oauth2.rfc7591 import ClientMetadataClaims
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from oauth.errors import InvalidClientMetadata, InvalidRedirectURI
from oauth.redirect_uris import MAX_REDIRECT_URIS, check_registrable

AUTH_METHODS = ("none", "private_key_jwt", "client_secret_basic", "client_secret_post")
SECRET_METHODS = frozenset({"client_secret_basic", "client_secret_post"})
GRANT_TYPES = ("authorization_code", "refresh_token")
RESPONSE_TYPES = ("code",)

MAX_NAME_LENGTH = 80
MAX_TEXT_LENGTH = 2000

_HTTPS_URL = re.compile(r"https://[A-Za-z0-9.-]+(?::[0-9]{1,5})?(?:[/?][A-Za-z0-9._~:/?@!$&()*+,;=%-]*)?")
_INVISIBLE = {"Cc", "Cf", "Cs", "Co", "Cn", "Zl", "Zp"}
_PRIVATE_MEMBERS = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k"})


class ClientMetadata(ClientMetadataClaims):
    """Authlib's list of members, each with this server's rule; `parse` is the way in."""

    def __init__(
        self, members: Mapping[str, Any], scopes: Collection[str], app_redirect_uris: Collection[str]
    ) -> None:
        known = {name: members[name] for name in self.REGISTERED_CLAIMS if members.get(name) is not None}
        super().__init__(known, {})
        self._scopes = scopes
        self._app_redirect_uris = app_redirect_uris

    def validate_redirect_uris(self) -> None:
        """At least one, and a code may be sent to every one of them."""
        uris = self.get("redirect_uris")
        if not isinstance(uris, list) or not 0 < len(uris) <= MAX_REDIRECT_URIS:
            raise InvalidRedirectURI(f"redirect_uris must list 1 to {MAX_REDIRECT_URIS} URIs")
        for uri in uris:
            check_registrable(uri, self._app_redirect_uris)

    def validate_token_endpoint_auth_method(self) -> None:
        """Missing or unknown means `none`: several clients lose a secret before they refresh."""
        asked = self._text("token_endpoint_auth_method")
        method = asked if asked in AUTH_METHODS else "none"
        if method == "private_key_jwt" and not {"jwks", "jwks_uri"} & self.keys():
            raise InvalidClientMetadata("private_key_jwt needs jwks or jwks_uri")
        self.update(token_endpoint_auth_method=method)

    def validate_grant_types(self) -> None:
        """Those that are offered; refreshing always is, for some clients forget to say it."""
        offered = self._offered("grant_types", GRANT_TYPES, GRANT_TYPES)
        self["grant_types"] = [name for name in GRANT_TYPES if name in {*offered, "refresh_token"}]

    def validate_response_types(self) -> None:
        """Only `code` is offered."""
        self["response_types"] = self._offered("response_types", RESPONSE_TYPES, RESPONSE_TYPES)

    def validate_client_name(self) -> None:
        """A name to show: one line, nothing invisible, nothing that turns the text around."""
        self._replace("client_name", displayable(self._text("client_name") or ""))

    def validate_client_uri(self) -> None:
        """Dropped unless https."""
        self._https_or_nothing("client_uri")

    def validate_logo_uri(self) -> None:
        """Dropped unless https; never fetched, and never put on a page."""
        self._https_or_nothing("logo_uri")

    def validate_tos_uri(self) -> None:
        """Dropped unless https."""
        self._https_or_nothing("tos_uri")

    def validate_policy_uri(self) -> None:
        """Dropped unless https."""
        self._https_or_nothing("policy_uri")

    def validate_scope(self) -> None:
        """Known scopes are echoed; what is registered never limits what may be asked for."""
        known = [scope for scope in (self._text("scope") or "").split() if scope in self._scopes]
        self._replace("scope", " ".join(known))

    def validate_contacts(self) -> None:
        """Not needed, so not kept."""
        self.pop("contacts", None)

    def validate_jwks_uri(self) -> None:
        """The client's keys by address: fetched only when an assertion is presented."""
        uri = self._text("jwks_uri")
        if uri is not None and not _HTTPS_URL.fullmatch(uri):
            raise InvalidClientMetadata("jwks_uri must be an https URL")

    def validate_jwks(self) -> None:
        """The client's keys by value: public ones, and not beside an address."""
        jwks = self.get("jwks")
        if jwks is not None and "jwks_uri" in self:
            raise InvalidClientMetadata("jwks and jwks_uri exclude each other")
        if jwks is not None:
            check_public_keys(jwks)

    def validate_software_id(self) -> None:
        """Echoed."""
        self._text("software_id")

    def validate_software_version(self) -> None:
        """Echoed."""
        self._text("software_version")

    def _text(self, name: str) -> str | None:
        value = self.get(name)
        if value is not None and not (isinstance(value, str) and len(value) <= MAX_TEXT_LENGTH):
            raise InvalidClientMetadata(f"{name} must be a string of at most {MAX_TEXT_LENGTH} characters")
        return value

    def _replace(self, name: str, value: str) -> None:
        self.pop(name, None)
        if value:
            self[name] = value

    def _https_or_nothing(self, name: str) -> None:
        if not _HTTPS_URL.fullmatch(self._text(name) or ""):
            self.pop(name, None)

    def _offered(self, name: str, supported: Collection[str], default: Collection[str]) -> list[str]:
        asked = self.get(name) or list(default)
        if not isinstance(asked, list) or not all(isinstance(value, str) for value in asked):
            raise InvalidClientMetadata(f"{name} must be a list of strings")
        offered = [value for value in supported if value in asked]
        if not offered:
            raise InvalidClientMetadata(f"nothing in {name} is offered here")
        return offered


def parse(
    members: Mapping[str, Any], scopes: Collection[str], app_redirect_uris: Collection[str]
) -> dict[str, Any]:
    """The members that this server keeps, each checked or put right.

    Args:
        members: the JSON object that the client sent or published.
        scopes: those worth echoing.
        app_redirect_uris: app-scheme redirect URIs that are allowed as they stand.

    Raises:
        InvalidRedirectURI: no redirect URI, or one that no code may be sent to.
        InvalidClientMetadata: a member of the wrong type, or nothing left of what was asked for.
    """
    claims = ClientMetadata(members, scopes, app_redirect_uris)
    claims.validate()  # type: ignore[no-untyped-call]
    kept: dict[str, Any] = claims.get_registered_claims()  # type: ignore[no-untyped-call]
    return kept


def check_public_keys(jwks: object) -> KeySet:
    """A JWK set of public keys (RFC 7517 §5).

    Raises:
        InvalidClientMetadata: not a key set, or one with a private or symmetric key.
    """
    keys = jwks.get("keys") if isinstance(jwks, dict) else None
    if not isinstance(keys, list) or not 0 < len(keys) <= 20:
        raise InvalidClientMetadata("jwks must hold 1 to 20 keys")
    if not all(isinstance(key, dict) and not _PRIVATE_MEMBERS & key.keys() for key in keys):
        raise InvalidClientMetadata("jwks must hold public keys only")
    try:
        return KeySet.import_key_set({"keys": keys})
    except (JoseError, ValueError, TypeError, KeyError):
        raise InvalidClientMetadata("jwks holds a key that cannot be read") from None


def displayable(text: str) -> str:
    """One visible line of at most 80 characters, for a page or a log (UTS 36 §2.11, UTS 39)."""
    visible = "".join(" " if unicodedata.category(c) in _INVISIBLE else c for c in text)
    line = " ".join(visible.split())
    return line if len(line) <= MAX_NAME_LENGTH else line[: MAX_NAME_LENGTH - 1].rstrip() + "…"
