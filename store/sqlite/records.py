"""Expiring documents, as `oauth` and the pages need them; each of the six verbs is one transaction."""

import json
import sqlite3
from collections.abc import Mapping
from datetime import datetime
from typing import Any

from store.sqlite.database import Database, to_micros


class SQLiteRecords:
    """Fits `oauth.records.Records`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def get(self, kind: str, key: str) -> dict[str, Any] | None:
        """The live value."""
        row = self._database.read.execute(_GET, (kind, key, self._now())).fetchone()
        return None if row is None else json.loads(row[0])

    def create(self, kind: str, key: str, value: Mapping[str, Any], expires_at: datetime) -> bool:
        """False when a live record has the key; an expired one gives way."""
        with self._database.write() as connection:
            if connection.execute(_GET, (kind, key, self._now())).fetchone() is not None:
                return False
            _put(connection, kind, key, value, expires_at)
            return True

    def take(self, kind: str, key: str) -> dict[str, Any] | None:
        """Reads and deletes; the write lock makes one of many callers the winner."""
        with self._database.write() as connection:
            row = connection.execute(_GET, (kind, key, self._now())).fetchone()
            connection.execute(_DELETE, (kind, key))
            return None if row is None else json.loads(row[0])

    def swap(
        self, kind: str, key: str, old: Mapping[str, Any], new: Mapping[str, Any], expires_at: datetime
    ) -> bool:
        """Compares the canonical JSON, so that the order of members does not matter."""
        with self._database.write() as connection:
            row = connection.execute(_GET, (kind, key, self._now())).fetchone()
            if row is None or row[0] != _canonical(old):
                return False
            _put(connection, kind, key, new, expires_at)
            return True

    def select(self, kind: str, field: str, equals: str) -> list[dict[str, Any]]:
        """All live values of the kind with that string in that field."""
        rows = self._database.read.execute(
            """SELECT value FROM records WHERE kind = ? AND expires_at > ? AND key IN
               (SELECT key FROM record_fields WHERE kind = ? AND field = ? AND value = ?)""",
            (kind, self._now(), kind, field, equals),
        )
        return [json.loads(value) for (value,) in rows]

    def delete(self, kind: str, key: str) -> None:
        """No error when absent."""
        with self._database.write() as connection:
            connection.execute(_DELETE, (kind, key))

    def sweep(self) -> int:
        """Deletes what has expired; returns how many."""
        with self._database.write() as connection:
            return connection.execute("DELETE FROM records WHERE expires_at <= ?", (self._now(),)).rowcount

    def _now(self) -> int:
        return to_micros(self._database.now())


_GET = "SELECT value FROM records WHERE kind = ? AND key = ? AND expires_at > ?"
_DELETE = "DELETE FROM records WHERE kind = ? AND key = ?"


def _canonical(value: Mapping[str, Any]) -> str:
    return json.dumps(value, sort_keys=True, separators=(",", ":"), ensure_ascii=False)


def _put(
    connection: sqlite3.Connection, kind: str, key: str, value: Mapping[str, Any], expires_at: datetime
) -> None:
    connection.execute(_DELETE, (kind, key))
    connection.execute(
        "INSERT INTO records VALUES (?, ?, ?, ?)", (kind, key, _canonical(value), to_micros(expires_at))
    )
    connection.executemany(
        "INSERT INTO record_fields VALUES (?, ?, ?, ?)",
        [(kind, field, text, key) for field, text in value.items() if isinstance(text, str)],
    )
