"""The contract's backends: a test that takes `backend` runs on each of them.

On Firestore every query that runs is held against the table from which the index file is made.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import pytest
from google.cloud.firestore import Client

from oauth.records import Records
from store.archive import Archive
from store.backend import Memories
from store.embedders.protocol import Embedder
from store.engine import Engine
from store.events import Event, Rejection
from store.firestore.archive import FirestoreArchive
from store.firestore.database import FirestoreDatabase
from store.firestore.events import FirestoreEvents
from store.firestore.memories import FirestoreMemories
from store.firestore.owners import FirestoreOwners
from store.firestore.profiles import FirestoreProfiles
from store.firestore.queries import FirestoreQueries
from store.firestore.records import FirestoreRecords
from store.firestore.shapes import Shape, shapes
from store.owners import Owners
from store.profiles import Profiles
from store.queries import Queries
from store.sqlite.archive import SQLiteArchive
from store.sqlite.database import Database
from store.sqlite.events import SQLiteEvents
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners
from store.sqlite.profiles import SQLiteProfiles
from store.sqlite.queries import SQLiteQueries
from store.sqlite.records import SQLiteRecords
from tests.engines import FIRESTORE_PROJECT, FirestoreEmulator
from tests.store.fakes import Clock, FakeEmbedder


class Events(Protocol):
    def append(self, events: list[Event]) -> None: ...
    def recent(self, owner: str, limit: int) -> list[Event]: ...
    def since(self, owner: str, moment: datetime) -> list[Event]: ...
    def reject(self, rejections: list[Rejection]) -> None: ...
    def rejections(self, limit: int) -> list[Rejection]: ...
    def rejections_beyond(self) -> int: ...


@dataclass(frozen=True)
class Backend:
    """One way into the data; `again` opens another one, as a second process would."""

    records: Records
    owners: Owners
    memories: Memories
    events: Events
    profiles: Profiles
    queries: Queries
    archive: Archive
    again: Callable[[], "Backend"]


@dataclass
class Stand:
    """An engine on a backend with one owner, and the app that calls it."""

    backend: Backend
    clock: Clock
    embedder: FakeEmbedder | None = field(default_factory=FakeEmbedder)
    app: str = "app"

    def __post_init__(self) -> None:
        self.engine = Engine(self.backend.memories, self.embedder, self.clock)
        self.owner = self.backend.owners.create("test", "issuer", "subject", "a•••@example.com").id
        self.space = self.engine.spaces(self.owner)[0].id

    def another_process(self, embedder: Embedder | None = None) -> Engine:
        return Engine(self.backend.again().memories, embedder or self.embedder, self.clock)


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture(params=["sqlite", "firestore"])
def backend(request: pytest.FixtureRequest) -> Backend:
    made = request.getfixturevalue(f"{request.param}_backend")
    assert isinstance(made, Backend)
    return made


@pytest.fixture
def sqlite_backend(tmp_path: Path, clock: Clock) -> Iterator[Backend]:
    with open_sqlite(tmp_path / "vademecum.db", clock) as backend:
        yield backend


@contextmanager
def open_sqlite(path: Path, clock: Clock) -> Iterator[Backend]:
    """A file."""
    with ExitStack() as opened:

        def again() -> Backend:
            database = Database(path, clock)
            opened.callback(database.close)
            return Backend(
                SQLiteRecords(database),
                SQLiteOwners(database),
                SQLiteMemories(database),
                SQLiteEvents(database),
                SQLiteProfiles(database),
                SQLiteQueries(database),
                SQLiteArchive(database),
                again,
            )

        yield again()


@pytest.fixture
def firestore_backend(firestore: FirestoreEmulator, clock: Clock) -> Iterator[Backend]:
    with open_firestore(FIRESTORE_PROJECT, clock) as backend:
        yield backend


@contextmanager
def open_firestore(project: str, clock: Clock) -> Iterator[Backend]:
    """A project of the emulator that runs."""
    known = {*shapes((FakeEmbedder.dimensions, FakeEmbedder.dimensions // 2))}
    with ExitStack() as opened:

        def observe(shape: Shape) -> None:
            assert shape in known, f"no index is made for {shape}"

        def again() -> Backend:
            client = Client(project=project)
            database = FirestoreDatabase(client, clock, observe=observe)
            opened.callback(database.close)
            return Backend(
                FirestoreRecords(database),
                FirestoreOwners(database),
                FirestoreMemories(database),
                FirestoreEvents(database),
                FirestoreProfiles(database),
                FirestoreQueries(database),
                FirestoreArchive(database),
                again,
            )

        yield again()


@pytest.fixture
def records(backend: Backend) -> Records:
    return backend.records


@pytest.fixture
def owners(backend: Backend) -> Owners:
    return backend.owners


@pytest.fixture
def stand(backend: Backend, clock: Clock) -> Stand:
    return Stand(backend, clock)
