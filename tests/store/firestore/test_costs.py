"""docs/costs.md states what each call costs: these numbers, counted on the wire."""

import re
from collections.abc import Callable
from datetime import timedelta
from pathlib import Path

from store.context_packs import compose
from store.engine import Engine
from store.firestore.database import FirestoreDatabase
from store.firestore.memories import FirestoreMemories
from store.firestore.owners import FirestoreOwners
from store.listing import page
from store.memory import Draft, Filters, View
from tests.store.fakes import Clock, FakeEmbedder
from tests.store.firestore.meter import Meter
from tests.store.firestore.proxy import Proxy

COSTS = Path(__file__).parents[3] / "docs" / "costs.md"
ROW = re.compile(r"^\| `(?P<tool>\w+)` \|[^|]*\| (?P<reads>\d+) \| (?P<writes>\d+) \|", re.MULTILINE)
TOPICS = ("house", "garden", "work", "travel")


def test_the_page_states_what_each_call_costs(
    database: FirestoreDatabase, clock: Clock, proxy: Proxy
) -> None:
    stated = {row["tool"]: (int(row["reads"]), int(row["writes"])) for row in ROW.finditer(COSTS.read_text())}
    counted = costs(database, clock, proxy)
    assert stated == counted, f"counted: {counted}"


def costs(database: FirestoreDatabase, clock: Clock, proxy: Proxy) -> dict[str, tuple[int, int]]:
    """Reads and writes of each, in a space of 20 memories of one passage, without the access checks."""
    engine = Engine(FirestoreMemories(database), FakeEmbedder(dimensions=384), clock)
    owner = FirestoreOwners(database).create("test", "issuer", "subject", "label").id
    space = engine.spaces(owner)[0].id
    view = View(owner, (space,))
    ids = [
        engine.save(
            owner, space, "app", Draft(f"note {number} on the pantry door", topic=TOPICS[number % 4])
        ).memory.id
        for number in range(20)
    ]
    engine.search(owner, space, "pantry door")
    calls: dict[str, Callable[[], object]] = {
        "search_context": lambda: engine.search(owner, space, "pantry door"),
        "fetch_context": lambda: engine.fetch(owner, [space], ids[0]),
        "save_context": lambda: engine.save(
            owner, space, "app", Draft("Anna has the spare key", topic="house")
        ),
        "deprecate_context": lambda: engine.memories.deprecate(owner, ids[1], ids[2], clock()),
        "forget_context": lambda: engine.forget(owner, [space], ids[3]),
        "list_context": lambda: page(engine, view, Filters(), 20, None),
        "memory_status": lambda: engine.status(owner, [space]),
        "delete_context": lambda: engine.memories.delete(owner, ids[4]),
        "compose_context": lambda: compose(engine, view, "where is the spare key", "answer", 1000),
    }
    found = {}
    for tool, call in calls.items():
        clock.advance(timedelta(minutes=1))
        proxy.meter = Meter()
        call()
        found[tool] = (proxy.meter.reads, proxy.meter.writes)
    return found
