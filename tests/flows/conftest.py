"""A whole installation in process: real stores, real pages, real OAuth, a clock the test turns."""

import base64
import hashlib
import secrets
from collections.abc import Iterator
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from pathlib import Path
from typing import Any, Literal
from urllib.parse import parse_qs, urlencode, urlsplit

import pytest
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from connector.identity.setup import set_passphrase
from connector.settings import Settings
from tests.engines import FIRESTORE_PROJECT
from tests.oauth.web import Web
from tests.processes import PASSPHRASE, Browser

PUBLIC_URL = "http://127.0.0.1:8788"
REDIRECT_URI = "http://127.0.0.1:33418/callback"


class Clock:
    """The time, as the test sets it."""

    def __init__(self) -> None:
        self.time = datetime(2026, 3, 1, 12, tzinfo=UTC)
        self.seconds = 0.0

    def __call__(self) -> datetime:
        return self.time

    def advance(self, **delta: float) -> None:
        self.time += timedelta(**delta)
        self.seconds += timedelta(**delta).total_seconds()

    def monotonic(self) -> float:
        """The other clock, by which rates are counted."""
        return self.seconds


@pytest.fixture
def clock() -> Clock:
    return Clock()


@pytest.fixture
def web() -> Web:
    """Other people's hosts, which this installation cannot reach until a test publishes."""
    return Web()


@pytest.fixture(params=["sqlite", "firestore"])
def store(request: pytest.FixtureRequest) -> Literal["sqlite", "firestore"]:
    """The engine; a test about one of them names it with `parametrize("store", [...], indirect=True)`."""
    if request.param == "firestore":
        request.getfixturevalue("firestore")
    chosen: Literal["sqlite", "firestore"] = request.param
    return chosen


@pytest.fixture
def settings(tmp_path: Path, store: Literal["sqlite", "firestore"]) -> Settings:
    return Settings(
        state_dir=tmp_path,
        embedder="none",
        public_url=PUBLIC_URL,
        store=store,
        firestore_project=FIRESTORE_PROJECT,
    )


@pytest.fixture
def parts(settings: Settings, clock: Clock, web: Web) -> Iterator[Vademecum]:
    parts = Vademecum(settings, clock, clock.monotonic, web.fetcher())
    set_passphrase(parts.passphrases, None, PASSPHRASE)
    yield parts
    parts.database.close()


@pytest.fixture
def http(parts: Vademecum) -> Iterator[TestClient]:
    with TestClient(create_app(parts), base_url=PUBLIC_URL, follow_redirects=False) as client:
        yield client


@dataclass
class Host:
    """A client host by hand: it registers, sends the owner to the browser, keeps its tokens."""

    http: TestClient
    client_id: str = ""
    verifier: str = field(default_factory=lambda: secrets.token_urlsafe(48))

    def register(self, **metadata: Any) -> dict[str, Any]:
        body = {"redirect_uris": [REDIRECT_URI], "client_name": "Test host"} | metadata
        answer = self.http.post("/register", json=body)
        assert answer.status_code == 201, answer.text
        registered: dict[str, Any] = answer.json()
        self.client_id = registered["client_id"]
        return registered

    def authorization_url(self, **parameters: str) -> str:
        challenge = base64.urlsafe_b64encode(hashlib.sha256(self.verifier.encode()).digest()).decode()
        query = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "code_challenge": challenge.rstrip("="),
            "code_challenge_method": "S256",
            "state": "opaque-state",
            "resource": f"{PUBLIC_URL}/mcp",
        }
        return f"{PUBLIC_URL}/authorize?{urlencode(query | parameters)}"

    def authorize(self, decision: str = "allow", **parameters: str) -> dict[str, str]:
        """The parameters that the redirect URI is called with."""
        target = Browser(PUBLIC_URL, self.http).authorize(self.authorization_url(**parameters), decision)
        return {name: values[0] for name, values in parse_qs(urlsplit(target).query).items()}

    def token(self, **form: str) -> Any:
        return self.http.post("/token", data={"client_id": self.client_id} | form)

    def redeem(self, code: str) -> dict[str, Any]:
        answer = self.token(
            grant_type="authorization_code", code=code, redirect_uri=REDIRECT_URI, code_verifier=self.verifier
        )
        assert answer.status_code == 200, answer.text
        tokens: dict[str, Any] = answer.json()
        return tokens

    def connect(self, **parameters: str) -> dict[str, Any]:
        """Registration to tokens."""
        self.register()
        return self.redeem(self.authorize(**parameters)["code"])

    def mcp(self, access_token: str, method: str, **params: Any) -> Any:
        return self.http.post(
            "/mcp",
            json={"jsonrpc": "2.0", "id": 1, "method": method, "params": params},
            headers={
                "Authorization": f"Bearer {access_token}",
                "MCP-Protocol-Version": "2025-11-25",
                "Accept": "application/json, text/event-stream",
            },
        )

    def call(self, access_token: str, tool: str, **arguments: Any) -> dict[str, Any]:
        """A tool's result, as the client's model receives it."""
        answer = self.mcp(access_token, "tools/call", name=tool, arguments=arguments)
        assert answer.status_code == 200, answer.text
        result: dict[str, Any] = answer.json()["result"]
        return result


@pytest.fixture
def host(http: TestClient) -> Host:
    return Host(http)
