"""Owners and identities in Firestore."""

from collections.abc import Sequence

from store.errors import StoreError
from store.firestore import closing
from store.firestore.database import Ask, Fields, FirestoreDatabase, Tenant, is_id
from store.firestore.spaces import add_space
from store.firestore.work import Work, unit
from store.ids import new_id
from store.owners import Holdings, Identity, Owner, identity_key

FIRST_SPACE = "default"


class FirestoreOwners:
    """Fits `store.owners.Owners`. An owner's document lists the identities, each of which points back."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def find(self, provider: str, issuer: str, subject: str) -> Owner | None:
        """Two look-ups by id."""
        key = identity_key(provider, issuer, subject)
        snapshot = self._database.get(self._database.document("identities", key))
        return self.get(snapshot.get("owner")) if snapshot.exists else None

    def create(self, provider: str, issuer: str, subject: str, label: str) -> Owner:
        """Of two first sign-ins at once, the second finds the identity taken and the owner made."""
        key = identity_key(provider, issuer, subject)
        owner = new_id(16)

        def make(work: Work) -> str:
            identity = self._database.document("identities", key)
            known = work.get(identity)
            if known is not None:
                return str(known["owner"])
            tenant, now = Tenant(self._database, owner), self._database.now()
            work.put(identity, {"owner": owner})
            identities = [{"key": key, "provider": provider, "label": label, "created_at": now}]
            work.put(tenant.reference, {"created_at": now, "identities": identities})
            add_space(work, tenant, FIRST_SPACE)
            return owner

        return self.get(unit(self._database, make))

    def link(self, owner: str, provider: str, issuer: str, subject: str, label: str) -> None:
        """Linking the same again changes nothing."""
        key = identity_key(provider, issuer, subject)
        tenant = Tenant(self._database, owner)

        def link(work: Work) -> None:
            identity = self._database.document("identities", key)
            work.fetch([tenant.reference, identity])
            known, of = work.get(tenant.reference), work.get(identity)
            if known is None or known.get("is_closed", False):
                raise StoreError("not_found", "no such owner")
            if of is not None:
                if of["owner"] != owner:
                    raise StoreError("conflict", "this identity signs in as another owner")
                return
            made = {"key": key, "provider": provider, "label": label, "created_at": self._database.now()}
            work.put(identity, {"owner": owner})
            work.put(tenant.reference, known | {"identities": [*known["identities"], made]})

        unit(self._database, link)

    def get(self, owner: str) -> Owner:
        """The owner with his identities."""
        snapshot = self._database.get(Tenant(self._database, owner).reference)
        fields = snapshot.to_dict()
        if fields is None or fields.get("is_closed", False):
            raise StoreError("not_found", "no such owner")
        return _owner(owner, fields)

    def list(self) -> Sequence[Owner]:
        """All owners, oldest first."""
        found = self._database.ask(Ask("owners", order=("created_at", "ASCENDING")))
        owners = [(each.id, each.to_dict() or {}) for each in found]
        return [_owner(owner, fields) for owner, fields in owners if not fields.get("is_closed", False)]

    def holdings(self, owner: str) -> Holdings:
        """Counted by Firestore, side by side; each later revision has left an earlier version."""
        tenant = Tenant(self._database, owner)
        (memories, last), (spaces, _), (events, _) = self._database.at_once(
            lambda: self._database.count(Ask("memories"), tenant.reference, total="revision"),
            lambda: self._database.count(Ask("spaces"), tenant.reference),
            lambda: self._database.count(Ask("events"), tenant.reference),
        )
        return Holdings(memories, last - memories, spaces, events)

    def close(self, owner: str) -> None:
        """The owner and the identities in one commit; the records, which are then nobody's, after it."""
        if is_id(owner):
            closing.close(Tenant(self._database, owner))

    def erase(self, owner: str, limit: int) -> bool:
        """Spaces first, without which nothing is written; the owner last."""
        return is_id(owner) and closing.erase(Tenant(self._database, owner), limit)

    def closed(self) -> Sequence[str]:
        """In no order."""
        return [
            each.id for each in self._database.ask(Ask("owners", (("is_closed", "==", True),), select=()))
        ]


def _owner(owner: str, fields: Fields) -> Owner:
    identities = (
        Identity(each["provider"], each["label"], each["created_at"]) for each in fields["identities"]
    )
    return Owner(owner, fields["created_at"], tuple(identities))
