"""An owner's memories read as they are kept, and put back the same."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from datetime import datetime
from functools import partial
from typing import Any

from google.cloud.firestore_v1.base_document import DocumentSnapshot

from store.archive import Fate
from store.archive_rows import Kept, Row
from store.backend import Passage
from store.errors import StoreError
from store.firestore import documents, spaces
from store.firestore.database import Ask, FirestoreDatabase, Tenant, is_id
from store.firestore.owners import FIRST_SPACE
from store.firestore.settling import indexed, pointer, put_revision, settle
from store.firestore.stored import Stored, from_fields, hashed, memory_reference
from store.firestore.work import Work, unit
from store.firestore.writing import Writer
from store.memory import Document, Space, Turn

PAGE = 200
"""Documents read at a time."""
BYTES_AT_ONCE = 256 * 1024
"""Text put in one commit, which is a few times larger with all that repeats a part of it."""
Snapshots = Iterator[DocumentSnapshot[Any]]


class FirestoreArchive:
    """Fits `store.archive.Archive`."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def read(self, owner: str) -> Iterator[Row]:
        """Page by page, all as of the moment of the first; Firestore remembers that for an hour."""
        tenant = Tenant(self._database, owner)
        at: datetime = self._database.get(tenant.reference).read_time
        shelves = spaces.spaces_of(tenant, at)
        yield from shelves
        for space in (each.id for each in shelves):
            yield from _memories(tenant, space, at)
            for each in _all(tenant, "documents", space, at):
                yield documents.from_fields(owner, each.id, each.to_dict() or {})
            yield from spaces.all_turns(tenant, space, at)

    def put_spaces(self, owner: str, spaces: Sequence[Space]) -> Mapping[str, str]:
        """One commit."""
        tenant = Tenant(self._database, owner)
        if not all(is_id(space.id) for space in spaces):
            raise StoreError("invalid_argument", "nothing was imported: a space whose id cannot be kept here")

        def act(work: Work) -> Mapping[str, str]:
            work.hold(tenant.reference)
            is_empty = _is_empty(tenant)
            known = {space.id: _known_as(work, tenant, space, is_empty) for space in spaces}
            if is_empty and spaces and FIRST_SPACE not in {space.name for space in spaces}:
                _drop_first(work, tenant)
            return known

        return unit(self._database, act)

    def put(self, owner: str, rows: Sequence[tuple[Row, Sequence[Passage]]]) -> list[Fate]:
        """As many commits as their size asks for, each of whole rows."""
        tenant = Tenant(self._database, owner)
        fates: list[Fate] = []
        for some in _in_parts(rows):
            fates += unit(self._database, partial(_put_some, tenant=tenant, rows=some))
        return fates


def _all(tenant: Tenant, collection: str, space: str, at: datetime) -> Snapshots:
    """The space's documents by (`created_at`, id)."""
    ask = Ask(collection, (("space", "==", space),), ("created_at", "ASCENDING"), limit=PAGE, at=at)
    while found := tenant.ask(ask):
        yield from found
        last = found[-1]
        ask = replace(ask, after={"created_at": last.get("created_at"), "__name__": last.reference})


def _memories(tenant: Tenant, space: str, at: datetime) -> Iterator[Kept]:
    for each in _all(tenant, "memories", space, at):
        yield _kept(tenant, from_fields(tenant.owner, each.id, each.to_dict() or {}), at)


def _kept(tenant: Tenant, stored: Stored, at: datetime | None = None) -> Kept:
    memory = stored.memory
    found: list[DocumentSnapshot[Any]] = []
    if memory.revision > 1:
        found = tenant.database.ask(Ask("revisions", at=at), memory_reference(tenant, memory.id))
    before = [from_fields(tenant.owner, memory.id, each.to_dict() or {}).memory for each in found]
    revisions = tuple(sorted(before, key=lambda each: each.revision))
    return Kept(memory, stored.app, stored.is_proposal, revisions)


def _is_empty(tenant: Tenant) -> bool:
    asks = (Ask(each, limit=1, select=()) for each in ("memories", "documents", "episodes"))
    return not any(tenant.database.at_once(*(partial(tenant.ask, each) for each in asks)))


def _known_as(work: Work, tenant: Tenant, space: Space, is_empty: bool) -> str:
    reference = tenant.document("spaces", space.id)
    there = work.get(reference)
    if there is not None and there["deleted_at"] is not None:
        raise StoreError("conflict", f"nothing was imported: the space {space.name} is being deleted here")
    named = work.get(tenant.document("space_names", hashed("space", space.name)))
    present = space.id if there is not None else None if named is None else str(named["space"])
    if present is not None and not is_empty:
        return present
    if present is not None:
        _forget(work, tenant, present)
        for app in tenant.ask(Ask("apps", (("space", "==", present),))):
            if present != space.id:
                work.put(app.reference, (work.get(app.reference) or {}) | {"space": space.id})
    work.put(reference, {"name": space.name, "created_at": space.created_at, "deleted_at": None})
    work.put(tenant.document("space_names", hashed("space", space.name)), {"space": space.id})
    return space.id


def _forget(work: Work, tenant: Tenant, space: str) -> None:
    """A space of an owner who has nothing in it yet."""
    reference = tenant.document("spaces", space)
    fields = work.get(reference)
    if fields is not None:
        work.delete(tenant.document("space_names", hashed("space", fields["name"])))
        work.delete(reference)


def _drop_first(work: Work, tenant: Tenant) -> None:
    """The space that a new owner has, unless an app has chosen it."""
    named = work.get(tenant.document("space_names", hashed("space", FIRST_SPACE)))
    if named is not None and not tenant.ask(Ask("apps", (("space", "==", named["space"]),), select=())):
        _forget(work, tenant, named["space"])


def _in_parts(rows: Sequence[tuple[Row, Sequence[Passage]]]) -> Iterator[list[tuple[Row, Sequence[Passage]]]]:
    part, size = list[tuple[Row, Sequence[Passage]]](), 0
    for row in rows:
        each = _bytes(row[0])
        if part and size + each > BYTES_AT_ONCE:
            yield part
            part, size = [], 0
        part.append(row)
        size += each
    if part:
        yield part


def _bytes(row: Row) -> int:
    if isinstance(row, Kept):
        return sum(len(each.content.encode()) for each in (row.memory, *row.revisions))
    return len(row.content.encode()) if isinstance(row, Turn) else 0


def _put_some(work: Work, tenant: Tenant, rows: Sequence[tuple[Row, Sequence[Passage]]]) -> list[Fate]:
    writer = Writer(work, tenant)
    writer.fetch([row.memory.id for row, _ in rows if isinstance(row, Kept)])
    return [_put(work, tenant, row, passages) for row, passages in rows]


def _put(work: Work, tenant: Tenant, row: Row, passages: Sequence[Passage]) -> Fate:
    match row:
        case Kept():
            return _put_memory(work, tenant, row, passages)
        case Document():
            return _put_document(work, tenant, row)
        case Turn():
            return _put_turn(work, tenant, row)
        case Space():
            raise TypeError("spaces are put by put_spaces")


def _put_memory(work: Work, tenant: Tenant, kept: Kept, passages: Sequence[Passage]) -> Fate:
    if not is_id(kept.memory.id):
        return "conflict"
    writer = Writer(work, tenant)
    writer.check_space(kept.memory.space)
    present = writer.find(kept.memory.id)
    if present is not None:
        return "present" if _kept(tenant, present) == kept else "different"
    stored = Stored(kept.memory, kept.app, kept.is_proposal)
    name = pointer(tenant, stored)
    if name is not None and work.get(name) is not None:
        return "conflict"
    settle(work, tenant, None, stored, indexed(passages))
    for revision in kept.revisions:
        put_revision(work, tenant, Stored(revision, kept.app, kept.is_proposal))
    return "created"


def _put_document(work: Work, tenant: Tenant, document: Document) -> Fate:
    if not is_id(document.id):
        return "conflict"
    present = documents.get(work, tenant, document.id)
    if present is not None:
        return "present" if present == document else "different"
    is_live = document.archived_at is None
    if is_live and documents.find(work, tenant, document.space, document.app, document.key) is not None:
        return "conflict"
    documents.insert(work, tenant, document)
    return "created"


def _put_turn(work: Work, tenant: Tenant, turn: Turn) -> Fate:
    present = spaces.get_turn(work, tenant, turn)
    if present is not None:
        return "present" if present == turn else "different"
    spaces.put_turn(work, tenant, turn)
    return "created"
