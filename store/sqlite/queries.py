"""The query log in SQLite."""

import json
from collections.abc import Sequence
from datetime import datetime

from store.queries import AskedQuery
from store.sqlite.database import Database, from_micros, to_micros
from store.sqlite.events import LIFETIME


class SQLiteQueries:
    """Fits `store.queries.Queries`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def append(self, queries: Sequence[AskedQuery]) -> None:
        """What is too old goes."""
        rows = [
            (each.owner, to_micros(each.at), each.app, each.query, json.dumps(each.found)) for each in queries
        ]
        too_old = to_micros(self._database.now() - LIFETIME)
        with self._database.write() as connection:
            # As events, they wait; an account may have been closed meanwhile.
            connection.executemany(
                """INSERT INTO queries (owner, at, app, query, found) SELECT ?1, ?2, ?3, ?4, ?5
                   WHERE EXISTS (SELECT 1 FROM owners WHERE id = ?1 AND is_closed = 0)""",
                rows,
            )
            connection.execute("DELETE FROM queries WHERE at < ?", (too_old,))

    def since(self, owner: str, moment: datetime) -> list[AskedQuery]:
        """By index."""
        rows = self._database.read.execute(
            "SELECT at, app, query, found FROM queries WHERE owner = ? AND at >= ? ORDER BY at, n",
            (owner, to_micros(moment)),
        )
        return [
            AskedQuery(from_micros(at), owner, app, query, tuple(json.loads(found)))
            for at, app, query, found in rows
        ]
