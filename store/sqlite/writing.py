"""Storing memories: duplicates, revisions, passages and terms, within one transaction."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from store.backend import Passage, Write
from store.errors import StoreError
from store.memory import Memory, Saved, WriteStatus
from store.sqlite import rows
from store.sqlite.database import to_micros


def save(connection: sqlite3.Connection, write: Write, model: str | None, since: datetime) -> Saved:
    """One write; the caller holds the transaction."""
    known = find_external(connection, write)
    if known is not None:
        return _revise(connection, known, write, model)
    if write.if_revision is not None:
        raise StoreError("conflict", "there is no such memory yet, so no revision of it")
    duplicate = find_duplicate(connection, write, since)
    if duplicate is not None:
        return Saved(duplicate, "duplicate", is_indexed(connection, duplicate))
    _insert(connection, write, model)
    status: WriteStatus = "pending" if write.memory.state == "pending" else "created"
    return Saved(write.memory, status, _has_vectors(write.passages, model))


def find_duplicate(connection: sqlite3.Connection, write: Write, since: datetime) -> Memory | None:
    """The live memory that the fingerprint points at, if it is recent enough.

    A write with an `external_id` is known by that alone: two things may say the same.
    """
    if write.memory.source.external_id is not None:
        return None
    row = connection.execute(
        f"""SELECT {rows.SELECT} FROM fingerprints
            JOIN memories ON memories.owner = fingerprints.owner AND memories.id = fingerprints.memory
            WHERE fingerprints.owner = ? AND fingerprint = ? AND fingerprints.created_at > ?
              AND archived_at IS NULL""",  # noqa: S608 - constant columns
        (write.memory.owner, write.fingerprint, to_micros(since)),
    ).fetchone()
    return None if row is None else rows.from_row(row)


def find_external(connection: sqlite3.Connection, write: Write) -> Memory | None:
    """The memory with the same `external_id`, of this owner, space and app."""
    external_id = write.memory.source.external_id
    if external_id is None:
        return None
    row = connection.execute(
        f"""SELECT {rows.SELECT} FROM memories
            WHERE owner = ? AND space = ? AND app = ? AND external_id = ?""",  # noqa: S608 - constant columns
        (write.memory.owner, write.memory.space, write.app, external_id),
    ).fetchone()
    return None if row is None else rows.from_row(row)


def repeats(known: Memory, proposed: Memory) -> bool:
    """Whether the proposal says nothing new of a live memory."""
    same = replace(
        proposed,
        id=known.id,
        created_at=known.created_at,
        updated_at=known.updated_at,
        last_used_at=known.last_used_at,
        revision=known.revision,
        superseded_by=known.superseded_by,
        pinned=known.pinned,
        source=replace(proposed.source, client_name=known.source.client_name),
    )
    return same == known


def _revise(connection: sqlite3.Connection, known: Memory, write: Write, model: str | None) -> Saved:
    """The next revision under the same id; the old one is kept."""
    if write.if_revision not in (None, known.revision):
        raise StoreError("conflict", f"the memory has changed: its revision is {known.revision}")
    if known.archived_at is None and repeats(known, write.memory):
        return Saved(known, "duplicate", is_indexed(connection, known))
    if write.memory.state == "pending" and known.state != "pending":
        # Text of untrusted origin never changes what the owner relies on: it waits as a memory of its own.
        proposal = replace(
            write.memory,
            source=replace(
                write.memory.source,
                external_id=None,
                derived_from=(*write.memory.source.derived_from, known.id),
            ),
        )
        _insert(connection, replace(write, memory=proposal), model)
        return Saved(proposal, "pending", _has_vectors(write.passages, model))
    revised = replace(
        write.memory,
        id=known.id,
        created_at=known.created_at,
        last_used_at=known.last_used_at,
        revision=known.revision + 1,
        pinned=known.pinned,
    )
    number = keep_revision(connection, known)
    drop_index(connection, number)
    row = rows.to_row(revised) | _bookkeeping(connection, revised, write.app)
    assignments = ", ".join(f"{column} = :{column}" for column in row)
    connection.execute(f"UPDATE memories SET {assignments} WHERE n = :n", row | {"n": number})  # noqa: S608
    index(connection, revised.owner, number, write.passages, model)
    _remember(connection, revised, write.fingerprint)
    return Saved(revised, "updated", _has_vectors(write.passages, model))


def keep_revision(connection: sqlite3.Connection, memory: Memory) -> int:
    """Keeps what the memory says now, ends its fingerprints, and returns its number."""
    (number,) = connection.execute(
        "SELECT n FROM memories WHERE owner = ? AND id = ?", (memory.owner, memory.id)
    ).fetchone()
    value = json.dumps(rows.to_row(memory), ensure_ascii=False)
    connection.execute(
        "INSERT INTO revisions VALUES (?, ?, ?, ?, ?)",
        (memory.owner, memory.id, memory.revision, value, to_micros(memory.updated_at)),
    )
    forget_fingerprints(connection, memory.owner, memory.id)
    return int(number)


def forget_fingerprints(connection: sqlite3.Connection, owner: str, memory_id: str) -> None:
    """They point only at what the memory said when it was saved."""
    connection.execute("DELETE FROM fingerprints WHERE owner = ? AND memory = ?", (owner, memory_id))


def next_change(connection: sqlite3.Connection, owner: str) -> int:
    """Counts a change of the owner's, so that every cache notices."""
    (generation,) = connection.execute(
        "UPDATE owners SET generation = generation + 1 WHERE id = ? RETURNING generation", (owner,)
    ).fetchone()
    return int(generation)


def _insert(connection: sqlite3.Connection, write: Write, model: str | None) -> None:
    memory = write.memory
    row = rows.to_row(memory) | _bookkeeping(connection, memory, write.app)
    names = ", ".join(row)
    values = ", ".join(f":{column}" for column in row)
    number = connection.execute(f"INSERT INTO memories ({names}) VALUES ({values})", row).lastrowid  # noqa: S608
    index(connection, memory.owner, int(number or 0), write.passages, model)
    _remember(connection, memory, write.fingerprint)


def _bookkeeping(connection: sqlite3.Connection, memory: Memory, app: str) -> dict[str, str | int | None]:
    return {
        "app": app,
        "origin": memory.source.origin,
        "external_id": memory.source.external_id,
        "changed": next_change(connection, memory.owner),
    }


def _remember(connection: sqlite3.Connection, memory: Memory, fingerprint: bytes) -> None:
    connection.execute(
        "INSERT OR REPLACE INTO fingerprints VALUES (?, ?, ?, ?)",
        (memory.owner, fingerprint, memory.id, to_micros(memory.updated_at)),
    )


def index(
    connection: sqlite3.Connection, owner: str, memory: int, passages: Sequence[Passage], model: str | None
) -> None:
    """Adds the passages and their terms."""
    prefix = owner_prefix(connection, owner)
    for ordinal, passage in enumerate(passages):
        vector = None if passage.vector is None else passage.vector.tobytes()
        number = connection.execute(
            """INSERT INTO passages (owner, memory, ordinal, text, length, model, vector)
               VALUES (?, ?, ?, ?, ?, ?, ?)""",
            (owner, memory, ordinal, passage.text, len(passage.terms), model if vector else None, vector),
        ).lastrowid
        tokens = " ".join(prefix + term for term in passage.terms)
        connection.execute("INSERT INTO terms (rowid, tokens) VALUES (?, ?)", (number, tokens))


def drop_index(connection: sqlite3.Connection, memory: int) -> None:
    """Removes a memory's passages and their terms."""
    connection.execute(
        "DELETE FROM terms WHERE rowid IN (SELECT n FROM passages WHERE memory = ?)", (memory,)
    )
    connection.execute("DELETE FROM passages WHERE memory = ?", (memory,))


def owner_prefix(connection: sqlite3.Connection, owner: str) -> str:
    """What makes an owner's terms that owner's alone.

    Raises:
        StoreError: `not_found` for an unknown owner.
    """
    row = connection.execute("SELECT n FROM owners WHERE id = ?", (owner,)).fetchone()
    if row is None:
        raise StoreError("not_found", "no such owner")
    return f"{row[0]}x"


def is_indexed(connection: sqlite3.Connection, memory: Memory) -> bool:
    """Whether no embedding of the memory is owed."""
    row = connection.execute(
        """SELECT 1 FROM passages JOIN memories ON memories.n = passages.memory
           WHERE memories.owner = ? AND memories.id = ? AND vector IS NULL""",
        (memory.owner, memory.id),
    ).fetchone()
    return row is None


def _has_vectors(passages: Sequence[Passage], model: str | None) -> bool:
    return model is None or all(passage.vector is not None for passage in passages)
