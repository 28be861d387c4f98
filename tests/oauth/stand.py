"""A stand for the authorization server: records in memory, a clock to turn, a client that does the flow."""

import json
import time
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from threading import Lock
from typing import Any
from urllib.parse import parse_qsl, urlencode, urlsplit

import httpx2
from starlette.applications import Starlette
from starlette.testclient import TestClient

from oauth import authorize, grants
from oauth.records import Value
from oauth.routes import routes
from oauth.server import AuthorizationServer, Scopes

ISSUER = "https://memory.example.org"
RESOURCE = ISSUER + "/mcp"
REDIRECT_URI = "https://client.example/callback"
VERIFIER = "dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"
CHALLENGE = "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"
SUBJECT = "owner-1"
STATE_KEY = bytes(range(32))
START = datetime(2026, 12, 1, 12, tzinfo=UTC)
SCOPES = Scopes(
    supported=("memory:read", "memory:write", "memory:maintain", "memory:export", "memory:delete"),
    default=("memory:read", "memory:write"),
)
DEFAULT = frozenset(SCOPES.default)


class Clock:
    """Stands still until it is moved."""

    def __init__(self) -> None:
        self.time = START
        self.seconds = 0.0

    def __call__(self) -> datetime:
        return self.time

    def advance(self, **duration: float) -> None:
        self.time += timedelta(**duration)
        self.seconds += max(0.0, timedelta(**duration).total_seconds())

    def monotonic(self) -> float:
        """The other clock, which is never set back."""
        return self.seconds


class MemoryRecords:
    """`Records` in a dictionary; values go in and out as JSON, so nothing is shared by reference."""

    def __init__(self, now: Clock) -> None:
        self._now = now
        self._lock = Lock()
        self._records: dict[tuple[str, str], tuple[str, datetime]] = {}
        self.writes = 0

    def get(self, kind: str, key: str) -> Value | None:
        with self._lock:
            return self._get(kind, key)

    def create(self, kind: str, key: str, value: Value, expires_at: datetime) -> bool:
        with self._lock:
            if self._get(kind, key) is not None:
                return False
            self._put(kind, key, value, expires_at)
            return True

    def take(self, kind: str, key: str) -> Value | None:
        with self._lock:
            value = self._get(kind, key)
            self._records.pop((kind, key), None)
            return value

    def swap(self, kind: str, key: str, old: Value, new: Value, expires_at: datetime) -> bool:
        with self._lock:
            if self._get(kind, key) != old:
                return False
            self._put(kind, key, new, expires_at)
            return True

    def select(self, kind: str, field: str, equals: str) -> list[Value]:
        with self._lock:
            values = [self._get(*name) for name in self._records if name[0] == kind]
            return [value for value in values if value is not None and value.get(field) == equals]

    def delete(self, kind: str, key: str) -> None:
        with self._lock:
            self._records.pop((kind, key), None)

    def dump(self) -> dict[tuple[str, str], tuple[str, datetime]]:
        """Everything that is stored, as text."""
        with self._lock:
            return dict(self._records)

    def restore(self, dump: dict[tuple[str, str], tuple[str, datetime]]) -> None:
        """Puts a backup back."""
        with self._lock:
            self._records = dict(dump)

    def _get(self, kind: str, key: str) -> Value | None:
        text, expires_at = self._records.get((kind, key), ("", START - timedelta(days=9999)))
        value: Value | None = json.loads(text) if expires_at > self._now() else None
        return value

    def _put(self, kind: str, key: str, value: Value, expires_at: datetime) -> None:
        self._records[kind, key] = (json.dumps(value), expires_at)
        self.writes += 1


def make_server(records: MemoryRecords, clock: Clock, **values: Any) -> AuthorizationServer:
    """A server as one process has it; several may share records."""
    usual: dict[str, Any] = {"issuer": ISSUER, "resource": RESOURCE, "scopes": SCOPES, "state_key": STATE_KEY}
    return AuthorizationServer(records=records, now=clock, **(usual | values))


def make_http(server: AuthorizationServer, monotonic: Callable[[], float] = time.monotonic) -> TestClient:
    """The endpoints, in process."""
    return TestClient(Starlette(routes=routes(server, monotonic)), base_url=ISSUER)


def query(url: str) -> dict[str, str]:
    """The parameters of a redirect; each exactly once."""
    pairs = parse_qsl(urlsplit(url).query, keep_blank_values=True, strict_parsing=True)
    assert len({name for name, _ in pairs}) == len(pairs)
    return dict(pairs)


@dataclass
class Host:
    """An OAuth client that does everything right unless a test says otherwise."""

    server: AuthorizationServer
    http: TestClient
    client_id: str = ""
    client_secret: str | None = None

    def register(self, **members: Any) -> httpx2.Response:
        """Registers; members replace or (None) remove the usual ones."""
        body = {"client_name": "Test host", "redirect_uris": [REDIRECT_URI]} | members
        response = self.http.post(
            "/register", json={name: value for name, value in body.items() if value is not None}
        )
        if response.status_code == 201:
            self.client_id = response.json()["client_id"]
            self.client_secret = response.json().get("client_secret")
        return response

    def params(self, **changes: str | None) -> list[tuple[str, str]]:
        """An authorization request; changes replace or (None) remove parameters."""
        usual: dict[str, str | None] = {
            "response_type": "code",
            "client_id": self.client_id,
            "redirect_uri": REDIRECT_URI,
            "code_challenge": CHALLENGE,
            "code_challenge_method": "S256",
            "state": "s+t/a=t&e",
            "scope": "memory:read memory:write",
            "resource": RESOURCE,
        }
        return [(name, value) for name, value in (usual | changes).items() if value is not None]

    def code(self, scopes: frozenset[str] = DEFAULT, subject: str = SUBJECT, **changes: str | None) -> str:
        """Asks, and the owner consents."""
        params = self.params(**changes)
        client, redirect_uri = authorize.identify(self.server, params)
        request = authorize.validate(self.server, client, redirect_uri, params)
        return grants.issue_code(self.server, request, client, subject, scopes, None)

    def token(self, **params: str | None) -> httpx2.Response:
        """`POST /token`, with the client's id unless a test replaces or (None) removes it."""
        usual: dict[str, str | None] = {"client_id": self.client_id, "client_secret": self.client_secret}
        form = [(name, value) for name, value in (usual | params).items() if value is not None]
        return self.post("/token", form)

    def redeem(self, code: str = "", /, **changes: str | None) -> httpx2.Response:
        """Exchanges a code."""
        usual: dict[str, str | None] = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": REDIRECT_URI,
            "code_verifier": VERIFIER,
            "resource": RESOURCE,
        }
        return self.token(**(usual | changes))

    def refresh(self, refresh_token: str, /, **changes: str | None) -> httpx2.Response:
        """Refreshes."""
        return self.token(**{"grant_type": "refresh_token", "refresh_token": refresh_token, **changes})

    def revoke(self, token: str, **changes: str | None) -> httpx2.Response:
        """`POST /revoke`."""
        usual: dict[str, str | None] = {"client_id": self.client_id, "client_secret": self.client_secret}
        form = usual | {"token": token} | changes
        return self.post("/revoke", [(name, value) for name, value in form.items() if value is not None])

    def connect(self, scopes: frozenset[str] = DEFAULT) -> dict[str, Any]:
        """Registers if need be, and comes back with tokens."""
        if not self.client_id:
            self.register()
        response = self.redeem(self.code(scopes))
        assert response.status_code == 200, response.text
        tokens: dict[str, Any] = response.json()
        return tokens

    def post(self, path: str, form: list[tuple[str, str]], **headers: str) -> httpx2.Response:
        """A form, repeats included."""
        content_type = {"Content-Type": "application/x-www-form-urlencoded"}
        return self.http.post(path, content=urlencode(form), headers=content_type | headers)


def error(response: httpx2.Response) -> tuple[int, str]:
    """Status and code of a refusal, which must be a proper one (RFC 6749 §5.2)."""
    body = response.json()
    assert response.headers["content-type"] == "application/json"
    assert response.headers["cache-control"] == "no-store"
    assert body.keys() <= {"error", "error_description"}
    return response.status_code, body["error"]
