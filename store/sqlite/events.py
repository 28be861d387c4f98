"""The activity log in SQLite, kept for 90 days."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, replace
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
        too_old = to_micros(self._database.now() - LIFETIME)
        with self._database.write() as connection:
            rows = [
                (event.owner, to_micros(event.at), _value(_without_erased(connection, event)))
                for event in events
            ]
            connection.executemany("INSERT INTO events (owner, at, value) VALUES (?, ?, ?)", rows)
            connection.execute("DELETE FROM events WHERE at < ?", (too_old,))

    def recent(self, owner: str, limit: int) -> list[Event]:
        """The owner's last events, newest first."""
        rows = self._database.read.execute(
            "SELECT at, value FROM events WHERE owner = ? ORDER BY at DESC, n DESC LIMIT ?", (owner, limit)
        )
        return [_event(owner, at, value) for at, value in rows]


def _without_erased(connection: sqlite3.Connection, event: Event) -> Event:
    """An event may have waited while a memory was deleted that it previews."""
    if event.query_preview is None or not event.memory_ids:
        return event
    ids = set(event.memory_ids)
    (known,) = connection.execute(
        "SELECT count(*) FROM memories WHERE owner = ? AND id IN (SELECT value FROM json_each(?))",
        (event.owner, json.dumps([*ids])),
    ).fetchone()
    return event if known == len(ids) else replace(event, query_preview=None)


def _value(event: Event) -> str:
    return json.dumps({name: value for name, value in asdict(event).items() if name not in ("at", "owner")})


def _event(owner: str, at: int, value: str) -> Event:
    fields = json.loads(value)
    return Event(from_micros(at), owner, **fields | {"memory_ids": tuple(fields["memory_ids"])})
