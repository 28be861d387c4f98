"""Where a decision has sent the browser, for when it presses twice.

A double click sends the form twice and shows the answer to the second; without this the owner would see an
error where the client has got its code. The address holds a code, so it is sealed with a key that only the
browser's cookie gives: the store alone tells nothing (RFC 6819 §5.1.4.1).
"""

import base64
import hashlib
import hmac
import secrets
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from oauth.records import Records

KIND = "decision"
LIFETIME = timedelta(seconds=60)
"""As long as a code lives."""
NONCE_BYTES = 12


@dataclass(frozen=True)
class Decisions:
    """The decisions of the last minute."""

    records: Records
    state_key: bytes = field(repr=False)
    now: Callable[[], datetime]

    def keep(self, pending_id: str, cookie: str, location: str) -> bool:
        """Keeps where the decision led; False when one is kept already."""
        nonce = secrets.token_bytes(NONCE_BYTES)
        sealed = nonce + self._cipher(cookie).encrypt(nonce, location.encode(), pending_id.encode())
        value = {"sealed": base64.b64encode(sealed).decode()}
        return self.records.create(KIND, pending_id, value, self.now() + LIFETIME)

    def find(self, pending_id: str, cookie: str) -> str | None:
        """Where this browser was sent; None for another browser, or when nothing was decided."""
        value = self.records.get(KIND, pending_id)
        if value is None:
            return None
        sealed = base64.b64decode(value["sealed"])
        nonce, content = sealed[:NONCE_BYTES], sealed[NONCE_BYTES:]
        try:
            return self._cipher(cookie).decrypt(nonce, content, pending_id.encode()).decode()
        except InvalidTag:
            return None

    def _cipher(self, cookie: str) -> AESGCM:
        key = hmac.digest(self.state_key, f"vademecum/pages/decision/1\0{cookie}".encode(), hashlib.sha256)
        return AESGCM(key)
