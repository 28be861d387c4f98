"""Embeddings that came late, or anew from another model."""

from collections.abc import Sequence

from google.cloud import firestore

from store.backend import Owed, Vector
from store.firestore.calls import CHANGED_MEANWHILE, Changed
from store.firestore.database import Ask, Fields, FirestoreDatabase, Tenant
from store.firestore.settling import vector_fields
from store.firestore.shapes import vector_field
from store.firestore.stored import from_fields, memory_reference, passage_reference
from store.firestore.work import COMMIT_SECONDS

AT_ONCE = 100
"""Vectors in one commit."""


def unindexed(database: FirestoreDatabase, model: str, limit: int) -> list[Owed]:
    """Of all owners."""
    found = database.ask(Ask("memories", (("model", "!=", model),), limit=limit, is_group=True))
    owed = []
    for each in found:
        owner = each.reference.parent.parent
        memory = from_fields(owner.id, each.id, each.to_dict() or {}).memory
        owed.append(Owed(memory.owner, memory.id, memory.revision, memory.searched_text))
    return owed


def count_unindexed(database: FirestoreDatabase, model: str) -> int:
    """Of all owners, over the index."""
    return database.count(Ask("memories", (("model", "!=", model),), is_group=True))[0]


def put(tenant: Tenant, model: str, owed: Owed, vectors: Sequence[Vector]) -> bool:
    """Some at a time, each time under the condition that the memory is as it was; the model last."""

    def attempt() -> bool:
        reference = memory_reference(tenant, owed.memory_id)
        read = tenant.database.get(reference)
        update_time = read.update_time
        if not read.exists:
            return False
        stored = from_fields(tenant.owner, owed.memory_id, read.to_dict() or {})
        if stored.memory.revision != owed.revision or stored.passages != len(vectors):
            return False
        outdated = {vector_field(stored.dimensions): firestore.DELETE_FIELD} if stored.dimensions else {}
        for start in range(0, len(vectors), AT_ONCE):
            batch = tenant.database.client.batch()
            for ordinal, vector in enumerate(vectors[start : start + AT_ONCE], start):
                fields = outdated | vector_fields(vector) | {"model": model}
                batch.update(passage_reference(tenant, stored, ordinal), fields)
            is_last = start + AT_ONCE >= len(vectors)
            as_read = firestore.Client.write_option(last_update_time=update_time)
            batch.update(reference, _owing(vectors, model if is_last else ""), as_read)
            try:
                update_time = batch.commit(retry=None, timeout=COMMIT_SECONDS)[-1].update_time
            except CHANGED_MEANWHILE as error:
                raise Changed from error
        return True

    return tenant.database.patience.decide(attempt)


def _owing(vectors: Sequence[Vector], model: str) -> Fields:
    """While some of them are still of another model, the memory owes."""
    return {"model": model, "dimensions": len(vectors[0])}
