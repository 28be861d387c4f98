"""Documents on every backend: known again, replaced at once or not at all, forgotten and deleted whole."""

from concurrent.futures import ThreadPoolExecutor
from dataclasses import replace

import pytest

from store import documents, lifecycle
from store.documents import DocumentDraft
from store.engine import Engine
from store.errors import StoreError
from store.memory import Document, Memory, Source, View
from tests.contract.conftest import Stand

FIRST = "# Garden\n\nThe gate code is 4711.\n\n## Roses\n\nRoses are cut in March.\n"
SECOND = FIRST.replace("4711", "1234").replace(
    "## Roses", "## Tulips\n\nTulips need a cold winter.\n\n## Roses"
)


def draft(content: str = FIRST, **source: str) -> DocumentDraft:
    return DocumentDraft("Garden notes", content, Source(**{"external_id": "garden.md"} | source))  # type: ignore[arg-type]


def ingest(stand: Stand, content: str = FIRST, **source: str) -> documents.Ingested:
    return documents.ingest(stand.engine, stand.owner, stand.space, stand.app, draft(content, **source))


def view(stand: Stand) -> View:
    return View(stand.owner, (stand.space,))


def memories(stand: Stand, document: Document) -> list[Memory]:
    return documents.get(stand.engine, view(stand), document.id)[1]


def found(stand: Stand, query: str) -> list[str]:
    return [hit.memory.content for hit in stand.engine.search(stand.owner, stand.space, query)]


def test_a_document_is_found_by_its_words_under_its_headings_and_read_whole(stand: Stand) -> None:
    ingested = ingest(stand)
    assert ingested.write_status == "created"
    document, chunks = documents.get(stand.engine, view(stand), ingested.document.id)
    assert documents.text(document, chunks) == FIRST
    assert {chunk.document_id for chunk in chunks} == {document.id}
    assert {chunk.kind for chunk in chunks} == {"document"}
    (best, *_) = found(stand, "when are roses cut")
    assert best.startswith("Garden notes › Garden › Roses\n")


def test_the_same_text_again_changes_nothing(stand: Stand) -> None:
    first = ingest(stand)
    second = ingest(stand)
    assert second.write_status == "unchanged"
    assert second.document == first.document
    unnamed = DocumentDraft("Garden notes", FIRST)
    made = documents.ingest(stand.engine, stand.owner, stand.space, stand.app, unnamed)
    assert made.write_status == "created"
    again = documents.ingest(stand.engine, stand.owner, stand.space, stand.app, unnamed)
    assert (again.write_status, again.document.id) == ("unchanged", made.document.id)


def test_a_new_version_replaces_what_changed_and_keeps_what_did_not(stand: Stand) -> None:
    first = ingest(stand).document
    roses = next(each for each in memories(stand, first) if "Roses are cut" in each.content)
    stand.engine.pin(stand.owner, [stand.space], roses.id, True)
    second = ingest(stand, SECOND)
    assert (second.write_status, second.document.id) == ("updated", first.id)
    chunks = memories(stand, second.document)
    assert documents.text(second.document, chunks) == SECOND
    assert [each.pinned for each in chunks if each.id == roses.id] == [True]
    assert not any("4711" in content for content in found(stand, "gate code"))
    assert any("1234" in content for content in found(stand, "gate code"))


def test_a_version_that_cannot_be_stored_leaves_the_last_one_whole(stand: Stand) -> None:
    first = ingest(stand).document
    stale = replace(first, revision=first.revision + 2)
    writes = stand.engine.prepare_many(stand.owner, stand.space, stand.app, [])
    with pytest.raises(StoreError, match="another version"):
        stand.backend.memories.put_document(stale, writes, first.chunks, None)
    assert documents.text(first, memories(stand, first)) == FIRST


def test_two_processes_that_store_it_at_once_make_one_document(stand: Stand) -> None:
    engines = [stand.engine, stand.another_process()] * 4

    def store(engine: Engine) -> str:
        return documents.ingest(engine, stand.owner, stand.space, stand.app, draft()).document.id

    with ThreadPoolExecutor(8) as pool:
        ids = set(pool.map(store, engines))
    assert len(ids) == 1
    assert len(found(stand, "when are roses cut in March")) == len(
        set(found(stand, "when are roses cut in March"))
    )


def test_forgetting_a_document_forgets_its_chunks_and_undo_brings_them_back(stand: Stand) -> None:
    document = ingest(stand).document
    ingest(stand, SECOND)
    documents.forget(stand.engine, view(stand), document.id)
    assert found(stand, "roses") == []
    with pytest.raises(StoreError, match="no such memory"):
        documents.get(stand.engine, view(stand), document.id)
    documents.restore(stand.engine, view(stand), document.id)
    restored, chunks = documents.get(stand.engine, view(stand), document.id)
    assert documents.text(restored, chunks) == SECOND
    assert not any("4711" in content for content in found(stand, "gate code"))


def test_a_forgotten_document_does_not_come_back_over_its_successor(stand: Stand) -> None:
    document = ingest(stand).document
    documents.forget(stand.engine, view(stand), document.id)
    anew = ingest(stand)
    assert (anew.write_status, anew.document.id == document.id) == ("created", False)
    with pytest.raises(StoreError, match="stored anew"):
        documents.restore(stand.engine, view(stand), document.id)


def test_deleting_a_document_leaves_none_of_its_versions(stand: Stand) -> None:
    document = ingest(stand).document
    old = [memory.id for memory in memories(stand, document)]
    ingest(stand, SECOND)
    assert stand.backend.memories.delete_document(stand.owner, document.id)
    assert stand.backend.memories.get_document(stand.owner, document.id) is None
    assert all(stand.backend.memories.find_forgotten(stand.owner, each) is None for each in old)
    assert found(stand, "roses") == []
    assert not stand.backend.memories.delete_document(stand.owner, document.id)


def test_text_from_outside_waits_and_takes_nothing_away(stand: Stand) -> None:
    trusted = ingest(stand).document
    outside = ingest(stand, SECOND, origin="external").document
    assert outside.id != trusted.id
    assert documents.text(trusted, memories(stand, trusted)) == FIRST
    assert {memory.state for memory in memories(stand, outside)} == {"pending"}
    accepted = memories(stand, outside)[0]
    lifecycle.approve(stand.engine, view(stand), [accepted.id])
    ingest(stand, "entirely different\n", origin="external")
    assert lifecycle.get(stand.engine, view(stand), accepted.id).state == "active"


def test_another_owner_s_document_does_not_exist(stand: Stand) -> None:
    document = ingest(stand).document
    stranger = stand.backend.owners.create("test", "issuer", "stranger", "s").id
    space = stand.engine.spaces(stranger)[0].id
    assert stand.backend.memories.get_document(stranger, document.id) is None
    assert not stand.backend.memories.delete_document(stranger, document.id)
    with pytest.raises(StoreError, match="no such memory"):
        documents.get(stand.engine, View(stranger, (space,)), document.id)


@pytest.mark.parametrize(
    ("title", "content", "message"),
    [
        (" ", "text", "title is empty"),
        ("x" * 501, "text", "title is longer"),
        ("title", "\u200b", "content is empty"),
        ("title", "a\0b", "content contains NUL"),
        ("title", "x" * (5 * 1024 * 1024 + 1), "content is larger"),
    ],
)
def test_what_is_no_document_is_refused(stand: Stand, title: str, content: str, message: str) -> None:
    with pytest.raises(StoreError, match=message):
        documents.ingest(stand.engine, stand.owner, stand.space, stand.app, DocumentDraft(title, content))
