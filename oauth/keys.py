"""The keys: ES256 signing keys, published (RFC 7517) and rotated, and what is derived from the state key.

One record of kind `keys` holds the whole ring, so that making and rotating it are single atomic steps. The
private keys in it are encrypted with a key derived from the state key: the database alone signs nothing.
"""

import base64
import logging
import secrets
from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime, timedelta
from threading import Lock
from typing import TYPE_CHECKING, Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives import hashes
from cryptography.hazmat.primitives.ciphers.aead import AESGCM
from cryptography.hazmat.primitives.kdf.hkdf import HKDF
from joserfc.jwk import ECKey

from oauth.records import NEVER, Records, Value

if TYPE_CHECKING:
    from oauth.server import AuthorizationServer

log = logging.getLogger(__name__)

ALGORITHM = "ES256"
KIND = "keys"
_RING = "ring"

PUBLISHED_BEFORE_SIGNING = timedelta(seconds=60)
RELOAD_AFTER = timedelta(seconds=30)
RELOAD_FOR_UNKNOWN_AFTER = timedelta(seconds=5)


class UnreadableKeys(Exception):
    """The signing keys in the store were encrypted with another state key."""


@dataclass(frozen=True)
class SigningKey:
    """A key pair and the time in which it counts."""

    kid: str
    key: ECKey
    signs_from: datetime
    retires_at: datetime
    """From then on nothing that it signed can still be valid."""


@dataclass(frozen=True)
class KeyRing:
    """All keys of one epoch, as one load found them."""

    epoch: str
    """Named in every derived token; an emergency rotation begins a new one."""
    keys: tuple[SigningKey, ...]
    token_key: bytes
    """The HMAC key of codes and refresh tokens."""
    loaded_at: datetime


def derive(state_key: bytes, purpose: str, salt: bytes = b"") -> bytes:
    """A 32-byte subkey for one purpose (HKDF, RFC 5869)."""
    hkdf = HKDF(algorithm=hashes.SHA256(), length=32, salt=salt, info=f"vademecum {purpose}".encode())
    return hkdf.derive(state_key)


class Keys:
    """The key ring, cached; safe to share between threads and correct between processes."""

    def __init__(
        self,
        records: Records,
        state_key: bytes,
        access_token_lifetime: timedelta,
        now: Callable[[], datetime],
    ) -> None:
        self._records = records
        self._state_key = state_key
        self._cipher = AESGCM(derive(state_key, "signing keys at rest"))
        self._access_token_lifetime = access_token_lifetime
        self._now = now
        self._ring: KeyRing | None = None
        self._lock = Lock()

    def ring(self, max_age: timedelta = RELOAD_AFTER) -> KeyRing:
        """The ring, at most this old; made when there is none yet.

        Raises:
            UnreadableKeys: the state key is not the one that the ring was encrypted with.
        """
        ring = self._ring
        if ring is not None and abs(self._now() - ring.loaded_at) < max_age:
            return ring
        with self._lock:
            if self._ring is None or self._ring is ring:
                self._ring = self._load()
            return self._ring

    def ring_of(self, epoch: str) -> KeyRing:
        """The ring of this epoch, as far as there is one; an unknown epoch is looked up every 5 s at most."""
        ring = self.ring()
        return ring if ring.epoch == epoch else self.ring(RELOAD_FOR_UNKNOWN_AFTER)

    def signing_key(self) -> SigningKey:
        """The newest key that has been published for long enough."""
        keys, now = self.ring().keys, self._now()
        oldest = min(keys, key=lambda key: key.signs_from)  # what a clock that was set back is left with
        published = [key for key in keys if key.signs_from <= now]
        return max(published, key=lambda key: key.signs_from, default=oldest)

    def find(self, kid: str) -> SigningKey | None:
        """The key with this id, unless it has retired; an unknown id is looked up again every 5 s at most."""
        return self._find(kid, self.ring()) or self._find(kid, self.ring(RELOAD_FOR_UNKNOWN_AFTER))

    def _find(self, kid: str, ring: KeyRing) -> SigningKey | None:
        now = self._now()
        return next((key for key in ring.keys if key.kid == kid and now < key.retires_at), None)

    def public_jwks(self) -> dict[str, Any]:
        """What anybody may see: every key that may still verify something (RFC 7517 §5)."""
        now = self._now()
        keys = [key for key in self.ring().keys if now < key.retires_at]
        return {"keys": [_public_jwk(key) for key in keys]}

    def rotate(self) -> str:
        """Publishes a new key, which signs in 60 s; the old one retires with the last token it signed.

        Returns: the new key's id.
        """
        swapped = False
        while not swapped:
            old = self._stored()
            signs_from = self._now() + PUBLISHED_BEFORE_SIGNING
            added = self._new_key(signs_from)
            retires_at = signs_from + self._access_token_lifetime + PUBLISHED_BEFORE_SIGNING
            new = {"epoch": old["epoch"], "keys": [*self._retiring(old, retires_at), added]}
            swapped = self._records.swap(KIND, _RING, old, new, NEVER)
        self._forget()
        log.info("keys.rotated", extra={"kid": added["kid"]})
        return str(added["kid"])

    def replace(self) -> str:
        """Throws every key away and begins a new epoch: no token issued before is valid any more.

        Returns: the epoch that has ended.
        """
        swapped = False
        while not swapped:
            old = self._stored()
            swapped = self._records.swap(KIND, _RING, old, self._new_ring(), NEVER)
        self._forget()
        log.warning("keys.replaced")
        return str(old["epoch"])

    def _forget(self) -> None:
        with self._lock:  # not while somebody is loading what has just been replaced
            self._ring = None

    def _stored(self) -> Value:
        """The record; the first process to need it makes it."""
        value = self._records.get(KIND, _RING)
        if value is None:
            self._records.create(KIND, _RING, self._new_ring(), NEVER)
            value = self._records.get(KIND, _RING)
        if value is None:
            raise UnreadableKeys("the key ring vanished as it was made")
        return value

    def _load(self) -> KeyRing:
        value = self._stored()
        epoch = str(value["epoch"])
        return KeyRing(
            epoch=epoch,
            keys=tuple(self._decrypt(stored) for stored in value["keys"]),
            token_key=derive(self._state_key, "codes and refresh tokens", salt=epoch.encode()),
            loaded_at=self._now(),
        )

    def _new_ring(self) -> Value:
        return {"epoch": secrets.token_hex(8), "keys": [self._new_key(self._now())]}

    def _new_key(self, signs_from: datetime) -> Value:
        key = ECKey.generate_key("P-256", private=True)
        kid = key.thumbprint()
        nonce = secrets.token_bytes(12)
        encrypted = nonce + self._cipher.encrypt(nonce, key.as_der(private=True), kid.encode())
        return {
            "kid": kid,
            "encrypted": base64.b64encode(encrypted).decode(),
            "signs_from": signs_from.isoformat(),
            "retires_at": NEVER.isoformat(),
        }

    def _retiring(self, ring: Value, retires_at: datetime) -> list[Value]:
        now = self._now()
        live = [key for key in ring["keys"] if now < datetime.fromisoformat(key["retires_at"])]
        return [key | {"retires_at": min(key["retires_at"], retires_at.isoformat())} for key in live]

    def _decrypt(self, stored: Value) -> SigningKey:
        encrypted, kid = base64.b64decode(stored["encrypted"]), str(stored["kid"])
        try:
            der = self._cipher.decrypt(encrypted[:12], encrypted[12:], kid.encode())
        except InvalidTag:
            raise UnreadableKeys("the signing keys were encrypted with another state key") from None
        return SigningKey(
            kid=kid,
            key=ECKey.import_key(der),
            signs_from=datetime.fromisoformat(stored["signs_from"]),
            retires_at=datetime.fromisoformat(stored["retires_at"]),
        )


def _public_jwk(key: SigningKey) -> dict[str, Any]:
    return {**key.key.as_dict(private=False), "kid": key.kid, "use": "sig", "alg": ALGORITHM}


def rotate(server: "AuthorizationServer") -> str:
    """Rotates the signing key without anybody noticing. In an emergency: `grants.end_all`.

    Returns: the new key's id.
    """
    return server.keys.rotate()
