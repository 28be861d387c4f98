"""How well passages answer a query's words: the one function that scores them for every backend."""

from collections.abc import Iterable
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from store import lexical


@dataclass(frozen=True)
class Postings:
    """Where one term of the query stands.

    `rows` and `frequencies` are of equal length; `matching` is how many passages of the space hold the term,
    which may be more than are scored here.
    """

    rows: NDArray[np.int64]
    frequencies: NDArray[np.int64]
    matching: int


def score(
    postings: Iterable[Postings], lengths: NDArray[np.int64], count: int, average_length: float
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """BM25, and the covered share of the query's weight, for each of the rows that `lengths` describes.

    `count` and `average_length` are of the whole space, whichever rows are scored.
    """
    scores, matched = np.zeros(len(lengths)), np.zeros(len(lengths))
    total = 0.0
    for term in postings:
        weight = lexical.idf(count, term.matching)
        total += weight
        scores[term.rows] += weight * lexical.weights(term.frequencies, lengths[term.rows], average_length)
        matched[term.rows] += weight
    return scores, matched / total if total else matched
