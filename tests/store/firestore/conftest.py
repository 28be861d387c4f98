"""A Firestore behind a proxy that can fail."""

from collections.abc import Iterator

import pytest
from google.cloud.firestore import Client

from store.firestore.calls import Patience
from store.firestore.database import FirestoreDatabase
from tests.engines import FIRESTORE_PROJECT, FirestoreEmulator
from tests.store.fakes import Clock
from tests.store.firestore.proxy import Proxy


@pytest.fixture
def proxy(firestore: FirestoreEmulator, monkeypatch: pytest.MonkeyPatch) -> Iterator[Proxy]:
    proxy = Proxy(firestore.host)
    monkeypatch.setenv("FIRESTORE_EMULATOR_HOST", proxy.start())
    yield proxy
    proxy.stop()


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def database(proxy: Proxy, clock: Clock) -> Iterator[FirestoreDatabase]:
    """It gives up after a second."""
    database = FirestoreDatabase(Client(project=FIRESTORE_PROJECT), clock, Patience(budget_seconds=1))
    yield database
    database.close()
