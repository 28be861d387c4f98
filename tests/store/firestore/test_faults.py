"""Firestore that fails: tried again within a budget, refused in the end, and never done twice."""

from datetime import UTC, datetime

import pytest

from oauth.records import NEVER
from store.engine import Engine
from store.errors import StoreError
from store.firestore.database import FirestoreDatabase
from store.firestore.memories import FirestoreMemories
from store.firestore.owners import FirestoreOwners
from store.firestore.records import FirestoreRecords
from store.memory import Draft, Source
from tests.store.fakes import Clock, FakeEmbedder
from tests.store.firestore.proxy import Proxy, StatusCode

LATER = datetime(2026, 1, 1, 13, tzinfo=UTC)
BUSY = (StatusCode.ABORTED, "too much contention on these documents")
AWAY = (StatusCode.UNAVAILABLE, "the service is away")
NO_INDEX = (StatusCode.FAILED_PRECONDITION, "The query requires an index. You can create it here: …")


@pytest.fixture
def records(database: FirestoreDatabase) -> FirestoreRecords:
    return FirestoreRecords(database)


@pytest.fixture
def engine(database: FirestoreDatabase, clock: Clock) -> Engine:
    return Engine(FirestoreMemories(database), FakeEmbedder(dimensions=384), clock)


@pytest.fixture
def place(database: FirestoreDatabase, engine: Engine) -> tuple[str, str]:
    owner = FirestoreOwners(database).create("test", "issuer", "subject", "label").id
    return owner, engine.spaces(owner)[0].id


def save(engine: Engine, place: tuple[str, str], content: str, **source: str) -> str:
    draft = Draft(content, source=Source(**source))  # type: ignore[arg-type]
    return engine.save(*place, "app", draft).write_status


@pytest.mark.parametrize("method", ["RunQuery", "RunAggregationQuery"])
def test_a_search_without_its_index_says_that_it_is_building_and_is_not_asked_again(
    engine: Engine, place: tuple[str, str], proxy: Proxy, method: str
) -> None:
    save(engine, place, "the spare key")
    proxy.before[method] = [NO_INDEX] * 9
    proxy.calls.clear()
    with pytest.raises(StoreError) as refused:
        engine.search(*place, "spare key")
    assert refused.value.code == "unavailable" and "index building" in refused.value.message
    assert proxy.calls.count(method) <= 5
    proxy.before.clear()
    assert [hit.memory.content for hit in engine.search(*place, "spare key")] == ["the spare key"]


def test_what_is_busy_is_tried_again(
    records: FirestoreRecords, engine: Engine, place: tuple[str, str], proxy: Proxy
) -> None:
    for method in ("Commit", "BatchGetDocuments", "RunQuery"):
        proxy.before[method] = [BUSY, AWAY, BUSY]
    assert records.create("grant", "k", {"a": "1"}, NEVER)
    proxy.before["Commit"] = [BUSY, AWAY]
    assert records.swap("grant", "k", {"a": "1"}, {"a": "2"}, NEVER)
    assert records.select("grant", "a", "2") == [{"a": "2"}]
    proxy.before["Commit"] = [AWAY, BUSY]
    assert save(engine, place, "the spare key") == "created"
    proxy.before["Commit"] = [AWAY, BUSY]
    assert records.take("grant", "k") == {"a": "2"}


def test_what_stays_away_is_refused_within_the_budget_and_nothing_has_changed(
    records: FirestoreRecords, engine: Engine, place: tuple[str, str], proxy: Proxy
) -> None:
    records.create("grant", "k", {"a": "1"}, NEVER)
    proxy.before["Commit"] = [AWAY] * 1000
    for action in (
        lambda: records.create("grant", "other", {}, NEVER),
        lambda: records.swap("grant", "k", {"a": "1"}, {"a": "2"}, NEVER),
        lambda: records.take("grant", "k"),
        lambda: save(engine, place, "the spare key"),
    ):
        with pytest.raises(StoreError) as refused:
            action()
        assert refused.value.code == "unavailable"
    proxy.before.clear()
    assert records.get("grant", "k") == {"a": "1"}
    assert records.get("grant", "other") is None
    assert engine.search(*place, "spare key") == []


def test_an_answer_that_is_lost_makes_nothing_happen_twice(
    records: FirestoreRecords, engine: Engine, place: tuple[str, str], proxy: Proxy
) -> None:
    proxy.after["Commit"] = [AWAY]
    assert records.create("grant", "k", {"a": "1"}, NEVER)
    assert not records.create("grant", "k", {"a": "1"}, NEVER)
    proxy.after["Commit"] = [AWAY]
    assert records.swap("grant", "k", {"a": "1"}, {"a": "2"}, NEVER)
    assert not records.swap("grant", "k", {"a": "1"}, {"a": "3"}, NEVER)
    proxy.after["Commit"] = [AWAY]
    assert save(engine, place, "the spare key") == "created"
    assert save(engine, place, "the spare key") == "duplicate"
    assert engine.status(place[0], [place[1]]).counts == {"active": 1}


def test_a_record_whose_taking_was_not_answered_is_nobody_s(records: FirestoreRecords, proxy: Proxy) -> None:
    records.create("pending", "k", {"a": "1"}, LATER)
    proxy.after["Commit"] = [AWAY]
    assert records.take("pending", "k") is None
    assert records.take("pending", "k") is None


def test_a_space_whose_deletion_was_cut_short_is_gone_for_everybody_and_deleted_by_asking_again(
    engine: Engine, place: tuple[str, str], proxy: Proxy
) -> None:
    owner, _ = place
    work = engine.memories.add_space(owner, "work").id
    saved = engine.save(owner, work, "app", Draft("the spare key")).memory
    proxy.before["Commit"] = [*[AWAY] * 1000, None]
    with pytest.raises(StoreError):
        engine.memories.delete_space(owner, work)
    assert [space.name for space in engine.spaces(owner)] == ["default"]
    proxy.before.clear()
    assert engine.memories.find(owner, saved.id) is not None
    engine.memories.delete_space(owner, work)
    assert engine.memories.find(owner, saved.id) is None
    with pytest.raises(StoreError, match="no such space"):
        engine.memories.delete_space(owner, work)
