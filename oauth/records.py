"""The storage that OAuth needs, stated by the one who needs it.

A record is a JSON object with a kind, a key and a moment of expiry. Six atomic verbs are enough: `take`
consumes a pending request, one `swap` on a grant's record redeems its code or rotates its refresh token,
`select` lists a subject's grants, and deleting a grant ends everything issued from it. docs/records.md
lists every kind with its fields and lifetime.
"""

from datetime import UTC, datetime
from typing import Any, Protocol, TypeAlias

Value: TypeAlias = dict[str, Any]
"""A JSON object. `Any` ends here: each kind's module parses its values into a frozen dataclass."""

NEVER = datetime(9999, 12, 31, tzinfo=UTC)
"""`expires_at` of a record that only a deliberate act removes."""


class Records(Protocol):
    """Expiring documents, synchronous like Authlib. Each method is atomic; an expired record is absent."""

    def get(self, kind: str, key: str) -> Value | None:
        """The value, or None when it was never created, has expired or was deleted."""

    def create(self, kind: str, key: str, value: Value, expires_at: datetime) -> bool:
        """Creates the record; False, and nothing changes, when the key is taken."""

    def take(self, kind: str, key: str) -> Value | None:
        """Reads and deletes: of many racing callers exactly one gets the value."""

    def swap(self, kind: str, key: str, old: Value, new: Value, expires_at: datetime) -> bool:
        """Replaces the value if it still equals `old`; False, and nothing changes, otherwise."""

    def select(self, kind: str, field: str, equals: str) -> list[Value]:
        """All live values of the kind whose top-level string `field` equals `equals`, in no fixed order."""

    def delete(self, kind: str, key: str) -> None:
        """Removes the record; no error when it is absent."""
