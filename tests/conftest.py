"""What every test shares."""

from collections.abc import Iterator

import pytest

from tests.engines import FirestoreEmulator, firestore_emulator


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "threat(id): the attack of THREATS that this test shows refused")


@pytest.fixture(scope="session")
def running_firestore(tmp_path_factory: pytest.TempPathFactory) -> Iterator[FirestoreEmulator]:
    """One emulator for the session, with the variable by which Google's client finds it."""
    directory = tmp_path_factory.mktemp("firestore")
    with firestore_emulator(directory) as emulator, pytest.MonkeyPatch.context() as patch:
        patch.setenv("FIRESTORE_EMULATOR_HOST", emulator.host)
        yield emulator


@pytest.fixture
def firestore(running_firestore: FirestoreEmulator) -> FirestoreEmulator:
    """The emulator, empty."""
    running_firestore.reset()
    return running_firestore
