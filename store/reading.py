"""What a view has to say about a text now: active memories only, none whose time is over or has not come."""

from store.engine import Engine
from store.memory import Filters, Hit, View


def relevant(engine: Engine, view: View, text: str, limit: int) -> list[Hit]:
    """Hits above the search's floor, with the parts of their scores.

    Raises:
        StoreError: `invalid_argument` for a text without anything in it.
    """
    if view.states is not None and "active" not in view.states:
        return []
    origins = None if view.origins is None else tuple(sorted(view.origins))
    filters = Filters(within_origins=origins, valid_at=engine.now())
    hits = [
        hit
        for space in view.spaces
        for hit in engine.search(view.owner, space, text, filters, limit, explain=True)
    ]
    return sorted(hits, key=lambda hit: -hit.score)[:limit]
