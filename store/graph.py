"""What memories know of a name: the entity, its neighbours, and the graph around it.

Only what the view shows takes part, and never what waits for review: a hidden memory leaves no node, no edge
and no count.
"""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import datetime
from itertools import islice

import regex

from store.backend import Memories
from store.entities import LINEAGE, Entity, Link
from store.errors import StoreError
from store.memory import Memory, Selection, State, View
from store.names import folded, key

KNOWN: tuple[State, ...] = ("active",)
CONNECTED: tuple[State, ...] = ("active", "merged", "deprecated")
"""History takes part in the graph, or lineage would lead nowhere."""
MAX_NODES = 100
MAX_EDGES = 300
MAX_LISTED = 100
MAX_NEIGHBOURS = 20
MAX_TELLING = 20
"""Memories that tell of an entity."""
MAX_SIMILAR = 5
MAX_WORDS_OF_NAME = 5
MAX_CHARACTERS_OF_NAME = 12
MAX_CANDIDATES = 10_000

_UNCASED = r"[\p{Lo}\p{Lm}\p{M}]+"
_WORD = regex.compile(rf"{_UNCASED}|[[\p{{L}}\p{{N}}\p{{M}}'’&+#._-]--[\p{{Lo}}\p{{Lm}}]]+", regex.VERSION1)
_IS_UNCASED = regex.compile(_UNCASED)
_POSSESSIVE = regex.compile(r"['’]s?$|[.'’-]+$")


@dataclass(frozen=True)
class Known:
    """What is known about an entity."""

    entity: Entity
    memories: tuple[Memory, ...]
    """Newest first."""
    neighbours: tuple[tuple[Entity, int], ...]
    """Entities of the same memories, and how many of them they share."""


@dataclass(frozen=True)
class Node:
    """An entity or a memory of a graph; `depth` is the number of edges from where it began."""

    id: str
    depth: int
    value: Entity | Memory


@dataclass(frozen=True)
class Graph:
    """Nodes and the edges between them."""

    nodes: tuple[Node, ...]
    edges: tuple[Link, ...]
    is_whole: bool
    """False when there was more than fits."""


def listed(memories: Memories, view: View) -> list[Entity]:
    """The commonest entities."""
    return memories.entities(view, KNOWN, None, MAX_LISTED)


def describe(memories: Memories, view: View, name: str) -> Known:
    """What the memories say about a name.

    Raises:
        StoreError: `not_found`, naming similar ones.
    """
    entity = _find(memories, view, KNOWN, name)
    links = memories.links(view, KNOWN, [entity.key], [], MAX_EDGES)
    ids = [*dict.fromkeys(link.memory for link in links)]
    telling = memories.select(view, Selection(KNOWN, ids=tuple(ids), limit=MAX_TELLING))
    around = memories.links(view, KNOWN, [], ids, MAX_EDGES)
    pairs = {(link.target, link.memory) for link in around if link.kind not in LINEAGE}
    shared = Counter(target for target, _ in sorted(pairs) if target != entity.key)
    nearest = dict(shared.most_common(MAX_NEIGHBOURS))
    neighbours = {each.key: each for each in memories.entities(view, KNOWN, nearest, MAX_NEIGHBOURS)}
    return Known(
        entity,
        tuple(telling),
        tuple((neighbours[target], count) for target, count in nearest.items() if target in neighbours),
    )


def telling(memories: Memories, view: View, entity: Entity, limit: int, valid_at: datetime) -> list[Memory]:
    """The newest memories that are connected with an entity and valid at this moment."""
    links = memories.links(view, KNOWN, [entity.key], [], MAX_EDGES)
    ids = tuple({link.memory for link in links})
    return memories.select(view, Selection(KNOWN, ids=ids, valid_at=valid_at, limit=limit)) if ids else []


def named_in(memories: Memories, view: View, text: str, limit: int) -> list[Entity]:
    """The known entities that a text names, longest name first."""
    candidates = islice(dict.fromkeys(islice(_candidates(text), MAX_CANDIDATES * 4)), MAX_CANDIDATES)
    found = memories.entities(view, KNOWN, [*candidates], MAX_LISTED)
    return sorted(found, key=lambda entity: (-len(entity.key), entity.key))[:limit]


def neighbourhood(memories: Memories, view: View, entity: str, max_depth: int) -> Graph:
    """The graph around an entity, or around a memory when given its id.

    Raises:
        StoreError: `not_found` for neither.
    """
    started = memories.select(view, Selection(CONNECTED, ids=(entity,), limit=1))
    growing = _Growing()
    growing.add(started[0].id if started else _find(memories, view, CONNECTED, entity).key, bool(started), 0)
    for depth in range(1, max_depth + 1):
        keys = [of for of, (at, is_memory) in growing.nodes.items() if at == depth - 1 and not is_memory]
        ids = [of for of, (at, is_memory) in growing.nodes.items() if at == depth - 1 and is_memory]
        room = len(growing.nodes) + (MAX_NODES - len(growing.nodes)) // (max_depth - depth + 1)
        found = memories.links(view, CONNECTED, keys, ids, MAX_EDGES)
        growing.is_whole &= len(found) < MAX_EDGES
        for link in found:
            growing.take(link, depth, room)
    return _with_values(memories, view, growing)


@dataclass
class _Growing:
    nodes: dict[str, tuple[int, bool]] = field(default_factory=dict)
    edges: dict[Link, None] = field(default_factory=dict)
    is_whole: bool = True

    def take(self, link: Link, depth: int, room: int) -> None:
        ends = ((link.memory, True), (link.target, link.kind in LINEAGE))
        new = [end for end in ends if end[0] not in self.nodes]
        if len(self.nodes) + len(new) > room or len(self.edges) >= MAX_EDGES:
            self.is_whole = self.is_whole and link in self.edges
            return
        for of, is_memory in new:
            self.add(of, is_memory, depth)
        self.edges.setdefault(link)

    def add(self, of: str, is_memory: bool, depth: int) -> None:
        self.nodes[of] = (depth, is_memory)


def _with_values(memories: Memories, view: View, growing: _Growing) -> Graph:
    """A memory that has gone meanwhile goes, with its edges."""
    ids = tuple(of for of, (_, is_memory) in growing.nodes.items() if is_memory)
    keys = [of for of, (_, is_memory) in growing.nodes.items() if not is_memory]
    values: dict[str, Entity | Memory] = {}
    for memory in memories.select(view, Selection(CONNECTED, ids=ids, limit=MAX_NODES)) if ids else ():
        values[memory.id] = memory
    for entity in memories.entities(view, CONNECTED, keys, MAX_NODES) if keys else ():
        values[entity.key] = entity
    nodes = (Node(of, at, values[of]) for of, (at, _) in growing.nodes.items() if of in values)
    edges = (link for link in growing.edges if link.memory in values and link.target in values)
    return Graph(tuple(nodes), tuple(edges), growing.is_whole)


def _find(memories: Memories, view: View, states: tuple[State, ...], name: str) -> Entity:
    for entity in memories.entities(view, states, [key(name)], 1):
        return entity
    words = set(key(name).split())
    similar = [entity.name for entity in listed(memories, view) if words & set(entity.key.split())]
    also = f"; similar: {', '.join(similar[:MAX_SIMILAR])}" if similar else ""
    raise StoreError("not_found", f"nothing is known by this name{also}")


def _candidates(text: str) -> Iterator[str]:
    """Every stretch of a text that may be a name; in scripts without capitals also within a word."""
    words = _WORD.findall(folded(text))
    for at, word in enumerate(words):
        if _IS_UNCASED.fullmatch(word):
            for start in range(len(word)):
                yield from (word[start:end] for end in range(start + 1, start + MAX_CHARACTERS_OF_NAME + 1))
        for length in range(1, MAX_WORDS_OF_NAME + 1):
            joined = " ".join(words[at : at + length])
            yield joined
            yield _POSSESSIVE.sub("", joined)
