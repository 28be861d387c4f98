"""Changes of a memory's standing, each within the caller's transaction: deprecated, approved, rejected."""

import sqlite3
from collections.abc import Sequence
from datetime import datetime

from store import review, succession
from store.backend import Write
from store.errors import NO_SUCH_MEMORY, StoreError
from store.memory import Memory, Saved
from store.sqlite import graph, rows, writing
from store.sqlite.database import to_micros


def find(connection: sqlite3.Connection, owner: str, memory_id: str) -> Memory | None:
    """The memory, forgotten or not."""
    row = connection.execute(
        f"SELECT {rows.SELECT} FROM memories WHERE owner = ? AND id = ?",  # noqa: S608 - constant columns
        (owner, memory_id),
    ).fetchone()
    return None if row is None else rows.from_row(row)


def get(connection: sqlite3.Connection, owner: str, memory_id: str) -> Memory:
    """The live memory.

    Raises:
        StoreError: `not_found`.
    """
    memory = find(connection, owner, memory_id)
    if memory is None or memory.archived_at is not None:
        raise StoreError("not_found", NO_SUCH_MEMORY)
    return memory


def deprecate(
    connection: sqlite3.Connection, owner: str, memory_id: str, successor: str | None, at: datetime
) -> Memory:
    """As `store.succession` rules."""
    memory = get(connection, owner, memory_id)
    named = None if successor is None else get(connection, owner, successor)
    after = succession.deprecated(memory, named, lambda each: find(connection, owner, each), at)
    if after is not memory:
        change(connection, memory, after)
    return after


def save(connection: sqlite3.Connection, write: Write, model: str | None, since: datetime) -> Saved:
    """Saves, and deprecates what the write supersedes; neither without the other."""
    saved = writing.save(connection, write, model, since)
    if write.supersedes is not None:
        deprecate(connection, write.memory.owner, write.supersedes, saved.memory.id, write.memory.updated_at)
    return saved


def consolidate(
    connection: sqlite3.Connection, write: Write, sources: Sequence[str], model: str | None
) -> Memory:
    """Stores the memory and deprecates its sources in its favour; none of it, should one refuse."""
    merged = writing.insert(connection, write, model)
    for source in sources:
        deprecate(connection, merged.owner, source, merged.id, merged.updated_at)
    return merged


def approve(connection: sqlite3.Connection, owner: str, memory_id: str, at: datetime) -> Memory:
    """The memory that is relied on now: itself, or the one that it was a proposed revision of."""
    memory = get(connection, owner, memory_id)
    if review.is_decided(memory):
        return memory if memory.superseded_by is None else get(connection, owner, memory.superseded_by)
    known = _revised_by(connection, memory)
    if known is None:
        after = review.approved(memory, at)
        connection.execute(
            "UPDATE memories SET is_proposal = 0 WHERE owner = ? AND id = ?", (owner, memory_id)
        )
        change(connection, memory, after)
        return after
    after = review.revised(known, memory, at)
    number = change(connection, known, after)
    connection.execute("UPDATE memories SET origin = ? WHERE n = ?", (after.source.origin, number))
    _copy_index(connection, change(connection, memory, review.folded(memory, known, at)), number)
    graph.relate(connection, after, number)
    return after


def reject(connection: sqlite3.Connection, owner: str, memory_id: str, at: datetime) -> None:
    """Forgets it; what it would have changed stays as it is."""
    review.must_wait(get(connection, owner, memory_id))
    archive(connection, owner, memory_id, at)


def archive(connection: sqlite3.Connection, owner: str, memory_id: str, at: datetime) -> None:
    """A fingerprint does not outlive being forgotten."""
    connection.execute(
        "UPDATE memories SET archived_at = ?, changed = ? WHERE owner = ? AND id = ?",
        (to_micros(at), writing.next_change(connection, owner), owner, memory_id),
    )
    writing.forget_fingerprints(connection, owner, memory_id)


def change(connection: sqlite3.Connection, before: Memory, after: Memory) -> int:
    """Makes the next revision, keeps the old one, tells every cache, and returns the memory's number."""
    number = writing.keep_revision(connection, before)
    row = rows.to_row(after) | {"changed": writing.next_change(connection, after.owner)}
    assignments = ", ".join(f"{column} = :{column}" for column in row)
    connection.execute(f"UPDATE memories SET {assignments} WHERE n = :n", row | {"n": number})  # noqa: S608
    return number


def _revised_by(connection: sqlite3.Connection, proposal: Memory) -> Memory | None:
    """The live memory that this one proposes to change."""
    row = connection.execute(
        f"""SELECT {rows.SELECT} FROM memories JOIN memories AS proposal
            ON proposal.owner = memories.owner AND proposal.space = memories.space
               AND proposal.app = memories.app AND proposal.external_id = memories.external_id
            WHERE proposal.owner = ? AND proposal.id = ? AND proposal.is_proposal = 1
              AND memories.is_proposal = 0 AND memories.archived_at IS NULL""",  # noqa: S608
        (proposal.owner, proposal.id),
    ).fetchone()
    return None if row is None else rows.from_row(row)


def _copy_index(connection: sqlite3.Connection, source: int, target: int) -> None:
    """Gives one memory the passages and terms of another, in place of its own."""
    writing.drop_index(connection, target)
    passages = connection.execute(
        "SELECT n, owner, ordinal, text, length, model, vector FROM passages WHERE memory = ? ORDER BY n",
        (source,),
    ).fetchall()
    for number, owner, *columns in passages:
        copied = connection.execute(
            """INSERT INTO passages (owner, memory, ordinal, text, length, model, vector)
               VALUES (?, ?, ?, ?, ?, ?, ?)""",
            (owner, target, *columns),
        ).lastrowid
        connection.execute(
            "INSERT INTO terms (rowid, tokens) SELECT ?, tokens FROM terms WHERE rowid = ?", (copied, number)
        )
