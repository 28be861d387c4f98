"""Lists on every backend: each memory once, in order, whatever comes and goes meanwhile."""

from datetime import timedelta

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from store import listing
from store.errors import StoreError
from store.memory import Draft, Filters, View
from tests.contract.conftest import Stand

ANY = Filters()


def save(stand: Stand, number: int) -> str:
    """Every third memory shares its moment with the one before."""
    stand.clock.advance(timedelta(seconds=number % 3))
    return stand.engine.save(stand.owner, stand.space, stand.app, Draft(f"memory {number}")).memory.id


@settings(max_examples=15, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(steps=st.lists(st.sampled_from(["add", "forget"]), max_size=6), limit=st.integers(1, 4))
def test_what_stays_is_listed_once_whatever_is_added_or_removed(
    stand: Stand, steps: list[str], limit: int
) -> None:
    view = View(stand.owner, (stand.space,))
    known = listing.page(stand.engine, view, ANY, 100, None).memories
    number = len(known) + sum(memory.revision for memory in known) + 100
    stayed = {memory.id for memory in known} | {save(stand, number + at) for at in range(7)}
    seen: list[str] = []
    cursor: str | None = None
    pending = [*steps]
    while True:
        page = listing.page(stand.engine, view, ANY, limit, cursor)
        seen += [memory.id for memory in page.memories]
        cursor = page.next_cursor
        if cursor is None:
            break
        number += 10
        match pending.pop(0) if pending else "":
            case "add":
                stand.clock.advance(timedelta(seconds=1))
                save(stand, number)
            case "forget":
                gone = min(stayed)
                stand.engine.forget(stand.owner, [stand.space], gone)
                stayed.discard(gone)
    assert len(seen) == len(set(seen))
    assert stayed <= set(seen)


def test_pages_are_in_order_of_time_and_id(stand: Stand) -> None:
    ids = {save(stand, number) for number in range(12)}
    view = View(stand.owner, (stand.space,))
    whole = listing.page(stand.engine, view, ANY, 100, None).memories
    assert {memory.id for memory in whole} == ids
    keys = [(memory.created_at, memory.id) for memory in whole]
    assert keys == sorted(keys, reverse=True)
    oldest = listing.everything(stand.engine, view, 100, 10_000, None).memories
    assert [*oldest] == [*reversed(whole)]


def test_a_page_of_everything_is_bounded_by_its_size_and_never_empty(stand: Stand) -> None:
    for word in ("a", "b", "c"):
        stand.clock.advance(timedelta(seconds=1))
        stand.engine.save(stand.owner, stand.space, stand.app, Draft(word * 1000))
    view = View(stand.owner, (stand.space,))
    pages = []
    cursor: str | None = None
    while True:
        page = listing.everything(stand.engine, view, 100, 10, cursor)
        pages.append([memory.content[0] for memory in page.memories])
        cursor = page.next_cursor
        if cursor is None:
            break
    assert pages == [["a"], ["b"], ["c"]]


@pytest.mark.parametrize("cursor", ["", "x", "AAAA", "!", "A" * 2000])
def test_what_is_no_cursor_is_refused(stand: Stand, cursor: str) -> None:
    with pytest.raises(StoreError, match="cursor"):
        listing.page(stand.engine, View(stand.owner, (stand.space,)), ANY, 1, cursor)
