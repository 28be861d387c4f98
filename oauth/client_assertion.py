"""Client authentication by a signed assertion: `private_key_jwt` (RFC 7523 §2.2 and §3).

The client's public keys come from its registration or document, or from the `jwks_uri` named there; those are
fetched, like a document, before the worker thread, and kept as records of kind `client_keys`.
"""

import hashlib
import json
from datetime import datetime, timedelta
from typing import TYPE_CHECKING, Any

from joserfc import jws, jwt
from joserfc.errors import JoseError
from joserfc.jwk import KeySet

from oauth.client_metadata import check_public_keys
from oauth.clients import Client
from oauth.errors import InvalidClient, InvalidClientMetadata
from oauth.fetched_copies import FetchedCopies
from oauth.records import Value
from oauth.safe_fetch import BadDocument, Fetcher, Unreachable

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

ASSERTION_TYPE = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
ALGORITHMS = ("RS256", "ES256")
KEYS_KIND = "client_keys"
USED_KIND = "client_assertion"

MAX_ASSERTION_LENGTH = 8192
LONGEST_LIFE = timedelta(hours=1)
CLOCK_SKEW = timedelta(seconds=60)


class ClientKeys:
    """The public keys of one server's clients."""

    def __init__(self, server: "AuthorizationServer", fetcher: Fetcher) -> None:
        lifetimes = server.lifetimes
        self._copies = FetchedCopies(KEYS_KIND, server.records, fetcher, lifetimes.client_unused, server.now)

    async def refresh(self, client: Client, assertion: str) -> None:
        """Fetches the client's keys if there is no fresh copy with the key that the assertion names.

        Raises:
            Unreachable: they cannot be had now; never `invalid_client`, which would end the connection.
        """
        if client.jwks_uri is None:
            return
        kid = _header(assertion).get("kid")

        def has_key(members: Value) -> bool:
            return kid is None or any(key.get("kid") == kid for key in members["keys"])

        try:
            await self._copies.refresh(client.jwks_uri, _check_keys, is_enough=has_key)
        except BadDocument:
            raise Unreachable("the client's keys cannot be fetched now", 60) from None

    def find(self, client: Client) -> KeySet | None:
        """The client's keys, as far as they are known."""
        if client.jwks is not None:
            return check_public_keys(client.jwks)
        copy = self._copies.find(client.jwks_uri) if client.jwks_uri is not None else None
        return check_public_keys(copy.members) if copy is not None else None


def unverified_client_id(assertion: str) -> str | None:
    """Who the assertion says it is from, to look up the keys that may prove it."""
    try:
        claims = json.loads(jws.extract_compact(assertion.encode()).payload)
    except (JoseError, ValueError, RecursionError):
        return None
    subject = claims.get("sub") if isinstance(claims, dict) else None
    return subject if isinstance(subject, str) else None


def verify(server: "AuthorizationServer", client: Client, assertion: str) -> None:
    """Checks the assertion and spends its `jti` (RFC 7523 §3).

    Raises:
        InvalidClient: not signed by the client's key, not for us, too old or too long-lived, or used before.
    """
    claims = _read(server.client_keys.find(client), assertion)
    if claims.get("iss") != client.client_id or claims.get("sub") != client.client_id:
        raise InvalidClient("iss and sub of the assertion must be the client_id")
    audience = claims.get("aud")
    ours = (server.issuer, server.issuer + "/token")
    if not any(named in ours for named in (audience if isinstance(audience, list) else [audience])):
        raise InvalidClient("the assertion is for somebody else")
    expires_at = _check_times(claims, server.now())
    jti = claims.get("jti")
    if not isinstance(jti, str):
        raise InvalidClient("the assertion has no jti")
    used = hashlib.sha256(f"{client.client_id} {jti}".encode()).hexdigest()
    if not server.records.create(USED_KIND, used, {}, expires_at + CLOCK_SKEW):
        raise InvalidClient("the assertion was used before")


def _read(keys: KeySet | None, assertion: str) -> dict[str, Any]:
    """The claims, once one of the keys has proven them; the algorithm is one of two, the key never inside."""
    header = _header(assertion)
    if len(assertion) > MAX_ASSERTION_LENGTH or "crit" in header:
        raise InvalidClient("the assertion cannot be read")
    kid = header.get("kid")
    for key in keys.keys if keys is not None else ():
        if kid is None or key.kid == kid:
            try:
                return jwt.decode(assertion, key, algorithms=ALGORITHMS).claims
            except (JoseError, ValueError, RecursionError):
                continue
    raise InvalidClient("the assertion was not signed with a key of the client")


def _header(assertion: str) -> dict[str, Any]:
    """Of an assertion that `unverified_client_id` could read."""
    return dict(jws.extract_compact(assertion.encode()).headers())


def _check_times(claims: dict[str, Any], now: datetime) -> datetime:
    """Expiry is required, strict and near; clocks may differ by 60 s otherwise."""
    expires, issued, begins = (claims.get(name, now.timestamp()) for name in ("exp", "iat", "nbf"))
    if "exp" not in claims or not all(type(time) in (int, float) for time in (expires, issued, begins)):
        raise InvalidClient("a time of the assertion is missing or no number")
    if not now.timestamp() < expires <= (now + LONGEST_LIFE + CLOCK_SKEW).timestamp():
        raise InvalidClient("the assertion has expired or lives too long")
    if max(issued, begins) > (now + CLOCK_SKEW).timestamp():
        raise InvalidClient("the assertion comes from the future")
    return datetime.fromtimestamp(expires, now.tzinfo)


def _check_keys(members: Value) -> Value:
    try:
        check_public_keys(members)
    except InvalidClientMetadata as error:
        raise BadDocument(error.description) from error
    return {"keys": members["keys"]}
