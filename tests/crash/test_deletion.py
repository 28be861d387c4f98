"""An account that is deleted: at once for everybody, to the end whatever dies, and for good."""

import json
import shutil
import sqlite3
import time
from contextlib import closing
from pathlib import Path

import httpx2
import pytest

from tests.crash.conftest import Client, assert_invalid_grant, rows
from tests.processes import PASSPHRASE, Browser, Server

MEMORIES = 700
WORD = "zanzibarquux"
LONG_ENOUGH = 60
OWNED = """SELECT name FROM sqlite_master WHERE type = 'table'
           AND (name = 'owners' OR 'owner' IN (SELECT name FROM pragma_table_info(sqlite_master.name)))"""
"""Every table whose rows are somebody's, those included that come later."""


def fill(server: Server, tmp_path: Path) -> None:
    lines = [json.dumps({"content": f"{WORD} number {number}"}) for number in range(MEMORIES)]
    (tmp_path / "memories.jsonl").write_text("\n".join(lines))
    server.run("import", str(tmp_path / "memories.jsonl"))


def confirm(browser: Browser, server: Server) -> httpx2.Response:
    """Signs in, reads what will go, and types the name of the server."""
    page = browser.client.get(f"{server.url}/account/delete", follow_redirects=True)
    page = browser.submit(page, {"passphrase": PASSPHRASE})
    page = browser.client.get(server.url + page.headers["location"])
    assert f"{MEMORIES} memories" in page.text
    return browser.submit(page, {"confirmation": server.url.removeprefix("http://")})


def memories(state_dir: Path) -> int:
    return int(rows(state_dir, "SELECT count(*) FROM memories")[0][0])


def wait_until_erased(state_dir: Path) -> None:
    deadline = time.monotonic() + LONG_ENOUGH
    while rows(state_dir, "SELECT count(*) FROM owners") != [(0,)]:
        assert time.monotonic() < deadline
        time.sleep(0.05)


def put_back(copy: Path, database: Path) -> None:
    for file in database.parent.glob(f"{database.name}*"):
        file.unlink()
    shutil.copy(copy, database)


@pytest.mark.threat("AD-01")
@pytest.mark.parametrize("step", [1, 3])
def test_a_deletion_survives_death_and_a_restored_backup(
    client: Client, server: Server, tmp_path: Path, step: int
) -> None:
    state_dir, database = server.state_dir, server.state_dir / "vademecum.db"
    fill(server, tmp_path)
    tokens = client.connect()
    personal = server.run("tokens", "add", "--scope", "memory:read").strip()
    with closing(sqlite3.connect(database)) as source, closing(sqlite3.connect(tmp_path / "old.db")) as copy:
        source.backup(copy)

    (state_dir / "erase-trap").write_text(str(step))
    with Browser(server.url) as browser:
        deleted = confirm(browser, server)
        assert deleted.status_code == 200 and "Your account is deleted" in deleted.text
        assert server.process is not None and server.process.wait(timeout=20) == -9
        assert 0 < memories(state_dir) <= MEMORIES

        (state_dir / "erase-trap").unlink()
        server.start()
        assert_gone(client, browser, tokens["refresh_token"], [tokens["access_token"], personal])
        wait_until_erased(state_dir)
        server.stop()
        for (table,) in rows(state_dir, OWNED):
            assert rows(state_dir, f"SELECT count(*) FROM {table}") == [(0,)], table  # noqa: S608
        assert rows(state_dir, "SELECT * FROM record_fields WHERE field IN ('owner', 'subject')") == []
        for file in (*state_dir.glob("vademecum.db*"), server.log_file):
            assert WORD.encode() not in file.read_bytes(), file.name

        put_back(tmp_path / "old.db", database)
        assert memories(state_dir) == MEMORIES
        server.start()
        assert_gone(client, browser, tokens["refresh_token"], [tokens["access_token"], personal])
        wait_until_erased(state_dir)
        assert memories(state_dir) == 0


def assert_gone(client: Client, browser: Browser, refresh_token: str, access_tokens: list[str]) -> None:
    assert not any(client.is_alive(token) for token in access_tokens)
    assert_invalid_grant(client.refresh(refresh_token))
    assert "Signed in" not in browser.client.get(f"{client.server.url}/").text
    assert client.server.run("owner", "list", "--json").strip() == "[]"
