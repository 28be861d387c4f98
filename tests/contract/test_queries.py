"""The query log on every backend."""

from datetime import timedelta

from store import lifecycle
from store.memory import Draft, View
from store.queries import AskedQuery
from tests.contract.conftest import Stand


def asked(stand: Stand, query: str, *found: str) -> AskedQuery:
    return AskedQuery(stand.clock(), stand.owner, stand.app, query, found)


def test_queries_are_read_back_from_a_moment_on_and_end_after_ninety_days(stand: Stand) -> None:
    queries = stand.backend.queries
    first = asked(stand, "one", "a", "b")
    queries.append([first])
    stand.clock.advance(timedelta(days=1))
    second = asked(stand, "two 🚀")
    queries.append([second])
    assert queries.since(stand.owner, first.at) == [first, second]
    assert queries.since(stand.owner, second.at) == [second]
    assert queries.since("another", first.at) == []
    stand.clock.advance(timedelta(days=89, hours=12))
    queries.append([])
    assert queries.since(stand.owner, first.at) == [second]


def test_a_query_of_an_account_that_was_closed_meanwhile_is_not_kept(stand: Stand) -> None:
    query, queries = asked(stand, "one", "a"), stand.backend.queries
    stand.backend.owners.close(stand.owner)
    queries.append([query])
    assert queries.since(stand.owner, query.at) == []
    while stand.backend.owners.erase(stand.owner, 10):
        pass
    queries.append([query])


def test_a_query_that_found_a_deleted_memory_goes_with_it(stand: Stand) -> None:
    memory = stand.engine.save(stand.owner, stand.space, stand.app, Draft("a secret")).memory
    kept = asked(stand, "something else", "x")
    stand.backend.queries.append([asked(stand, "my secret", memory.id, "y"), kept])
    lifecycle.delete(stand.engine, View(stand.owner, (stand.space,)), memory.id, memory.id)
    assert stand.backend.queries.since(stand.owner, kept.at) == [kept]
