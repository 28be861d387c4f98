"""What a Firestore installation needs of its project: indexes, and documents that expire."""

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING

from connector import models
from connector.doctor.report import Check, failed, ok, skipped, warning
from connector.settings import Settings
from store.errors import StoreError

if TYPE_CHECKING:
    from store.firestore.deployed import Deployed

Look = Callable[[str, str], "Deployed"]
"""Opens the admin API of a project and a database."""


def look(project: str, database: str) -> "Deployed":
    """With Google's application default credentials."""
    from store.firestore.deployed import Deployed

    return Deployed(project, database)


def examine_project(settings: Settings, look: Look) -> Iterator[Check]:
    """The indexes and expiries, one check for each that is not there."""
    dimensions = models.dimensions(settings)
    try:
        deployed = look(settings.firestore_project, settings.firestore_database)
        lacks = deployed.lacks([] if dimensions is None else [dimensions])
    except StoreError as error:
        mend = "Give the server's account roles/datastore.user, or run this as somebody who may look."
        yield warning("firestore_indexes", error.message, mend)
        yield skipped("firestore_expiry", "the admin API has to answer first")
        return
    for name, kind in (("firestore_indexes", "index"), ("firestore_expiry", "expiry")):
        found = [each for each in lacks if each.kind == kind]
        for each in found:
            if each.is_building:
                yield warning(name, f"{each.name} is being built", "Wait; that takes minutes.")
            else:
                yield failed(name, f"{each.name} is missing", f"Run: {each.command}")
        if not found:
            yield ok(name)
