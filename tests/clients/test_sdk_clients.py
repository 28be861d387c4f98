"""The main job with the official SDK clients and a real server: connect, consent, save, find, come back."""

import contextlib
import shutil
from collections.abc import Callable, Iterator
from pathlib import Path

import httpx2
import pytest

from tests.clients.host import PYTHON, TYPESCRIPT, Host
from tests.engines import require
from tests.processes import Server, running

HERE = Path(__file__).parent


@pytest.fixture(params=[pytest.param(PYTHON, id="python"), pytest.param(TYPESCRIPT, id="typescript")])
def command(request: pytest.FixtureRequest) -> tuple[str, ...]:
    if request.param is TYPESCRIPT:
        installed = (HERE / "typescript" / "node_modules" / "@modelcontextprotocol").exists()
        require(
            shutil.which("node") is not None and installed,
            "the TypeScript client tests need Node.js 20 or newer and `npm ci` in tests/clients/typescript",
        )
    chosen: tuple[str, ...] = request.param
    return chosen


@pytest.fixture
def connect(command: tuple[str, ...], tmp_path: Path) -> Iterator[Callable[[Server], Host]]:
    """Starts a host on the one state file and connects it; every host is gone at the end."""
    with contextlib.ExitStack() as stack:

        def connect(server: Server) -> Host:
            host = Host(command, server.url, tmp_path / "client.json")
            stack.callback(host.kill)
            assert host.do("connect")["name"] == "vademecum"
            return host

        yield connect


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    with running(Server(tmp_path / "state")) as started:
        yield started


@pytest.fixture
def short_lived(tmp_path: Path) -> Iterator[Server]:
    """A server whose access tokens live two seconds."""
    with running(Server(tmp_path / "state", {"VADEMECUM_ACCESS_TOKEN_LIFETIME": "2"})) as started:
        yield started


def wait_until_refused(server: Server, access_token: str) -> None:
    """Asks until the token is dead; the token's lifetime bounds the wait."""
    while (
        httpx2.post(f"{server.url}/mcp", headers={"Authorization": f"Bearer {access_token}"}).status_code
        != 401
    ):
        pass


def test_a_client_connects_saves_and_finds_again(connect: Callable[[Server], Host], server: Server) -> None:
    host = connect(server)
    names = {tool["name"] for tool in host.do("tools")}
    assert {"save_context", "search_context", "fetch_context", "memory_status"} <= names

    saved = host.call("save_context", content="The spare key hangs behind the pantry door", topic="house")
    found = host.call("search_context", query="where is the spare key")
    assert saved["write_status"] == "created"
    assert found["matches"][0]["id"] == saved["item"]["id"]
    fetched = host.call("fetch_context", id=saved["item"]["id"])
    assert fetched["item"]["content"] == "The spare key hangs behind the pantry door"
    assert host.authorizations == 1


def test_an_expired_token_is_refreshed_without_the_owner(
    connect: Callable[[Server], Host], short_lived: Server
) -> None:
    host = connect(short_lived)
    first = host.tokens()
    wait_until_refused(short_lived, first["access_token"])
    host.call("memory_status")
    assert host.tokens()["refresh_token"] != first["refresh_token"]
    assert host.authorizations == 1


def test_login_and_memories_survive_kill_9_of_server_and_client(
    connect: Callable[[Server], Host], server: Server
) -> None:
    host = connect(server)
    saved = host.call("save_context", content="Grandmother's recipe uses two spoons of lemon")
    host.kill()
    server.kill()
    server.start()

    again = connect(server)
    found = again.call("search_context", query="grandmother lemon recipe")
    assert found["matches"][0]["id"] == saved["item"]["id"]
    assert again.authorizations == 0


def test_a_server_killed_under_a_connected_client_is_the_same_login_after_restart(
    connect: Callable[[Server], Host], server: Server
) -> None:
    host = connect(server)
    saved = host.call("save_context", content="The meeting moved to Thursday at nine")
    server.kill()
    server.start()
    assert host.call("fetch_context", id=saved["item"]["id"])["item"]["content"].startswith(
        "The meeting moved"
    )
    assert host.authorizations == 1
