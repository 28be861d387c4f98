"""What a save makes of the memory that is already there (TOOLS `save_context`).

Pure rules; a backend asks them inside its own transaction.
"""

from dataclasses import replace

from store.errors import StoreError
from store.memory import Memory


def check_revision(known: Memory | None, if_revision: int | None) -> None:
    """Checks that the caller knows the newest revision.

    Raises:
        StoreError: `conflict`, telling the current one.
    """
    if if_revision is not None and (known is None or known.revision != if_revision):
        current = "there is none yet" if known is None else f"its revision is {known.revision}"
        raise StoreError("conflict", f"the memory is not at that revision: {current}")


def is_untrusted(proposed: Memory, known: Memory) -> bool:
    """Text of untrusted origin never changes what the owner relies on: it waits as a memory of its own."""
    return proposed.state == "pending" and known.state != "pending"


def proposal(proposed: Memory, known: Memory) -> Memory:
    """The memory that waits beside the one it would change."""
    lineage = (*proposed.source.derived_from, known.id)
    return replace(proposed, source=replace(proposed.source, derived_from=lineage))


def repeats(known: Memory, proposed: Memory) -> bool:
    """Whether the proposal says nothing new of a live memory.

    What the owner has deprecated or merged since does not come back by being sent again, and a memory that
    untrusted text merely repeats has nothing to wait for.
    """
    state, origin = proposed.state, proposed.source.origin
    if (known.state in ("deprecated", "merged", "pending") and state == "active") or is_untrusted(
        proposed, known
    ):
        state = known.state
    if is_untrusted(proposed, known):
        origin = known.source.origin
    is_same_image = proposed.image_sha256 == known.image_sha256
    same = replace(
        proposed,
        id=known.id,
        state=state,
        created_at=known.created_at,
        updated_at=known.updated_at,
        last_used_at=known.last_used_at,
        revision=known.revision,
        superseded_by=known.superseded_by,
        pinned=known.pinned,
        source=replace(
            proposed.source,
            client_name=known.source.client_name,
            origin=origin,
            # Every conversation has its own.
            session=known.source.session,
        ),
        # A model seldom describes an image twice in the same words.
        retrieval_text=known.retrieval_text if is_same_image else proposed.retrieval_text,
    )
    return same == known


def next_revision(known: Memory, proposed: Memory) -> Memory:
    """The proposal under the known memory's id.

    New text alone neither brings back what was put aside nor accepts what waits for review.
    """
    stays = known.state in ("deprecated", "merged", "pending") and proposed.state in ("active", "wip")
    return replace(
        proposed,
        id=known.id,
        state=known.state if stays else proposed.state,
        superseded_by=known.superseded_by if stays else proposed.superseded_by,
        created_at=known.created_at,
        last_used_at=known.last_used_at,
        revision=known.revision + 1,
        pinned=known.pinned,
    )
