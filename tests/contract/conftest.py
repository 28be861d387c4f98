"""The contract's backends: a test that takes `backend` runs on each of them.

A further backend adds a fixture that makes a `Backend` and its name to `params`.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from typing import Protocol

import pytest

from oauth.records import Records
from store.backend import Memories
from store.embedders.protocol import Embedder
from store.engine import Engine
from store.events import Event, Rejection
from store.owners import Owners
from store.profiles import Profiles
from store.queries import Queries
from store.sqlite.database import Database
from store.sqlite.events import SQLiteEvents
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners
from store.sqlite.profiles import SQLiteProfiles
from store.sqlite.queries import SQLiteQueries
from store.sqlite.records import SQLiteRecords
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


@pytest.fixture(params=["sqlite"])
def backend(request: pytest.FixtureRequest) -> Backend:
    made = request.getfixturevalue(f"{request.param}_backend")
    assert isinstance(made, Backend)
    return made


@pytest.fixture
def sqlite_backend(tmp_path: Path, clock: Clock) -> Iterator[Backend]:
    with ExitStack() as opened:

        def again() -> Backend:
            database = Database(tmp_path / "vademecum.db", clock)
            opened.callback(database.close)
            return Backend(
                SQLiteRecords(database),
                SQLiteOwners(database),
                SQLiteMemories(database),
                SQLiteEvents(database),
                SQLiteProfiles(database),
                SQLiteQueries(database),
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
