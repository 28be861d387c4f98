"""From two legs to one order: fusion, a calibrated score with a floor, boosts, diversity.

The legs are joined by normalised score, which was measured better than reciprocal ranks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store.backend import Candidates

VECTOR_SHARE = 0.4
FLOOR = 0.2
"""Scores below it answer nothing."""


@dataclass(frozen=True)
class Ranked:
    """A memory in its place, with the passage that brought it there."""

    memory: int
    passage: int
    score: float
    parts: dict[str, float]


def rank(candidates: Candidates, limit: int) -> list[Ranked]:
    """The best memories, best first, one passage each."""
    if not len(candidates.memories):
        return []
    fused = fuse(candidates)
    confident = confidence(candidates)
    order = np.argsort(-fused, kind="stable")
    dense_rank = _ranks(np.nan_to_num(candidates.similarity, nan=-1.0))
    lexical_rank = _ranks(candidates.lexical)
    found: dict[int, Ranked] = {}
    for at in order:
        memory = int(candidates.memories[at])
        if memory in found or confident[at] < FLOOR:
            continue
        found[memory] = Ranked(
            memory,
            int(candidates.passages[at]),
            float(np.sqrt(confident[at] * max(fused[at], 0.0))),
            {
                "vector": float(np.nan_to_num(candidates.similarity[at])),
                "vector_rank": float(dense_rank[at]),
                "lexical": float(candidates.lexical[at]),
                "lexical_rank": float(lexical_rank[at]),
                "coverage": float(candidates.coverage[at]),
                "fused": float(fused[at]),
                "confidence": float(confident[at]),
            },
        )
        if len(found) >= limit:
            break
    return [*found.values()]


def fuse(candidates: Candidates) -> NDArray[np.float64]:
    """α·minmax(cosine) + (1-α)·BM25/max, 0 to 1."""
    highest = candidates.lexical.max()
    lexical = candidates.lexical / highest if highest > 0 else candidates.lexical
    similarity = candidates.similarity
    if np.isnan(similarity).all():
        return lexical
    low, high = candidates.lowest, np.nanmax(similarity)
    spread = (similarity - low) / (high - low) if high > low else np.ones_like(similarity)
    return VECTOR_SHARE * np.nan_to_num(spread) + (1 - VECTOR_SHARE) * lexical


def confidence(candidates: Candidates) -> NDArray[np.float64]:
    """How sure a passage is an answer at all, 0 to 1, from signals that do not depend on the others."""
    similarity = candidates.similarity
    if np.isnan(similarity).all():
        return np.sqrt(candidates.coverage)
    background = min(candidates.mean, 0.80) if candidates.total > 20 else 0.78
    deviation = max(candidates.deviation, 0.02) if candidates.total > 20 else 0.03
    surprise = (np.nan_to_num(similarity, nan=background) - background) / deviation
    logit = 3.0 * candidates.coverage + 0.9 * surprise - 2.6
    result: NDArray[np.float64] = 1 / (1 + np.exp(-logit))
    return result


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
