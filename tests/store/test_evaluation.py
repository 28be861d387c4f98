"""The measures of a search, on rankings small enough to reckon by hand."""

import math

import pytest

from store.evaluation import Answer, metrics, ndcg, recall, reciprocal_rank


def answer(*ranked: str, relevant: str = "ab", elapsed_ms: float = 1.0) -> Answer:
    return Answer(frozenset(relevant), ranked, elapsed_ms)


def test_recall_is_the_share_of_what_is_relevant() -> None:
    assert recall(answer("a", "x", "b"), 1) == 0.5
    assert recall(answer("a", "x", "b"), 5) == 1.0
    assert recall(answer(), 5) == 0.0


def test_the_reciprocal_rank_is_that_of_the_first_relevant_one() -> None:
    assert reciprocal_rank(answer("x", "b", "a")) == 0.5
    assert reciprocal_rank(answer("x")) == 0.0


def test_ndcg_discounts_by_place_and_is_1_for_the_best_order() -> None:
    assert ndcg(answer("b", "a", "x"), 10) == 1.0
    assert ndcg(answer("x", "a"), 10) == pytest.approx((1 / math.log2(3)) / (1 + 1 / math.log2(3)))


def test_metrics_average_over_questions_and_tell_times() -> None:
    measured = metrics([answer("a", "b", elapsed_ms=2.0), answer("x", elapsed_ms=4.0)])
    assert (measured["recall@5"], measured["mrr"]) == (0.5, 0.5)
    assert measured["p50_ms"] == 3.0
    assert 3.0 < measured["p95_ms"] <= 4.0
