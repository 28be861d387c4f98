"""How well rankings answer labelled questions."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles


@dataclass(frozen=True)
class Answer:
    """One question: what was relevant, what was found (best first), and how long it took."""

    relevant: frozenset[str]
    ranked: Sequence[str]
    elapsed_ms: float


def metrics(answers: Sequence[Answer]) -> dict[str, float]:
    """Averages over the questions; recall@k is the share of relevant ids among the first k."""
    times = sorted(answer.elapsed_ms for answer in answers)
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else [times[0]] * 99
    return {
        **{f"recall@{depth}": fmean(recall(answer, depth) for answer in answers) for depth in (1, 5, 10)},
        "mrr": fmean(reciprocal_rank(answer) for answer in answers),
        "ndcg@10": fmean(ndcg(answer, 10) for answer in answers),
        "p50_ms": cuts[49],
        "p95_ms": cuts[94],
    }


def recall(answer: Answer, depth: int) -> float:
    """The share of what was relevant that is among the first `depth`."""
    return len(answer.relevant & set(answer.ranked[:depth])) / len(answer.relevant)


def reciprocal_rank(answer: Answer) -> float:
    """1 over the place of the first relevant one; 0 when none was found."""
    places = (place for place, found in enumerate(answer.ranked, 1) if found in answer.relevant)
    return 1 / next(places, math.inf)


def ndcg(answer: Answer, depth: int) -> float:
    """Normalised discounted cumulative gain with binary relevance."""
    gain = sum(
        1 / math.log2(place + 1)
        for place, found in enumerate(answer.ranked[:depth], 1)
        if found in answer.relevant
    )
    ideal = sum(1 / math.log2(place + 1) for place in range(1, min(len(answer.relevant), depth) + 1))
    return gain / ideal
