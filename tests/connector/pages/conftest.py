"""A stand with one owner, who has a passphrase."""

import pytest

from tests.connector.pages.stand import Person, Stand
from tests.oauth.stand import Host


@pytest.fixture
def stand() -> Stand:
    stand = Stand()
    stand.set_up()
    return stand


@pytest.fixture
def person(stand: Stand) -> Person:
    """The owner at a browser that was never here."""
    return stand.person()


@pytest.fixture
def host(stand: Stand) -> Host:
    """A client that registered itself."""
    return stand.host()
