"""What has expired goes by itself, while the application serves."""

from collections.abc import Iterator

import pytest
from starlette.testclient import TestClient

from connector import housekeeping
from connector.app import Vademecum, create_app
from store.firestore.database import FirestoreDatabase
from store.sqlite.database import Database
from tests.flows.conftest import PUBLIC_URL, Clock, Host


@pytest.fixture
def http(parts: Vademecum, monkeypatch: pytest.MonkeyPatch) -> Iterator[TestClient]:
    monkeypatch.setattr(housekeeping, "SWEEP_SECONDS", 0.01)
    with TestClient(create_app(parts), base_url=PUBLIC_URL, follow_redirects=False) as client:
        yield client


def stored(parts: Vademecum, kind: str) -> set[str]:
    """The keys that are stored, expired ones included."""
    if isinstance(parts.database, FirestoreDatabase):
        found = parts.database.client.collection("records").stream()
        return {each.get("key") for each in found if each.id.startswith(f"{kind}.")}
    assert isinstance(parts.database, Database)
    rows = parts.database.read.execute("SELECT key FROM records WHERE kind = ?", (kind,))
    return {key for (key,) in rows}


@pytest.mark.threat("DC-14")
def test_unused_registrations_and_abandoned_requests_leave_the_file_and_used_ones_stay(
    parts: Vademecum, host: Host, clock: Clock
) -> None:
    host.connect()
    used = host.client_id
    host.register()
    host.http.get(host.authorization_url())
    assert len(stored(parts, "pending")) == 1
    assert stored(parts, "client") == {used, host.client_id}

    clock.advance(minutes=11)
    wait_until_gone(parts, host.http, "pending", 0)
    assert stored(parts, "client") == {used, host.client_id}
    clock.advance(days=91)
    wait_until_gone(parts, host.http, "client", 1)
    assert stored(parts, "client") == {used}


def wait_until_gone(parts: Vademecum, http: TestClient, kind: str, left: int) -> None:
    """Requests go on meanwhile; the sweep is in nobody's way."""
    for _ in range(2000):
        assert http.get("/health/live").status_code == 200
        if len(stored(parts, kind)) == left:
            return
    raise AssertionError(f"{kind} is still there: {stored(parts, kind)}")
