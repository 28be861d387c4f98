"""Memories in SQLite."""

import logging
import sqlite3
from collections.abc import Collection, Sequence
from dataclasses import replace
from datetime import datetime

from store.backend import Candidates, Owed, Query, Vector, Write
from store.entities import Entity, Link
from store.errors import StoreError
from store.memory import Document, Filters, Memory, Saved, Selection, Space, State, Status, Turn, View
from store.sqlite import documents, erasing, graph, lifecycle, rows, search, spaces, views, writing
from store.sqlite.database import Database, from_micros, to_micros
from store.sqlite.shelf import Shelves

log = logging.getLogger(__name__)

COMMONEST_TOPICS = 50
MAX_STATUSES = 1000
_UNINDEXED = """SELECT memory FROM passages WHERE model IS NULL
                UNION ALL SELECT memory FROM passages WHERE model < :model
                UNION ALL SELECT memory FROM passages WHERE model > :model"""
"""Three ranges of one index, for `IS NOT` would walk over every passage there is."""


class SQLiteMemories:
    """Fits `store.backend.Memories`."""

    def __init__(self, database: Database) -> None:
        self._database = database
        self._shelves = Shelves()
        self._statuses: dict[tuple[str, tuple[str, ...]], tuple[tuple[int, int] | None, Status]] = {}

    def save(self, writes: Sequence[Write], model: str | None, duplicates_since: datetime) -> list[Saved]:
        """One transaction for all."""
        with self._database.write() as connection:
            for write in writes:
                spaces.get(connection, write.memory.owner, write.memory.space)
            return [lifecycle.save(connection, write, model, duplicates_since) for write in writes]

    def find_duplicate(self, write: Write, model: str | None, since: datetime) -> Saved | None:
        """Read without a lock: a saver who loses the race meets the duplicate again under it."""
        with self._database.snapshot() as connection:
            duplicate = writing.find_duplicate(connection, write, since)
            if duplicate is None:
                return None
            return Saved(duplicate, "duplicate", writing.is_indexed(connection, duplicate, model))

    def find(self, owner: str, memory_id: str) -> Memory | None:
        """One look-up led by the owner."""
        row = self._database.read.execute(
            f"SELECT {rows.SELECT} FROM memories WHERE owner = ? AND id = ? AND archived_at IS NULL",  # noqa: S608
            (owner, memory_id),
        ).fetchone()
        return None if row is None else rows.from_row(row)

    def candidates(self, owner: str, space: str, query: Query, filters: Filters) -> Candidates:
        """Both legs over one moment of the file."""
        shelf = self._shelves.get(owner, space, query.model, query.dimensions)
        with shelf.lock, self._database.snapshot() as connection:
            shelf.refresh(connection, owner, space)
            return search.candidates(connection, shelf, owner, space, query, filters)

    def load(self, owner: str, passages: Sequence[int]) -> dict[int, tuple[Memory, str]]:
        """One statement for all."""
        marks = ",".join("?" * len(passages))
        found = self._database.read.execute(
            f"""SELECT passages.n, passages.text, {rows.SELECT} FROM passages
                JOIN memories ON memories.n = passages.memory
                WHERE passages.n IN ({marks}) AND memories.owner = ? AND archived_at IS NULL""",  # noqa: S608
            (*passages, owner),
        )
        return {row[0]: (rows.from_row(row[2:]), str(row[1])) for row in found}

    def mark_used(self, owner: str, memory_id: str, at: datetime) -> None:
        """No change of the memory: neither a revision nor news for the caches."""
        try:
            with self._database.write() as connection:
                connection.execute(
                    "UPDATE memories SET last_used_at = ? WHERE owner = ? AND id = ?",
                    (to_micros(at), owner, memory_id),
                )
        except StoreError as error:
            log.warning("memory.use_not_noted", extra={"code": error.code})

    def archive(self, owner: str, memory_id: str, archived_at: datetime) -> None:
        """A fingerprint does not outlive being forgotten."""
        with self._database.write() as connection:
            lifecycle.archive(connection, owner, memory_id, archived_at)

    def restore(self, owner: str, spaces: Collection[str], memory_id: str) -> bool:
        """Only in the spaces that the asking app may see."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT space, archived_at FROM memories WHERE owner = ? AND id = ?", (owner, memory_id)
            ).fetchone()
            if row is None or row[0] not in spaces:
                return False
            if row[1] is not None:
                try:
                    connection.execute(
                        "UPDATE memories SET archived_at = NULL, changed = ? WHERE owner = ? AND id = ?",
                        (writing.next_change(connection, owner), owner, memory_id),
                    )
                except sqlite3.IntegrityError as error:
                    raise StoreError("conflict", "its external_id has been saved anew since") from error
            return True

    def set_pinned(self, owner: str, memory_id: str, pinned: bool) -> bool:
        """Pins or unpins a live memory."""
        with self._database.write() as connection:
            return bool(
                connection.execute(
                    "UPDATE memories SET pinned = ? WHERE owner = ? AND id = ? AND archived_at IS NULL",
                    (int(pinned), owner, memory_id),
                ).rowcount
            )

    def find_forgotten(self, owner: str, memory_id: str) -> Memory | None:
        """One look-up led by the owner."""
        memory = lifecycle.find(self._database.read, owner, memory_id)
        return None if memory is None or memory.archived_at is None else memory

    def revisions(self, owner: str, memory_id: str) -> list[Memory]:
        """As they were written down."""
        kept = self._database.read.execute(
            "SELECT value FROM revisions WHERE owner = ? AND memory = ? ORDER BY revision", (owner, memory_id)
        )
        return [rows.from_kept(value) for (value,) in kept]

    def deprecate(self, owner: str, memory_id: str, successor: str | None, at: datetime) -> Memory:
        """One transaction."""
        with self._database.write() as connection:
            return lifecycle.deprecate(connection, owner, memory_id, successor, at)

    def approve(self, owner: str, ids: Sequence[str], at: datetime) -> list[Memory]:
        """One transaction for all."""
        with self._database.write() as connection:
            return [lifecycle.approve(connection, owner, memory_id, at) for memory_id in ids]

    def reject(self, owner: str, ids: Sequence[str], at: datetime) -> None:
        """One transaction for all."""
        with self._database.write() as connection:
            for memory_id in ids:
                lifecycle.reject(connection, owner, memory_id, at)

    def consolidate(self, write: Write, sources: Sequence[str], model: str | None) -> Memory:
        """One transaction."""
        with self._database.write() as connection:
            return lifecycle.consolidate(connection, write, sources, model)

    def delete(self, owner: str, memory_id: str) -> bool:
        """One transaction, and every cache starts anew."""
        with self._database.write() as connection:
            return erasing.erase(connection, owner, memory_id)

    def find_document(self, owner: str, space: str, app: str, key: str) -> Document | None:
        """One look-up led by the owner."""
        return documents.find(self._database.read, owner, space, app, key)

    def get_document(self, owner: str, document_id: str) -> Document | None:
        """One look-up led by the owner."""
        return documents.get(self._database.read, owner, document_id)

    def put_document(
        self, document: Document, writes: Sequence[Write], gone: Sequence[str], model: str | None
    ) -> Document:
        """One transaction."""
        with self._database.write() as connection:
            spaces.get(connection, document.owner, document.space)
            return documents.put(connection, document, writes, gone, model)

    def archive_document(self, owner: str, document_id: str, at: datetime) -> None:
        """One transaction."""
        with self._database.write() as connection:
            documents.archive(connection, owner, document_id, at)

    def restore_document(self, owner: str, document_id: str) -> None:
        """One transaction."""
        with self._database.write() as connection:
            documents.restore(connection, owner, document_id)

    def delete_document(self, owner: str, document_id: str) -> bool:
        """One transaction, and every cache starts anew."""
        with self._database.write() as connection:
            return documents.delete(connection, owner, document_id)

    def add_turn(self, turn: Turn, since: datetime) -> tuple[Turn, bool]:
        """Under the write lock, so that two turns at once have two numbers."""
        with self._database.write() as connection:
            return spaces.add_turn(connection, turn, to_micros(since))

    def turns(self, owner: str, space: str, session: str, after: int, limit: int) -> list[Turn]:
        """One statement."""
        return spaces.turns(self._database.read, owner, space, session, after, limit)

    def add_space(self, owner: str, name: str) -> Space:
        """One transaction."""
        with self._database.write() as connection:
            return spaces.add(connection, owner, name, to_micros(self._database.now()))

    def rename_space(self, owner: str, space: str, name: str) -> Space:
        """One transaction."""
        with self._database.write() as connection:
            return spaces.rename(connection, owner, space, name)

    def delete_space(self, owner: str, space: str) -> None:
        """One transaction, and every cache starts anew."""
        with self._database.write() as connection:
            spaces.delete(connection, owner, space)

    def spaces(self, owner: str) -> list[Space]:
        """Oldest first."""
        return spaces.all_of(self._database.read, owner)

    def chosen_space(self, owner: str, app: str) -> str | None:
        """The stored choice; it may name a space that is gone."""
        row = self._database.read.execute(
            "SELECT space FROM app_profiles WHERE owner = ? AND app = ?", (owner, app)
        ).fetchone()
        return None if row is None else row[0]

    def choose_space(self, owner: str, app: str, space: str) -> None:
        """Keeps the choice."""
        with self._database.write() as connection:
            connection.execute(
                """INSERT INTO app_profiles (owner, app, space) VALUES (?, ?, ?)
                   ON CONFLICT (owner, app) DO UPDATE SET space = excluded.space""",
                (owner, app, space),
            )

    def status(self, owner: str, spaces: Collection[str]) -> Status:
        """Counts of what is not forgotten; counted anew only when the owner's memories have changed."""
        shelves = tuple(space for space in self.spaces(owner) if space.id in spaces)
        with self._database.snapshot() as connection:
            key = (owner, tuple(space.id for space in shelves))
            change = connection.execute(
                "SELECT generation, rebuilt FROM owners WHERE id = ?", (owner,)
            ).fetchone()
            counted, status = self._statuses.get(key, (None, None))
            if status is None or counted != change:
                status = _count(connection, owner, [space.id for space in shelves])
                self._statuses[key] = (change, status)
                if len(self._statuses) > MAX_STATUSES:
                    self._statuses.pop(next(iter(self._statuses)), None)
        return replace(status, spaces=shelves)

    def unindexed(self, model: str, limit: int) -> list[Owed]:
        """Forgotten ones too: undoing must find them whole."""
        found = self._database.read.execute(
            f"SELECT {rows.SELECT} FROM memories WHERE n IN ({_UNINDEXED} LIMIT :limit)",  # noqa: S608
            {"model": model, "limit": limit},
        )
        owed = (rows.from_row(row) for row in found)
        return [Owed(each.owner, each.id, each.revision, each.searched_text) for each in owed]

    def count_unindexed(self, model: str) -> int:
        """One statement."""
        statement = f"SELECT count(DISTINCT memory) FROM ({_UNINDEXED})"  # noqa: S608 - constant
        (count,) = self._database.read.execute(statement, {"model": model}).fetchone()
        return int(count)

    def set_vectors(self, model: str, memory: Owed, vectors: Sequence[Vector]) -> bool:
        """And every cache is told."""
        with self._database.write() as connection:
            row = connection.execute(
                "SELECT n FROM memories WHERE owner = ? AND id = ? AND revision = ?",
                (memory.owner, memory.memory_id, memory.revision),
            ).fetchone()
            if row is None:
                return False
            numbers = connection.execute(
                "SELECT n FROM passages WHERE memory = ? ORDER BY ordinal", row
            ).fetchall()
            if len(numbers) != len(vectors):
                return False
            connection.executemany(
                "UPDATE passages SET model = ?, vector = ? WHERE n = ?",
                [
                    (model, vector.tobytes(), number)
                    for (number,), vector in zip(numbers, vectors, strict=True)
                ],
            )
            change = writing.next_change(connection, memory.owner)
            connection.execute("UPDATE memories SET changed = ? WHERE n = ?", (change, *row))
            return True

    def select(self, view: View, selection: Selection) -> list[Memory]:
        """One statement."""
        return views.select(self._database.read, view, selection)

    def entities(
        self, view: View, states: Sequence[State], keys: Collection[str] | None, limit: int
    ) -> list[Entity]:
        """One statement."""
        return graph.entities(self._database.read, view, states, keys, limit)

    def links(
        self, view: View, states: Sequence[State], keys: Collection[str], ids: Collection[str], limit: int
    ) -> list[Link]:
        """All of one moment."""
        with self._database.snapshot() as connection:
            return graph.links(connection, view, states, keys, ids, limit)


def _count(connection: sqlite3.Connection, owner: str, spaces: Sequence[str]) -> Status:
    live = f"owner = ? AND archived_at IS NULL AND space IN ({','.join('?' * len(spaces))})"
    parameters = (owner, *spaces)
    counts_sql = f"SELECT state, count(*) FROM memories WHERE {live} GROUP BY state"  # noqa: S608
    topics_sql = f"""SELECT topic, count(*) AS total FROM memories WHERE {live} AND state = 'active'
                     GROUP BY topic ORDER BY total DESC, topic LIMIT ?"""  # noqa: S608
    updated_sql = f"SELECT max(updated_at) FROM memories WHERE {live}"  # noqa: S608
    counts = connection.execute(counts_sql, parameters).fetchall()
    topics = connection.execute(topics_sql, (*parameters, COMMONEST_TOPICS)).fetchall()
    (updated_at,) = connection.execute(updated_sql, parameters).fetchone()
    return Status(dict(counts), tuple(topics), None if updated_at is None else from_micros(updated_at), ())
