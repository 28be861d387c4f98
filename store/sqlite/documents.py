"""Documents in SQLite: a row each beside the memories that are its chunks."""

import json
import sqlite3
from collections.abc import Iterator, Sequence
from dataclasses import asdict
from datetime import datetime
from typing import Any

from store.backend import Write
from store.errors import StoreError
from store.memory import Document, Source
from store.sqlite import erasing, lifecycle, writing
from store.sqlite.database import from_micros, to_micros

_COLUMNS = (
    "id", "owner", "space", "app", "key", "title", "source", "content_hash", "chunks", "created_at",
    "updated_at", "revision", "archived_at",
)  # fmt: skip
_SELECT = f"SELECT {', '.join(_COLUMNS)} FROM documents"  # noqa: S608 - constant columns


def find(connection: sqlite3.Connection, owner: str, space: str, app: str, key: str) -> Document | None:
    """The live one."""
    row = connection.execute(
        f"{_SELECT} WHERE owner = ? AND space = ? AND app = ? AND key = ? AND archived_at IS NULL",
        (owner, space, app, key),
    ).fetchone()
    return None if row is None else _from_row(row)


def get(connection: sqlite3.Connection, owner: str, document_id: str) -> Document | None:
    """Forgotten or not."""
    row = connection.execute(f"{_SELECT} WHERE owner = ? AND id = ?", (owner, document_id)).fetchone()
    return None if row is None else _from_row(row)


def put(
    connection: sqlite3.Connection,
    document: Document,
    writes: Sequence[Write],
    gone: Sequence[str],
    model: str | None,
) -> Document:
    """The next revision and its chunks; the caller holds the transaction."""
    known = get(connection, document.owner, document.id)
    revision = 0 if known is None or known.archived_at is not None else known.revision
    if revision != document.revision - 1:
        raise StoreError("conflict", "another version of the document was stored meanwhile")
    row = _to_row(document)
    names, values = ", ".join(row), ", ".join(f":{column}" for column in row)
    changes = ", ".join(f"{column} = excluded.{column}" for column in row)
    try:
        connection.execute(
            f"""INSERT INTO documents ({names}) VALUES ({values})
                ON CONFLICT (owner, id) DO UPDATE SET {changes}""",  # noqa: S608 - constant columns
            row,
        )
    except sqlite3.IntegrityError as error:
        raise StoreError("conflict", "the document was stored meanwhile") from error
    for write in writes:
        writing.insert(connection, write, model)
    for memory_id in gone:
        lifecycle.archive(connection, document.owner, memory_id, document.updated_at)
    return document


def archive(connection: sqlite3.Connection, owner: str, document_id: str, at: datetime) -> None:
    """With its live chunks, all marked with the one moment."""
    connection.execute(
        "UPDATE documents SET archived_at = ? WHERE owner = ? AND id = ?", (to_micros(at), owner, document_id)
    )
    live = "SELECT id FROM memories WHERE owner = ? AND document_id = ? AND archived_at IS NULL"
    for (memory_id,) in connection.execute(live, (owner, document_id)).fetchall():
        lifecycle.archive(connection, owner, memory_id, at)


def restore(connection: sqlite3.Connection, owner: str, document_id: str) -> None:
    """With the chunks that were forgotten with it."""
    known = get(connection, owner, document_id)
    if known is None or known.archived_at is None:
        return
    if find(connection, owner, known.space, known.app, known.key) is not None:
        raise StoreError("conflict", "the document has been stored anew since")
    connection.execute(
        "UPDATE documents SET archived_at = NULL WHERE owner = ? AND id = ?", (owner, document_id)
    )
    connection.execute(
        """UPDATE memories SET archived_at = NULL, changed = ?
           WHERE owner = ? AND archived_at = ? AND id IN (SELECT value FROM json_each(?))""",
        (
            writing.next_change(connection, owner),
            owner,
            to_micros(known.archived_at),
            json.dumps(known.chunks),
        ),
    )


def delete(connection: sqlite3.Connection, owner: str, document_id: str) -> bool:
    """With every chunk it ever had."""
    numbers = connection.execute(
        "SELECT n FROM memories WHERE owner = ? AND document_id = ?", (owner, document_id)
    ).fetchall()
    erasing.erase_numbered(connection, owner, [number for (number,) in numbers])
    return bool(
        connection.execute("DELETE FROM documents WHERE owner = ? AND id = ?", (owner, document_id)).rowcount
    )


def kept(connection: sqlite3.Connection, owner: str, space: str) -> Iterator[Document]:
    """All of a space, forgotten or not."""
    found = connection.execute(
        f"{_SELECT} WHERE owner = ? AND space = ? ORDER BY created_at, id", (owner, space)
    )
    yield from map(_from_row, found)


def insert(connection: sqlite3.Connection, document: Document) -> None:
    """As it is; its chunks are stored by themselves.

    Raises:
        sqlite3.IntegrityError: a live document has its key.
    """
    row = _to_row(document)
    names, values = ", ".join(row), ", ".join(f":{column}" for column in row)
    connection.execute(f"INSERT INTO documents ({names}) VALUES ({values})", row)  # noqa: S608


def _to_row(document: Document) -> dict[str, Any]:
    row = {column: getattr(document, column) for column in _COLUMNS}
    row["source"] = json.dumps(asdict(document.source), ensure_ascii=False)
    row["chunks"] = json.dumps(document.chunks)
    for column in ("created_at", "updated_at", "archived_at"):
        row[column] = None if row[column] is None else to_micros(row[column])
    return row


def _from_row(values: tuple[Any, ...]) -> Document:
    row = dict(zip(_COLUMNS, values, strict=True))
    source = json.loads(row["source"])
    row["source"] = Source(**source | {"derived_from": tuple(source["derived_from"])})
    row["chunks"] = tuple(json.loads(row["chunks"]))
    for column in ("created_at", "updated_at"):
        row[column] = from_micros(row[column])
    row["archived_at"] = None if row["archived_at"] is None else from_micros(row["archived_at"])
    return Document(**row)
