"""The candidates of a search: nearest vectors, rarest words, and small filtered sets whole.

Each leg reads a bounded number of passages, which are scored here as SQLite scores its own: BM25 from counts
that Firestore takes over its indexes, cosines as seen from the centre of the space.
"""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import datetime
from functools import partial
from typing import Any

import numpy as np
from google.cloud.firestore_v1.base_document import DocumentSnapshot

from store import bm25, centring
from store.backend import Candidates, Query, Vector
from store.firestore.centres import centre_of_space
from store.firestore.database import MAX_VALUES, Ask, Operator, Tenant, Where
from store.firestore.settling import to_array
from store.firestore.shapes import NARROWING, vector_field
from store.firestore.stored import number_of
from store.memory import Filters

Found = list[DocumentSnapshot[Any]]

DEPTH = 100
"""Nearest vectors that are read, and scored on."""
DEPTH_BY_WORDS = 200
"""Passages that are read because they hold the query's rarest words."""
WHOLE = 300
"""Passages of a filtered set that are read without regard to the query."""


@dataclass(frozen=True)
class _Space:
    """What is counted over all passages of the space."""

    count: int
    length: int
    embedded: int
    matching: dict[str, int]

    @property
    def average_length(self) -> float:
        return self.length / self.count if self.count else 0.0


def candidates(tenant: Tenant, space: str, query: Query, filters: Filters) -> Candidates:
    """What may answer."""
    of_space = _count(tenant, space, query)
    if not of_space.count:
        return _empty()
    direction, centre = None, None
    if query.vector is not None and query.background is not None and query.model and of_space.embedded:
        centre = centre_of_space(tenant, space, query.model, query.background, of_space.embedded)
        direction = centring.direction_of(query.vector, centre)
    near, farthest, by_words, whole = tenant.database.at_once(
        partial(_nearest, tenant, space, query, filters, direction),
        partial(_farthest, tenant, space, query, direction),
        partial(_by_words, tenant, space, filters, of_space),
        partial(_whole, tenant, space, filters),
    )
    found = {each.id: each.to_dict() or {} for each in (*near, *by_words, *whole)}
    rows = [fields for fields in found.values() if _admits(filters, fields)]
    lowest = _similarity([each.to_dict() or {} for each in farthest], query, centre)
    return _scored(rows, query, of_space, centre, lowest)


def _count(tenant: Tenant, space: str, query: Query) -> _Space:
    """Over indexes, without reading a passage: one read for each thousand counted."""
    shelf: Where = (("shelf", "==", space),)

    def count(where: Where, total: str | None = None) -> tuple[int, int]:
        return tenant.database.count(Ask("passages", where), tenant.reference, total)

    (count_all, length), (embedded, _), *by_term = tenant.database.at_once(
        partial(count, shelf, "length"),
        partial(count, (*shelf, ("model", "==", query.model or ""))),
        *(partial(count, (*shelf, ("terms", "array_contains", term))) for term in query.terms),
    )
    matching = {term: number for term, (number, _) in zip(query.terms, by_term, strict=True)}
    return _Space(count_all, length, embedded if query.model else 0, matching)


def _nearest(tenant: Tenant, space: str, query: Query, filters: Filters, direction: Vector | None) -> Found:
    """By the dot product with the direction of the query, which orders as the centred cosine nearly does."""
    if direction is None:
        return []
    where: Where = (("shelf", "==", space), ("state", "==", filters.state), ("model", "==", query.model))
    asked = {"kind": filters.kind, "topic": filters.topic, "origin": filters.origin}
    where += tuple((field, "==", asked[field]) for field in NARROWING if asked[field] is not None)
    if filters.origin is None and filters.within_origins is not None:
        where += (("origin", "in", [*filters.within_origins]),)
    if filters.within_origins == ():
        return []
    field = vector_field(query.dimensions)
    return tenant.database.nearest(Ask("passages", where), tenant.reference, field, direction, DEPTH)


def _farthest(tenant: Tenant, space: str, query: Query, direction: Vector | None) -> Found:
    """The one passage that has least to do with the query, filtered or not: the scale's lower end."""
    if direction is None:
        return []
    ask = Ask("passages", (("shelf", "==", space), ("model", "==", query.model)))
    field = vector_field(query.dimensions)
    return tenant.database.nearest(ask, tenant.reference, field, -direction, 1)


def _by_words(tenant: Tenant, space: str, filters: Filters, of_space: _Space) -> Found:
    """The passages that hold the rarest words: as many words as stay below the depth, at least one.

    A word that many passages hold tells little; where all of them do, the newest passages are taken.
    """
    known = sorted((count, term) for term, count in of_space.matching.items() if count)
    chosen: list[str] = []
    reached = 0
    for count, term in known[:MAX_VALUES]:
        reached += count
        if chosen and reached > DEPTH_BY_WORDS:
            break
        chosen.append(term)
    if not chosen:
        return []
    return _newest(tenant, space, filters, ("terms", "array_contains_any", chosen), DEPTH_BY_WORDS)


def _whole(tenant: Tenant, space: str, filters: Filters) -> Found:
    """What a filter leaves, where it is one that the nearest-neighbour index does not know."""
    if filters.tags:
        return _newest(tenant, space, filters, ("tags", "array_contains", filters.tags[0]), WHOLE)
    if filters.created_after is not None or filters.created_before is not None:
        return _newest(tenant, space, filters, None, WHOLE)
    return []


def _newest(
    tenant: Tenant, space: str, filters: Filters, by: tuple[str, Operator, Any] | None, limit: int
) -> Found:
    where: Where = (("shelf", "==", space), ("state", "==", filters.state))
    where += () if by is None else (by,)
    if filters.created_after is not None:
        where += (("created_at", ">=", filters.created_after),)
    if filters.created_before is not None:
        where += (("created_at", "<", filters.created_before),)
    return tenant.ask(Ask("passages", where, ("created_at", "DESCENDING"), limit=limit))


def _admits(filters: Filters, fields: dict[str, Any]) -> bool:
    created_at: datetime = fields["created_at"]
    at = filters.valid_at
    return (
        fields["state"] == filters.state
        and filters.topic in (None, fields["topic"])
        and filters.kind in (None, fields["kind"])
        and filters.origin in (None, fields["origin"])
        and (filters.within_origins is None or fields["origin"] in filters.within_origins)
        and set(filters.tags) <= set(fields["tags"])
        and (filters.created_after is None or created_at >= filters.created_after)
        and (filters.created_before is None or created_at < filters.created_before)
        and (at is None or fields["valid_from"] <= at < fields["valid_until"])
    )


def _scored(
    rows: Sequence[dict[str, Any]],
    query: Query,
    of_space: _Space,
    centre: Vector | None,
    farthest: Sequence[float],
) -> Candidates:
    lengths = np.array([fields["length"] for fields in rows], np.int64)
    postings = [_postings(rows, term, of_space.matching[term]) for term in query.terms]
    scores, coverage = bm25.score(postings, lengths, of_space.count, of_space.average_length)
    similarity = np.array(_similarity(rows, query, centre), np.float64)
    known = [*similarity[~np.isnan(similarity)], *farthest]
    return replace(
        _empty(),
        memories=np.array([number_of(fields["memory"]) for fields in rows], np.int64),
        passages=np.array([fields["number"] for fields in rows], np.int64),
        similarity=similarity,
        lexical=scores,
        coverage=coverage,
        lowest=float(min(known)) if known else 0.0,
        total=of_space.embedded if centre is not None else 0,
        found=frozenset(term for term, count in of_space.matching.items() if count),
    )


def _postings(rows: Sequence[dict[str, Any]], term: str, matching: int) -> bm25.Postings:
    there = [(at, fields["terms"].index(term)) for at, fields in enumerate(rows) if term in fields["terms"]]
    frequencies = [rows[at]["frequencies"][position] for at, position in there]
    return bm25.Postings(
        np.array([at for at, _ in there], np.int64), np.array(frequencies, np.int64), matching
    )


def _similarity(rows: Sequence[dict[str, Any]], query: Query, centre: Vector | None) -> list[float]:
    """Centred cosines; NaN for a passage without a vector of the model."""
    found = [float("nan")] * len(rows)
    field = vector_field(query.dimensions)
    embedded = [at for at, fields in enumerate(rows) if fields["model"] == query.model and field in fields]
    if centre is None or query.vector is None or not embedded:
        return found
    vectors = np.stack([to_array(rows[at][field]) for at in embedded])
    cosines = centring.cosines(vectors, centring.distances_from(centre, vectors), query.vector, centre)
    for at, cosine in zip(embedded, cosines, strict=True):
        found[at] = float(cosine)
    return found


def _empty() -> Candidates:
    numbers, values = np.empty(0, np.int64), np.empty(0, np.float64)
    return Candidates(numbers, numbers, values, values, values, 0.0, 0, frozenset())
