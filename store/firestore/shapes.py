"""Every shape of query that this backend asks, and the index that each needs.

Production refuses a query without its index and the emulator never does, so the index file is generated from
this table (`python -m store.firestore.shapes`), and the tests hold every query that runs against it.
"""

import json
import sys
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, combinations
from typing import Any, Literal

Direction = Literal["ASCENDING", "DESCENDING"]
DIMENSIONS = (384, 768, 1536)
"""What the known embedders make: the local one, Gemini's and OpenAI's smaller ones."""
MAX_DIMENSIONS = 2048


@dataclass(frozen=True)
class Shape:
    """A query without its values; `equal` holds the fields compared with `==` or `in`.

    `vector` is the field of a nearest-neighbour query, `total` the field that an aggregation sums.
    """

    collection: str
    equal: frozenset[str] = frozenset()
    contains: str | None = None
    differs: str | None = None
    order: tuple[str, Direction] | None = None
    vector: str | None = None
    total: str | None = None
    is_group: bool = False

    def index(self) -> dict[str, Any] | None:
        """The composite index it needs; None when those that Firestore makes by itself are enough."""
        entries: list[dict[str, Any]] = [
            {"fieldPath": name, "order": "ASCENDING"} for name in sorted(self.equal)
        ]
        if self.contains is not None:
            entries.append({"fieldPath": self.contains, "arrayConfig": "CONTAINS"})
        if self.order is not None:
            entries.append({"fieldPath": self.order[0], "order": self.order[1]})
        if self.total is not None:
            entries.append({"fieldPath": self.total, "order": "ASCENDING"})
        if self.vector is not None:
            dimension = int(self.vector.rpartition("_")[2])
            entries.append({"fieldPath": self.vector, "vectorConfig": {"dimension": dimension, "flat": {}}})
        if len(entries) < 2:
            return None
        scope = "COLLECTION_GROUP" if self.is_group else "COLLECTION"
        return {"collectionGroup": self.collection, "queryScope": scope, "fields": entries}


def vector_field(dimensions: int) -> str:
    """Where vectors of this length are kept: an index is of one length."""
    return f"vector_{dimensions}"


NARROWING = ("kind", "origin", "topic")
"""Filters of a search that the nearest-neighbour index knows; the others are applied to what it finds."""
SHELVED = frozenset({"shelf", "state"})
SELECTING = ("kind", "topic", "pinned")
_DIRECTIONS: tuple[Direction, ...] = ("ASCENDING", "DESCENDING")


def shapes(dimensions: Iterable[int] = DIMENSIONS) -> list[Shape]:
    """All of them."""
    return [*_search(), *_memories(), *_rest(), *chain.from_iterable(_vectors(each) for each in dimensions)]


def _search() -> Iterator[Shape]:
    shelf = frozenset({"shelf"})
    yield Shape("passages", shelf, total="length")
    yield Shape("passages", shelf, contains="terms")
    yield Shape("passages", shelf | {"model"})
    yield Shape("passages", shelf | {"model"}, order=("number", "ASCENDING"))
    yield Shape("passages", frozenset({"number"}))
    yield Shape("passages", SHELVED, contains="terms", order=("created_at", "DESCENDING"))
    yield Shape("passages", SHELVED, contains="tags", order=("created_at", "DESCENDING"))
    yield Shape("passages", SHELVED, order=("created_at", "DESCENDING"))


def _vectors(dimensions: int) -> Iterator[Shape]:
    field = vector_field(dimensions)
    of_model = frozenset({"shelf", "model"})
    yield Shape("passages", of_model, vector=field)
    for count in range(len(NARROWING) + 1):
        for narrowing in combinations(NARROWING, count):
            yield Shape("passages", of_model | {"state", *narrowing}, vector=field)


def _memories() -> Iterator[Shape]:
    shelf = frozenset({"shelf"})
    yield Shape("memories", SHELVED)
    yield Shape("memories", shelf, order=("updated_at", "DESCENDING"))
    yield Shape("memories", frozenset({"space"}), order=("created_at", "ASCENDING"))
    yield Shape("memories")
    for direction in _DIRECTIONS:
        order = ("created_at", direction)
        yield Shape("memories", SHELVED, order=order)
        yield Shape("memories", SHELVED, contains="tags", order=order)
        for each in SELECTING:
            yield Shape("memories", SHELVED | {each}, order=order)
    for field in ("superseded_by", "external", "document_id", "space"):
        yield Shape("memories", frozenset({field}))
    yield Shape("memories", contains="derived_from")
    yield Shape("memories", differs="model", is_group=True)


def _rest() -> Iterator[Shape]:
    shelf = frozenset({"shelf"})
    newest: tuple[str, Direction] = ("created_at", "DESCENDING")
    yield Shape("edges", shelf, order=newest)
    yield Shape("edges", shelf | {"target"}, order=newest)
    yield Shape("edges", shelf | {"target", "state", "origin"})
    yield Shape("edges", frozenset({"memory"}))
    yield Shape("topics", shelf, order=("active", "DESCENDING"))
    yield Shape("documents", frozenset({"space"}))
    yield Shape("documents", frozenset({"space"}), order=("created_at", "ASCENDING"))
    yield Shape("documents")
    yield Shape("episodes", frozenset({"space"}))
    yield Shape("episodes")
    yield Shape("apps", frozenset({"space"}))
    yield Shape("revisions")
    yield Shape("spaces", order=("created_at", "ASCENDING"))
    yield Shape("events", order=("at", "DESCENDING"))
    yield Shape("events", order=("at", "ASCENDING"))
    yield Shape("events", contains="memory_ids")
    yield Shape("queries", order=("at", "ASCENDING"))
    yield Shape("queries", contains="found")
    yield Shape("erasures", order=("at", "ASCENDING"))
    yield Shape("owners", order=("created_at", "ASCENDING"))
    yield Shape("owners", frozenset({"is_closed"}))
    yield Shape("memories", total="revision")
    yield Shape("spaces")
    yield Shape("events")
    yield Shape("rejections", order=("at", "DESCENDING"))
    yield Shape("rejections", order=("at", "ASCENDING"), total="beyond")
    yield Shape("ahead", order=("at", "ASCENDING"))
    yield Shape("records", contains="fields")
    yield Shape("records", order=("expires_at", "ASCENDING"))


UNINDEXED = {
    "memories": ("content", "source", "retrieval_text", "artifact_refs", "image_sha256", "app", "modality"),
    "passages": ("text", "terms", "frequencies", *(vector_field(each) for each in DIMENSIONS)),
    "revisions": ("content", "source", "retrieval_text", "artifact_refs"),
    "edges": ("name", "kinds"),
    "documents": ("chunks", "source", "title"),
    "turns": ("content",),
    "events": ("query_preview",),
    "rejections": ("kept",),
    "queries": ("query",),
    "ahead": ("paths",),
    "records": ("key", "value", "stamp"),
}
"""Fields nobody asks by: indexing them would cost storage, and entries towards a document's limit."""
EXPIRING = ("records", "fingerprints", "events", "erasures", "rejections", "queries")
"""Collections whose documents go by themselves once `expires_at` has passed."""


ACROSS_OWNERS = ("memories", "model")
"""The collection and the field that is asked by over all owners at once: who owes an embedding."""


def index_file(dimensions: Iterable[int] = DIMENSIONS) -> dict[str, Any]:
    """As the Firebase command line deploys it."""
    needed = [index for each in shapes(dimensions) if (index := each.index()) is not None]
    overrides: list[dict[str, Any]] = [
        {
            "collectionGroup": collection,
            "fieldPath": "expires_at",
            "ttl": True,
            "indexes": _ASCENDING if collection == "records" else [],
        }
        for collection in EXPIRING
    ]
    overrides += [
        {"collectionGroup": collection, "fieldPath": field, "indexes": []}
        for collection, fields in UNINDEXED.items()
        for field in fields
    ]
    collection, field = ACROSS_OWNERS
    overrides.append({"collectionGroup": collection, "fieldPath": field, "indexes": _IN_GROUP})
    return {"indexes": needed, "fieldOverrides": overrides}


_ASCENDING = [{"order": "ASCENDING", "queryScope": "COLLECTION"}]
"""The sweep asks for records by their expiry."""
_IN_GROUP = [{"order": "ASCENDING", "queryScope": "COLLECTION_GROUP"}]


if __name__ == "__main__":
    asked = [int(each) for each in sys.argv[1:]] or DIMENSIONS
    sys.stdout.write(json.dumps(index_file(asked), indent=2) + "\n")
