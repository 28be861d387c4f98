"""Reading what a view shows, in order, without a query."""

import heapq
from collections.abc import Iterator, Sequence
from itertools import islice

from store.firestore.database import MAX_VALUES, Ask, Fields, Operator, Tenant, is_id
from store.firestore.shapes import Direction
from store.firestore.stored import from_fields, memory_reference
from store.memory import ORIGINS, STATES, Memory, Selection, State, View

MIN_PAGE = 50


def select(tenant: Tenant, view: View, selection: Selection) -> list[Memory]:
    """In order of (`created_at`, `id`)."""
    if selection.ids is not None:
        found = by_ids(tenant, view, selection.ids)
        admitted = sorted((each for each in found if _admits(selection, each)), key=_key)
        return (admitted[::-1] if selection.order == "newest" else admitted)[: selection.limit]
    asks = _asks(view, selection)
    streams = [_stream(tenant, view, selection, ask) for ask in asks]
    merged = heapq.merge(*streams, key=_key, reverse=selection.order == "newest")
    return [*islice(merged, selection.limit)]


def by_ids(tenant: Tenant, view: View, ids: Sequence[str]) -> list[Memory]:
    """Those of these memories that the view shows."""
    wanted = [memory_reference(tenant, each) for each in dict.fromkeys(ids) if is_id(each)]
    found = (
        from_fields(tenant.owner, each.id, each.to_dict() or {}) for each in tenant.database.get_all(wanted)
    )
    return [each.memory for each in found if each.shelf is not None and view.shows(each.memory)]


def allowed_states(view: View, states: Sequence[State] | None) -> list[State]:
    """The states that are asked for and shown."""
    asked = STATES if states is None else states
    return [each for each in asked if view.states is None or each in view.states]


def allowed_origins(view: View) -> list[str]:
    """The origins that are shown."""
    return [each for each in ORIGINS if view.origins is None or each in view.origins]


def _asks(view: View, selection: Selection) -> Iterator[Ask]:
    """One query for each space."""
    states = allowed_states(view, selection.states)
    by, page = _narrowing(selection, len(states))
    for space in view.spaces if states and selection.kinds != () else ():
        where: list[tuple[str, Operator, object]] = [("shelf", "==", space), ("state", "in", states)]
        where += [] if by is None else [by]
        field = "created_at"
        if selection.created_after is not None:
            where.append((field, ">=", selection.created_after))
        if selection.created_before is not None:
            where.append((field, "<", selection.created_before))
        direction: Direction = "DESCENDING" if selection.order == "newest" else "ASCENDING"
        yield Ask("memories", tuple(where), (field, direction), limit=page)


def _narrowing(selection: Selection, states: int) -> tuple[tuple[str, Operator, object] | None, int]:
    """The one filter beside the state that the query itself applies, and how many to read at a time."""
    page = max(selection.limit, MIN_PAGE)
    if selection.only_pinned:
        return ("pinned", "==", True), page
    if selection.tags:
        return ("tags", "array_contains", selection.tags[0]), page
    if selection.topic is not None:
        return ("topic", "==", selection.topic), page
    if selection.kinds is not None and len(selection.kinds) * states <= MAX_VALUES:
        return ("kind", "in", [*selection.kinds]), page
    return None, selection.limit


def _stream(tenant: Tenant, view: View, selection: Selection, ask: Ask) -> Iterator[Memory]:
    after: Fields | None = None
    if selection.after is not None:
        created_at, memory_id = selection.after
        after = {"created_at": created_at, "__name__": memory_reference(tenant, memory_id)}
    while True:
        found = tenant.ask(_after(ask, after))
        for each in found:
            memory = from_fields(tenant.owner, each.id, each.to_dict() or {}).memory
            if view.shows(memory) and _admits(selection, memory):
                yield memory
        if ask.limit is None or len(found) < ask.limit:
            return
        last = found[-1]
        after = {"created_at": last.get("created_at"), "__name__": last.reference}


def _after(ask: Ask, after: Fields | None) -> Ask:
    return Ask(ask.collection, ask.where, ask.order, after, ask.limit)


def _admits(selection: Selection, memory: Memory) -> bool:
    at = selection.valid_at
    return (
        (selection.states is None or memory.state in selection.states)
        and (selection.kinds is None or memory.kind in selection.kinds)
        and selection.topic in (None, memory.topic)
        and selection.origin in (None, memory.source.origin)
        and set(selection.tags) <= set(memory.tags)
        and (memory.pinned or not selection.only_pinned)
        and (selection.created_after is None or memory.created_at >= selection.created_after)
        and (selection.created_before is None or memory.created_at < selection.created_before)
        and (at is None or memory.valid_from is None or memory.valid_from <= at)
        and (at is None or memory.valid_until is None or memory.valid_until > at)
        and (selection.after is None or _is_behind(selection, memory))
    )


def _is_behind(selection: Selection, memory: Memory) -> bool:
    if selection.after is None:
        return True
    return _key(memory) < selection.after if selection.order == "newest" else _key(memory) > selection.after


def _key(memory: Memory) -> tuple[object, str]:
    return (memory.created_at, memory.id)
