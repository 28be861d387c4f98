"""Passages written ahead of a commit that did not come are gone a day later; those in use stay."""

from collections.abc import Iterator
from datetime import timedelta

import pytest
from google.cloud.firestore import Client

from store.engine import Engine
from store.errors import StoreError
from store.firestore import ahead
from store.firestore.calls import Patience
from store.firestore.database import FirestoreDatabase
from store.firestore.memories import FirestoreMemories
from store.firestore.owners import FirestoreOwners
from store.memory import Draft
from tests.engines import FIRESTORE_PROJECT
from tests.store.fakes import Clock
from tests.store.firestore.proxy import Proxy, StatusCode

AWAY = (StatusCode.UNAVAILABLE, "the service is away")
SENTENCES = 60


@pytest.fixture
def database(proxy: Proxy, clock: Clock) -> Iterator[FirestoreDatabase]:
    """Its commits carry little, so that a memory of some sentences is written ahead."""
    client = Client(project=FIRESTORE_PROJECT)
    database = FirestoreDatabase(client, clock, Patience(budget_seconds=2), commit_bytes=20_000)
    yield database
    database.close()


@pytest.fixture
def engine(database: FirestoreDatabase, clock: Clock) -> Engine:
    return Engine(FirestoreMemories(database), None, clock)


@pytest.fixture
def place(database: FirestoreDatabase, engine: Engine) -> tuple[str, str]:
    owner = FirestoreOwners(database).create("test", "issuer", "subject", "label").id
    return owner, engine.spaces(owner)[0].id


def save(engine: Engine, place: tuple[str, str], word: str) -> None:
    content = "\n\n".join(f"The {word} number {n} hangs in the hall. " * 6 for n in range(SENTENCES))
    engine.save(*place, "app", Draft(content))


def passages(database: FirestoreDatabase) -> int:
    counted = database.client.collection_group("passages").select([]).stream()
    return sum(1 for _ in counted)


@pytest.fixture
def commits(engine: Engine, place: tuple[str, str], proxy: Proxy) -> int:
    """How many a save takes; one has been done."""
    proxy.calls.clear()
    save(engine, place, "lantern")
    count = proxy.calls.count("Commit")
    assert count > 3
    return count


def test_what_is_in_use_stays(
    engine: Engine, place: tuple[str, str], database: FirestoreDatabase, commits: int, clock: Clock
) -> None:
    before = passages(database)
    clock.advance(ahead.WAITING)
    assert ahead.sweep(database) == 0
    assert passages(database) == before
    assert list(database.client.collection(ahead.COLLECTION).stream()) == []


def test_what_a_crash_has_left_is_gone_after_a_day(
    engine: Engine,
    place: tuple[str, str],
    database: FirestoreDatabase,
    proxy: Proxy,
    commits: int,
    clock: Clock,
) -> None:
    before = passages(database)
    proxy.before["Commit"] = [AWAY] * 1000 + [None] * (commits - 1)
    with pytest.raises(StoreError):
        save(engine, place, "compass")
    proxy.before.clear()
    left = passages(database) - before
    assert left > 0
    assert engine.search(*place, "compass") == []
    clock.advance(ahead.WAITING - timedelta(seconds=1))
    assert ahead.sweep(database) == 0
    clock.advance(timedelta(seconds=1))
    assert ahead.sweep(database) == left
    assert passages(database) == before
    assert engine.search(*place, "lantern") != []
    assert ahead.sweep(database) == 0


def test_what_a_second_attempt_has_put_to_use_stays(
    engine: Engine,
    place: tuple[str, str],
    database: FirestoreDatabase,
    proxy: Proxy,
    commits: int,
    clock: Clock,
) -> None:
    proxy.before["Commit"] = [AWAY, *[None] * (commits - 1)]
    save(engine, place, "compass")
    before = passages(database)
    assert len(list(database.client.collection(ahead.COLLECTION).stream())) == 1
    clock.advance(ahead.WAITING)
    assert ahead.sweep(database) == 0
    assert passages(database) == before
    assert engine.search(*place, "compass") != []
