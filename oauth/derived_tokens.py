"""Authorization codes and refresh tokens: derived, never stored.

Both name a grant and carry an HMAC under a key that only the state key and the current epoch give. The store
holds no copy to steal, and a successor can be derived again for a host that lost the answer.
"""

import base64
import hashlib
import hmac
import re
from dataclasses import dataclass
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

_CODE = re.compile(r"vmc_code_([0-9a-f]{32})\.([0-9a-f]{16})\.([A-Za-z0-9_-]{43})")
_REFRESH_TOKEN = re.compile(r"vmc_refresh_([0-9a-f]{32})\.([0-9]{1,9})\.([0-9a-f]{16})\.([A-Za-z0-9_-]{43})")


@dataclass(frozen=True)
class RefreshToken:
    """What an authentic refresh token says."""

    grant_id: str
    generation: int
    """0 for the one that came with the code, and one more with each rotation."""


def derive_code(server: "AuthorizationServer", grant_id: str) -> str:
    """The authorization code of a grant."""
    ring = server.keys.ring()
    return f"vmc_code_{grant_id}.{ring.epoch}.{_mac(ring.token_key, 'code', grant_id)}"


def read_code(server: "AuthorizationServer", code: str) -> str | None:
    """The grant that an authentic code names; None for any other string."""
    match = _CODE.fullmatch(code)
    if match is None:
        return None
    grant_id, epoch, mac = match.groups()
    return grant_id if _is_authentic(server, epoch, mac, "code", grant_id) else None


def derive_refresh_token(server: "AuthorizationServer", grant_id: str, generation: int) -> str:
    """The refresh token of one generation of a grant."""
    ring = server.keys.ring()
    mac = _mac(ring.token_key, "refresh", grant_id, str(generation))
    return f"vmc_refresh_{grant_id}.{generation}.{ring.epoch}.{mac}"


def read_refresh_token(server: "AuthorizationServer", refresh_token: str) -> RefreshToken | None:
    """What an authentic refresh token says; None for any other string."""
    match = _REFRESH_TOKEN.fullmatch(refresh_token)
    if match is None:
        return None
    grant_id, generation, epoch, mac = match.groups()
    if not _is_authentic(server, epoch, mac, "refresh", grant_id, generation):
        return None
    return RefreshToken(grant_id, int(generation))


def _is_authentic(server: "AuthorizationServer", epoch: str, mac: str, *parts: str) -> bool:
    ring = server.keys.ring_of(epoch)
    return hmac.compare_digest(_mac(ring.token_key, *parts), mac) and epoch == ring.epoch


def _mac(key: bytes, *parts: str) -> str:
    digest = hmac.new(key, ".".join(parts).encode(), hashlib.sha256).digest()
    return base64.urlsafe_b64encode(digest).rstrip(b"=").decode()
