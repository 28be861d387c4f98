"""The query log in Firestore."""

import secrets
from collections.abc import Sequence
from datetime import datetime

from store.firestore.closing import is_open
from store.firestore.database import Ask, FirestoreDatabase, Tenant, is_id
from store.firestore.events import LIFETIME, erased_lately
from store.firestore.stored import moment
from store.firestore.work import write_in_batches
from store.queries import AskedQuery


class FirestoreQueries:
    """Fits `store.queries.Queries`."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def append(self, queries: Sequence[AskedQuery]) -> None:
        """Expires by itself; one that found what was deleted meanwhile is not kept."""
        owners = is_open(self._database, {each.owner for each in queries if is_id(each.owner)})
        erased = {owner: erased_lately(self._database, owner) for owner in owners}
        documents = []
        for number, each in enumerate(queries):
            if each.owner not in owners or not erased[each.owner].isdisjoint(each.found):
                continue
            micros = round(each.at.timestamp() * 1_000_000)
            name = f"{micros:017}.{number:05}.{secrets.token_urlsafe(6)}"
            fields = {"at": each.at, "app": each.app, "query": each.query, "found": [*each.found]}
            reference = Tenant(self._database, each.owner).document("queries", name)
            documents.append((reference, fields | {"expires_at": each.at + LIFETIME}))
        self._database.patience.read(lambda: write_in_batches(self._database, documents))

    def since(self, owner: str, moment_: datetime) -> list[AskedQuery]:
        """By index."""
        young = max(moment_, self._database.now() - LIFETIME)
        found = Tenant(self._database, owner).ask(Ask("queries", (("at", ">=", young),), ("at", "ASCENDING")))
        return [
            AskedQuery(
                moment(each.get("at")) or young,
                owner,
                each.get("app"),
                each.get("query"),
                tuple(each.get("found")),
            )
            for each in found
        ]
