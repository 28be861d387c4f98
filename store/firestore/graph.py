"""Edges in Firestore: written and removed with their memory, read only where both ends are in the view."""

from collections.abc import Collection, Iterator, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from google.cloud.firestore_v1.base_document import DocumentSnapshot

from store.characters import well_formed
from store.entities import TYPES, Entity, Link
from store.firestore.database import Ask, Operator, Tenant, Where
from store.firestore.stored import from_fields
from store.firestore.views import allowed_origins, allowed_states, by_ids
from store.memory import Memory, State, View

MAX_READ = 1000
"""Edges that are read at a time, newest first; beyond them memories are counted, not read."""


def entities(
    tenant: Tenant, view: View, states: Sequence[State], keys: Collection[str] | None, limit: int
) -> list[Entity]:
    """Counted by memory. Of a space with more edges than are read, those that the newest memories name."""
    found: dict[str, _Met] = {}
    is_cut = False
    for space in view.spaces:
        ask = Ask("edges", (("shelf", "==", space),), ("created_at", "DESCENDING"), limit=MAX_READ)
        edges = tenant.ask(ask) if keys is None else _at(tenant, ask, keys)
        is_cut = is_cut or len(edges) >= MAX_READ
        for edge in edges:
            if _shows(view, states, edge):
                found.setdefault(edge.get("target"), _Met()).take(edge)
    listed = [met.entity(key) for key, met in found.items()]
    listed = sorted(listed, key=lambda each: (-each.memories, each.key))[:limit]
    if not is_cut:
        return listed
    counted = tenant.database.at_once(*(partial(_count, tenant, view, states, each) for each in listed))
    return sorted(counted, key=lambda each: (-each.memories, each.key))


def links(
    tenant: Tenant,
    view: View,
    states: Sequence[State],
    keys: Collection[str],
    ids: Collection[str],
    limit: int,
) -> list[Link]:
    """Each edge once, however it is reached; lineage first."""
    found: dict[Link, None] = {}
    if ids:
        found |= dict.fromkeys(_lineage(tenant, view, states, ids))
        of_memories = tenant.ask_in_parts(Ask("edges"), "memory", "in", ids)
        found |= dict.fromkeys(_in_order(view, states, of_memories))
    if keys:
        edges: list[DocumentSnapshot[Any]] = []
        for space in view.spaces:
            ask = Ask("edges", (("shelf", "==", space),), ("created_at", "DESCENDING"), limit=MAX_READ)
            edges += _at(tenant, ask, keys)
        found |= dict.fromkeys(_in_order(view, states, edges))
    return [*found][:limit]


@dataclass
class _Met:
    """An entity as its edges tell of it."""

    name: str = ""
    kinds: frozenset[str] = frozenset()
    memories: int = 0

    def take(self, edge: DocumentSnapshot[Any]) -> None:
        name = edge.get("name")
        self.name = min(self.name or name, name)
        self.kinds |= frozenset(edge.get("kinds"))
        self.memories += 1

    def entity(self, key: str) -> Entity:
        types = sorted({of for kind, of in TYPES.items() if kind in self.kinds})
        return Entity(key, self.name, tuple(types), self.memories)


def _at(tenant: Tenant, ask: Ask, keys: Collection[str]) -> list[DocumentSnapshot[Any]]:
    """The edges at these keys, which may be pieces of anybody's text."""
    return tenant.ask_in_parts(ask, "target", "in", (well_formed(key) for key in keys))


def _count(tenant: Tenant, view: View, states: Sequence[State], entity: Entity) -> Entity:
    memories = 0
    for space in view.spaces:
        where: Where = (
            ("shelf", "==", space),
            ("target", "==", entity.key),
            ("state", "in", allowed_states(view, states)),
            ("origin", "in", allowed_origins(view)),
        )
        memories += tenant.database.count(Ask("edges", where), tenant.reference)[0]
    return Entity(entity.key, entity.name, entity.types, memories)


def _shows(view: View, states: Sequence[State], edge: DocumentSnapshot[Any]) -> bool:
    return (
        edge.get("shelf") in view.spaces
        and edge.get("state") in allowed_states(view, states)
        and edge.get("origin") in allowed_origins(view)
    )


def _in_order(view: View, states: Sequence[State], edges: Sequence[DocumentSnapshot[Any]]) -> Iterator[Link]:
    """Newest memory first."""
    shown = [edge for edge in edges if _shows(view, states, edge)]
    shown.sort(key=lambda edge: (edge.get("memory"), edge.get("target")))
    for edge in sorted(shown, key=lambda edge: edge.get("created_at"), reverse=True):
        for kind, weight in sorted(edge.get("kinds").items()):
            yield Link(kind, edge.get("memory"), edge.get("target"), weight)


def _lineage(tenant: Tenant, view: View, states: Sequence[State], ids: Collection[str]) -> Iterator[Link]:
    """Each kind from the memory in hand outwards, and from the other one to it."""
    begun = [each for each in by_ids(tenant, view, [*ids]) if each.state in states]
    begun_ids = [each.id for each in begun]
    later = [*_asked(tenant, "superseded_by", begun_ids), *_asked(tenant, "derived_from", begun_ids)]
    named = [
        *(each.superseded_by for each in begun),
        *(of for each in begun for of in each.source.derived_from),
    ]
    others = by_ids(tenant, view, [each for each in named if each is not None])
    known = {each.id: each for each in (*begun, *later, *others) if each.state in states and view.shows(each)}
    memories = sorted(known.values(), key=lambda each: (each.created_at, each.id), reverse=True)
    met = set(begun_ids)
    for memory in memories:
        successor = memory.superseded_by
        if successor in known and (memory.id in met or successor in met):
            yield Link("superseded_by", memory.id, successor, 1)
    for memory in memories:
        for of in memory.source.derived_from:
            if of in known and (memory.id in met or of in met):
                yield Link("derived_from", memory.id, of, 1)


def _asked(tenant: Tenant, field: str, ids: Sequence[str]) -> list[Memory]:
    """The live memories that name one of these."""
    operator: Operator = "array_contains_any" if field == "derived_from" else "in"
    found = tenant.ask_in_parts(Ask("memories"), field, operator, ids)
    stored = (from_fields(tenant.owner, each.id, each.to_dict() or {}) for each in found)
    return [each.memory for each in stored if each.shelf is not None]
