"""A memory as a Firestore document, and back; with what a backend keeps besides."""

import hashlib
import json
from dataclasses import asdict, dataclass, fields
from datetime import UTC, datetime
from typing import Any

from store.firestore.database import Fields, Reference, Tenant
from store.memory import Memory, Source

_MEMORY = tuple(field.name for field in fields(Memory) if field.name not in ("id", "owner"))
_SEQUENCES = ("tags", "artifact_refs")
_TIMES = ("valid_from", "valid_until", "created_at", "updated_at", "last_used_at", "archived_at")


@dataclass(frozen=True)
class Stored:
    """A memory and what belongs to it.

    `index` is the revision whose passages are in use, `passages` and `edges` are how many there are of
    them; `model` and `dimensions` are those of all their vectors, empty and 0 while embeddings are owed.
    `fingerprint` is that of what was last saved, until something else changed the memory.
    """

    memory: Memory
    app: str
    is_proposal: bool = False
    model: str = ""
    dimensions: int = 0
    index: int = 0
    passages: int = 0
    edges: int = 0
    fingerprint: str | None = None

    @property
    def shelf(self) -> str | None:
        """The space, while the memory is not forgotten."""
        return None if self.memory.archived_at is not None else self.memory.space

    @property
    def external(self) -> str | None:
        """The name under which the memory is known by its app."""
        external_id = self.memory.source.external_id
        return None if external_id is None else external_name(self.memory.space, self.app, external_id)


def external_name(space: str, app: str, external_id: str) -> str:
    """Text of others is never an id; its hash is."""
    return hashed("external", space, app, external_id)


def hashed(*parts: str) -> str:
    """A document id for what these texts name."""
    return hashlib.sha256(json.dumps(parts).encode()).hexdigest()


def number_of(name: str) -> int:
    """63 bits that stand for a document where numbers are wanted."""
    return int.from_bytes(hashlib.sha256(name.encode()).digest()[:8], "big") >> 1


def to_fields(stored: Stored) -> Fields:
    """The document's fields."""
    memory = stored.memory
    found: Fields = {name: getattr(memory, name) for name in _MEMORY}
    for name in _SEQUENCES:
        found[name] = [*found[name]]
    source = asdict(memory.source) | {"derived_from": [*memory.source.derived_from]}
    return found | {
        "source": source,
        "derived_from": source["derived_from"],
        "origin": memory.source.origin,
        "external": stored.external,
        "shelf": stored.shelf,
        "app": stored.app,
        "is_proposal": stored.is_proposal,
        "model": stored.model,
        "dimensions": stored.dimensions,
        "index": stored.index,
        "passages": stored.passages,
        "edges": stored.edges,
        "fingerprint": stored.fingerprint,
    }


def from_fields(owner: str, memory_id: str, found: Fields) -> Stored:
    """The inverse."""
    values: dict[str, Any] = {name: found[name] for name in _MEMORY}
    for name in _SEQUENCES:
        values[name] = tuple(values[name])
    for name in _TIMES:
        values[name] = moment(values[name])
    source = found["source"]
    values["source"] = Source(**source | {"derived_from": tuple(source["derived_from"])})
    return Stored(
        Memory(id=memory_id, owner=owner, **values),
        app=found["app"],
        is_proposal=found["is_proposal"],
        model=found["model"],
        dimensions=found["dimensions"],
        index=found["index"],
        passages=found["passages"],
        edges=found["edges"],
        fingerprint=found["fingerprint"],
    )


def moment(value: datetime | None) -> datetime | None:
    """As the rest of the program knows it: the client's own class has a hash of its own."""
    return None if value is None else datetime.combine(value.date(), value.time(), UTC)


def memory_reference(tenant: Tenant, memory_id: str) -> Reference:
    """Where the memory is."""
    return tenant.document("memories", memory_id)


def revision_reference(tenant: Tenant, memory_id: str, revision: int) -> Reference:
    """Where what the memory said then is."""
    kept: Reference = memory_reference(tenant, memory_id).collection("revisions").document(f"{revision:06}")
    return kept


def passage_reference(tenant: Tenant, stored: Stored, ordinal: int) -> Reference:
    """Where a passage is; those of another revision have other names."""
    return tenant.document("passages", f"{stored.memory.id}.{stored.index}.{ordinal}")


def edge_reference(tenant: Tenant, memory_id: str, ordinal: int) -> Reference:
    """Where an edge is."""
    return tenant.document("edges", f"{memory_id}.{ordinal}")
