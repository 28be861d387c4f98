"""A memory as a row, and back."""

import json
from dataclasses import asdict, fields
from datetime import datetime
from typing import Any

from store.memory import Memory, Source
from store.sqlite.database import from_micros, to_micros

COLUMNS = tuple(field.name for field in fields(Memory))
_JSON = ("tags", "artifact_refs")
_TIMES = ("valid_from", "valid_until", "created_at", "updated_at", "last_used_at", "archived_at")
SELECT = ", ".join(f"memories.{column}" for column in COLUMNS)


def to_row(memory: Memory) -> dict[str, Any]:
    """The columns' values."""
    row = {column: getattr(memory, column) for column in COLUMNS}
    for column in _JSON:
        row[column] = json.dumps(row[column], ensure_ascii=False)
    for column in _TIMES:
        row[column] = _micros(row[column])
    row["source"] = json.dumps(asdict(memory.source), ensure_ascii=False)
    row["pinned"] = int(memory.pinned)
    return row


def from_row(values: tuple[Any, ...]) -> Memory:
    """The memory of a row selected by `SELECT`."""
    return _memory(dict(zip(COLUMNS, values, strict=True)))


def from_kept(value: str) -> Memory:
    """The memory of a revision that was written down as the JSON of `to_row`."""
    return _memory(json.loads(value))


def _memory(row: dict[str, Any]) -> Memory:
    for column in _JSON:
        row[column] = tuple(json.loads(row[column]))
    for column in _TIMES:
        row[column] = None if row[column] is None else from_micros(row[column])
    source = json.loads(row["source"])
    row["source"] = Source(**source | {"derived_from": tuple(source["derived_from"])})
    row["pinned"] = bool(row["pinned"])
    return Memory(**row)


def _micros(moment: datetime | None) -> int | None:
    return None if moment is None else to_micros(moment)
