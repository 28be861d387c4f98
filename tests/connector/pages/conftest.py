"""A stand with one owner, who has a passphrase."""

from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.connector.pages.stand import Person, Stand
from tests.oauth.stand import Host


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    stand.set_up()
    yield stand
    stand.database.close()


@pytest.fixture
def person(stand: Stand) -> Person:
    """The owner at a browser that was never here."""
    return stand.person()


@pytest.fixture
def host(stand: Stand) -> Host:
    """A client that registered itself."""
    return stand.host()
