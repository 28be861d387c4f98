"""Deleting an account: first what opens it, then what it holds, some documents at a time."""

from collections.abc import Iterable
from functools import partial
from itertools import islice

from google.cloud.firestore_v1.collection import CollectionReference

from store.firestore.calls import CALL_SECONDS
from store.firestore.database import FirestoreDatabase, Reference, Tenant
from store.firestore.records import about
from store.firestore.work import COMMIT_SECONDS, Work, unit

FIRST = "spaces"
"""Without a space nothing more is saved."""


def close(tenant: Tenant) -> None:
    """Nobody signs in to the account or calls for it any more, and nobody finds it; it may be repeated."""

    def act(work: Work) -> None:
        fields = work.get(tenant.reference)
        if fields is None:
            return
        for identity in fields["identities"]:
            work.delete(tenant.database.document("identities", identity["key"]))
        work.put(tenant.reference, fields | {"identities": [], "is_closed": True})

    unit(tenant.database, act)
    _delete(tenant.database, about(tenant.database, tenant.owner))


def erase(tenant: Tenant, limit: int) -> bool:
    """One step; False when it was the last, or when the account is open or unknown."""
    database, reference = tenant.database, tenant.reference
    fields = database.get(reference).to_dict()
    if fields is None or not fields.get("is_closed", False):
        return False
    collections = database.patience.read(lambda: [*reference.collections(timeout=CALL_SECONDS)])
    for collection in sorted(collections, key=lambda each: (each.id != FIRST, each.id)):
        if documents := _some(database, collection, limit):
            if collection.id == "memories":
                revisions = (
                    partial(_some, database, each.collection("revisions"), None) for each in documents
                )
                documents = [*(each for some in database.at_once(*revisions) for each in some), *documents]
            _delete(database, documents)
            return True
    _delete(database, [*about(database, tenant.owner), reference])
    return False


def is_open(database: FirestoreDatabase, owners: Iterable[str]) -> set[str]:
    """Those of these accounts that exist: what waited to be written for another is not kept."""
    found = database.get_all(Tenant(database, owner).reference for owner in owners)
    return {each.id for each in found if not (each.to_dict() or {}).get("is_closed", False)}


def _some(database: FirestoreDatabase, collection: CollectionReference, limit: int | None) -> list[Reference]:
    """Documents of the collection, those included of which only a part is left."""
    return database.patience.read(
        lambda: [*islice(collection.list_documents(page_size=limit, timeout=CALL_SECONDS * 2), limit)]
    )


def _delete(database: FirestoreDatabase, documents: list[Reference]) -> None:
    batch = database.client.batch()
    for document in documents:
        batch.delete(document)
    if len(batch):
        database.patience.read(lambda: batch.commit(retry=None, timeout=COMMIT_SECONDS))
