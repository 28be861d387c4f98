"""What may become of a memory after it was saved: deprecated, consolidated, reviewed, deleted.

Everything is asked within a view: what it does not show does not exist.
"""

from collections.abc import Sequence

from store.characters import well_formed
from store.engine import Engine
from store.errors import NO_SUCH_MEMORY, StoreError
from store.memory import Memory, View

MAX_REVIEWED = 50


def get(engine: Engine, view: View, memory_id: str) -> Memory:
    """The live memory.

    Raises:
        StoreError: `not_found`, the same for an unknown, foreign, forgotten or hidden one.
    """
    memory = engine.memories.find(view.owner, well_formed(memory_id))
    if memory is None or not view.shows(memory):
        raise StoreError("not_found", NO_SUCH_MEMORY)
    return memory


def is_forgotten(engine: Engine, view: View, memory_id: str) -> bool:
    """Whether it is a memory of the view that was forgotten."""
    memory = engine.memories.find_forgotten(view.owner, well_formed(memory_id))
    return memory is not None and view.shows(memory)


def restore(engine: Engine, view: View, memory_id: str) -> None:
    """Undoes forgetting; of a memory that was not forgotten it changes nothing.

    Raises:
        StoreError: `not_found`, as `get`; `conflict` when its `external_id` has been saved anew.
    """
    engine.restore(view.owner, view.spaces, _present(engine, view, memory_id).id)


def deprecate(engine: Engine, view: View, memory_id: str, superseding_id: str | None) -> Memory:
    """Keeps the memory as history, out of normal search; repeating it changes nothing.

    Raises:
        StoreError: `not_found` for either; `invalid_argument` or `conflict` for a successor that cannot be.
    """
    memory = get(engine, view, memory_id)
    successor = None if superseding_id is None else get(engine, view, superseding_id).id
    return engine.memories.deprecate(view.owner, memory.id, successor, engine.now())


def approve(engine: Engine, view: View, ids: Sequence[str]) -> list[Memory]:
    """What is relied on from now on: each memory, or the one that it was to change; all of them or none.

    Raises:
        StoreError: `not_found`; `conflict` for one that does not wait; `invalid_argument` for too many.
    """
    approved = engine.memories.approve(view.owner, _reviewed(engine, view, ids), engine.now())
    # What it was to change may be hidden from whoever approves it.
    return [memory for memory in approved if view.shows(memory)]


def reject(engine: Engine, view: View, ids: Sequence[str]) -> list[str]:
    """Forgets what waited; all of it or nothing.

    Raises:
        StoreError: as `approve`.
    """
    rejected = _reviewed(engine, view, ids)
    engine.memories.reject(view.owner, rejected, engine.now())
    return rejected


def delete(engine: Engine, view: View, memory_id: str, confirm: str) -> str:
    """Deletes the memory, forgotten or not, for good, with everything that repeats its words.

    Raises:
        StoreError: `invalid_argument` unless `confirm` is the id again; `not_found`.
    """
    if confirm != memory_id:
        raise StoreError(
            "invalid_argument", "confirm must be the id of the memory again; nothing was deleted"
        )
    memory = _present(engine, view, memory_id)
    if not engine.memories.delete(view.owner, memory.id):
        raise StoreError("not_found", NO_SUCH_MEMORY)
    return memory.id


def _reviewed(engine: Engine, view: View, ids: Sequence[str]) -> list[str]:
    distinct = [*dict.fromkeys(ids)]
    if not 1 <= len(distinct) <= MAX_REVIEWED:
        raise StoreError("invalid_argument", f"give 1 to {MAX_REVIEWED} ids")
    return [get(engine, view, memory_id).id for memory_id in distinct]


def _present(engine: Engine, view: View, memory_id: str) -> Memory:
    """The memory, forgotten or not."""
    known = well_formed(memory_id)
    memory = engine.memories.find(view.owner, known) or engine.memories.find_forgotten(view.owner, known)
    if memory is None or not view.shows(memory):
        raise StoreError("not_found", NO_SUCH_MEMORY)
    return memory
