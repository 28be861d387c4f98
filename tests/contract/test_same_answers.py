"""SQLite and Firestore answer the same searches alike: same memories, same order, nearly the same scores."""

from datetime import timedelta

import pytest

from store.engine import Engine
from store.memory import Draft, Filters, Hit, Source
from tests.contract.conftest import Backend, Stand
from tests.store.fakes import Clock, FakeEmbedder

PLACES = ("pantry door", "garden gate", "cellar window", "attic ladder", "garage roof", "kitchen shelf")
THINGS = ("spare key", "blue bicycle", "first aid box", "winter coat", "camping stove", "old radio", "map")
LIMIT = 8
QUERIES = (
    "where is the spare key",
    "garden gate",
    "something blue with wheels",
    "radio on the kitchen shelf",
    "how to cook outside",
    "Zürich",
    "keeps",
    "quantum chromodynamics",
)
FILTERS = (
    Filters(),
    Filters(topic="THINGS"),
    Filters(tags=("even",)),
    Filters(kind="fact", origin="user"),
    Filters(within_origins=("user",)),
    Filters(within_origins=()),
    Filters(state="wip"),
)


def furnish(stand: Stand) -> None:
    for number, (place, thing) in enumerate((place, thing) for place in PLACES for thing in THINGS):
        draft = Draft(
            f"The {thing} number {number} keeps its place near the {place}.",
            topic="THINGS" if number % 3 else "general",
            kind="fact" if number % 2 else "note",
            tags=("even",) if number % 2 == 0 else (),
            state="wip" if number % 7 == 0 else "active",
            source=Source(origin="user" if number % 5 else "agent"),
        )
        stand.engine.save(stand.owner, stand.space, stand.app, draft)
        stand.clock.advance(timedelta(minutes=1))


def answers(stand: Stand, engine: Engine, query: str, filters: Filters) -> list[Hit]:
    return engine.search(stand.owner, stand.space, query, filters, LIMIT, explain=True)


def before_the_cut(hits: list[Hit]) -> set[str]:
    """Without those that score like the last one: which of them is cut off is chance."""
    last = hits[-1].score if len(hits) == LIMIT else 0.0
    return {hit.memory.content for hit in hits if hit.score > last + 0.02}


@pytest.mark.parametrize("embedder", [FakeEmbedder(), None], ids=["with vectors", "by words alone"])
def test_the_same_searches_have_the_same_answers(
    sqlite_backend: Backend, firestore_backend: Backend, embedder: FakeEmbedder | None
) -> None:
    stands = [Stand(each, Clock(), embedder) for each in (sqlite_backend, firestore_backend)]
    for stand in stands:
        furnish(stand)
    told = 0
    for query in QUERIES:
        for filters in FILTERS:
            one, other = (answers(stand, stand.engine, query, filters) for stand in stands)
            assert [hit.score for hit in one] == pytest.approx([hit.score for hit in other], abs=0.02)
            assert before_the_cut(one) == before_the_cut(other)
            told += len(one)
    assert told > 100
