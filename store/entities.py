"""What a memory is connected with, read from what it says and where it is filed, without a model.

| edge | from a memory to |
|---|---|
| `belongs_to` | its topic and its tags |
| `mentions` | names in its text |
| `references` | links in its text, and the address it comes from |
| `depends_on` | the files and addresses in `artifact_refs` |
| `derived_from` | the memories it was made of |
| `superseded_by` | the memory that replaces it: kept with the memory itself, since it changes later |
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Literal

from store.memory import Memory
from store.names import MAX_NAME_CHARACTERS, key, links, names

EdgeKind = Literal["superseded_by", "derived_from", "mentions", "belongs_to", "references", "depends_on"]
EntityType = Literal["topic", "name", "link", "artifact"]
TYPES: dict[EdgeKind, EntityType] = {
    "belongs_to": "topic",
    "mentions": "name",
    "references": "link",
    "depends_on": "artifact",
}
EVERYTHING_S_TOPIC = "general"
"""The default topic connects what has nothing in common."""


@dataclass(frozen=True)
class Edge:
    """A memory's connection. `target` is an entity's key, or a memory's id for `derived_from`."""

    kind: EdgeKind
    target: str
    name: str
    weight: int
    """How often the memory says so."""


@dataclass(frozen=True)
class Entity:
    """What a view's memories are connected with: how many of them say so, and in which ways."""

    key: str
    name: str
    types: tuple[EntityType, ...]
    memories: int


@dataclass(frozen=True)
class Link:
    """An edge as it is stored: from a memory to an entity's key, or to another memory's id."""

    kind: EdgeKind
    memory: str
    target: str
    weight: int


LINEAGE: tuple[EdgeKind, ...] = ("derived_from", "superseded_by")
"""The edges that lead to memories."""


def edges(memory: Memory) -> list[Edge]:
    """The connections of a memory, one per kind and target, at most a few hundred."""
    found: dict[tuple[EdgeKind, str], Edge] = {}
    for edge in _edges(memory):
        if edge.target:
            found.setdefault((edge.kind, edge.target), edge)
    return [*found.values()]


def _edges(memory: Memory) -> Iterator[Edge]:
    filed = (memory.topic, *memory.tags) if memory.topic != EVERYTHING_S_TOPIC else memory.tags
    for name in filed:
        yield _edge("belongs_to", name)
    for name, count in names(memory.content).items():
        yield _edge("mentions", name, count)
    for link, count in links(memory.content).items():
        yield _edge("references", link, count)
    if memory.source.url is not None:
        yield _edge("references", memory.source.url)
    for reference in memory.artifact_refs:
        yield _edge("depends_on", reference)
    for memory_id in memory.source.derived_from:
        yield Edge("derived_from", memory_id, memory_id, 1)


def _edge(kind: EdgeKind, name: str, count: int = 1) -> Edge:
    return Edge(kind, key(name), name.strip()[:MAX_NAME_CHARACTERS], count)
