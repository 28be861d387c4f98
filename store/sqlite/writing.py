"""Storing memories: duplicates, revisions, passages and terms, within one transaction."""

import json
import sqlite3
from collections.abc import Sequence
from dataclasses import replace
from datetime import datetime

from store import upserting
from store.backend import Passage, Write
from store.errors import StoreError
from store.memory import Memory, Saved, WriteStatus
from store.sqlite import graph, rows
from store.sqlite.database import to_micros


def save(connection: sqlite3.Connection, write: Write, model: str | None, since: datetime) -> Saved:
    """One write; the caller holds the transaction."""
    known = find_external(connection, write)
    upserting.check_revision(known, write.if_revision)
    duplicate = find_duplicate(connection, write, since)
    if duplicate is not None:
        return Saved(duplicate, "duplicate", is_indexed(connection, duplicate, model))
    if known is not None and upserting.is_untrusted(write.memory, known):
        write = replace(write, memory=upserting.proposal(write.memory, known))
        known = find_external(connection, write, is_proposal=True)
        _put(connection, known, write, model, is_proposal=True)
    else:
        _put(connection, known, write, model)
    stored = write.memory if known is None else upserting.next_revision(known, write.memory)
    status: WriteStatus = "created" if known is None else "updated"
    return Saved(stored, "pending" if stored.state == "pending" else status, _has_vectors(write, model))


def find_duplicate(connection: sqlite3.Connection, write: Write, since: datetime) -> Memory | None:
    """The live memory that already says what the write says.

    A write with an `external_id` is known by that alone, however old: two things may say the same.
    """
    if write.memory.source.external_id is None:
        return _find_fingerprint(connection, write, since)
    known = find_external(connection, write)
    if known is None or write.if_revision not in (None, known.revision):
        return None
    if upserting.repeats(known, write.memory):
        return known
    if not upserting.is_untrusted(write.memory, known):
        return None
    proposal = find_external(connection, write, is_proposal=True)
    is_same = proposal is not None and upserting.repeats(proposal, upserting.proposal(write.memory, known))
    return proposal if is_same else None


def find_external(connection: sqlite3.Connection, write: Write, is_proposal: bool = False) -> Memory | None:
    """The live memory with the same `external_id`, of this owner, space and app, or what would change it."""
    memory = write.memory
    which = "is_proposal = 1 AND state = 'pending'" if is_proposal else "is_proposal = 0"
    row = connection.execute(
        f"""SELECT {rows.SELECT} FROM memories WHERE owner = ? AND space = ? AND app = ? AND external_id = ?
            AND archived_at IS NULL AND {which}""",  # noqa: S608 - constant text
        (memory.owner, memory.space, write.app, memory.source.external_id),
    ).fetchone()
    return None if row is None else rows.from_row(row)


def _find_fingerprint(connection: sqlite3.Connection, write: Write, since: datetime) -> Memory | None:
    row = connection.execute(
        f"""SELECT {rows.SELECT} FROM fingerprints
            JOIN memories ON memories.owner = fingerprints.owner AND memories.id = fingerprints.memory
            WHERE fingerprints.owner = ? AND fingerprint = ? AND fingerprints.created_at > ?
              AND archived_at IS NULL""",  # noqa: S608 - constant columns
        (write.memory.owner, write.fingerprint, to_micros(since)),
    ).fetchone()
    return None if row is None else rows.from_row(row)


def insert(connection: sqlite3.Connection, write: Write, model: str | None) -> Memory:
    """A new memory, whatever is there already."""
    _put(connection, None, write, model)
    return write.memory


def _put(
    connection: sqlite3.Connection,
    known: Memory | None,
    write: Write,
    model: str | None,
    is_proposal: bool = False,
) -> None:
    """Inserts, or makes the next revision under the same id; the old one is kept."""
    memory = write.memory if known is None else upserting.next_revision(known, write.memory)
    row = rows.to_row(memory) | {
        "app": write.app,
        "origin": memory.source.origin,
        "external_id": memory.source.external_id,
        "is_proposal": int(is_proposal),
        "changed": next_change(connection, memory.owner),
    }
    if known is None:
        names, values = ", ".join(row), ", ".join(f":{column}" for column in row)
        inserted = connection.execute(f"INSERT INTO memories ({names}) VALUES ({values})", row)  # noqa: S608
        number = int(inserted.lastrowid or 0)
    else:
        number = keep_revision(connection, known)
        drop_index(connection, number)
        assignments = ", ".join(f"{column} = :{column}" for column in row)
        connection.execute(f"UPDATE memories SET {assignments} WHERE n = :n", row | {"n": number})  # noqa: S608
    index(connection, memory.owner, number, write.passages, model)
    graph.relate(connection, memory, number)
    connection.execute(
        "INSERT OR REPLACE INTO fingerprints VALUES (?, ?, ?, ?)",
        (memory.owner, write.fingerprint, memory.id, to_micros(memory.updated_at)),
    )


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


def is_indexed(connection: sqlite3.Connection, memory: Memory, model: str | None) -> bool:
    """Whether no embedding of the memory is owed."""
    if model is None:
        return True
    row = connection.execute(
        """SELECT 1 FROM passages JOIN memories ON memories.n = passages.memory
           WHERE memories.owner = ? AND memories.id = ? AND model IS NOT ?""",
        (memory.owner, memory.id, model),
    ).fetchone()
    return row is None


def _has_vectors(write: Write, model: str | None) -> bool:
    return model is None or all(passage.vector is not None for passage in write.passages)
