"""What is kept, as lines of an export, and back; every value is checked on its way in."""

import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, fields, replace
from datetime import UTC, datetime
from typing import Any

from pydantic import AwareDatetime, TypeAdapter, ValidationError

from store.draft import check
from store.errors import StoreError
from store.memory import Document, Draft, Memory, Space, Turn


@dataclass(frozen=True)
class Kept:
    """A memory with all that is kept of it: whose `external_id` it bears, and what it said before."""

    memory: Memory
    app: str
    is_proposal: bool = False
    """It waits to change another memory of the same `external_id`."""
    revisions: tuple[Memory, ...] = ()
    """Oldest first."""


Row = Space | Kept | Document | Turn
_TIMES = frozenset(
    ("valid_from", "valid_until", "created_at", "updated_at", "last_used_at", "archived_at", "at")
)
_TYPES: Mapping[str, type[Space | Memory | Document | Turn]] = {
    "space": Space,
    "memory": Memory,
    "document": Document,
    "turn": Turn,
}
_MEMBERS = {
    kind: tuple(field.name for field in fields(row) if field.name != "owner") for kind, row in _TYPES.items()
}
_ADAPTERS: Mapping[str, TypeAdapter[Any]] = {kind: TypeAdapter(row) for kind, row in _TYPES.items()}
_TIME: TypeAdapter[datetime] = TypeAdapter(AwareDatetime)


def line(value: Mapping[str, Any]) -> bytes:
    """One object, always the same bytes for the same value."""
    return json.dumps(value, ensure_ascii=False, separators=(",", ":"), allow_nan=False).encode() + b"\n"


def kind_of(row: Row) -> str:
    """The `type` of its line."""
    return next(kind for kind, of in _TYPES.items() if isinstance(row, of if of is not Memory else Kept))


def to_line(row: Row) -> bytes:
    """Everything but the owner."""
    kind = kind_of(row)
    if not isinstance(row, Kept):
        return line({"type": kind} | _described(kind, row))
    revisions = [_described("memory", revision) for revision in row.revisions]
    described = {"app": row.app, "is_proposal": row.is_proposal, "revisions": revisions}
    return line({"type": kind} | _described(kind, row.memory) | described)


def _described(kind: str, row: object) -> dict[str, Any]:
    described = {name: getattr(row, name) for name in _MEMBERS[kind]}
    for name in _TIMES & set(described):
        described[name] = None if described[name] is None else _time(described[name])
    if "source" in described:
        source = asdict(described["source"])
        confidence = source["confidence"]
        described["source"] = source | {"confidence": None if confidence is None else float(confidence)}
    return described


def _time(moment: datetime) -> str:
    return moment.astimezone(UTC).replace(tzinfo=None).isoformat(timespec="microseconds") + "Z"


def from_value(value: Mapping[str, Any], owner: str) -> Row:
    """The row of a parsed line.

    Raises:
        StoreError: `invalid_argument`, saying what is wrong with it.
    """
    kind = value.get("type")
    if not isinstance(kind, str) or kind not in _TYPES:
        raise _wrong("a line of an unknown type")
    members = {name: each for name, each in value.items() if name != "type"}
    if kind != "memory":
        row: Row = _row(kind, members, owner)
        return row
    app, is_proposal = members.pop("app", None), members.pop("is_proposal", None)
    revisions = members.pop("revisions", None)
    if not (isinstance(app, str) and isinstance(is_proposal, bool) and isinstance(revisions, list)):
        raise _wrong("app, is_proposal or revisions missing, or of another type")
    return Kept(
        _memory(members, owner), app, is_proposal, tuple(_memory(revision, owner) for revision in revisions)
    )


def _row(kind: str, members: Any, owner: str) -> Any:
    if not isinstance(members, dict) or set(members) != set(_MEMBERS[kind]):
        raise _wrong(f"a {kind} with other members than it has")
    try:
        json.dumps(members, ensure_ascii=False).encode()
        moments = {name: _moment(members[name]) for name in _TIMES & set(members)}
        return _ADAPTERS[kind].validate_python(members | {"owner": owner} | moments)
    except UnicodeEncodeError:
        raise _wrong("text that is no valid Unicode") from None
    except ValidationError as error:
        detail = error.errors()[0]
        raise _wrong(f"{'.'.join(map(str, detail['loc']))}: {detail['msg']}") from None


def _memory(members: Any, owner: str) -> Memory:
    memory: Memory = _row("memory", members, owner)
    checked = check(
        Draft(
            memory.content,
            topic=memory.topic,
            tags=memory.tags,
            artifact_refs=memory.artifact_refs,
            source=memory.source,
            valid_from=memory.valid_from,
            valid_until=memory.valid_until,
        )
    )
    if checked.tags != memory.tags or not memory.id or memory.revision < 1:
        raise _wrong("an empty id, a tag twice, or a revision below 1")
    return memory


def _moment(value: Any) -> datetime | None:
    if value is None:
        return None
    try:
        if not isinstance(value, str):
            raise ValueError
        return _TIME.validate_python(value).astimezone(UTC)
    except (ValueError, OverflowError):
        raise _wrong("a time that is none") from None


def moved(row: Row, spaces: Mapping[str, str]) -> Row:
    """The row in the space that its own is known as."""
    if isinstance(row, Space):
        return row
    if not isinstance(row, Kept):
        return replace(row, space=spaces[row.space])
    memory = replace(row.memory, space=spaces[row.memory.space])
    revisions = tuple(replace(each, space=spaces.get(each.space, each.space)) for each in row.revisions)
    return replace(row, memory=memory, revisions=revisions)


def _wrong(why: str) -> StoreError:
    return StoreError("invalid_argument", why)
