"""Owners and the identities that sign them in, on every backend."""

from concurrent.futures import ThreadPoolExecutor
from datetime import datetime, timedelta

import pytest

from store.engine import Engine
from store.errors import StoreError
from store.events import Event
from store.memory import Draft, Source
from store.owners import Holdings, Owners
from tests.contract.conftest import Backend, Stand
from tests.store.fakes import Clock


def test_an_unknown_identity_has_no_owner(owners: Owners) -> None:
    assert owners.find("google", "https://accounts.google.com", "1") is None


def test_a_created_owner_is_found_by_the_whole_identity(owners: Owners) -> None:
    made = owners.create("google", "https://accounts.google.com", "1", "a•••@example.com")
    assert owners.find("google", "https://accounts.google.com", "1") == made
    assert owners.find("google", "https://accounts.google.com", "2") is None
    assert owners.find("google", "https://elsewhere.example", "1") is None
    assert owners.find("google", "https://accounts.google.com1", "") is None
    assert made.label == "a•••@example.com"


def test_a_new_owner_has_one_space(backend: Backend, clock: Clock) -> None:
    owner = backend.owners.create("test", "i", "s", "label").id
    assert [space.name for space in Engine(backend.memories, None, clock).spaces(owner)] == ["default"]


def test_racing_creates_of_one_identity_make_one_owner(backend: Backend) -> None:
    doors = [backend, backend.again()]
    with ThreadPoolExecutor(20) as pool:
        made = list(pool.map(lambda n: doors[n % 2].owners.create("p", "i", "s", "label").id, range(20)))
    assert len(set(made)) == 1
    assert [owner.id for owner in backend.owners.list()] == [made[0]]


def test_a_linked_identity_signs_in_as_the_same_owner(owners: Owners) -> None:
    owner = owners.create("p", "i", "1", "first")
    owners.link(owner.id, "q", "i", "1", "second")
    owners.link(owner.id, "q", "i", "1", "second")
    found = owners.find("q", "i", "1")
    assert found is not None
    assert found.id == owner.id
    assert [identity.label for identity in found.identities] == ["first", "second"]


def test_an_identity_never_signs_in_as_two_owners(owners: Owners) -> None:
    owners.create("p", "i", "1", "first")
    other = owners.create("p", "i", "2", "second")
    with pytest.raises(StoreError) as refused:
        owners.link(other.id, "p", "i", "1", "first")
    assert refused.value.code == "conflict"


def event(owner: str, at: datetime) -> Event:
    return Event(at, owner, "app", "App", "search_context", "ok", 1.0, (), "a query")


def test_unknown_owners_are_not_found(owners: Owners) -> None:
    with pytest.raises(StoreError) as refused:
        owners.get("nobody")
    assert refused.value.code == "not_found"
    with pytest.raises(StoreError) as refused:
        owners.link("nobody", "p", "i", "1", "label")
    assert refused.value.code == "not_found"


def test_a_closed_account_is_gone_for_everybody_at_once(backend: Backend, clock: Clock) -> None:
    owner = backend.owners.create("p", "i", "1", "label").id
    other = backend.owners.create("p", "i", "2", "other").id
    later = clock() + timedelta(days=1)
    for kind, field in (("session", "owner"), ("grant", "subject")):
        for whose in (owner, other):
            backend.records.create(kind, f"{kind} of {whose}", {field: whose, "x": owner}, later)
    backend.owners.close(owner)
    backend.owners.close(owner)
    for owners in (backend.owners, backend.again().owners):
        assert owners.find("p", "i", "1") is None
        assert [each.id for each in owners.list()] == [other]
        assert list(owners.closed()) == [owner]
        with pytest.raises(StoreError) as refused:
            owners.get(owner)
        assert refused.value.code == "not_found"
        with pytest.raises(StoreError) as refused:
            owners.link(owner, "q", "i", "1", "label")
        assert refused.value.code == "not_found"
    for kind, field in (("session", "owner"), ("grant", "subject")):
        assert backend.records.select(kind, field, owner) == []
        assert len(backend.records.select(kind, field, other)) == 1


def test_erasing_goes_step_by_step_until_nothing_is_left_and_touches_nobody_else(stand: Stand) -> None:
    owners, engine = stand.backend.owners, stand.engine
    other = owners.create("p", "i", "2", "other").id
    for owner in (stand.owner, other):
        space = engine.spaces(owner)[0].id
        for number in range(7):
            engine.save(owner, space, "app", Draft(f"memory {number} of a person"))
        engine.forget(owner, [space], engine.search(owner, space, "memory 3")[0].memory.id)
        stand.backend.events.append([event(owner, stand.clock()) for _ in range(5)])
    assert owners.holdings(stand.owner) == owners.holdings(other)
    assert owners.holdings(other).memories == 7 and owners.holdings(other).events == 5
    assert owners.erase(stand.owner, 3) is False, "an account is closed first"
    assert owners.holdings(stand.owner).memories == 7

    owners.close(stand.owner)
    stand.backend.events.append([event(stand.owner, stand.clock())])
    steps = 1
    while stand.backend.again().owners.erase(stand.owner, 3):
        steps += 1
    assert steps >= 3
    assert list(owners.closed()) == []
    assert owners.holdings(stand.owner) == Holdings(0, 0, 0, 0)
    assert owners.holdings(other).memories == 7 and owners.holdings(other).events == 5
    assert len(engine.search(other, engine.spaces(other)[0].id, "memory of a person", limit=10)) == 6
    assert owners.erase(stand.owner, 3) is False


def test_the_identity_of_a_closed_account_may_begin_anew_with_nothing(stand: Stand) -> None:
    owners = stand.backend.owners
    stand.engine.save(stand.owner, stand.space, "app", Draft("of old"))
    owners.close(stand.owner)
    anew = owners.create("test", "issuer", "subject", "label").id
    assert anew != stand.owner
    while owners.erase(stand.owner, 10):
        pass
    assert owners.holdings(anew) == Holdings(0, 0, 1, 0)


def test_earlier_versions_are_counted_and_erased(stand: Stand) -> None:
    owners = stand.backend.owners
    for content in ("one", "two", "three"):
        source = Source(external_id="known")
        stand.engine.save(stand.owner, stand.space, "app", Draft(content, source=source))
    assert owners.holdings(stand.owner) == Holdings(1, 2, 1, 0)
    owners.close(stand.owner)
    while owners.erase(stand.owner, 1):
        pass
    assert owners.holdings(stand.owner) == Holdings(0, 0, 0, 0)
