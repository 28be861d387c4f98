"""kill -9 at every write: what was answered holds, and what was not can be asked again."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial
from threading import Lock

import httpx2
import pytest

from tests.crash.conftest import Client, assert_invalid_grant, count, rows, turn_clock
from tests.processes import Server

MOMENTS = pytest.mark.parametrize("when", ["before", "after"])
MORE_THAN_ENOUGH = 8


def ask_while_dying(server: Server, trap: str, ask: Callable[[], httpx2.Response]) -> httpx2.Response | None:
    """Sets the trap and asks; None when the server died instead of answering, and then it runs again."""
    file = server.state_dir / "trap"
    file.write_text(trap)
    try:
        return ask()
    except httpx2.TransportError:
        assert server.process is not None
        assert server.process.wait(timeout=20) == -9
    finally:
        file.unlink()
    server.start()
    assert rows(server.state_dir, "PRAGMA integrity_check") == [("ok",)]
    return None


@MOMENTS
@pytest.mark.threat("CR-04")
def test_a_redemption_survives_death_at_each_of_its_writes(client: Client, when: str) -> None:
    answers = []
    for number in range(1, MORE_THAN_ENOUGH):
        code = client.code()
        answer = ask_while_dying(client.server, f"{when}:{number}", partial(client.redeem, code))
        if answer is not None:
            assert answer.status_code == 200
            break
        again = client.redeem(code)
        answers.append(again.status_code)
        if again.status_code == 200:
            # Nothing was spent before: this is the only login there is.
            tokens = again.json()
            assert count(client.server.state_dir, "grant") == 1
            assert client.is_alive(tokens["access_token"])
            assert client.refresh(tokens["refresh_token"]).status_code == 200
            assert client.revoke(tokens["refresh_token"]).status_code == 200
        else:
            # It was spent, and the answer is lost: whoever had it has nothing now.
            assert_invalid_grant(again)
        assert count(client.server.state_dir, "grant") == 0
    else:
        raise AssertionError("the redemption never ends")
    assert answers, "the redemption wrote nothing"


@MOMENTS
@pytest.mark.threat("RF-12")
def test_a_refresh_survives_death_at_each_of_its_writes(client: Client, when: str) -> None:
    held = client.connect()["refresh_token"]
    for number in range(1, MORE_THAN_ENOUGH):
        answer = ask_while_dying(client.server, f"{when}:{number}", partial(client.refresh, held))
        if answer is not None:
            assert answer.status_code == 200
            break
        again, once_more = client.refresh(held), client.refresh(held)
        assert (again.status_code, once_more.status_code) == (200, 200)
        assert again.json()["refresh_token"] == once_more.json()["refresh_token"] != held
        assert again.json()["access_token"] != once_more.json()["access_token"]
        assert client.is_alive(again.json()["access_token"])
        held = again.json()["refresh_token"]
    else:
        raise AssertionError("the refresh never ends")
    assert number > 1, "the refresh wrote nothing"
    assert client.refresh(answer.json()["refresh_token"]).status_code == 200
    assert count(client.server.state_dir, "grant") == 1


@MOMENTS
@pytest.mark.threat("RF-02")
@pytest.mark.threat("RV-01")
def test_an_end_that_died_is_an_end_when_it_is_asked_for_again(client: Client, when: str) -> None:
    first = client.connect()
    second = client.refresh(first["refresh_token"]).json()
    third = client.refresh(second["refresh_token"]).json()
    assert ask_while_dying(client.server, f"{when}:1", lambda: client.refresh(first["refresh_token"])) is None
    assert_invalid_grant(client.refresh(first["refresh_token"]))
    assert_invalid_grant(client.refresh(third["refresh_token"]))
    assert not client.is_alive(third["access_token"])

    tokens = client.connect()
    assert ask_while_dying(client.server, f"{when}:1", lambda: client.revoke(tokens["refresh_token"])) is None
    assert client.revoke(tokens["refresh_token"]).status_code == 200
    assert_invalid_grant(client.refresh(tokens["refresh_token"]))
    assert not client.is_alive(tokens["access_token"])


@pytest.mark.threat("RF-11")
@pytest.mark.parametrize("successor", ["used", "unused for longer than the replay window"])
def test_reuse_is_known_after_a_restart(client: Client, server: Server, successor: str) -> None:
    first = client.connect()
    newest = client.refresh(first["refresh_token"]).json()
    if successor == "used":
        newest = client.refresh(newest["refresh_token"]).json()
    else:
        turn_clock(server.state_dir, seconds=61)
    server.kill()
    server.start()
    assert client.is_alive(newest["access_token"])
    assert_invalid_grant(client.refresh(first["refresh_token"]))
    assert not client.is_alive(newest["access_token"])
    assert_invalid_grant(client.refresh(newest["refresh_token"]))
    assert "refresh_token.reused" in server.log_file.read_text()


SAVES = 50


def test_every_save_that_was_acknowledged_is_there_after_kill_9(client: Client, server: Server) -> None:
    access_token = client.connect()["access_token"]
    acknowledged: dict[str, str] = {}
    lock = Lock()

    def save(number: int) -> None:
        content = f"memory number {number}"
        try:
            item = client.call(access_token, "save_context", content=content)["structuredContent"]["item"]
        except httpx2.TransportError:
            return
        with lock:
            acknowledged[item["id"]] = content
            if len(acknowledged) == SAVES // 3 and server.process is not None:
                server.process.kill()

    with ThreadPoolExecutor(8) as pool:
        list(pool.map(save, range(SAVES)))
    assert SAVES // 3 <= len(acknowledged) < SAVES
    server.kill()
    server.start()
    for memory_id, content in acknowledged.items():
        fetched = client.call(access_token, "fetch_context", id=memory_id)["structuredContent"]
        assert fetched["item"]["content"] == content
    found = client.call(access_token, "search_context", query="memory number", limit=50)
    assert {match["id"] for match in found["structuredContent"]["matches"]} >= set(acknowledged)
