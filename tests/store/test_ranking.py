"""From two legs to one order, and to nothing where nothing answers."""

from dataclasses import replace

import numpy as np
import pytest

from store import ranking
from store.backend import Background, Candidates, Query

VECTOR = np.array([1.0, 0.0], np.float32)
EVERYDAY = Background(centre=np.array([0.0, 1.0], np.float32), mean=0.5, deviation=0.1, spread=0.1456)


def query(*terms: str, background: Background | None = EVERYDAY) -> Query:
    return Query(terms or ("tea",), VECTOR, "model", 2, background)


def candidates(
    *rows: tuple[int, float, float, float], found: frozenset[str] = frozenset(), total: int = 200
) -> Candidates:
    """Rows of memory, cosine, BM25 and coverage."""
    memories, similarity, lexical, coverage = zip(*rows, strict=True)
    return Candidates(
        memories=np.array(memories),
        passages=np.arange(len(rows)) + 100,
        similarity=np.array(similarity, float),
        lexical=np.array(lexical, float),
        coverage=np.array(coverage, float),
        lowest=float(np.nanmin(similarity)) if not np.isnan(similarity).all() else 0.0,
        total=total,
        found=found,
    )


def order(found: list[ranking.Ranked]) -> list[int]:
    return [each.memory for each in found]


def test_what_both_legs_like_comes_first() -> None:
    ranked = ranking.rank(
        candidates((1, 0.6, 0.0, 0.0), (2, 0.55, 4.0, 1.0), (3, 0.0, 3.0, 0.7)), query(), 10
    )
    assert order(ranked)[0] == 2
    assert all(0 <= each.score <= 1 for each in ranked)


def test_a_memory_is_found_once_through_its_best_passage() -> None:
    ranked = ranking.rank(candidates((1, 0.3, 1.0, 0.5), (1, 0.6, 2.0, 1.0), (1, 0.1, 0.5, 0.2)), query(), 10)
    assert [(each.memory, each.passage) for each in ranked] == [(1, 101)]


def test_nothing_near_and_no_word_found_is_no_answer() -> None:
    assert ranking.rank(candidates((1, 0.05, 0.0, 0.0), (2, 0.02, 0.0, 0.0)), query(), 10) == []


def test_a_passage_that_holds_every_word_is_an_answer_whatever_its_vector_says() -> None:
    assert order(ranking.rank(candidates((1, 0.0, 2.0, 1.0)), query(), 10)) == [1]


def test_a_vague_query_needs_a_nearer_passage_than_a_specific_one() -> None:
    near = candidates((1, 0.4, 0.0, 0.0))
    vague = Background(centre=VECTOR, mean=0.5, deviation=0.1, spread=0.1456)
    assert ranking.rank(near, query(), 10) != []
    assert ranking.rank(near, query(background=vague), 10) == []


def test_a_question_in_a_script_the_space_does_not_use_is_given_more_room() -> None:
    far = candidates((1, 0.12, 0.0, 0.0))
    assert ranking.rank(far, query("dog"), 10) == []
    assert order(ranking.rank(far, query("狗", "叫", "狗叫"), 10)) == [1]


def test_a_model_whose_unrelated_texts_lie_further_apart_needs_a_nearer_passage() -> None:
    rows = candidates((1, 0.25, 0.0, 0.0))
    wide = replace(EVERYDAY, spread=0.3)
    assert order(ranking.rank(rows, query(), 10)) == [1]
    assert ranking.rank(rows, query(background=wide), 10) == []


def test_among_few_passages_a_smaller_likeness_is_an_answer() -> None:
    rows = (1, 0.18, 0.0, 0.0)
    assert order(ranking.rank(candidates(rows, total=10), query(), 10)) == [1]
    assert ranking.rank(candidates(rows, total=5_000), query(), 10) == []


def test_without_vectors_words_alone_decide() -> None:
    nan = float("nan")
    by_words = Query(("tea",), None, None, 0, None)
    ranked = ranking.rank(candidates((1, nan, 1.0, 0.4), (2, nan, 3.0, 1.0)), by_words, 10)
    assert order(ranked) == [2, 1]


def test_the_limit_counts_memories() -> None:
    rows = [(memory, 0.5, 1.0, 1.0) for memory in range(20)]
    assert len(ranking.rank(candidates(*rows), query(), 7)) == 7


@pytest.mark.parametrize("limit", [1, 50])
def test_nothing_stored_is_nothing_found(limit: int) -> None:
    nothing = np.array([])
    empty = Candidates(
        nothing.astype(int), nothing.astype(int), nothing, nothing, nothing, 0.0, 0, frozenset()
    )
    assert ranking.rank(empty, query(), limit) == []
