"""The main job with the official SDK clients and a real server: connect, consent, save, find, come back."""

import contextlib
import json
import shutil
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.engines import require
from tests.processes import Browser, Server, running

HERE = Path(__file__).parent
PYTHON = (sys.executable, str(HERE / "python_client.py"))
TYPESCRIPT = ("node", str(HERE / "typescript" / "client.mjs"))


class Host:
    """A client host in a process of its own, which keeps its registration and tokens in a file."""

    def __init__(self, command: tuple[str, ...], server: Server, state_file: Path) -> None:
        self.state_file = state_file
        self.authorizations = 0
        self._browser = Browser(server.url)
        self._process = subprocess.Popen(
            (*command, f"{server.url}/mcp", str(state_file)),
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            text=True,
        )

    def do(self, action: str, **parameters: Any) -> Any:
        """Sends one request; plays the owner's browser when the client asks for it."""
        self._say({"do": action, **parameters})
        while True:
            heard = self._hear()
            if "authorize" in heard:
                self.authorizations += 1
                self._say({"callback": self._browser.authorize(heard["authorize"])})
                continue
            assert "error" not in heard, heard["error"]
            return heard["ok"]

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        """Calls a tool and returns its structured answer."""
        result = self.do("call", name=tool, arguments=arguments)
        assert not result.get("isError"), result
        assert json.loads(result["content"][0]["text"]) == result["structuredContent"]
        answer: dict[str, Any] = result["structuredContent"]
        return answer

    def tokens(self) -> dict[str, Any]:
        tokens: dict[str, Any] = json.loads(self.state_file.read_text())["tokens"]
        return tokens

    def kill(self) -> None:
        """kill -9, and everything of this side released; once more does nothing."""
        self._process.kill()
        with self._process, self._browser:
            pass

    def _say(self, message: dict[str, Any]) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(json.dumps(message) + "\n")
        self._process.stdin.flush()

    def _hear(self) -> dict[str, Any]:
        assert self._process.stdout is not None
        line = self._process.stdout.readline()
        assert line, "the client host ended"
        heard: dict[str, Any] = json.loads(line)
        return heard


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
            host = Host(command, server, tmp_path / "client.json")
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
