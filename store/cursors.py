"""Cursors: where a list goes on, sealed so that a cursor opens only the list that it was made for."""

import base64
import binascii
import hashlib
import hmac
import json
from collections.abc import Sequence

from store.errors import StoreError

MAC_BYTES = 16
MAX_CURSOR_CHARACTERS = 1000


class Cursors:
    """Seals and opens the cursors of one installation."""

    def __init__(self, key: bytes) -> None:
        self._key = key

    def seal(self, bound: Sequence[str], position: Sequence[str]) -> str:
        """A cursor.

        Args:
            bound: all that makes the list this list: its name, owner, space, filters.
            position: what the next page begins after; readable by whoever holds the cursor.
        """
        payload = json.dumps([*position], separators=(",", ":")).encode()
        return base64.urlsafe_b64encode(self._mac(bound, payload) + payload).decode().rstrip("=")

    def open(self, bound: Sequence[str], cursor: str) -> tuple[str, ...]:
        """The position.

        Raises:
            StoreError: `invalid_argument` for a cursor of another list, and for any other string.
        """
        sealed = _decoded(cursor)
        payload = sealed[MAC_BYTES:]
        if not hmac.compare_digest(sealed[:MAC_BYTES], self._mac(bound, payload)):
            raise StoreError(
                "invalid_argument", "cursor is not one of this list; leave it out to begin at the start"
            )
        return tuple(json.loads(payload))

    def _mac(self, bound: Sequence[str], payload: bytes) -> bytes:
        message = json.dumps([*bound]).encode() + b"\0" + payload
        return hmac.digest(self._key, message, hashlib.sha256)[:MAC_BYTES]


def _decoded(cursor: str) -> bytes:
    """The bytes, empty for what is not base64url in its one spelling."""
    if len(cursor) > MAX_CURSOR_CHARACTERS:
        return b""
    try:
        decoded = base64.b64decode(cursor.encode() + b"=" * (-len(cursor) % 4), b"-_", validate=True)
    except (binascii.Error, UnicodeEncodeError):
        return b""
    is_canonical = base64.urlsafe_b64encode(decoded).decode().rstrip("=") == cursor
    return decoded if is_canonical else b""
