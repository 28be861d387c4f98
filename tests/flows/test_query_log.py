"""Searches are kept whole only where the operator asks for it."""

from datetime import timedelta
from pathlib import Path

import pytest

from connector.app import Vademecum
from connector.settings import Settings
from tests.flows.conftest import PUBLIC_URL, Clock, Host


@pytest.fixture(params=[True, False], ids=["kept", "not kept"])
def settings(request: pytest.FixtureRequest, tmp_path: Path) -> Settings:
    return Settings(state_dir=tmp_path, embedder="none", public_url=PUBLIC_URL, query_log=request.param)


def test_a_search_is_kept_with_what_it_found(host: Host, parts: Vademecum, clock: Clock) -> None:
    token = host.connect()["access_token"]
    saved = host.call(token, "save_context", content="the gate code is 4711")["structuredContent"]["item"]
    host.call(token, "search_context", query="gate code")
    host.call(token, "search", query="gate " * 100)
    host.call(token, "search_context", query=" ")
    parts.activity.flush()
    kept = parts.queries.since(parts.owners.list()[0].id, clock() - timedelta(hours=1))
    expected = [("gate code", (saved["id"],)), ("gate " * 100, (saved["id"],))]
    assert [(each.query, each.found) for each in kept] == (expected if parts.settings.query_log else [])
