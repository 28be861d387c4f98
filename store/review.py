"""What the owner's review makes of memories that waited for it (TOOLS `approve_context`, `reject_context`).

Pure rules; a backend asks them inside its own transaction.
"""

from dataclasses import replace
from datetime import datetime

from store.errors import StoreError
from store.memory import Memory


def is_decided(memory: Memory) -> bool:
    """Whether approving it again changes nothing.

    Raises:
        StoreError: `conflict` for a memory that never waited or was put aside otherwise.
    """
    if memory.state in ("pending", "active"):
        return memory.state == "active"
    if memory.state == "merged" and memory.superseded_by is not None:
        return True
    raise StoreError("conflict", f"the memory {memory.id} does not wait for review, it is {memory.state}")


def must_wait(memory: Memory) -> None:
    """Checks that the memory can be rejected.

    Raises:
        StoreError: `conflict`.
    """
    if memory.state != "pending":
        raise StoreError("conflict", f"the memory {memory.id} does not wait for review, it is {memory.state}")


def approved(memory: Memory, at: datetime) -> Memory:
    """The memory, relied on from now on. Where it came from stays with it."""
    return replace(memory, state="active", updated_at=at, revision=memory.revision + 1)


def revised(known: Memory, proposal: Memory, at: datetime) -> Memory:
    """The known memory as the approved proposal has it."""
    lineage = tuple(each for each in proposal.source.derived_from if each != known.id)
    return replace(
        proposal,
        id=known.id,
        state="active",
        source=replace(proposal.source, derived_from=lineage),
        pinned=known.pinned,
        created_at=known.created_at,
        updated_at=at,
        last_used_at=known.last_used_at,
        revision=known.revision + 1,
    )


def folded(proposal: Memory, known: Memory, at: datetime) -> Memory:
    """The proposal, once the known memory says what it said."""
    return replace(
        proposal, state="merged", superseded_by=known.id, updated_at=at, revision=proposal.revision + 1
    )
