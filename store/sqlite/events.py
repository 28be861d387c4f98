"""The activity log in SQLite, kept for 90 days."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import asdict, replace
from datetime import datetime, timedelta

from store.events import Event, Rejection
from store.sqlite.database import Database, from_micros, to_micros

LIFETIME = timedelta(days=90)
MAX_REJECTIONS_A_MINUTE = 60
MINUTE = 60_000_000
"""In microseconds."""


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
            # Events wait for their turn; an account may have been closed meanwhile.
            connection.executemany(
                """INSERT INTO events (owner, at, value) SELECT ?1, ?2, ?3
                   WHERE EXISTS (SELECT 1 FROM owners WHERE id = ?1 AND is_closed = 0)""",
                rows,
            )
            connection.execute("DELETE FROM events WHERE at < ?", (too_old,))

    def recent(self, owner: str, limit: int) -> list[Event]:
        """The owner's last events, newest first."""
        rows = self._database.read.execute(
            "SELECT at, value FROM events WHERE owner = ? ORDER BY at DESC, n DESC LIMIT ?", (owner, limit)
        )
        return [_event(owner, at, value) for at, value in rows]

    def since(self, owner: str, moment: datetime) -> list[Event]:
        """The owner's events from that moment on, oldest first."""
        rows = self._database.read.execute(
            "SELECT at, value FROM events WHERE owner = ? AND at >= ? ORDER BY at, n",
            (owner, to_micros(moment)),
        )
        return [_event(owner, at, value) for at, value in rows]

    def reject(self, rejections: Sequence[Rejection], beyond: int = 0) -> None:
        """Keeps the first of each minute and counts the others, with so many that are only a number."""
        now = self._database.now()
        too_old = to_micros(now - LIFETIME)
        with self._database.write() as connection:
            for rejection in rejections:
                _reject(connection, rejection)
            _count(connection, to_micros(now) // MINUTE, beyond)
            connection.execute("DELETE FROM rejections WHERE at < ?", (too_old,))
            connection.execute("DELETE FROM rejections_beyond WHERE minute < ?", (too_old // MINUTE,))

    def rejections(self, limit: int) -> list[Rejection]:
        """The last ones kept, newest first."""
        rows = self._database.read.execute(
            "SELECT at, value FROM rejections ORDER BY at DESC, n DESC LIMIT ?", (limit,)
        )
        return [Rejection(from_micros(at), **json.loads(value)) for at, value in rows]

    def rejections_beyond(self) -> int:
        """How many more there were than were kept."""
        row = self._database.read.execute("SELECT coalesce(sum(count), 0) FROM rejections_beyond").fetchone()
        return int(row[0])


def _reject(connection: sqlite3.Connection, rejection: Rejection) -> None:
    at = to_micros(rejection.at)
    minute = at // MINUTE
    (kept,) = connection.execute(
        "SELECT count(*) FROM rejections WHERE at >= ? AND at < ?", (minute * MINUTE, (minute + 1) * MINUTE)
    ).fetchone()
    if kept < MAX_REJECTIONS_A_MINUTE:
        value = {"name": rejection.name, "reason": rejection.reason, "request_id": rejection.request_id}
        connection.execute("INSERT INTO rejections (at, value) VALUES (?, ?)", (at, json.dumps(value)))
    else:
        _count(connection, minute, 1)


def _count(connection: sqlite3.Connection, minute: int, more: int) -> None:
    if more:
        connection.execute(
            """INSERT INTO rejections_beyond VALUES (?1, ?2)
               ON CONFLICT (minute) DO UPDATE SET count = count + ?2""",
            (minute, more),
        )


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
