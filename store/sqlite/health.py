"""A look at the file from outside, which opens nothing for writing and migrates nothing."""

import sqlite3
from collections.abc import Mapping
from contextlib import closing
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from store.sqlite.database import from_micros
from store.sqlite.schema import MIGRATIONS


@dataclass(frozen=True)
class Health:
    """What was found; with `unreadable` the rest is empty."""

    unreadable: str | None = None
    damage: tuple[str, ...] = ()
    schema: int = 0
    newest_schema: int = len(MIGRATIONS)
    memories: int = 0
    last_write: datetime | None = None
    has_signing_keys: bool = False
    passages: Mapping[str | None, int] = field(default_factory=dict)
    """How many there are by the model of their vector."""

    def owed(self, model: str | None) -> int:
        """Passages without a vector of this model."""
        return 0 if model is None else sum(self.passages.values()) - self.passages.get(model, 0)


def examine(path: Path) -> Health:
    """Looks at every page."""
    try:
        with closing(sqlite3.connect(path)) as connection:
            connection.execute("PRAGMA query_only=ON")
            (schema,) = connection.execute("PRAGMA user_version").fetchone()
            damage = [text for (text,) in connection.execute("PRAGMA integrity_check(3)") if text != "ok"]
            dangling = connection.execute("PRAGMA foreign_key_check").fetchmany(3)
            damage += [f"a row of {row[0]} refers to nothing" for row in dangling]
            if damage or not schema:
                return Health(damage=tuple(damage or ["it has no tables"]), schema=schema)
            (memories,) = connection.execute("SELECT count(*) FROM memories").fetchone()
            (last_write,) = connection.execute("SELECT max(updated_at) FROM memories").fetchone()
            keys = connection.execute("SELECT 1 FROM records WHERE kind = 'keys'").fetchone()
            models = connection.execute("SELECT model, count(*) FROM passages GROUP BY model").fetchall()
    except sqlite3.DatabaseError as error:
        return Health(unreadable=str(error))
    return Health(
        schema=schema,
        memories=memories,
        last_write=None if last_write is None else from_micros(last_write),
        has_signing_keys=keys is not None,
        passages=dict(models),
    )
