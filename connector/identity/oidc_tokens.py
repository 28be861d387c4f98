"""What an OpenID Connect issuer publishes (Discovery §3), and whether a token is its own (Core §3.1.3.7)."""

import contextlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from datetime import datetime
from typing import Any

from authlib.oauth2.claims import ClaimsOption
from authlib.oidc.core import CodeIDToken
from joserfc import jwt
from joserfc.errors import JoseError
from joserfc.jwk import ECKey, Key, KeySet, OKPKey, RSAKey

from connector.identity.provider import SignInRefused
from connector.identity.provider_http import ProviderHttp
from connector.identity.published import Published, find_key

ALGORITHMS = [
    "RS256",
    "RS384",
    "RS512",
    "PS256",
    "PS384",
    "PS512",
    "ES256",
    "ES384",
    "ES512",
    "Ed25519",
    "EdDSA",
]
CLOCK_SKEW_SECONDS = 60
MAX_TOKEN_CHARACTERS = 16 * 1024
MAX_SUBJECT_CHARACTERS = 255


@dataclass(frozen=True)
class Issuer:
    """An issuer's metadata, as far as they are used."""

    issuer: str
    authorization_endpoint: str
    token_endpoint: str
    jwks_uri: str
    userinfo_endpoint: str
    """Empty where there is none."""
    scopes_supported: frozenset[str]
    takes_basic: bool
    """Whether the client's secret travels in the `Authorization` header, as it should by default."""
    sends_iss: bool
    """Whether every answer names its issuer (RFC 9207 §3)."""


def discover(document: Mapping[str, Any], issuer: str) -> Issuer:
    """The metadata of this very issuer.

    Raises:
        ValueError: another one's, or an endpoint that is no https address.
    """
    if document["issuer"] != issuer:
        raise ValueError("another issuer's metadata")
    endpoints = {
        name: str(document[name]) for name in ("authorization_endpoint", "token_endpoint", "jwks_uri")
    }
    endpoints["userinfo_endpoint"] = str(document.get("userinfo_endpoint") or "")
    # The issuer may be plain http on this machine only (the settings see to it), and its endpoints with it.
    schemes = ("https://",) if issuer.startswith("https://") else ("https://", "http://")
    if any(endpoint and not endpoint.startswith(schemes) for endpoint in endpoints.values()):
        raise ValueError("not an https endpoint")
    methods = document.get("token_endpoint_auth_methods_supported") or ["client_secret_basic"]
    return Issuer(
        issuer=issuer,
        scopes_supported=frozenset(document.get("scopes_supported") or ()),
        takes_basic="client_secret_basic" in methods,
        sends_iss=document.get("authorization_response_iss_parameter_supported") is True,
        **endpoints,
    )


def parse_keys(document: Mapping[str, Any]) -> Mapping[str, Key]:
    """The public signing keys by key id, and a single one also as the key of tokens that name none."""
    found: dict[str, Key] = {}
    for jwk in document["keys"]:
        if jwk.get("use", "sig") != "sig" or jwk.get("kty") == "oct":
            continue
        # A kind of key that is not known here must not hide the others.
        with contextlib.suppress(JoseError, ValueError, KeyError):
            (key,) = KeySet.import_key_set({"keys": [jwk]}).keys
            if isinstance(key, RSAKey | ECKey | OKPKey):
                found[str(jwk.get("kid", ""))] = key
    if len(found) == 1:
        found[""] = next(iter(found.values()))
    if not found:
        raise ValueError("no key")
    return found


class IdTokenVerifier:
    """Verifies the ID tokens of one issuer for one client."""

    def __init__(self, issuer: str, client_id: str, http: ProviderHttp, now: Callable[[], datetime]) -> None:
        self._issuer = issuer
        self._client_id = client_id
        self._http = http
        self._now = now
        self._keys: dict[str, Published[Mapping[str, Key]]] = {}

    def verify(
        self, issuer: Issuer, id_token: str, access_token: str, nonce: str | None
    ) -> Mapping[str, Any]:
        """The claims of a good token.

        Args:
            issuer: whose keys sign.
            id_token: as the token endpoint gave it.
            access_token: given with it; `at_hash` must fit where there is one.
            nonce: of the login; None for a renewal, which has none.

        Raises:
            SignInRefused: it does not hold.
            ProviderUnavailable: the keys cannot be had.
        """
        if len(id_token) > MAX_TOKEN_CHARACTERS:
            raise SignInRefused("not_accepted")
        try:
            return self._verify(issuer, id_token, access_token, nonce)
        except (JoseError, ValueError, TypeError, KeyError, RecursionError):
            raise SignInRefused("not_accepted") from None

    def _verify(
        self, issuer: Issuer, id_token: str, access_token: str, nonce: str | None
    ) -> Mapping[str, Any]:
        def key_of(token: Any) -> Key:
            key = find_key(self._published(issuer.jwks_uri), str(token.headers().get("kid", "")))
            if key is None:
                raise ValueError("unknown key")
            return key

        token = jwt.decode(id_token, key_of, algorithms=ALGORITHMS)
        options: dict[str, ClaimsOption] = {
            "iss": {"essential": True, "value": self._issuer},
            "aud": {"essential": True, "value": self._client_id},
        }
        params = {"client_id": self._client_id, "access_token": access_token, "nonce": nonce}
        claims = CodeIDToken(token.claims, token.header, options, params)
        now = self._now().timestamp()
        claims.validate(now=int(now), leeway=CLOCK_SKEW_SECONDS)
        subject = claims["sub"]
        if (
            now >= claims["exp"]
            or not isinstance(subject, str)
            or not 0 < len(subject) <= MAX_SUBJECT_CHARACTERS
        ):
            raise ValueError("expired, or nobody")
        return dict(claims)

    def _published(self, jwks_uri: str) -> Published[Mapping[str, Key]]:
        """One copy; another address, should the issuer ever move, takes its place."""
        if jwks_uri not in self._keys:
            self._keys = {jwks_uri: Published(self._http, jwks_uri, parse_keys, self._now)}
        return self._keys[jwks_uri]
