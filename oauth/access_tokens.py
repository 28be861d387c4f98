"""Access tokens: JWTs (RFC 9068), signed with ES256, good for one resource and one hour."""

import base64
import hashlib
import json
import secrets
from collections import OrderedDict
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

from joserfc import jwt
from joserfc.errors import JoseError

from oauth.errors import InvalidToken
from oauth.keys import ALGORITHM

if TYPE_CHECKING:
    from oauth.grants import Grant
    from oauth.server import AuthorizationServer

TYPE = "at+jwt"
MAX_TOKEN_LENGTH = 4096
CLOCK_SKEW = timedelta(seconds=60)
MAX_CACHED_TOKENS = 10_000


@dataclass(frozen=True)
class AccessToken:
    """A token whose signature, issuer, audience and expiry hold; its grant may have ended all the same."""

    grant_id: str
    subject: str
    client_id: str
    scopes: frozenset[str]
    expires_at: datetime
    jti: str


def issue(server: "AuthorizationServer", grant: "Grant", scopes: frozenset[str]) -> str:
    """A token for the grant's client to act for its subject (RFC 9068 §2.2)."""
    issued_at = int(server.now().timestamp())
    claims = {
        "iss": server.issuer,
        "aud": server.resource,
        "sub": grant.subject,
        "client_id": grant.client_id,
        "scope": server.scopes.to_wire(scopes),
        "iat": issued_at,
        "exp": issued_at + int(server.lifetimes.access_token.total_seconds()),
        "jti": secrets.token_hex(16),
        "grant_id": grant.grant_id,
    }
    signing_key = server.keys.signing_key()
    return jwt.encode(_header(signing_key.kid), claims, signing_key.key, algorithms=[ALGORITHM])


def verify(server: "AuthorizationServer", token: str) -> AccessToken:
    """Checks a token without asking the store (RFC 9068 §4, RFC 8725).

    Raises:
        InvalidToken: not ours, altered, expired, not yet valid, or for another audience.
    """
    kid = _read_kid(token)
    key = server.keys.find(kid)
    if key is None:
        raise InvalidToken("the token was signed with an unknown key")
    try:
        claims = jwt.decode(token, key.key, algorithms=[ALGORITHM]).claims
    except (JoseError, ValueError, RecursionError):
        raise InvalidToken("the signature does not hold") from None
    _check_claims(claims, server.issuer, server.resource, server.now())
    return AccessToken(
        grant_id=claims["grant_id"],
        subject=claims["sub"],
        client_id=claims["client_id"],
        scopes=frozenset(claims["scope"].split()),
        expires_at=datetime.fromtimestamp(claims["exp"], UTC),
        jti=claims["jti"],
    )


def _header(kid: str) -> dict[str, str]:
    return {"alg": ALGORITHM, "typ": TYPE, "kid": kid}


def _read_kid(token: str) -> str:
    """The key id, if the header is exactly what we write: no `jwk`, `jku`, `x5u` or `crit` to obey."""
    segments = token.split(".") if len(token) <= MAX_TOKEN_LENGTH else []
    if len(segments) != 3:
        raise InvalidToken("this is not an access token")
    try:
        header = json.loads(base64.urlsafe_b64decode(segments[0] + "=="))
    except (ValueError, RecursionError):
        raise InvalidToken("this is not an access token") from None
    kid = header.get("kid") if isinstance(header, dict) else None
    if not isinstance(kid, str) or header != _header(kid):
        raise InvalidToken("this is not an access token")
    return kid


def _check_claims(claims: dict[str, Any], issuer: str, resource: str, now: datetime) -> None:
    """RFC 9068 §4 with RFC 7519's times: expiry is strict, clocks may differ by 60 s otherwise."""
    texts = ("sub", "client_id", "scope", "jti", "grant_id")
    if not all(isinstance(claims.get(name), str) for name in texts):
        raise InvalidToken("a claim is missing")
    if claims.get("iss") != issuer or claims.get("aud") != resource:
        raise InvalidToken("the token is for somebody else")
    latest = (now + CLOCK_SKEW).timestamp()
    if not _is_time(claims.get("exp")) or now.timestamp() >= claims["exp"]:
        raise InvalidToken("the token has expired")
    if not _is_time(claims.get("iat")) or claims["iat"] > latest:
        raise InvalidToken("the token comes from the future")
    if "nbf" in claims and not (_is_time(claims["nbf"]) and claims["nbf"] <= latest):
        raise InvalidToken("the token is not valid yet")


def _is_time(value: object) -> bool:
    return type(value) is int and 0 < value < 2**40


class VerifiedTokens:
    """Remembers tokens that verified, by their SHA-256, until they expire; bounded, shared by threads."""

    def __init__(self, server: "AuthorizationServer", capacity: int = MAX_CACHED_TOKENS) -> None:
        self._server = server
        self._capacity = capacity
        self._tokens: OrderedDict[bytes, AccessToken] = OrderedDict()
        self._lock = Lock()

    def verify(self, token: str) -> AccessToken:
        """As `verify`, but each signature is checked once.

        Raises:
            InvalidToken: as `verify`.
        """
        digest = hashlib.sha256(token.encode(errors="surrogatepass")).digest()
        known = self._tokens.get(digest)
        # A clock that was set back makes an expired token one from the future, here as in `verify`.
        if known is not None and self._began(known) <= self._server.now() < known.expires_at:
            return known
        verified = verify(self._server, token)
        with self._lock:
            self._tokens[digest] = verified
            self._tokens.move_to_end(digest)
            if len(self._tokens) > self._capacity:
                self._tokens.popitem(last=False)
        return verified

    def _began(self, token: AccessToken) -> datetime:
        return token.expires_at - self._server.lifetimes.access_token - CLOCK_SKEW

    def forget_all(self) -> None:
        """After an emergency rotation of the keys."""
        with self._lock:
            self._tokens.clear()
