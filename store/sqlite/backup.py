"""Backing up the SQLite file: a copy by SQLite's own backup, checked, summed, and put in place again."""

import hashlib
import json
import os
import shutil
import sqlite3
from collections.abc import Iterator
from contextlib import closing
from pathlib import Path

from store.backup import Kind, Losses, Part, Snapshot
from store.errors import StoreError
from store.sqlite.database import exclusive
from store.sqlite.schema import MIGRATIONS

VECTORS = ("model", "vector")
"""The columns of `passages` that can be computed again."""
APART = "vectors"
"""Where they stand among the tables of a snapshot."""


class SQLiteBackup:
    """Fits `store.backup.Backend`; it needs no open `Database`, so that a damaged file can be replaced."""

    engine = "sqlite"
    member = "vademecum.db"

    def __init__(self, path: Path) -> None:
        self._path = path

    def dump(self, target: Path, kind: Kind) -> Snapshot:
        """One read transaction: writers go on meanwhile."""
        if not self._path.exists():
            raise StoreError("not_found", f"there is no database at {self._path}")
        os.close(os.open(target, os.O_RDWR | os.O_CREAT | os.O_EXCL, 0o600))
        try:
            with closing(sqlite3.connect(self._path)) as source, closing(_connect(target)) as copy:
                source.execute("PRAGMA query_only=ON")
                source.backup(copy)
                copy.execute("PRAGMA journal_mode=DELETE")
                _check(copy, self._path)
                if kind == "portable":
                    copy.execute("UPDATE passages SET model = NULL, vector = NULL")
                    copy.execute("VACUUM")
                return _snapshot(copy)
        except sqlite3.Error as error:
            raise _damaged(self._path, error) from error

    def inspect(self, dumped: Path) -> Snapshot:
        """Integrity, foreign keys, the index of words, and every row."""
        try:
            with closing(_connect(dumped)) as connection:
                (schema,) = connection.execute("PRAGMA user_version").fetchone()
                if schema > len(MIGRATIONS):
                    raise StoreError(
                        "unavailable",
                        f"the backup's schema is {schema} and this program knows {len(MIGRATIONS)}: "
                        "update the program first",
                    )
                _check(connection, dumped)
                return _snapshot(connection)
        except sqlite3.Error as error:
            raise _damaged(dumped, error) from error

    def losses(self, dumped: Path) -> Losses | None:
        """Compares ids and revisions."""
        if not self._path.exists():
            return Losses(0, 0, 0)
        with closing(_connect(dumped)) as connection:
            after = _revisions(connection)
        try:
            with closing(_connect(self._path)) as connection:
                before = _revisions(connection)
        except sqlite3.Error:
            return None
        lost = sum(1 for memory in before if memory not in after)
        reverted = sum(1 for memory, revision in before.items() if after.get(memory, revision) < revision)
        return Losses(len(before), lost, reverted)

    def replace(self, dumped: Path, kept: str) -> Path | None:
        """One rename; the write-ahead log is folded in first, for it would be replayed onto the new file."""
        with exclusive(self._path):
            aside = self._keep(self._path.with_name(f"{kept}.db")) if self._path.exists() else None
            os.replace(dumped, self._path)
            _sync(self._path.parent)
        return aside

    def _keep(self, aside: Path) -> Path:
        if not self._fold():
            for suffix in ("-wal", "-shm"):
                log = self._path.with_name(self._path.name + suffix)
                if log.exists():
                    log.rename(aside.with_name(aside.name + suffix))
        try:
            os.link(self._path, aside)
        except OSError:  # a file system without links
            shutil.copy2(self._path, aside)
        aside.chmod(0o600)
        return aside

    def _fold(self) -> bool:
        """Whether the file is now whole without its write-ahead log; a damaged one stays as it is."""
        try:
            with closing(_connect(self._path)) as connection:
                connection.execute("PRAGMA wal_checkpoint(TRUNCATE)")
                (mode,) = connection.execute("PRAGMA journal_mode=DELETE").fetchone()
        except sqlite3.Error:
            return False
        return bool(mode == "delete")


def _connect(path: Path) -> sqlite3.Connection:
    return sqlite3.connect(path, isolation_level=None)


def _check(connection: sqlite3.Connection, path: Path) -> None:
    problems = [text for (text,) in connection.execute("PRAGMA integrity_check(3)") if text != "ok"]
    problems += [f"a row of {row[0]} refers to nothing" for row in _dangling(connection)]
    if problems:
        raise _damaged(path, "; ".join(problems))
    connection.execute("INSERT INTO terms (terms) VALUES ('integrity-check')")


def _dangling(connection: sqlite3.Connection) -> Iterator[tuple[str]]:
    yield from connection.execute("PRAGMA foreign_key_check").fetchmany(3)


def _damaged(path: Path, why: object) -> StoreError:
    return StoreError("unavailable", f"{path} is damaged: {why}")


def _snapshot(connection: sqlite3.Connection) -> Snapshot:
    (schema,) = connection.execute("PRAGMA user_version").fetchone()
    tables = {name: _part(connection, name) for name in _tables(connection)}
    columns = f"n, {', '.join(VECTORS)}"
    rows = f"SELECT {columns} FROM passages WHERE vector IS NOT NULL ORDER BY n"  # noqa: S608 - constant
    tables[APART] = _sum(connection, rows)
    return Snapshot(schema, tables["memories"].rows, tables)


def _tables(connection: sqlite3.Connection) -> list[str]:
    """The ordinary ones; the index of words is derived, and checked by itself."""
    found = connection.execute("SELECT name, sql FROM sqlite_master WHERE type = 'table'").fetchall()
    virtual = tuple(f"{name}_" for name, sql in found if sql and sql.startswith("CREATE VIRTUAL"))
    return sorted(
        name
        for name, sql in found
        if sql and sql.startswith("CREATE TABLE") and not name.startswith(("sqlite_", *virtual))
    )


def _part(connection: sqlite3.Connection, table: str) -> Part:
    columns = connection.execute("SELECT name, pk FROM pragma_table_info(?)", (table,)).fetchall()
    key = [name for name, pk in sorted(columns, key=lambda each: each[1]) if pk]
    chosen = [name for name, _ in columns if table != "passages" or name not in VECTORS]
    order = ", ".join(f'"{name}"' for name in key) or "rowid"
    selected = ", ".join(f'"{name}"' for name in chosen)
    return _sum(connection, f'SELECT {selected} FROM "{table}" ORDER BY {order}')  # noqa: S608 - our schema


def _sum(connection: sqlite3.Connection, statement: str) -> Part:
    digest, count = hashlib.sha256(), 0
    for row in connection.execute(statement):
        digest.update(json.dumps(row, ensure_ascii=False, default=bytes.hex).encode() + b"\n")
        count += 1
    return Part(count, digest.hexdigest())


def _revisions(connection: sqlite3.Connection) -> dict[tuple[str, str], int]:
    found = connection.execute("SELECT owner, id, revision FROM memories")
    return {(owner, memory): revision for owner, memory, revision in found}


def _sync(directory: Path) -> None:
    descriptor = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(descriptor)
    finally:
        os.close(descriptor)
