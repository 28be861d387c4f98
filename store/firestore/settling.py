"""Writing a memory with everything that repeats a part of it: passages, edges, topics, names, revisions."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime
from typing import Any

import numpy as np
from google.cloud.firestore_v1.vector import Vector as StoredVector

from store.backend import Passage, Vector
from store.entities import edges
from store.errors import StoreError
from store.firestore.database import Fields, Reference, Tenant
from store.firestore.shapes import MAX_DIMENSIONS, vector_field
from store.firestore.stored import (
    Stored,
    edge_reference,
    hashed,
    memory_reference,
    number_of,
    passage_reference,
    revision_reference,
    to_fields,
)
from store.firestore.work import Work
from store.memory import Memory

MAX_TERMS = 1500
"""Distinct ones of a passage: each is an entry in several indexes, and a document may have 40,000."""
ALWAYS = datetime(1, 1, 1, tzinfo=UTC)
NEVER = datetime(9999, 12, 31, tzinfo=UTC)


@dataclass(frozen=True)
class Indexed:
    """A passage as it is kept."""

    text: str
    terms: tuple[str, ...]
    frequencies: tuple[int, ...]
    length: int
    vector: Vector | None


def indexed(passages: Sequence[Passage]) -> list[Indexed]:
    """Each term once, with how often it stands there."""
    found = []
    for passage in passages:
        counted = Counter(passage.terms).most_common(MAX_TERMS)
        terms, counts = tuple(term for term, _ in counted), tuple(count for _, count in counted)
        found.append(Indexed(passage.text, terms, counts, len(passage.terms), passage.vector))
    return found


def settle(
    work: Work,
    tenant: Tenant,
    before: Stored | None,
    after: Stored,
    passages: Sequence[Indexed] | None = None,
) -> Stored:
    """Stages the memory as it is from now on; its index anew when passages are given.

    Raises:
        StoreError: `conflict` when another memory has its `external_id`.
    """
    if before is not None and before.memory.revision != after.memory.revision:
        put_revision(work, tenant, before)
    if passages is not None:
        after = _index(work, tenant, before, after, passages)
    elif before is not None and _labels(before) != _labels(after):
        for ordinal in range(after.passages):
            work.patch(passage_reference(tenant, after, ordinal), _labels(after))
        for ordinal in range(after.edges):
            work.patch(edge_reference(tenant, after.memory.id, ordinal), _edge_labels(after))
    _name(work, tenant, before, after)
    for stored, amount in ((before, -1), (after, 1)):
        if stored is not None and stored.shelf is not None and stored.memory.state == "active":
            _count_topic(work, tenant, stored.memory, amount)
    if before is None:
        work.create(memory_reference(tenant, after.memory.id), to_fields(after))
    else:
        work.put(memory_reference(tenant, after.memory.id), to_fields(after))
    return after


def put_revision(work: Work, tenant: Tenant, before: Stored) -> None:
    """Stages what a memory said before."""
    kept = replace(before, fingerprint=None)
    reference = revision_reference(tenant, kept.memory.id, kept.memory.revision)
    work.put_unread(reference, to_fields(kept) | _NOT_ASKED)


def remove(work: Work, tenant: Tenant, stored: Stored) -> None:
    """Stages the end of a memory and of everything that repeats a part of it."""
    memory = stored.memory
    for ordinal in range(stored.passages):
        work.remove(passage_reference(tenant, stored, ordinal))
    for ordinal in range(stored.edges):
        work.remove(edge_reference(tenant, memory.id, ordinal))
    for revision in range(1, memory.revision):
        work.remove(revision_reference(tenant, memory.id, revision))
    if stored.fingerprint is not None:
        reference = tenant.document("fingerprints", stored.fingerprint)
        known = work.get(reference)
        if known is not None and known["memory"] == memory.id:
            work.delete(reference)
    _free(work, pointer(tenant, stored), memory.id)
    if stored.shelf is not None and memory.state == "active":
        _count_topic(work, tenant, memory, -1)
    work.delete(memory_reference(tenant, memory.id))


def pointer(tenant: Tenant, stored: Stored) -> Reference | None:
    """The document that says which live memory an `external_id` names, or which one waits to change it."""
    is_waiting = stored.is_proposal and stored.memory.state == "pending"
    if stored.external is None or stored.shelf is None or (stored.is_proposal and not is_waiting):
        return None
    return tenant.document("proposals" if stored.is_proposal else "externals", stored.external)


_NOT_ASKED: Fields = {"shelf": None, "external": None}


def _name(work: Work, tenant: Tenant, before: Stored | None, after: Stored) -> None:
    old = None if before is None else pointer(tenant, before)
    new = pointer(tenant, after)
    if old is not None and old != new:
        _free(work, old, after.memory.id)
    if new is None or old == new:
        return
    known = work.get(new)
    if known is not None and known["memory"] != after.memory.id:
        raise StoreError("conflict", "its external_id has been saved anew since")
    work.put(new, {"memory": after.memory.id})


def _free(work: Work, reference: Reference | None, memory_id: str) -> None:
    if reference is not None and (work.get(reference) or {}).get("memory") == memory_id:
        work.delete(reference)


def _index(
    work: Work, tenant: Tenant, before: Stored | None, after: Stored, passages: Sequence[Indexed]
) -> Stored:
    if before is not None:
        for ordinal in range(before.passages):
            work.remove(passage_reference(tenant, before, ordinal))
    vectors = [passage.vector for passage in passages if passage.vector is not None]
    after = replace(
        after,
        index=after.memory.revision,
        passages=len(passages),
        dimensions=len(vectors[0]) if len(vectors) == len(passages) > 0 else 0,
    )
    for ordinal, passage in enumerate(passages):
        reference = passage_reference(tenant, after, ordinal)
        work.lay(reference, _passage(after, ordinal, passage, number_of(reference.id)))
    return _relate(work, tenant, before, after)


def _passage(stored: Stored, ordinal: int, passage: Indexed, number: int) -> Fields:
    fields: Fields = {
        "number": number,
        "memory": stored.memory.id,
        "index": stored.index,
        "ordinal": ordinal,
        "text": passage.text,
        "terms": [*passage.terms],
        "frequencies": [*passage.frequencies],
        "length": passage.length,
        "model": stored.model if passage.vector is not None else "",
    }
    if passage.vector is not None:
        fields |= vector_fields(passage.vector)
    return fields | _labels(stored)


def vector_fields(vector: Vector) -> Fields:
    """The vector under the name that its length has.

    Raises:
        StoreError: `invalid_argument` for a vector that Firestore cannot keep.
    """
    if len(vector) > MAX_DIMENSIONS:
        raise StoreError(
            "invalid_argument", f"the embedder's vectors are longer than {MAX_DIMENSIONS} dimensions"
        )
    return {vector_field(len(vector)): StoredVector(np.asarray(vector, np.float64).tolist())}


def _labels(stored: Stored) -> Fields:
    """What a search filters by, repeated on each passage."""
    memory = stored.memory
    return {
        "shelf": stored.shelf,
        "state": memory.state,
        "topic": memory.topic,
        "kind": memory.kind,
        "origin": memory.source.origin,
        "tags": [*memory.tags],
        "created_at": memory.created_at,
        "valid_from": memory.valid_from or ALWAYS,
        "valid_until": memory.valid_until or NEVER,
    }


def _relate(work: Work, tenant: Tenant, before: Stored | None, after: Stored) -> Stored:
    """One document for each thing a memory is connected with, in all ways together."""
    found: dict[str, dict[str, Any]] = {}
    for edge in edges(after.memory):
        if edge.kind == "derived_from":
            continue
        known = found.setdefault(edge.target, {"name": edge.name, "kinds": {}})
        known["name"] = min(known["name"], edge.name)
        known["kinds"][edge.kind] = edge.weight
    for ordinal, (target, fields) in enumerate(found.items()):
        edge_fields = {"memory": after.memory.id, "target": target, **fields, **_edge_labels(after)}
        work.put_unread(edge_reference(tenant, after.memory.id, ordinal), edge_fields)
    for ordinal in range(len(found), 0 if before is None else before.edges):
        work.remove(edge_reference(tenant, after.memory.id, ordinal))
    return replace(after, edges=len(found))


def _edge_labels(stored: Stored) -> Fields:
    memory = stored.memory
    return {
        "shelf": stored.shelf,
        "state": memory.state,
        "origin": memory.source.origin,
        "created_at": memory.created_at,
    }


def _count_topic(work: Work, tenant: Tenant, memory: Memory, amount: int) -> None:
    reference = tenant.document("topics", hashed("topic", memory.space, memory.topic))
    work.add(reference, {"shelf": memory.space, "topic": memory.topic}, active=amount)


def to_array(stored: StoredVector) -> Vector:
    """A vector as it is computed with."""
    return np.asarray([*stored], np.float32)
