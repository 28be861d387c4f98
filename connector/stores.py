"""Everything that is stored, on one of the two engines; nothing else tells them apart."""

from collections.abc import Callable
from dataclasses import dataclass
from datetime import datetime
from pathlib import Path
from typing import Literal, Protocol

from connector.activity import Events
from oauth.records import Records
from store.archive import Archive
from store.backend import Memories
from store.backup import Backend as BackupBackend
from store.errors import StoreError
from store.events import Event, Rejection
from store.owners import Owners
from store.profiles import Profiles
from store.queries import Queries
from store.sqlite.archive import SQLiteArchive
from store.sqlite.backup import SQLiteBackup
from store.sqlite.database import Database
from store.sqlite.events import SQLiteEvents
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners
from store.sqlite.profiles import SQLiteProfiles
from store.sqlite.queries import SQLiteQueries
from store.sqlite.records import SQLiteRecords


class OpenDatabase(Protocol):
    """Where all of it is."""

    def problem(self) -> str | None:
        """What keeps the database from serving; None when nothing does."""

    def check(self) -> None:
        """Looks at all of it, once, as a server starts.

        Raises:
            StoreError: `unavailable`, it is damaged.
        """

    def close(self) -> None:
        """Ends every connection."""


class SweptRecords(Records, Protocol):
    """Records that leave nothing behind."""

    def sweep(self) -> int:
        """Deletes what has expired; returns how many."""


class KeptEvents(Events, Protocol):
    """Events that can be read again."""

    def recent(self, owner: str, limit: int) -> list[Event]:
        """The owner's last events, newest first."""

    def since(self, owner: str, moment: datetime) -> list[Event]:
        """The owner's events from that moment on, oldest first."""

    def rejections(self, limit: int) -> list[Rejection]:
        """The last refusals kept, newest first."""

    def rejections_beyond(self) -> int:
        """How many more there were than were kept."""


@dataclass(frozen=True)
class Stores:
    """One installation's data."""

    database: OpenDatabase
    records: SweptRecords
    owners: Owners
    profiles: Profiles
    memories: Memories
    events: KeptEvents
    queries: Queries
    archive: Archive
    sweep: Callable[[], int]
    """Deletes what has expired, and what a crash has left; returns how many."""


def open_sqlite(path: Path, now: Callable[[], datetime]) -> Stores:
    """One file, migrated.

    Raises:
        StoreError: `unavailable` when it cannot be used.
    """
    database = Database(path, now)
    records = SQLiteRecords(database)
    return Stores(
        database,
        records,
        SQLiteOwners(database),
        SQLiteProfiles(database),
        SQLiteMemories(database),
        SQLiteEvents(database),
        SQLiteQueries(database),
        SQLiteArchive(database),
        records.sweep,
    )


def open_firestore(project: str, name: str, now: Callable[[], datetime]) -> Stores:
    """A Firestore database, with Google's application default credentials.

    Raises:
        StoreError: `unavailable` when there are none.
    """
    # Google's client takes a fifth of a second to import, which those who keep a file need not wait for.
    from store.firestore import ahead
    from store.firestore.archive import FirestoreArchive
    from store.firestore.database import connect
    from store.firestore.events import FirestoreEvents
    from store.firestore.memories import FirestoreMemories
    from store.firestore.owners import FirestoreOwners
    from store.firestore.profiles import FirestoreProfiles
    from store.firestore.queries import FirestoreQueries
    from store.firestore.records import FirestoreRecords

    database = connect(project, name, now)
    records = FirestoreRecords(database)
    return Stores(
        database,
        records,
        FirestoreOwners(database),
        FirestoreProfiles(database),
        FirestoreMemories(database),
        FirestoreEvents(database),
        FirestoreQueries(database),
        FirestoreArchive(database),
        lambda: records.sweep() + ahead.sweep(database),
    )


def backup_backend(store: Literal["sqlite", "firestore"], path: Path) -> BackupBackend:
    """What is backed up and restored, without opening it.

    Raises:
        StoreError: `unavailable`, for a store that is backed up by its own service.
    """
    match store:
        case "sqlite":
            return SQLiteBackup(path)
        case "firestore":
            said = "Firestore is backed up by its own service: gcloud firestore backups schedules create"
            raise StoreError("unavailable", said)
