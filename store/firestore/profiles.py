"""App profiles in Firestore, in the document that also keeps the app's space."""

from typing import Any

from store.errors import StoreError
from store.firestore.database import FirestoreDatabase, Reference, Tenant
from store.firestore.stored import hashed
from store.firestore.work import Work, unit
from store.profiles import AppProfile


class FirestoreProfiles:
    """Fits `store.profiles.Profiles`."""

    def __init__(self, database: FirestoreDatabase) -> None:
        self._database = database

    def get(self, owner: str, app: str) -> AppProfile:
        """One look-up."""
        fields = self._database.get(app_reference(Tenant(self._database, owner), app)).to_dict() or {}
        return AppProfile.from_value(fields.get("profile", {}))

    def put(self, owner: str, app: str, profile: AppProfile) -> None:
        """The chosen space stays."""
        tenant = Tenant(self._database, owner)

        def act(work: Work) -> None:
            if work.get(tenant.reference) is None:
                raise StoreError("not_found", "no such owner")
            reference = app_reference(tenant, app)
            known = work.get(reference) or {"app": app, "space": None}
            work.put(reference, known | {"profile": _plain(profile)})

        unit(self._database, act)


def app_reference(tenant: Tenant, app: str) -> Reference:
    """Where what the owner decided about an app is."""
    return tenant.document("apps", hashed("app", app))


def _plain(profile: AppProfile) -> dict[str, Any]:
    """Lists for tuples, as Firestore has them."""
    value = profile.to_value()
    return {name: [*each] if isinstance(each, tuple) else each for name, each in value.items()}
