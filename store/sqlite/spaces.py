"""Spaces and turns in SQLite."""

import sqlite3
from dataclasses import replace

from store.errors import StoreError
from store.ids import new_id
from store.memory import Space, Turn
from store.sqlite import erasing
from store.sqlite.database import from_micros, to_micros


def all_of(connection: sqlite3.Connection, owner: str) -> list[Space]:
    """Oldest first."""
    found = connection.execute(
        "SELECT id, owner, name, created_at FROM spaces WHERE owner = ? ORDER BY created_at, id", (owner,)
    )
    return [Space(space, of, name, from_micros(created_at)) for space, of, name, created_at in found]


def get(connection: sqlite3.Connection, owner: str, space: str) -> Space:
    """One of the owner's.

    Raises:
        StoreError: `not_found`.
    """
    for each in all_of(connection, owner):
        if each.id == space:
            return each
    raise StoreError("not_found", "no such space")


def add(connection: sqlite3.Connection, owner: str, name: str, created_at: int) -> Space:
    """A new one; the caller holds the transaction."""
    space = new_id(12)
    try:
        connection.execute("INSERT INTO spaces VALUES (?, ?, ?, ?)", (owner, space, name, created_at))
    except sqlite3.IntegrityError as error:
        raise StoreError("conflict", f"there is a space called {name} already") from error
    return get(connection, owner, space)


def rename(connection: sqlite3.Connection, owner: str, space: str, name: str) -> Space:
    """Its memories stay where they are."""
    get(connection, owner, space)
    try:
        connection.execute("UPDATE spaces SET name = ? WHERE owner = ? AND id = ?", (name, owner, space))
    except sqlite3.IntegrityError as error:
        raise StoreError("conflict", f"there is a space called {name} already") from error
    return get(connection, owner, space)


def delete(connection: sqlite3.Connection, owner: str, space: str) -> None:
    """With everything in it; the caller holds the transaction."""
    get(connection, owner, space)
    if len(all_of(connection, owner)) == 1:
        raise StoreError("conflict", "the only space cannot be deleted")
    numbers = connection.execute("SELECT n FROM memories WHERE owner = ? AND space = ?", (owner, space))
    erasing.erase_numbered(connection, owner, [number for (number,) in numbers.fetchall()])
    connection.execute("DELETE FROM spaces WHERE owner = ? AND id = ?", (owner, space))


def add_turn(connection: sqlite3.Connection, turn: Turn, since: int) -> tuple[Turn, bool]:
    """The caller holds the transaction."""
    get(connection, turn.owner, turn.space)
    of_session = (turn.owner, turn.space, turn.session)
    row = connection.execute(
        """SELECT number, app, role, content, at FROM turns WHERE owner = ? AND space = ? AND session = ?
           ORDER BY number DESC LIMIT 1""",
        of_session,
    ).fetchone()
    number, *last, at = row or (0, None, None, None, 0)
    if last == [turn.app, turn.role, turn.content] and at > since:
        return replace(turn, number=number, at=from_micros(at)), False
    connection.execute(
        "INSERT INTO turns VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)",
        (*of_session, number + 1, turn.app, turn.client_name, turn.role, turn.content, to_micros(turn.at)),
    )
    return replace(turn, number=number + 1), True


def turns(
    connection: sqlite3.Connection, owner: str, space: str, session: str, after: int, limit: int
) -> list[Turn]:
    """In order."""
    found = connection.execute(
        """SELECT number, app, client_name, role, content, at FROM turns
           WHERE owner = ? AND space = ? AND session = ? AND number > ? ORDER BY number LIMIT ?""",
        (owner, space, session, after, limit),
    )
    return [
        Turn(owner, space, session, number, app, client_name, role, content, from_micros(at))
        for number, app, client_name, role, content, at in found
    ]
