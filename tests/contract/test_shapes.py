"""The table of queries, the file that is generated from it, and what really runs."""

import json
from datetime import timedelta
from pathlib import Path

import pytest
from google.cloud.firestore import Client

from store import documents, episodes, graph
from store.documents import DocumentDraft
from store.events import Event, Rejection
from store.firestore import ahead
from store.firestore.archive import FirestoreArchive
from store.firestore.database import FirestoreDatabase
from store.firestore.events import FirestoreEvents
from store.firestore.memories import FirestoreMemories
from store.firestore.owners import FirestoreOwners
from store.firestore.profiles import FirestoreProfiles
from store.firestore.queries import FirestoreQueries
from store.firestore.records import FirestoreRecords
from store.firestore.shapes import EXPIRING, UNINDEXED, Shape, index_file, shapes
from store.memory import Draft, Filters, Selection, Source, Space, View
from store.queries import AskedQuery
from tests.contract.conftest import Backend, Stand
from tests.engines import FIRESTORE_PROJECT, FirestoreEmulator
from tests.store.fakes import Clock, FakeEmbedder

COMMITTED = Path(__file__).parents[2] / "deploy" / "firestore" / "firestore.indexes.json"


def test_the_committed_file_is_what_the_table_makes() -> None:
    assert json.loads(COMMITTED.read_text()) == index_file(), (
        "run python -m store.firestore.shapes > deploy/firestore/firestore.indexes.json"
    )


def test_nothing_that_is_asked_by_is_exempt_from_indexing() -> None:
    for shape in shapes():
        exempt = {*UNINDEXED.get(shape.collection, ())}
        alone = shape.index() is None
        asked = {*shape.equal, shape.contains, shape.differs, *((shape.order or ())[:1])}
        assert not alone or not asked & exempt, shape


def test_no_collection_expires_whose_documents_do_not_say_when(
    firestore: FirestoreEmulator, stand_of_firestore: tuple[Stand, set[Shape]]
) -> None:
    stand, _ = stand_of_firestore
    use_everything(stand)
    found = {each: Client(project=FIRESTORE_PROJECT).collection_group(each).get() for each in EXPIRING}
    assert all(found.values())
    for documents_of_it in found.values():
        assert all(each.get("expires_at") > stand.clock() for each in documents_of_it)


def test_every_row_of_the_table_is_asked_by_something(
    stand_of_firestore: tuple[Stand, set[Shape]], monkeypatch: pytest.MonkeyPatch
) -> None:
    stand, observed = stand_of_firestore
    # Edges are counted only where there are more than are read.
    monkeypatch.setattr("store.firestore.graph.MAX_READ", 1)
    use_everything(stand)
    client = Client(project=FIRESTORE_PROJECT)
    ahead.sweep(FirestoreDatabase(client, stand.clock, observe=observed.add))
    assert observed == {*shapes((FakeEmbedder.dimensions,))}


@pytest.fixture
def stand_of_firestore(firestore: FirestoreEmulator, clock: Clock) -> tuple[Stand, set[Shape]]:
    observed: set[Shape] = set()
    database = FirestoreDatabase(Client(project=FIRESTORE_PROJECT), clock, observe=observed.add)
    backend = Backend(
        FirestoreRecords(database),
        FirestoreOwners(database),
        FirestoreMemories(database),
        FirestoreEvents(database),
        FirestoreProfiles(database),
        FirestoreQueries(database),
        FirestoreArchive(database),
        lambda: backend,
    )
    return Stand(backend, clock), observed


def use_everything(stand: Stand) -> None:
    first = stand.engine.save(
        stand.owner, stand.space, stand.app, Draft("tea with Anna", source=Source(external_id="x"))
    ).memory
    stand.engine.save(
        stand.owner, stand.space, stand.app, Draft("cake with Anna", source=Source(derived_from=(first.id,)))
    )
    use_searches(stand)
    use_lists(stand, first.id)
    use_the_archive(stand)
    use_the_rest(stand, first.id)


def use_the_archive(stand: Stand) -> None:
    stand.backend.archive.put_spaces(stand.owner, [Space("s", stand.owner, "moved", stand.clock())])
    empty = stand.backend.owners.create("test", "issuer", "empty", "b").id
    stand.backend.archive.put_spaces(empty, [Space("s", empty, "moved", stand.clock())])
    assert [*stand.backend.archive.read(stand.owner)]


def use_searches(stand: Stand) -> None:
    for topic in (None, "t"):
        for kind in (None, "fact"):
            for origin in (None, "user"):
                filters = Filters(topic=topic, kind=kind, origin=origin)
                stand.engine.search(stand.owner, stand.space, "Anna", filters)
    stand.engine.search(stand.owner, stand.space, "Anna", Filters(tags=("a",)))
    stand.engine.search(stand.owner, stand.space, "Anna", Filters(created_after=stand.clock()))


def use_lists(stand: Stand, memory_id: str) -> None:
    memories, view = stand.backend.memories, View(stand.owner, (stand.space,))
    for order in ("newest", "oldest"):
        for selection in (
            Selection(),
            Selection(only_pinned=True),
            Selection(tags=("a",)),
            Selection(topic="t"),
            Selection(kinds=("fact",)),
        ):
            memories.select(view, Selection(**vars(selection) | {"order": order}))
    graph.listed(memories, view)
    graph.describe(memories, view, "Anna")
    graph.neighbourhood(memories, view, memory_id, 2)
    stand.engine.status(stand.owner, [stand.space])
    memories.unindexed("another", 5)
    memories.count_unindexed("another")
    memories.revisions(stand.owner, memory_id)


def use_the_rest(stand: Stand, memory_id: str) -> None:
    memories, owners, records = stand.backend.memories, stand.backend.owners, stand.backend.records
    later = stand.clock() + timedelta(hours=1)
    records.create("kind", "key", {"field": "value"}, later)
    records.select("kind", "field", "value")
    records.sweep()  # type: ignore[attr-defined]
    owners.list()
    owners.closed()
    owners.holdings(stand.owner)
    event = Event(stand.clock(), stand.owner, "app", "App", "search_context", "ok", 1.0, (memory_id,), "tea")
    stand.backend.events.append([event])
    stand.backend.events.reject([Rejection(stand.clock(), "/mcp", "401")])
    stand.backend.events.rejections(5)
    stand.backend.events.since(stand.owner, stand.clock())
    stand.backend.queries.append([AskedQuery(stand.clock(), stand.owner, "app", "tea", ("another",))])
    stand.backend.queries.since(stand.owner, stand.clock())
    stand.backend.events.rejections_beyond()
    memories.delete(stand.owner, memory_id)
    stand.backend.events.recent(stand.owner, 5)
    work = memories.add_space(stand.owner, "work").id
    documents.ingest(stand.engine, stand.owner, work, stand.app, DocumentDraft("Plan", "a plan"))
    episodes.store(stand.engine, stand.owner, work, stand.app, "App", "session", "user", "hello")
    document = memories.find_document(stand.owner, work, stand.app, "none")
    assert document is None
    memories.delete_space(stand.owner, work)
