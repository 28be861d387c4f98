"""From two legs to one order: fusion, a calibrated score with a floor, boosts, diversity.

The legs are joined by normalised score, which was measured better than reciprocal ranks.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store.backend import Candidates, Query
from store.lexical import is_foreign_script

VECTOR_SHARE = 0.5
FLOOR = 0.25
"""The confidence that at least one passage must reach, or nothing is found."""
FLOOR_OF_FOREIGN_SCRIPT = 0.02
"""The same for a query in a script that the space does not use: its cosines are lower throughout."""
FLOOR_OF_OTHERS = 0.01
"""The confidence below which a passage is left out even then."""
COSINE, COVERAGE, VAGUENESS, SIZE, VAGUENESS_BY_SIZE, BIAS = 28.5, 2.7, 0.44, -1.78, -0.27, -0.92
"""A logistic regression over labelled questions and nonsense; see docs/decisions/0004-retrieval.md."""
SMALLEST_SIZE = 20
FITTED_SPREAD = 0.1456
"""The background's spread of the model that it was fitted with; another model's cosines are scaled to it."""


@dataclass(frozen=True)
class Ranked:
    """A memory in its place, with the passage that brought it there."""

    memory: int
    passage: int
    score: float
    parts: dict[str, float]


def rank(candidates: Candidates, query: Query, limit: int) -> list[Ranked]:
    """The best memories, best first, one passage each."""
    if not len(candidates.memories):
        return []
    fused = fuse(candidates)
    confident = confidence(candidates, query)
    is_foreign = is_foreign_script(query.terms, candidates.found)
    if confident.max() < (FLOOR_OF_FOREIGN_SCRIPT if is_foreign else FLOOR):
        return []
    order = np.argsort(-fused, kind="stable")
    dense_rank = _ranks(np.nan_to_num(candidates.similarity, nan=-1.0))
    lexical_rank = _ranks(candidates.lexical)
    found: dict[int, Ranked] = {}
    for at in order:
        memory = int(candidates.memories[at])
        if memory in found or confident[at] < FLOOR_OF_OTHERS:
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
    """α·minmax(cosine) + (1-α)·BM25/max·√coverage, 0 to 1.

    The best passage by words counts in full only when it holds all that was asked for: of a question in
    another language the words found are names and numbers, and say little.
    """
    highest = candidates.lexical.max()
    lexical = candidates.lexical / highest if highest > 0 else candidates.lexical
    similarity = candidates.similarity
    if np.isnan(similarity).all():
        plain: NDArray[np.float64] = lexical
        return plain
    low, high = candidates.lowest, np.nanmax(similarity)
    spread = (similarity - low) / (high - low) if high > low else np.ones_like(similarity)
    weight = np.sqrt(candidates.coverage.max())
    fused: NDArray[np.float64] = VECTOR_SHARE * np.nan_to_num(spread) + (1 - VECTOR_SHARE) * lexical * weight
    return fused


def confidence(candidates: Candidates, query: Query) -> NDArray[np.float64]:
    """How sure a passage is an answer at all, 0 to 1, whatever the other passages are."""
    if np.isnan(candidates.similarity).all() or query.vector is None or query.background is None:
        by_words: NDArray[np.float64] = np.sqrt(candidates.coverage)
        return by_words
    # Of many passages the nearest is near by chance alone.
    size = np.log(max(candidates.total, SMALLEST_SIZE))
    vagueness = query.background.vagueness(query.vector)
    logit = (
        COSINE * np.nan_to_num(candidates.similarity) * FITTED_SPREAD / query.background.spread
        + COVERAGE * candidates.coverage
        + (VAGUENESS + VAGUENESS_BY_SIZE * size) * vagueness
        + SIZE * size
        + BIAS
    )
    by_meaning = 1 / (1 + np.exp(-np.clip(logit, -50, 50)))
    # A passage that holds every word of the query answers it, whatever the model thinks of the two.
    result: NDArray[np.float64] = np.maximum(by_meaning, candidates.coverage**4)
    return result


def _ranks(values: NDArray[np.float64]) -> NDArray[np.int64]:
    ranks = np.empty(len(values), np.int64)
    ranks[np.argsort(-values, kind="stable")] = np.arange(1, len(values) + 1)
    return ranks
