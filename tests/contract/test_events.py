"""The activity log, on every backend."""

from dataclasses import replace
from datetime import timedelta

import pytest

from store.events import Event, Rejection
from tests.contract.conftest import Backend
from tests.store.fakes import Clock


def event(clock: Clock, owner: str, name: str = "search_context") -> Event:
    return Event(
        at=clock(),
        owner=owner,
        app="app",
        client_name="Claude",
        name=name,
        status="ok",
        latency_ms=1.5,
        # With ids of memories that are no longer there, the preview would be left out.
        memory_ids=("a", "b") if name == "fetch_context" else (),
        query_preview=None if name == "fetch_context" else "wo ist der Schlüssel? 🚀",
        request_id="r",
    )


@pytest.fixture
def owner(backend: Backend) -> str:
    return backend.owners.create("p", "i", "1", "label").id


@pytest.fixture
def other(backend: Backend) -> str:
    return backend.owners.create("p", "i", "2", "other").id


def test_events_are_read_back_whole_and_newest_first(backend: Backend, clock: Clock, owner: str) -> None:
    first = event(clock, owner)
    clock.advance(timedelta(seconds=1))
    second, third = event(clock, owner, "fetch_context"), event(clock, owner, "save_context")
    backend.events.append([first, second, third])
    assert backend.again().events.recent(owner, 10) == [third, second, first]
    assert backend.events.recent(owner, 1) == [third]


def test_an_owner_sees_only_the_events_of_his_own_apps(
    backend: Backend, clock: Clock, owner: str, other: str
) -> None:
    backend.events.append([event(clock, owner), event(clock, other)])
    assert [each.owner for each in backend.events.recent(other, 10)] == [other]


def test_events_end_after_ninety_days(backend: Backend, clock: Clock, owner: str, other: str) -> None:
    backend.events.append([event(clock, owner)])
    clock.advance(timedelta(days=91))
    backend.events.append([event(clock, other)])
    assert backend.events.recent(owner, 10) == []


def test_events_of_an_account_that_was_closed_meanwhile_are_not_kept(
    backend: Backend, clock: Clock, owner: str, other: str
) -> None:
    backend.owners.close(owner)
    backend.events.append([event(clock, owner), event(clock, other), event(clock, "nobody")])
    assert backend.events.recent(owner, 10) == backend.events.recent("nobody", 10) == []
    assert len(backend.events.recent(other, 10)) == 1


def test_a_flood_of_refusals_is_counted_and_not_kept(backend: Backend, clock: Clock) -> None:
    refusal = Rejection(clock(), "/mcp", "invalid_token", "r")
    backend.events.reject([refusal] * 1_000)
    kept = backend.events.rejections(1_000)
    assert 0 < len(kept) <= 100
    assert kept[0] == refusal
    assert len(kept) + backend.events.rejections_beyond() == 1_000
    clock.advance(timedelta(minutes=1))
    later = replace(refusal, at=clock(), name="/token")
    backend.events.reject([later])
    assert backend.events.rejections(1) == [later]


def test_refusals_end_after_ninety_days(backend: Backend, clock: Clock) -> None:
    backend.events.reject([Rejection(clock(), "/mcp", "invalid_token")] * 200)
    clock.advance(timedelta(days=91))
    backend.events.reject([])
    assert backend.events.rejections(10) == []
    assert backend.events.rejections_beyond() == 0
