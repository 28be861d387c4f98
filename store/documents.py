"""Documents: longer texts that are split into chunks, each a memory, and replaced at once or not at all.

A chunk whose words did not change stays the memory it was, pins and all; one that is gone is forgotten. A
document is known again by its `external_id`, or by its own text when it has none.
"""

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import Literal

from store import chunks
from store.backend import Write
from store.characters import is_visible, well_formed
from store.draft import MAX_TOPIC_CHARACTERS
from store.engine import Engine
from store.errors import NO_SUCH_MEMORY, StoreError
from store.ids import new_id
from store.memory import Document, Draft, Memory, Selection, Source, View
from store.summary import cut

MAX_DOCUMENT_BYTES = 5 * 1024 * 1024
MAX_TITLE_CHARACTERS = 500
ATTEMPTS = 5


@dataclass(frozen=True)
class DocumentDraft:
    """A document as the caller passes it. An `external_id` in its source is how it is known again."""

    title: str
    content: str
    source: Source = field(default_factory=Source)


@dataclass(frozen=True)
class Ingested:
    """The answer to an ingestion."""

    document: Document
    write_status: Literal["created", "unchanged", "updated"]


def ingest(
    engine: Engine, owner: str, space: str, app: str, draft: DocumentDraft, is_patient: bool = False
) -> Ingested:
    """Stores the document, or its next version in place of the last.

    A long one is embedded afterwards, in the background, unless whoever stores it is patient.

    Raises:
        StoreError: `invalid_argument`, `too_large`, `not_found` for the space, or `conflict` when other
            processes keep changing the same document.
    """
    draft = _checked(draft)
    content_hash = hashlib.sha256(f"{draft.title}\0{draft.content}".encode()).hexdigest()
    key = _key(draft, content_hash)
    for attempt in range(ATTEMPTS):
        known = engine.memories.find_document(owner, space, app, key)
        if known is not None and known.content_hash == content_hash:
            return Ingested(known, "unchanged")
        try:
            document = _next(engine, (owner, space, app, key), known, draft, content_hash)
            return _put(engine, document, known, draft, is_patient)
        except StoreError as error:
            # Another process stored a version in between: look again.
            if error.code != "conflict" or attempt == ATTEMPTS - 1:
                raise
    raise AssertionError("unreachable")


def get(engine: Engine, view: View, document_id: str) -> tuple[Document, list[Memory]]:
    """The document with those of its chunks that the view shows, in order.

    Raises:
        StoreError: `not_found`, the same for one that is unknown, foreign, forgotten or shows nothing.
    """
    document = engine.memories.get_document(view.owner, well_formed(document_id))
    if document is None or document.archived_at is not None or not _shows(view, document):
        raise StoreError("not_found", NO_SUCH_MEMORY)
    selection = Selection(states=None, ids=document.chunks, limit=len(document.chunks))
    shown = {memory.id: memory for memory in engine.memories.select(view, selection)}
    memories = [shown[chunk] for chunk in document.chunks if chunk in shown]
    if not memories:
        raise StoreError("not_found", NO_SUCH_MEMORY)
    return document, memories


def text(document: Document, memories: Sequence[Memory]) -> str:
    """The document's text again, from its chunks."""
    return "".join(chunks.body(memory.content, document.title) for memory in memories)


def is_document(engine: Engine, view: View, document_id: str) -> bool:
    """Whether the id is of one of the view's documents, forgotten or not."""
    document = engine.memories.get_document(view.owner, well_formed(document_id))
    return document is not None and _shows(view, document)


def forget(engine: Engine, view: View, document_id: str) -> None:
    """Forgets the document with all its chunks.

    Raises:
        StoreError: `not_found`.
    """
    document, _ = get(engine, view, document_id)
    engine.memories.archive_document(view.owner, document.id, engine.now())


def restore(engine: Engine, view: View, document_id: str) -> None:
    """Undoes `forget`; of a document that was not forgotten it changes nothing.

    Raises:
        StoreError: `not_found`; `conflict` when it has been stored anew.
    """
    if not is_document(engine, view, document_id):
        raise StoreError("not_found", NO_SUCH_MEMORY)
    engine.memories.restore_document(view.owner, well_formed(document_id))


def delete(engine: Engine, view: View, document_id: str, confirm: str) -> str:
    """Deletes the document, forgotten or not, with every chunk it ever had.

    Raises:
        StoreError: `invalid_argument` unless `confirm` is the id again; `not_found`.
    """
    if confirm != document_id:
        raise StoreError(
            "invalid_argument", "confirm must be the id of the document again; nothing was deleted"
        )
    if not is_document(engine, view, document_id):
        raise StoreError("not_found", NO_SUCH_MEMORY)
    engine.memories.delete_document(view.owner, document_id)
    return document_id


def _shows(view: View, document: Document) -> bool:
    """Whether the view shows the document's chunks as they were stored."""
    origin = document.source.origin
    state = "pending" if origin == "external" else "active"
    return (
        document.space in view.spaces
        and (view.origins is None or origin in view.origins)
        and (view.states is None or state in view.states)
    )


def _checked(draft: DocumentDraft) -> DocumentDraft:
    title, content = well_formed(draft.title).strip(), well_formed(draft.content)
    for name, value in (("title", title), ("content", content)):
        if "\0" in value:
            raise StoreError("invalid_argument", f"{name} contains NUL")
        if not is_visible(value):
            raise StoreError("invalid_argument", f"{name} is empty, or nothing of it is visible")
    if len(title) > MAX_TITLE_CHARACTERS:
        raise StoreError("invalid_argument", f"title is longer than {MAX_TITLE_CHARACTERS} characters")
    if len(content.encode()) > MAX_DOCUMENT_BYTES:
        raise StoreError("too_large", f"content is larger than {MAX_DOCUMENT_BYTES} bytes of UTF-8")
    return replace(draft, title=" ".join(title.split()), content=content)


def _key(draft: DocumentDraft, content_hash: str) -> str:
    """What came from outside never takes the place of what the owner relies on: it is known apart."""
    own = draft.source.external_id
    named = f"sha256:{content_hash}" if own is None else f"id:{well_formed(own)}"
    return f"external:{named}" if draft.source.origin == "external" else named


def _next(
    engine: Engine,
    place: tuple[str, str, str, str],
    known: Document | None,
    draft: DocumentDraft,
    content_hash: str,
) -> Document:
    """The document as it will be, its chunks still to be named."""
    owner, space, app, key = place
    now = engine.now()
    return Document(
        id=new_id(16) if known is None else known.id,
        owner=owner,
        space=space,
        app=app,
        key=key,
        title=draft.title,
        source=draft.source,
        content_hash=content_hash,
        chunks=(),
        created_at=now if known is None else known.created_at,
        updated_at=now,
        revision=1 if known is None else known.revision + 1,
    )


def _put(
    engine: Engine, document: Document, known: Document | None, draft: DocumentDraft, is_patient: bool
) -> Ingested:
    present = _present(engine, known)
    drafts = [_draft(document, chunk) for chunk in chunks.split(draft.title, draft.content)]
    kept = [_pop(present, each.content) for each in drafts]
    fresh = [each for each, memory in zip(drafts, kept, strict=True) if memory is None]
    writes = engine.prepare_many(document.owner, document.space, document.app, fresh, is_patient)
    gone = [memory.id for memories in present.values() for memory in memories if _may_go(memory, document)]
    document = replace(document, chunks=_in_order(kept, writes))
    stored = engine.memories.put_document(document, writes, gone, engine.model)
    return Ingested(stored, "created" if known is None else "updated")


def _present(engine: Engine, known: Document | None) -> Mapping[str, list[Memory]]:
    """The live chunks of the last version by what they say."""
    present: dict[str, list[Memory]] = {}
    if known is not None:
        view = View(known.owner, (known.space,))
        selection = Selection(states=None, ids=known.chunks, limit=max(len(known.chunks), 1))
        for memory in engine.memories.select(view, selection):
            present.setdefault(memory.content, []).append(memory)
    return present


def _pop(present: Mapping[str, list[Memory]], content: str) -> Memory | None:
    waiting = present.get(content)
    return waiting.pop() if waiting else None


def _may_go(memory: Memory, document: Document) -> bool:
    """A new version from outside takes nothing away that the owner has accepted."""
    return document.source.origin != "external" or memory.state == "pending"


def _in_order(kept: Sequence[Memory | None], writes: Sequence[Write]) -> tuple[str, ...]:
    fresh = iter(writes)
    return tuple(next(fresh).memory.id if memory is None else memory.id for memory in kept)


def _draft(document: Document, chunk: chunks.Chunk) -> Draft:
    return Draft(
        content=chunk.content,
        topic=cut(document.title, MAX_TOPIC_CHARACTERS),
        kind="document",
        modality="document",
        source=replace(document.source, external_id=None),
        document_id=document.id,
    )
