"""The activity log in SQLite, kept for 90 days."""

import json
from collections.abc import Sequence
from dataclasses import asdict
from datetime import timedelta

from store.events import Event
from store.sqlite.database import Database, from_micros, to_micros

LIFETIME = timedelta(days=90)


class SQLiteEvents:
    """Written in batches, read newest first."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, events: Sequence[Event]) -> None:
        """All in one transaction, and what is too old goes."""
        rows = [(event.owner, to_micros(event.at), _value(event)) for event in events]
        too_old = to_micros(self._database.now() - LIFETIME)
        with self._database.write() as connection:
            connection.executemany("INSERT INTO events (owner, at, value) VALUES (?, ?, ?)", rows)
            connection.execute("DELETE FROM events WHERE at < ?", (too_old,))

    def recent(self, owner: str, limit: int) -> list[Event]:
        """The owner's last events, newest first."""
        rows = self._database.read.execute(
            "SELECT at, value FROM events WHERE owner = ? ORDER BY at DESC, n DESC LIMIT ?", (owner, limit)
        )
        return [_event(owner, at, value) for at, value in rows]


def _value(event: Event) -> str:
    return json.dumps({name: value for name, value in asdict(event).items() if name not in ("at", "owner")})


def _event(owner: str, at: int, value: str) -> Event:
    fields = json.loads(value)
    return Event(from_micros(at), owner, **fields | {"memory_ids": tuple(fields["memory_ids"])})
