"""The candidates of a search: both legs over one shelf, filters as a mask, so that none eats the limit."""

import json
import sqlite3
from typing import Any

import numpy as np
from numpy.typing import NDArray

from store import bm25
from store.backend import Candidates, Query
from store.memory import STATES, Filters
from store.sqlite.database import to_micros
from store.sqlite.shelf import GONE, Shelf
from store.sqlite.writing import owner_prefix

DEPTH = 200
"""Candidates per leg that are ranked on."""


def candidates(
    connection: sqlite3.Connection, shelf: Shelf, owner: str, space: str, query: Query, filters: Filters
) -> Candidates:
    """What may answer; the caller holds the shelf's lock and a snapshot."""
    used = shelf.used
    live = shelf.states[:used] != GONE
    allowed = live & (shelf.states[:used] == STATES.index(filters.state))
    if filters != Filters(state=filters.state):
        allowed &= np.isin(shelf.memories[:used], _matching(connection, owner, space, filters))
    scores, coverage, found = _lexical(connection, shelf, owner, query, live)
    similarity, lowest = np.full(used, np.nan), 0.0
    embedded = live & shelf.embedded[:used]
    if query.vector is not None and query.background is not None and embedded.any():
        cosines = shelf.cosines(query.vector, query.background.centre)
        similarity[embedded] = cosines[embedded]
        lowest = float(cosines[embedded].min())
    chosen = _deepest(np.where(allowed, scores, 0.0), np.where(allowed, similarity, np.nan))
    return Candidates(
        memories=shelf.memories[:used][chosen],
        passages=shelf.numbers[:used][chosen],
        similarity=similarity[chosen],
        lexical=scores[chosen],
        coverage=coverage[chosen],
        lowest=lowest,
        total=int(embedded.sum()),
        found=found,
    )


def _deepest(scores: NDArray[np.float64], similarity: NDArray[np.float64]) -> NDArray[np.int64]:
    """The slots of each leg's best."""
    words = np.flatnonzero(scores > 0)
    if len(words) > DEPTH:
        words = words[np.argpartition(-scores[words], DEPTH)[:DEPTH]]
    near = np.flatnonzero(~np.isnan(similarity))
    if len(near) > DEPTH:
        near = near[np.argpartition(-similarity[near], DEPTH)[:DEPTH]]
    return np.union1d(words, near).astype(np.int64)


def _lexical(
    connection: sqlite3.Connection, shelf: Shelf, owner: str, query: Query, live: NDArray[np.bool_]
) -> tuple[NDArray[np.float64], NDArray[np.float64], frozenset[str]]:
    """BM25 and the covered share of the query for every slot, and the terms that are found at all."""
    count = int(live.sum())
    if not count:
        return np.zeros(shelf.used), np.zeros(shelf.used), frozenset()
    lengths = shelf.lengths[: shelf.used]
    prefix = owner_prefix(connection, owner)
    found = {term: _live_postings(connection, shelf, prefix + term, live) for term in query.terms}
    scores, coverage = bm25.score(found.values(), lengths, count, float(lengths[live].mean()))
    return scores, coverage, frozenset(term for term, postings in found.items() if postings.matching)


def _live_postings(
    connection: sqlite3.Connection, shelf: Shelf, token: str, live: NDArray[np.bool_]
) -> bm25.Postings:
    passages, frequencies = _postings(connection, token)
    slots = shelf.slots(passages)
    here = (slots >= 0) & live[slots]
    return bm25.Postings(slots[here], frequencies[here], int(here.sum()))


def _postings(connection: sqlite3.Connection, token: str) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """The passages that hold the token, and how often each does.

    One string for all of them: a row for each would become Python objects, while every other thread waits.
    """
    (text,) = connection.execute("SELECT group_concat(doc) FROM postings WHERE term = ?", (token,)).fetchone()
    occurrences = np.fromstring(text or "", np.int64, sep=",")
    return np.unique(occurrences, return_counts=True)


def _matching(connection: sqlite3.Connection, owner: str, space: str, filters: Filters) -> list[int]:
    """The memories that pass the filters other than the state."""
    clauses: list[tuple[str, Any]] = []
    for column, value in (("topic", filters.topic), ("kind", filters.kind), ("origin", filters.origin)):
        if value is not None:
            clauses.append((f"{column} = ?", value))
    for tag in filters.tags:
        clauses.append(("EXISTS (SELECT 1 FROM json_each(tags) WHERE json_each.value = ?)", tag))
    if filters.within_origins is not None:
        allowed = json.dumps(filters.within_origins)
        clauses.append(("origin IN (SELECT value FROM json_each(?))", allowed))
    if filters.created_after is not None:
        clauses.append(("created_at >= ?", to_micros(filters.created_after)))
    if filters.created_before is not None:
        clauses.append(("created_at < ?", to_micros(filters.created_before)))
    if filters.valid_at is not None:
        clauses.append(("coalesce(valid_from, 0) <= ?", to_micros(filters.valid_at)))
        clauses.append(("coalesce(valid_until, 1 << 62) > ?", to_micros(filters.valid_at)))
    where = "".join(f" AND {clause}" for clause, _ in clauses)
    rows = connection.execute(
        f"SELECT n FROM memories WHERE owner = ? AND space = ? AND archived_at IS NULL{where}",  # noqa: S608
        (owner, space, *(value for _, value in clauses)),
    )
    return [number for (number,) in rows]
