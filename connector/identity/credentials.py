"""How each owner last signed in, kept so that the provider can be asked later: one record per owner.

What is inside, a refresh token and an e-mail address, is encrypted with a key derived from the state key and
bound to its owner: the database alone asks nobody anything, and a record moved elsewhere opens nothing.
"""

import base64
import json
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from datetime import datetime
from functools import cached_property

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from connector.identity.provider import Identity
from oauth.keys import derive
from oauth.records import NEVER, Records, Value

KIND = "identity_credential"
NONCE_BYTES = 12


@dataclass(frozen=True)
class Credential:
    """What an owner's last sign-in, or the last renewal of it, left."""

    owner: str
    identity: Identity
    checked_at: datetime
    """When the provider last vouched for the account."""
    has_ended: bool
    """Whether it has said that the account is over; only a new sign-in mends that."""
    stored: Value = field(repr=False)
    """The record's value, for a swap."""


@dataclass(frozen=True)
class Credentials:
    """The credentials of all owners."""

    records: Records
    state_key: bytes = field(repr=False)
    now: Callable[[], datetime]

    @cached_property
    def _cipher(self) -> AESGCM:
        return AESGCM(derive(self.state_key, "identity credentials at rest"))

    def find(self, owner: str) -> Credential | None:
        """The owner's; None for somebody who signs in with a passphrase, or with another state key."""
        value = self.records.get(KIND, owner)
        identity = self._open(owner, value["sealed"]) if value is not None else None
        if value is None or identity is None:
            return None
        checked_at = datetime.fromisoformat(value["checked_at"])
        return Credential(owner, identity, checked_at, value["has_ended"], value)

    def of_provider(self, provider: str) -> list[Credential]:
        """All that this provider vouched for."""
        owners = [value["owner"] for value in self.records.select(KIND, "provider", provider)]
        return [found for owner in owners if (found := self.find(owner)) is not None]

    def keep(self, owner: str, identity: Identity) -> None:
        """Replaces whatever there was: the owner has just signed in."""
        new = self._value(owner, identity)
        while True:
            old = self.records.get(KIND, owner)
            if old is None and self.records.create(KIND, owner, new, NEVER):
                return
            if old is not None and self.records.swap(KIND, owner, old, new, NEVER):
                return

    def renewed(self, credential: Credential, identity: Identity) -> None:
        """Keeps what the provider gave instead; nothing happens if the owner has signed in meanwhile."""
        new = self._value(credential.owner, identity)
        self.records.swap(KIND, credential.owner, credential.stored, new, NEVER)

    def ended(self, credential: Credential) -> None:
        """Notes that the account is over, and forgets its token, unless the owner has signed in meanwhile."""
        value = self._value(credential.owner, replace(credential.identity, refresh_token=None))
        self.records.swap(KIND, credential.owner, credential.stored, value | {"has_ended": True}, NEVER)

    def forget(self, owner: str) -> None:
        """Removes it."""
        self.records.delete(KIND, owner)

    def _value(self, owner: str, identity: Identity) -> Value:
        return {
            "owner": owner,
            "provider": identity.provider,
            "checked_at": self.now().isoformat(),
            "has_ended": False,
            "sealed": self._seal(owner, identity),
        }

    def _seal(self, owner: str, identity: Identity) -> str:
        nonce = secrets.token_bytes(NONCE_BYTES)
        content = json.dumps(identity.__dict__).encode()
        return base64.b64encode(nonce + self._cipher.encrypt(nonce, content, owner.encode())).decode()

    def _open(self, owner: str, sealed: str) -> Identity | None:
        raw = base64.b64decode(sealed)
        try:
            content = self._cipher.decrypt(raw[:NONCE_BYTES], raw[NONCE_BYTES:], owner.encode())
        except InvalidTag:
            return None
        return Identity(**json.loads(content))
