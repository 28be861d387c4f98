"""The last touch on an order: pinned, used and new memories a little higher, copies behind what differs."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime, timedelta

import numpy as np

from store.fingerprints import normalized
from store.memory import Memory
from store.ranking import Ranked

PINNED_BOOST = 0.1
USED_BOOST = 0.05
RECENT_BOOST = 0.02
HALF_LIFE = timedelta(days=14)
"""After which a use, or a change, weighs half as much."""
NEAR_DUPLICATE = 0.95
"""Share of words in common, of all that two texts have, from which they say the same."""
COMPARED_CHARACTERS = 4000
SPARE = 10
"""How many more than asked for are ranked, so that boosts and near-duplicates have something to move."""


@dataclass(frozen=True)
class Placed:
    """A ranked memory, loaded, with the text of its passage."""

    ranked: Ranked
    memory: Memory
    text: str


def arrange(found: Sequence[Placed], now: datetime, limit: int) -> list[Placed]:
    """The final order; scores never rise from one place to the next, whatever moved there."""
    boosted = sorted(
        (replace(each, ranked=_boosted(each.ranked, each.memory, now)) for each in found),
        key=lambda each: -each.ranked.parts["fused"],
    )
    chosen = _distinct_first(boosted, limit)
    scores = np.minimum.accumulate([each.ranked.score for each in chosen])
    return [
        replace(each, ranked=replace(each.ranked, score=float(score)))
        for each, score in zip(chosen, scores, strict=True)
    ]


def _boosted(ranked: Ranked, memory: Memory, now: datetime) -> Ranked:
    boost = PINNED_BOOST if memory.pinned else 0.0
    boost += RECENT_BOOST * _freshness(memory.updated_at, now)
    if memory.last_used_at is not None:
        boost += USED_BOOST * _freshness(memory.last_used_at, now)
    parts = ranked.parts | {"fused": ranked.parts["fused"] * (1 + boost), "boost": boost}
    return replace(ranked, score=min(ranked.score * (1 + boost), 1.0), parts=parts)


def _freshness(moment: datetime, now: datetime) -> float:
    """1 now, and half of it with every half-life."""
    freshness: float = 0.5 ** (max(now - moment, timedelta()) / HALF_LIFE)
    return freshness


def _distinct_first(found: Sequence[Placed], limit: int) -> list[Placed]:
    """The first `limit` that differ from each other; too few of them, and the others follow."""
    said: list[frozenset[str]] = []
    first, behind = [], []
    for each in found:
        words = frozenset(normalized(each.memory.content[:COMPARED_CHARACTERS]).split())
        if any(_say_the_same(words, others) for others in said):
            behind.append(each)
        else:
            said.append(words)
            first.append(each)
        if len(first) == limit:
            break
    return (first + behind)[:limit]


def _say_the_same(words: frozenset[str], others: frozenset[str]) -> bool:
    if min(len(words), len(others)) < NEAR_DUPLICATE * max(len(words), len(others)):
        return False
    common = len(words & others)
    return common >= NEAR_DUPLICATE * (len(words) + len(others) - common)
