"""The guard's order of checks, and what each refusal tells the client."""

import json
from typing import Any

import pytest
from starlette.applications import Starlette
from starlette.responses import JSONResponse
from starlette.routing import Route
from starlette.testclient import TestClient
from starlette.types import Receive, Scope, Send

from connector.access import Principal
from connector.guard import MAX_BODY_BYTES, Challenge, Guard
from oauth.errors import InvalidToken

METADATA = "https://memory.example.org/.well-known/oauth-protected-resource/mcp"
READ = frozenset({"memory:read"})
CALL_SAVE = {"jsonrpc": "2.0", "id": 1, "method": "tools/call", "params": {"name": "save_context"}}


class FakeAccess:
    """Knows two tokens."""

    async def authenticate(self, token: str) -> Principal:
        if token not in ("good", "openai"):
            raise InvalidToken("unknown")
        return Principal("owner", "app", "Host", READ, None, token == "openai")


async def endpoint(scope: Scope, receive: Receive, send: Send) -> None:
    """Stands where the SDK does: tells who came through and what it can still read."""
    body = b""
    while (message := await receive())["type"] == "http.request":
        body += message["body"]
        if not message["more_body"]:
            break
    answer = {"owner": scope["state"]["principal"].owner, "bytes": len(body)}
    await JSONResponse(answer)(scope, receive, send)


@pytest.fixture
def http() -> TestClient:
    guard = Guard(
        endpoint=endpoint,
        access=FakeAccess(),
        challenge=Challenge(METADATA, ("memory:read", "memory:write")),
        origins=("https://memory.example.org", "https://claude.ai"),
        scopes_of=lambda name: frozenset({"memory:write"}) if name == "save_context" else None,
    )
    return TestClient(Starlette(routes=[Route("/mcp", guard)]), base_url="https://memory.example.org")


def post(http: TestClient, token: str | None = "good", json_body: Any = None, **headers: str) -> Any:
    named = {name.replace("_", "-"): value for name, value in headers.items()}
    if token is not None:
        named["Authorization"] = f"Bearer {token}"
    return http.post("/mcp", json={"method": "ping"} if json_body is None else json_body, headers=named)


@pytest.mark.threat("BR-01")
@pytest.mark.parametrize("method", ["GET", "POST", "PUT", "PATCH", "DELETE", "HEAD"])
def test_without_a_token_every_method_is_challenged_without_an_error(http: TestClient, method: str) -> None:
    response = http.request(method, "/mcp")
    assert response.status_code == 401
    assert response.headers["www-authenticate"] == (
        f'Bearer scope="memory:read memory:write", resource_metadata="{METADATA}"'
    )
    assert response.headers["cache-control"] == "no-store"


@pytest.mark.threat("BR-03")
def test_a_dead_token_is_told_from_a_missing_one(http: TestClient) -> None:
    response = post(http, token="dead")
    assert response.status_code == 401
    assert 'error="invalid_token"' in response.headers["www-authenticate"]
    assert METADATA in response.headers["www-authenticate"]


@pytest.mark.threat("BR-04")
@pytest.mark.parametrize(
    ("value", "status"),
    [
        ("bearer good", 200),
        ("BEARER good", 200),
        ("Bearer", 401),
        ("Bearer good good", 401),
        ('Bearer "good"', 401),
        ("Basic good", 401),
        ("good", 401),
        ("", 401),
    ],
)
def test_only_a_bearer_token_counts(http: TestClient, value: str, status: int) -> None:
    headers = {"Authorization": value}
    assert http.post("/mcp", json={"method": "ping"}, headers=headers).status_code == status


@pytest.mark.threat("BR-05")
@pytest.mark.parametrize("values", [("Bearer good", "Bearer bad"), ("Bearer bad", "Bearer good")])
def test_two_authorization_headers_are_refused(http: TestClient, values: tuple[str, str]) -> None:
    headers = [("Authorization", value) for value in values]
    assert http.post("/mcp", json={}, headers=headers).status_code == 400


@pytest.mark.threat("BR-02")
def test_a_token_anywhere_else_is_no_token(http: TestClient) -> None:
    elsewhere = {
        "X-Authorization": "Bearer good",
        "Proxy-Authorization": "Bearer good",
        "Cookie": "token=good",
    }
    response = http.post("/mcp?access_token=good", data={"access_token": "good"}, headers=elsewhere)
    assert response.status_code == 401
    assert "error=" not in response.headers["www-authenticate"]


@pytest.mark.threat("CO-01")
@pytest.mark.parametrize(
    "origin",
    [
        "https://evil.example",
        "null",
        "file://",
        "https://claude.ai.evil.example",
        "http://127.0.0.1:1.evil.example",
    ],
)
def test_a_foreign_origin_is_forbidden_even_with_a_good_token(http: TestClient, origin: str) -> None:
    response = post(http, Origin=origin)
    assert response.status_code == 403
    assert "access-control-allow-origin" not in response.headers


@pytest.mark.threat("CO-03")
@pytest.mark.parametrize(
    "origin", ["https://claude.ai", "https://memory.example.org", "http://localhost:6274"]
)
def test_an_allowed_origin_may_read_even_the_refusal(http: TestClient, origin: str) -> None:
    for token, status in (("good", 200), (None, 401)):
        response = post(http, token=token, Origin=origin)
        assert response.status_code == status
        assert response.headers["access-control-allow-origin"] == origin
        assert response.headers["access-control-expose-headers"] == "WWW-Authenticate"
        assert "access-control-allow-credentials" not in response.headers


def test_a_preflight_is_answered_before_the_token(http: TestClient) -> None:
    asked = {"Origin": "http://localhost:6274", "Access-Control-Request-Method": "POST"}
    response = http.options("/mcp", headers=asked)
    assert response.status_code == 204
    for header in ("Authorization", "MCP-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Session-Id"):
        assert header in response.headers["access-control-allow-headers"]
    assert http.options("/mcp", headers=asked | {"Origin": "https://evil.example"}).status_code == 403


def test_other_methods_are_told_to_post(http: TestClient) -> None:
    response = http.get("/mcp", headers={"Authorization": "Bearer good"})
    assert (response.status_code, response.headers["allow"]) == (405, "POST")


@pytest.mark.threat("CO-05")
@pytest.mark.parametrize(
    "content_type", ["text/plain", "application/x-www-form-urlencoded", "multipart/form-data", ""]
)
def test_a_simple_cross_site_post_is_no_message(http: TestClient, content_type: str) -> None:
    headers = {"Authorization": "Bearer good", "Content-Type": content_type}
    assert http.post("/mcp", content=b"{}", headers=headers).status_code == 415


@pytest.mark.threat("DS-01")
def test_a_body_over_the_limit_is_refused_whether_announced_or_not(http: TestClient) -> None:
    headers = {"Authorization": "Bearer good", "Content-Type": "application/json"}
    large = b" " * (MAX_BODY_BYTES + 1)
    assert http.post("/mcp", content=large, headers=headers).status_code == 413
    assert http.post("/mcp", content=iter([large]), headers=headers).status_code == 413


@pytest.mark.threat("DS-02")
@pytest.mark.parametrize(
    "body",
    [b"[" * 100_000, b'{"a":' * 100_000, b"[{}]", b'{"method":NaN}', b"{", b"\xff\xfe", b"", b"null"],
    ids=["lists", "objects", "batch", "NaN", "cut", "not UTF-8", "empty", "null"],
)
def test_what_is_not_one_json_message_is_a_bad_request(http: TestClient, body: bytes) -> None:
    headers = {"Authorization": "Bearer good", "Content-Type": "application/json"}
    assert http.post("/mcp", content=body, headers=headers).status_code == 400


@pytest.mark.threat("BR-07")
def test_a_missing_scope_is_a_challenge_that_names_it(http: TestClient) -> None:
    response = post(http, json_body=CALL_SAVE)
    assert response.status_code == 403
    challenge = response.headers["www-authenticate"]
    assert 'error="insufficient_scope"' in challenge and 'scope="memory:write"' in challenge
    assert METADATA in challenge


def test_newer_clients_name_the_operation_in_headers(http: TestClient) -> None:
    headers = {"MCP_Protocol_Version": "2026-07-28", "Mcp_Method": "tools/call", "Mcp_Name": "save_context"}
    assert post(http, **headers).status_code == 403
    assert post(http, **headers | {"Mcp_Name": "search_context"}).status_code == 200


def test_openai_s_hosts_are_answered_by_the_tool(http: TestClient) -> None:
    assert post(http, token="openai", json_body=CALL_SAVE).status_code == 200


def test_the_endpoint_reads_the_whole_body_again(http: TestClient) -> None:
    body = {"method": "ping", "padding": "x" * 200_000}
    response = post(http, json_body=body)
    assert response.json() == {"owner": "owner", "bytes": len(json.dumps(body, separators=(",", ":")))}
