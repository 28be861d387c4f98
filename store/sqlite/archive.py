"""An owner's memories read as they are kept, and put back the same."""

import json
import sqlite3
from collections.abc import Iterator, Mapping, Sequence

from store.archive import Fate
from store.archive_rows import Kept, Row
from store.backend import Passage
from store.memory import Document, Space, Turn
from store.sqlite import documents, graph, rows, spaces, writing
from store.sqlite.database import Database, from_micros, to_micros
from store.sqlite.owners import FIRST_SPACE

_TURN = "owner, space, session, number, app, client_name, role, content, at"


class SQLiteArchive:
    """Fits `store.archive.Archive`."""

    def __init__(self, database: Database) -> None:
        self._database = database

    def read(self, owner: str) -> Iterator[Row]:
        """One read transaction, row by row."""
        with self._database.moment() as connection:
            shelves = spaces.all_of(connection, owner)
            yield from shelves
            for space in (each.id for each in shelves):
                found = connection.execute(
                    f"""SELECT app, is_proposal, {rows.SELECT} FROM memories WHERE owner = ? AND space = ?
                        ORDER BY created_at, id""",  # noqa: S608 - constant columns
                    (owner, space),
                )
                for row in found:
                    yield _kept(connection, row)
                yield from documents.kept(connection, owner, space)
                yield from _turns(connection, owner, space)

    def put_spaces(self, owner: str, spaces: Sequence[Space]) -> Mapping[str, str]:
        """One transaction."""
        with self._database.write() as connection:
            is_empty = not any(
                connection.execute(f"SELECT 1 FROM {table} WHERE owner = ?", (owner,)).fetchone()  # noqa: S608
                for table in ("memories", "documents", "turns")
            )
            known = {space.id: _known_as(connection, owner, space, is_empty) for space in spaces}
            if is_empty and spaces and FIRST_SPACE not in {space.name for space in spaces}:
                connection.execute(
                    """DELETE FROM spaces WHERE owner = :owner AND name = :name AND id NOT IN (
                           SELECT space FROM app_profiles WHERE owner = :owner AND space IS NOT NULL)""",
                    {"owner": owner, "name": FIRST_SPACE},
                )
            return known

    def put(self, owner: str, rows: Sequence[tuple[Row, Sequence[Passage]]]) -> list[Fate]:
        """One transaction."""
        with self._database.write() as connection:
            return [_put(connection, row, passages) for row, passages in rows]


def _kept(connection: sqlite3.Connection, row: tuple[object, ...]) -> Kept:
    app, is_proposal, *columns = row
    memory = rows.from_row(tuple(columns))
    revisions = connection.execute(
        "SELECT value FROM revisions WHERE owner = ? AND memory = ? ORDER BY revision",
        (memory.owner, memory.id),
    )
    return Kept(memory, str(app), bool(is_proposal), tuple(rows.from_kept(value) for (value,) in revisions))


def _known_as(connection: sqlite3.Connection, owner: str, space: Space, is_empty: bool) -> str:
    found = connection.execute(
        "SELECT id FROM spaces WHERE owner = ? AND (id = ? OR name = ?) ORDER BY id != ?",
        (owner, space.id, space.name, space.id),
    ).fetchone()
    created_at = to_micros(space.created_at)
    if found is None:
        values = (owner, space.id, space.name, created_at)
        connection.execute("INSERT INTO spaces VALUES (?, ?, ?, ?)", values)
        return space.id
    present = str(found[0])
    if not is_empty:
        return present
    connection.execute(
        "UPDATE spaces SET id = ?, name = ?, created_at = ? WHERE owner = ? AND id = ?",
        (space.id, space.name, created_at, owner, present),
    )
    connection.execute(
        "UPDATE app_profiles SET space = ? WHERE owner = ? AND space = ?", (space.id, owner, present)
    )
    return space.id


def _turns(connection: sqlite3.Connection, owner: str, space: str) -> Iterator[Turn]:
    found = connection.execute(
        f"SELECT {_TURN} FROM turns WHERE owner = ? AND space = ? ORDER BY session, number",  # noqa: S608
        (owner, space),
    )
    yield from (
        Turn(**dict(zip(_TURN.split(", "), columns, strict=True)) | {"at": from_micros(columns[-1])})
        for columns in found
    )


def _put(connection: sqlite3.Connection, row: Row, passages: Sequence[Passage]) -> Fate:
    match row:
        case Kept():
            return _put_memory(connection, row, passages)
        case Document():
            return _put_document(connection, row)
        case Turn():
            return _put_turn(connection, row)
        case Space():
            raise TypeError("spaces are put by put_spaces")


def _put_document(connection: sqlite3.Connection, document: Document) -> Fate:
    present = documents.get(connection, document.owner, document.id)
    if present is not None:
        return "present" if present == document else "different"
    try:
        documents.insert(connection, document)
    except sqlite3.IntegrityError:
        return "conflict"
    return "created"


def _put_turn(connection: sqlite3.Connection, turn: Turn) -> Fate:
    (present,) = spaces.turns(connection, turn.owner, turn.space, turn.session, turn.number - 1, 1) or (None,)
    if present is not None and present.number == turn.number:
        return "present" if present == turn else "different"
    values = [getattr(turn, name) for name in _TURN.split(", ")[:-1]]
    columns = f"INSERT INTO turns ({_TURN}) VALUES (?, ?, ?, ?, ?, ?, ?, ?, ?)"  # noqa: S608 - constant
    connection.execute(columns, (*values, to_micros(turn.at)))
    return "created"


def _put_memory(connection: sqlite3.Connection, kept: Kept, passages: Sequence[Passage]) -> Fate:
    memory = kept.memory
    present = connection.execute(
        f"SELECT app, is_proposal, {rows.SELECT} FROM memories WHERE owner = ? AND id = ?",  # noqa: S608
        (memory.owner, memory.id),
    ).fetchone()
    if present is not None:
        return "present" if _kept(connection, present) == kept else "different"
    row = rows.to_row(memory) | {
        "app": kept.app,
        "origin": memory.source.origin,
        "external_id": memory.source.external_id,
        "is_proposal": int(kept.is_proposal),
        "changed": writing.next_change(connection, memory.owner),
    }
    names, values = ", ".join(row), ", ".join(f":{column}" for column in row)
    try:
        inserted = connection.execute(f"INSERT INTO memories ({names}) VALUES ({values})", row)  # noqa: S608
    except sqlite3.IntegrityError:
        return "conflict"
    number = int(inserted.lastrowid or 0)
    for revision in kept.revisions:
        value = json.dumps(rows.to_row(revision), ensure_ascii=False)
        connection.execute(
            "INSERT INTO revisions VALUES (?, ?, ?, ?, ?)",
            (memory.owner, memory.id, revision.revision, value, to_micros(revision.updated_at)),
        )
    writing.index(connection, memory.owner, number, passages, None)
    graph.relate(connection, memory, number)
    return "created"
