"""Deleting an account: first what opens it, at once; then what it holds, step by step."""

import sqlite3

from store.sqlite.erasing import erase_numbered, overwriting

_BEFORE_MEMORIES = (
    "DELETE FROM events WHERE n IN (SELECT n FROM events WHERE owner = :owner LIMIT :limit)",
    "DELETE FROM queries WHERE n IN (SELECT n FROM queries WHERE owner = :owner LIMIT :limit)",
    """DELETE FROM turns WHERE owner = :owner AND (space, session, number) IN (
           SELECT space, session, number FROM turns WHERE owner = :owner LIMIT :limit)""",
    """DELETE FROM documents WHERE owner = :owner
           AND id IN (SELECT id FROM documents WHERE owner = :owner LIMIT :limit)""",
)
"""First what repeats their words: each memory that is erased looks through what is left of it."""


def close(connection: sqlite3.Connection, owner: str) -> None:
    """Nobody signs in to the account or calls for it any more, and nobody finds it."""
    with overwriting(connection):
        connection.execute("UPDATE owners SET is_closed = 1 WHERE id = ?", (owner,))
        _delete_doors(connection, owner)


def erase(connection: sqlite3.Connection, owner: str, limit: int) -> bool:
    """One step; False when it was the last, or when the account is open or unknown."""
    is_closed = "SELECT 1 FROM owners WHERE id = ? AND is_closed = 1"
    if connection.execute(is_closed, (owner,)).fetchone() is None:
        return False
    with overwriting(connection):
        for statement in _BEFORE_MEMORIES:
            if connection.execute(statement, {"owner": owner, "limit": limit}).rowcount == limit:
                return True
        chosen = connection.execute("SELECT n FROM memories WHERE owner = ? LIMIT ?", (owner, limit))
        numbers = [number for (number,) in chosen]
        erase_numbered(connection, owner, numbers)
        if len(numbers) == limit:
            return True
        # Again: a request that was under way when the account was closed may have written since.
        _delete_doors(connection, owner)
        connection.execute("DELETE FROM owners WHERE id = ?", (owner,))
        return False


def _delete_doors(connection: sqlite3.Connection, owner: str) -> None:
    connection.execute("DELETE FROM identities WHERE owner = ?", (owner,))
    connection.execute("DELETE FROM app_profiles WHERE owner = ?", (owner,))
    connection.execute(
        """DELETE FROM records WHERE (kind, key) IN (
               SELECT kind, key FROM record_fields WHERE field IN ('owner', 'subject') AND value = ?)""",
        (owner,),
    )
