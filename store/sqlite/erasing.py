"""Deleting for good: the memory and everything that was derived from it or repeats its words."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from contextlib import contextmanager

from store.sqlite import writing


@contextmanager
def overwriting(connection: sqlite3.Connection) -> Iterator[None]:
    """Pages that are given up within the block are overwritten: the file does not go on holding the words."""
    (before,) = connection.execute("PRAGMA secure_delete").fetchone()
    connection.execute("PRAGMA secure_delete=ON")
    try:
        yield
    finally:
        connection.execute(f"PRAGMA secure_delete={before}")


def erase(connection: sqlite3.Connection, owner: str, memory_id: str) -> bool:
    """Deletes a memory, forgotten or not, with the revisions proposed for it; False when there is none."""
    numbers = [
        number
        for (number,) in connection.execute(
            """SELECT memories.n FROM memories JOIN memories AS erased ON erased.owner = memories.owner
               WHERE erased.owner = :owner AND erased.id = :id AND (memories.n = erased.n OR (
                   erased.is_proposal = 0 AND memories.is_proposal = 1 AND memories.space = erased.space
                   AND memories.app = erased.app AND memories.external_id = erased.external_id
                   AND EXISTS (SELECT 1 FROM json_each(memories.source, '$.derived_from') AS base
                               WHERE base.value = erased.id)))""",
            {"owner": owner, "id": memory_id},
        )
    ]
    erase_numbered(connection, owner, numbers)
    return bool(numbers)


def erase_numbered(connection: sqlite3.Connection, owner: str, numbers: Sequence[int]) -> None:
    """Deletes rows with their revisions, passages, vectors, terms, edges, fingerprints and previews."""
    chosen = json.dumps([*numbers])
    of_these = "SELECT id FROM memories WHERE n IN (SELECT value FROM json_each(:chosen))"
    where = {"owner": owner, "chosen": chosen}
    with overwriting(connection):
        connection.execute(
            f"""UPDATE memories SET superseded_by = NULL
                WHERE owner = :owner AND superseded_by IN ({of_these})""",  # noqa: S608
            where,
        )
        connection.execute(
            f"""UPDATE events SET value = json_set(events.value, '$.query_preview', NULL)
                WHERE owner = :owner AND EXISTS (SELECT 1 FROM json_each(events.value, '$.memory_ids') AS seen
                                                 WHERE seen.value IN ({of_these}))""",  # noqa: S608
            where,
        )
        connection.execute(
            f"""DELETE FROM queries WHERE owner = :owner AND EXISTS (
                    SELECT 1 FROM json_each(queries.found) AS seen WHERE seen.value IN ({of_these}))""",  # noqa: S608
            where,
        )
        for number in numbers:
            writing.drop_index(connection, number)
        connection.execute(
            "DELETE FROM memories WHERE owner = :owner AND n IN (SELECT value FROM json_each(:chosen))", where
        )
        # A cache cannot ask for what is no longer there: it starts anew.
        connection.execute(
            "UPDATE owners SET generation = generation + 1, rebuilt = rebuilt + 1 WHERE id = ?", (owner,)
        )
