"""Owners and the identities that sign them in, on every backend."""

from concurrent.futures import ThreadPoolExecutor

import pytest

from store.engine import Engine
from store.errors import StoreError
from store.owners import Owners
from tests.contract.conftest import Backend
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


def test_unknown_owners_are_not_found(owners: Owners) -> None:
    with pytest.raises(StoreError) as refused:
        owners.get("nobody")
    assert refused.value.code == "not_found"
    with pytest.raises(StoreError) as refused:
        owners.link("nobody", "p", "i", "1", "label")
    assert refused.value.code == "not_found"
