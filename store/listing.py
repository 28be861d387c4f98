"""Memories page by page, newest first, without a query (TOOLS `list_context`).

A page begins after the last memory of the one before, not at a number: what is added or removed meanwhile
neither repeats nor hides another memory.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

from store.characters import well_formed
from store.engine import Engine
from store.memory import Filters, Memory, Selection, View

_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)
_MICROSECOND = timedelta(microseconds=1)


@dataclass(frozen=True)
class Page:
    """Some memories, and the cursor of those after them; None when there are none."""

    memories: tuple[Memory, ...]
    next_cursor: str | None


def page(engine: Engine, view: View, filters: Filters, limit: int, cursor: str | None) -> Page:
    """The page that the cursor leads to, or the first.

    Raises:
        StoreError: `invalid_argument` for a cursor of another owner, space or filter, or none at all.
    """
    bound = ["memories", view.owner, *view.spaces, repr(filters)]
    after = None if cursor is None else _position(engine.cursors.open(bound, cursor))
    selection = Selection(
        states=(filters.state,),
        kinds=None if filters.kind is None else (filters.kind,),
        topic=None if filters.topic is None else well_formed(filters.topic),
        tags=tuple(well_formed(tag) for tag in filters.tags),
        origin=filters.origin,
        created_after=filters.created_after,
        created_before=filters.created_before,
        valid_at=filters.valid_at,
        after=after,
        limit=limit + 1,
    )
    found = engine.memories.select(view, selection)
    shown = tuple(found[:limit])
    if len(found) <= limit:
        return Page(shown, None)
    return Page(shown, _next(engine, bound, shown))


def everything(engine: Engine, view: View, limit: int, max_characters: int, cursor: str | None) -> Page:
    """All that the view shows, in whatever state, oldest first; no page is empty while there are more.

    Raises:
        StoreError: `invalid_argument` for a cursor of another owner or view.
    """
    bound = ["everything", view.owner, *view.spaces, repr(_sorted(view.states)), repr(_sorted(view.origins))]
    after = None if cursor is None else _position(engine.cursors.open(bound, cursor))
    found = engine.memories.select(view, Selection(states=None, order="oldest", after=after, limit=limit + 1))
    shown: list[Memory] = []
    characters = 0
    for memory in found[:limit]:
        characters += len(memory.content)
        if shown and characters > max_characters:
            break
        shown.append(memory)
    return Page(tuple(shown), _next(engine, bound, shown) if len(shown) < len(found) else None)


def _sorted(names: frozenset[str] | None) -> list[str] | None:
    return None if names is None else sorted(names)


def _next(engine: Engine, bound: Sequence[str], shown: Sequence[Memory]) -> str:
    last = shown[-1]
    micros = (last.created_at - _EPOCH) // _MICROSECOND
    return engine.cursors.seal(bound, [str(micros), last.id])


def _position(opened: tuple[str, ...]) -> tuple[datetime, str]:
    micros, memory_id = opened
    return _EPOCH + int(micros) * _MICROSECOND, memory_id
