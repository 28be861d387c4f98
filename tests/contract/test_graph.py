"""What every backend promises of entities and edges: they go with their memory and lead nowhere hidden."""

from dataclasses import replace
from typing import Any, get_args

import pytest

from store import graph
from store.entities import Entity
from store.errors import StoreError
from store.memory import Draft, Kind, Memory, Selection, Source, View
from tests.contract.conftest import Stand


def save(stand: Stand, content: str, space: str | None = None, **fields: Any) -> Memory:
    return stand.engine.save(stand.owner, space or stand.space, stand.app, Draft(content, **fields)).memory


def view(stand: Stand, **limits: Any) -> View:
    return replace(View(stand.owner, (stand.space,)), **limits)


def listed(stand: Stand, **limits: Any) -> dict[str, int]:
    found = graph.listed(stand.backend.memories, view(stand, **limits))
    return {entity.key: entity.memories for entity in found}


def ids(stand: Stand, name: str, depth: int = 2, **limits: Any) -> dict[str, int]:
    found = graph.neighbourhood(stand.backend.memories, view(stand, **limits), name, depth)
    return {node.id: node.depth for node in found.nodes}


def test_entities_are_counted_by_memory_and_known_at_once_to_another_process(stand: Stand) -> None:
    save(stand, "we saw Anna, and Anna saw us", tags=("anna", "family"))
    save(stand, "dinner with Anna and Bob")
    assert listed(stand) == {"anna": 2, "bob": 1, "family": 1}
    other = stand.another_process().memories
    known = graph.describe(other, view(stand), " ANNA ")
    assert known.entity == Entity("anna", known.entity.name, ("name", "topic"), 2)
    assert [memory.content for memory in known.memories] and len(known.memories) == 2
    assert {entity.key: shared for entity, shared in known.neighbours} == {"bob": 1, "family": 1}


def test_an_unknown_name_is_not_found_and_similar_ones_are_named(stand: Stand) -> None:
    save(stand, "dinner with Anna Schmidt")
    for name in ("Anna", "Zoe", "\ud800", "\0", "%", "x" * 1000):
        with pytest.raises(StoreError) as caught:
            graph.describe(stand.backend.memories, view(stand), name)
        assert caught.value.code == "not_found"
        assert ("Anna Schmidt" in caught.value.message) == (name == "Anna")


def test_a_revision_replaces_the_edges_of_the_one_before(stand: Stand) -> None:
    save(stand, "dinner with Anna", source=Source(external_id="x"))
    save(stand, "dinner with Bob", source=Source(external_id="x"))
    assert listed(stand) == {"bob": 1}


def test_a_forgotten_memory_leaves_no_trace_until_it_comes_back(stand: Stand) -> None:
    gone = save(stand, "dinner with Anna")
    stay = save(stand, "lunch with Bob", source=Source(derived_from=(gone.id,)))
    stand.engine.forget(stand.owner, [stand.space], gone.id)
    assert listed(stand) == {"bob": 1}
    assert ids(stand, "bob", 4) == {"bob": 0, stay.id: 1}
    with pytest.raises(StoreError):
        ids(stand, gone.id)
    stand.engine.restore(stand.owner, [stand.space], gone.id)
    assert ids(stand, "bob", 4) == {"bob": 0, stay.id: 1, gone.id: 2, "anna": 3}


def test_what_an_app_may_not_see_leaves_no_trace(stand: Stand) -> None:
    seen = save(stand, "dinner with Anna", source=Source(origin="user"))
    save(stand, "lunch with Anna and Bob")
    save(stand, "tea with Anna and Carl", source=Source(origin="external"))
    save(stand, "coffee with Anna and Dora", state="wip")
    stranger = stand.backend.owners.create("test", "issuer", "other", "b").id
    (space,) = stand.engine.spaces(stranger)
    stand.engine.save(stranger, space.id, "app", Draft("cake with Anna and Emil"))

    assert listed(stand) == {"anna": 2, "bob": 1}
    assert listed(stand, origins=frozenset({"user"})) == {"anna": 1}
    assert ids(stand, "anna", 4, origins=frozenset({"user"})) == {"anna": 0, seen.id: 1}
    for nothing in (
        {"states": frozenset({"wip"})},
        {"states": frozenset[str]()},
        {"spaces": ("elsewhere",)},
        {"spaces": ()},
    ):
        assert listed(stand, **nothing) == {}
    assert graph.listed(stand.backend.memories, View(stranger, (stand.space,))) == []


def test_the_graph_has_typed_weighted_edges_of_every_kind(stand: Stand) -> None:
    first = save(stand, "We met Anna in Rome. Anna lives in Rome", topic="travel", artifact_refs=("map.png",))
    second = save(stand, "see https://rome.example", source=Source(derived_from=(first.id,)))
    found = graph.neighbourhood(stand.backend.memories, view(stand), "Rome", 4)
    assert {(edge.kind, edge.memory, edge.target, edge.weight) for edge in found.edges} == {
        ("mentions", first.id, "rome", 2),
        ("mentions", first.id, "anna", 2),
        ("belongs_to", first.id, "travel", 1),
        ("depends_on", first.id, "map.png", 1),
        ("derived_from", second.id, first.id, 1),
        ("references", second.id, "https://rome.example", 1),
    }
    assert found.is_whole
    assert ids(stand, "rome", 1) == {"rome": 0, first.id: 1}
    assert ids(stand, second.id, 1) == {second.id: 0, first.id: 1, "https://rome.example": 1}


def test_a_large_graph_is_cut_and_says_so(stand: Stand) -> None:
    for number in range(120):
        save(stand, f"number {number}", tags=("hub", f"spoke {number}"))
    found = graph.neighbourhood(stand.backend.memories, view(stand), "hub", 2)
    assert not found.is_whole
    assert len(found.nodes) <= graph.MAX_NODES and len(found.edges) <= graph.MAX_EDGES
    assert {node.depth for node in found.nodes} == {0, 1, 2}
    known = {node.id for node in found.nodes}
    assert all(edge.memory in known and edge.target in known for edge in found.edges)


@pytest.mark.parametrize(
    ("text", "tag"),
    [
        ("What did anna schmidt say?", "Anna Schmidt"),
        ("is this anna schmidt's car", "Anna Schmidt"),
        ("しりとりのルールは？", "しりとり"),
        ("민수가 뭐라고 했어", "민수"),
        ("Docker環境の設定", "docker"),
        ("learn C++.", "c++"),
    ],
)
def test_a_task_names_what_is_known(stand: Stand, text: str, tag: str) -> None:
    save(stand, "something", tags=(tag,))
    found = graph.named_in(stand.backend.memories, view(stand), text, 3)
    assert [entity.name for entity in found] == [tag]
    assert graph.named_in(stand.backend.memories, view(stand), "nothing of the kind", 3) == []


def test_memories_are_read_in_order_and_within_their_limits(stand: Stand) -> None:
    saved = [save(stand, f"number {n}", kind="fact" if n % 2 else "task", pinned=n == 3) for n in range(6)]
    ordered = sorted(saved, key=lambda memory: (memory.created_at, memory.id))
    select = stand.backend.memories.select
    assert select(view(stand), Selection(order="oldest")) == ordered
    assert select(view(stand), Selection(limit=2)) == ordered[::-1][:2]
    after = (ordered[2].created_at, ordered[2].id)
    assert select(view(stand), Selection(order="oldest", after=after)) == ordered[3:]
    assert {memory.kind for memory in select(view(stand), Selection(kinds=("fact",)))} == {"fact"}
    assert len(select(view(stand), Selection(states=None, kinds=get_args(Kind)))) == 6
    assert select(view(stand), Selection(kinds=())) == []
    assert select(view(stand), Selection(only_pinned=True)) == [saved[3]]
    assert select(view(stand), Selection(states=("wip",))) == []
    assert select(view(stand), Selection(ids=(saved[1].id, "none"))) == [saved[1]]
