"""Another process holds the write lock, or the store is broken: nothing is lost, and nothing is told."""

import sqlite3
from collections.abc import Callable, Iterator
from concurrent.futures import Future, ThreadPoolExecutor, wait
from contextlib import closing, contextmanager
from pathlib import Path

import httpx2
import pytest

from tests.crash.conftest import Client, client_of, mortal_server, serving
from tests.processes import Browser, Server

PATIENCE = 0.3
"""Seconds in which a request that nothing holds up would have been answered many times over."""


@contextmanager
def write_lock(state_dir: Path) -> Iterator[None]:
    with closing(sqlite3.connect(state_dir / "vademecum.db", isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        yield
        other.execute("ROLLBACK")


def save(client: Client, access_token: str, content: str) -> httpx2.Response:
    arguments = {"content": content}
    return client.mcp(access_token, "tools/call", name="save_context", arguments=arguments)


@pytest.mark.threat("CR-06")
def test_a_write_waits_for_another_process_and_succeeds(client: Client, server: Server) -> None:
    code, tokens = client.code(), client.connect()
    asked: list[Callable[[], httpx2.Response]] = [
        lambda: client.redeem(code),
        lambda: client.refresh(tokens["refresh_token"]),
        lambda: save(client, tokens["access_token"], "patience"),
    ]
    with ThreadPoolExecutor() as pool:
        with write_lock(server.state_dir):
            answers: list[Future[httpx2.Response]] = [pool.submit(ask) for ask in asked]
            assert not wait(answers, timeout=PATIENCE).done
        redeemed, refreshed, saved = (answer.result() for answer in answers)
    assert {answer.status_code for answer in (redeemed, refreshed, saved)} == {200}
    assert not saved.json()["result"].get("isError")
    assert client.is_alive(redeemed.json()["access_token"]) and client.is_alive(
        refreshed.json()["access_token"]
    )


@pytest.mark.threat("CR-06")
@pytest.mark.threat("LG-02")
def test_a_write_that_waited_too_long_is_503_and_can_be_asked_again(state_dir: Path) -> None:
    server = mortal_server(state_dir, TEST_BUSY_MS="50")
    with serving(server), client_of(server) as client, Browser(server.url) as browser:
        code, tokens, ended = client.code(browser), client.connect(), client.connect()
        registration = {"redirect_uris": ["https://app.example/cb"]}
        with write_lock(state_dir):
            refused = [
                client.redeem(code),
                client.refresh(tokens["refresh_token"]),
                client.revoke(ended["refresh_token"]),
                client.post("/register", json=registration),
            ]
            saved = save(client, tokens["access_token"], "patience").json()["result"]
            page = browser.client.get(client.authorization_url())
            assert client.is_alive(tokens["access_token"])
            assert client.get("/health/ready").status_code == 200
        for answer in refused:
            assert (answer.status_code, answer.json()["error"]) == (503, "temporarily_unavailable")
            assert int(answer.headers["retry-after"]) > 0
            assert answer.headers["cache-control"] == "no-store"
        assert saved["isError"] is True and '"unavailable"' in saved["content"][0]["text"]
        assert page.status_code == 503 and "text/html" in page.headers["content-type"]
        assert int(page.headers["retry-after"]) > 0

        assert client.redeem(code).status_code == 200
        assert client.refresh(tokens["refresh_token"]).status_code == 200
        assert client.revoke(ended["refresh_token"]).status_code == 200
        assert client.post("/register", json=registration).status_code == 201
        assert not save(client, tokens["access_token"], "patience").json()["result"].get("isError")
        assert "Traceback" not in server.log_file.read_text()


@pytest.mark.threat("LG-02")
def test_a_broken_store_is_an_error_that_tells_nothing(client: Client, server: Server) -> None:
    with Browser(server.url) as browser:
        code, tokens = client.code(browser), client.connect()
        unseen = client.refresh(tokens["refresh_token"]).json()
        with closing(sqlite3.connect(server.state_dir / "vademecum.db", isolation_level=None)) as other:
            for table in ("records", "memories"):
                other.execute(f"ALTER TABLE {table} RENAME TO {table}_that_was")
        answers = [
            client.redeem(code),
            client.refresh(unseen["refresh_token"]),
            client.revoke(unseen["refresh_token"]),
            client.post("/register", json={"redirect_uris": ["https://app.example/cb"]}),
            client.mcp(unseen["access_token"], "ping"),
            browser.client.get(client.authorization_url()),
            browser.client.get(f"{server.url}/memories/x"),
        ]
        cookie = browser.client.cookies["vademecum"]
    secrets = [
        code,
        cookie,
        *(each[name] for each in (tokens, unseen) for name in ("access_token", "refresh_token")),
    ]
    for answer in answers:
        assert answer.status_code in (500, 503), (answer.url, answer.text)
        assert not [
            word for word in ("Traceback", "sqlite", "SELECT", "no such table") if word in answer.text
        ]
        assert not [secret for secret in secrets if secret in answer.text]
        assert answer.headers["cache-control"] == "no-store"
    assert all("error" in answer.json() for answer in answers[:5])
    log = server.log_file.read_text()
    assert "no such table" in log
    assert not [secret for secret in secrets if secret in log]
