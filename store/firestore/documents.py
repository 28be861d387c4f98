"""Documents in Firestore: one each beside the memories that are its chunks."""

from collections.abc import Sequence
from dataclasses import asdict, fields, replace
from datetime import datetime

from store.backend import Write
from store.errors import StoreError
from store.firestore.database import Ask, Fields, Reference, Tenant, is_id
from store.firestore.erasing import erase_all
from store.firestore.stored import hashed, moment
from store.firestore.work import Work, unit
from store.firestore.writing import Writer
from store.memory import Document, Source

_FIELDS = tuple(field.name for field in fields(Document) if field.name not in ("id", "owner"))


def find(work: Work, tenant: Tenant, space: str, app: str, key: str) -> Document | None:
    """The live one."""
    pointing = work.get(_key(tenant, space, app, key))
    found = None if pointing is None else get(work, tenant, pointing["document"])
    return None if found is None or found.archived_at is not None else found


def get(work: Work, tenant: Tenant, document_id: str) -> Document | None:
    """Forgotten or not."""
    found = work.get(_reference(tenant, document_id)) if is_id(document_id) else None
    return None if found is None else from_fields(tenant.owner, document_id, found)


def from_fields(owner: str, document_id: str, found: Fields) -> Document:
    """The document that is kept so."""
    values = {name: found[name] for name in _FIELDS} | {"chunks": tuple(found["chunks"])}
    source = found["source"]
    values["source"] = Source(**source | {"derived_from": tuple(source["derived_from"])})
    for name in ("created_at", "updated_at", "archived_at"):
        values[name] = moment(values[name])
    return Document(id=document_id, owner=owner, **values)


def put(
    work: Work,
    tenant: Tenant,
    document: Document,
    writes: Sequence[Write],
    gone: Sequence[str],
    model: str | None,
) -> Document:
    """The next revision and its chunks; a version that was committed before, its answer lost, stays."""
    known = get(work, tenant, document.id)
    if known == document:
        return document
    revision = 0 if known is None or known.archived_at is not None else known.revision
    if revision != document.revision - 1:
        raise StoreError("conflict", "another version of the document was stored meanwhile")
    live = find(work, tenant, document.space, document.app, document.key)
    if live is not None and live.id != document.id:
        raise StoreError("conflict", "the document was stored meanwhile")
    writer = Writer(work, tenant, model)
    writer.check_space(document.space)
    insert(work, tenant, document)
    for write in writes:
        writer.insert(write)
    for memory_id in gone:
        writer.archive(memory_id, document.updated_at)
    return document


def insert(work: Work, tenant: Tenant, document: Document) -> None:
    """As it is; its chunks are stored by themselves."""
    work.put(_reference(tenant, document.id), _fields(document))
    if document.archived_at is None:
        work.put(_key(tenant, document.space, document.app, document.key), {"document": document.id})


def archive(work: Work, tenant: Tenant, document_id: str, at: datetime) -> None:
    """With its live chunks, all marked with the one moment."""
    known = get(work, tenant, document_id)
    if known is None or known.archived_at is not None:
        return
    _set(work, tenant, known, at)
    writer = Writer(work, tenant)
    writer.fetch(known.chunks)
    for chunk in known.chunks:
        stored = writer.find(chunk)
        if stored is not None and stored.shelf is not None:
            writer.archive(chunk, at)


def restore(work: Work, tenant: Tenant, document_id: str) -> None:
    """With the chunks that were forgotten with it."""
    known = get(work, tenant, document_id)
    if known is None or known.archived_at is None:
        return
    if find(work, tenant, known.space, known.app, known.key) is not None:
        raise StoreError("conflict", "the document has been stored anew since")
    _set(work, tenant, known, None)
    writer = Writer(work, tenant)
    writer.fetch(known.chunks)
    for chunk in known.chunks:
        stored = writer.find(chunk)
        if stored is not None and stored.memory.archived_at == known.archived_at:
            writer.restore(stored)


def delete(tenant: Tenant, document_id: str) -> bool:
    """With every chunk it ever had. The document goes last, so that what is cut short can be repeated."""
    if get(Work(tenant.database), tenant, document_id) is None:
        return False
    erase_all(tenant, "document_id", document_id)

    def act(work: Work) -> bool:
        known = get(work, tenant, document_id)
        if known is None:
            return False
        key = _key(tenant, known.space, known.app, known.key)
        if (work.get(key) or {}).get("document") == document_id:
            work.delete(key)
        work.delete(_reference(tenant, document_id))
        return True

    return unit(tenant.database, act)


def delete_all(tenant: Tenant, space: str) -> None:
    """Every document of the space."""
    for document in tenant.ask(Ask("documents", (("space", "==", space),), select=())):
        delete(tenant, document.id)


def _set(work: Work, tenant: Tenant, document: Document, archived_at: datetime | None) -> None:
    key = _key(tenant, document.space, document.app, document.key)
    work.put(_reference(tenant, document.id), _fields(replace(document, archived_at=archived_at)))
    if archived_at is None:
        work.put(key, {"document": document.id})
    elif (work.get(key) or {}).get("document") == document.id:
        work.delete(key)


def _fields(document: Document) -> Fields:
    found: Fields = {name: getattr(document, name) for name in _FIELDS}
    source = asdict(document.source) | {"derived_from": [*document.source.derived_from]}
    return found | {"chunks": [*document.chunks], "source": source}


def _reference(tenant: Tenant, document_id: str) -> Reference:
    return tenant.document("documents", document_id)


def _key(tenant: Tenant, space: str, app: str, key: str) -> Reference:
    return tenant.document("document_keys", hashed("document", space, app, key))
