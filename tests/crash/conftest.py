"""Installations that die, are started again, run twice, and whose clock can be turned."""

import base64
import shutil
import sqlite3
import sys
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import closing, contextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx2
import pytest

from tests.processes import PASSPHRASE, Browser, Server, free_port

HERE = Path(__file__).parent
MORTAL = (sys.executable, str(HERE / "dying_server.py"))
ROOT = str(HERE.parents[1])
REDIRECT_URI = "http://127.0.0.1:33418/callback"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"


def mortal_server(state_dir: Path, port: int | None = None, **environment: str) -> Server:
    """A process of the installation in `state_dir`, not started yet."""
    port = port or free_port()
    return Server(state_dir, {"PYTHONPATH": ROOT, **environment}, port, MORTAL, log_name=f"{port}.log")


def turn_clock(state_dir: Path, **seconds: float) -> None:
    """Sets how far the clock of all the installation's processes is off, in one step."""
    draft = state_dir / "clock.draft"
    draft.write_text(str(seconds["seconds"]))
    draft.replace(state_dir / "clock")


def rows(state_dir: Path, query: str, *arguments: str) -> list[tuple[Any, ...]]:
    """What the database holds, as another process reads it."""
    with closing(sqlite3.connect(state_dir / "vademecum.db")) as connection:
        return connection.execute(query, arguments).fetchall()


def count(state_dir: Path, kind: str) -> int:
    """How many records of the kind there are."""
    return int(rows(state_dir, "SELECT count(*) FROM records WHERE kind = ?", kind)[0][0])


@dataclass
class Client:
    """A client of one installation, reached through any of its processes under their one public name."""

    server: Server
    public_url: str = ""
    client_id: str = ""
    client_secret: str | None = None
    http: httpx2.Client = field(default_factory=lambda: httpx2.Client(timeout=30))

    @property
    def _host(self) -> dict[str, str]:
        return {"Host": (self.public_url or self.server.url).removeprefix("http://")}

    def post(self, path: str, server: Server | None = None, **content: Any) -> httpx2.Response:
        headers = {**self._host, **content.pop("headers", {})}
        return self.http.post((server or self.server).url + path, headers=headers, **content)

    def get(self, path: str, server: Server | None = None, **headers: str) -> httpx2.Response:
        return self.http.get((server or self.server).url + path, headers={**self._host, **headers})

    def register(self, **metadata: Any) -> "Client":
        body = {"client_name": "Crash", "redirect_uris": [REDIRECT_URI]} | metadata
        answer = self.post("/register", json=body)
        assert answer.status_code == 201, answer.text
        self.client_id = answer.json()["client_id"]
        self.client_secret = answer.json().get("client_secret")
        return self

    def authorization_url(self) -> str:
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
        }
        return str(httpx2.URL(f"{self.server.url}/authorize", params=query))

    def code(self, browser: Browser | None = None) -> str:
        """A new consent."""
        if browser is None:
            with Browser(self.server.url) as browser:
                return self.code(browser)
        return str(httpx2.URL(browser.authorize(self.authorization_url())).params["code"])

    def token(self, server: Server | None = None, **form: str) -> httpx2.Response:
        headers = {}
        if self.client_secret is None:
            form["client_id"] = self.client_id
        else:
            pair = base64.b64encode(f"{self.client_id}:{self.client_secret}".encode()).decode()
            headers["Authorization"] = f"Basic {pair}"
        path = form.pop("path", "/token")
        return self.post(path, server, data=form, headers=headers)

    def redeem(self, code: str, server: Server | None = None) -> httpx2.Response:
        form = {"grant_type": "authorization_code", "code": code, "code_verifier": VERIFIER}
        return self.token(server, redirect_uri=REDIRECT_URI, **form)

    def connect(self) -> dict[str, Any]:
        """A new login's tokens."""
        answer = self.redeem(self.code())
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    def refresh(self, refresh_token: str, server: Server | None = None) -> httpx2.Response:
        return self.token(server, grant_type="refresh_token", refresh_token=refresh_token)

    def revoke(self, token: str, server: Server | None = None) -> httpx2.Response:
        return self.token(server, path="/revoke", token=token)

    def mcp(
        self, access_token: str, method: str, server: Server | None = None, **params: Any
    ) -> httpx2.Response:
        headers = {
            "Authorization": f"Bearer {access_token}",
            "MCP-Protocol-Version": "2025-11-25",
            "Accept": "application/json, text/event-stream",
        }
        body = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        return self.post("/mcp", server, json=body, headers=headers)

    def call(self, access_token: str, tool: str, **arguments: Any) -> dict[str, Any]:
        answer = self.mcp(access_token, "tools/call", name=tool, arguments=arguments)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result

    def is_alive(self, access_token: str, server: Server | None = None) -> bool:
        answer = self.mcp(access_token, "ping", server)
        assert answer.status_code in (200, 401), answer.text
        assert answer.status_code == 200 or 'error="invalid_token"' in answer.headers["www-authenticate"]
        return answer.status_code == 200


def assert_invalid_grant(answer: httpx2.Response) -> None:
    assert (answer.status_code, answer.json().get("error")) == (400, "invalid_grant")


@contextmanager
def serving(*servers: Server) -> Iterator[None]:
    """All of them, started side by side."""
    try:
        with ThreadPoolExecutor() as pool:
            list(pool.map(Server.start, servers))
        yield
    finally:
        for server in servers:
            server.stop()


@contextmanager
def client_of(server: Server) -> Iterator[Client]:
    """A registered public client."""
    with httpx2.Client(timeout=30) as http:
        yield Client(server, server.url, http=http).register()


@pytest.fixture(scope="session")
def installation(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory with an owner, to be copied."""
    state_dir = tmp_path_factory.mktemp("installation") / "state"
    mortal_server(state_dir).run("owner", "passphrase", stdin=PASSPHRASE + "\n")
    return state_dir


@pytest.fixture
def state_dir(installation: Path, tmp_path: Path) -> Path:
    """A new installation that has an owner."""
    return Path(shutil.copytree(installation, tmp_path / "state"))


@pytest.fixture
def server(state_dir: Path) -> Iterator[Server]:
    """A process that dies when told to."""
    server = mortal_server(state_dir)
    with serving(server):
        yield server


@pytest.fixture
def client(server: Server) -> Iterator[Client]:
    with client_of(server) as client:
        yield client
