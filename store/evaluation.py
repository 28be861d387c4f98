"""How well rankings answer labelled questions."""

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from statistics import fmean, quantiles

DEPTHS = (1, 5, 10)


@dataclass(frozen=True)
class Answer:
    """One question: what was relevant, what was found (best first), and how long it took.

    Nothing relevant means that the question has no answer, and that finding anything is wrong.
    """

    relevant: frozenset[str]
    ranked: Sequence[str]
    elapsed_ms: float
    query: str = ""


def metrics(answers: Sequence[Answer]) -> dict[str, float]:
    """Averages over the questions.

    recall@k is the share of the relevant ids among the first k, hit@k whether there is one. They, `mrr`,
    `ndcg@10` and `empty_rate` (nothing found) are over the questions that have an answer;
    `false_answer_rate` (something found) is over those that have none, and 0 without such.
    """
    answerable = [answer for answer in answers if answer.relevant]
    others = [answer for answer in answers if not answer.relevant]
    times = sorted(answer.elapsed_ms for answer in answers)
    cuts = quantiles(times, n=100, method="inclusive") if len(times) > 1 else [times[0]] * 99
    return {
        **{f"recall@{depth}": _mean(recall(each, depth) for each in answerable) for depth in DEPTHS},
        **{f"hit@{depth}": _mean(float(hit(each, depth)) for each in answerable) for depth in DEPTHS},
        "mrr": _mean(reciprocal_rank(each) for each in answerable),
        "ndcg@10": _mean(ndcg(each, 10) for each in answerable),
        "empty_rate": _mean(float(not each.ranked) for each in answerable),
        "false_answer_rate": _mean(float(bool(each.ranked)) for each in others),
        "p50_ms": cuts[49],
        "p95_ms": cuts[94],
    }


def _mean(values: Iterable[float]) -> float:
    collected = [*values]
    return fmean(collected) if collected else 0.0


def hit(answer: Answer, depth: int) -> bool:
    """Whether anything relevant is among the first `depth`."""
    return not answer.relevant.isdisjoint(answer.ranked[:depth])


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


@dataclass(frozen=True)
class Change:
    """How one question fared in two runs; the reciprocal rank of its first relevant memory in each."""

    query: str
    before: float
    after: float


def changes(before: Sequence[Answer], after: Sequence[Answer]) -> list[Change]:
    """The questions of both runs that fared differently, the greatest losses first."""
    known = {answer.query: reciprocal_rank(answer) for answer in before}
    compared = [
        Change(answer.query, known[answer.query], reciprocal_rank(answer))
        for answer in after
        if answer.query in known and answer.relevant
    ]
    differing = [change for change in compared if change.before != change.after]
    return sorted(differing, key=lambda change: (change.after - change.before, change.query))
