"""When one memory may take another's place, and what becomes of the other (TOOLS `deprecate_context`).

Pure rules; a backend asks them inside its own transaction.
"""

from collections.abc import Callable
from dataclasses import replace
from datetime import datetime

from store.errors import StoreError
from store.memory import Memory

Find = Callable[[str], Memory | None]
"""A memory by its id, forgotten ones too: a chain of successors may pass through one."""


def deprecated(memory: Memory, successor: Memory | None, find: Find, at: datetime) -> Memory:
    """The memory as history; the very same object when it is that already.

    Raises:
        StoreError: `invalid_argument` for itself as successor; `conflict` for one that waits for review, that
            leads back to the memory, or that differs from the one it has.
    """
    named = memory.superseded_by if successor is None else successor.id
    if named == memory.id:
        raise StoreError("invalid_argument", "a memory cannot supersede itself")
    if memory.superseded_by not in (None, named):
        raise StoreError("conflict", f"it is superseded by another memory already: {memory.superseded_by}")
    if memory.state == "deprecated" and memory.superseded_by == named:
        return memory
    if successor is not None and successor.state == "pending":
        raise StoreError("conflict", "the superseding memory waits for review; approve it first")
    if successor is not None and _leads_to(successor, memory.id, find):
        raise StoreError("conflict", "the superseding memory is itself superseded by this one")
    return replace(
        memory, state="deprecated", superseded_by=named, updated_at=at, revision=memory.revision + 1
    )


def _leads_to(start: Memory, memory_id: str, find: Find) -> bool:
    passed: set[str] = set()
    at: Memory | None = start
    while at is not None and at.superseded_by is not None and at.id not in passed:
        if at.superseded_by == memory_id:
            return True
        passed.add(at.id)
        at = find(at.superseded_by)
    return False
