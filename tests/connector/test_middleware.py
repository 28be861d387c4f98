"""The outermost layer: foreign hosts are refused, every request is logged once and without secrets."""

import logging
from ipaddress import ip_network

import pytest
from starlette.applications import Starlette
from starlette.middleware import Middleware
from starlette.requests import Request
from starlette.responses import PlainTextResponse
from starlette.routing import Route
from starlette.testclient import TestClient

from connector.middleware import ClientAddress, HostCheck, RequestLog


async def _answer(request: Request) -> PlainTextResponse:
    return PlainTextResponse("ok")


def client(public_url: str) -> TestClient:
    app = Starlette(
        routes=[Route("/{path:path}", _answer)],
        middleware=[
            Middleware(RequestLog, paths=["/mcp", "/setup/{token}"]),
            Middleware(HostCheck, public_url=public_url),
        ],
    )
    return TestClient(app, base_url=public_url)


@pytest.mark.threat("CO-02")
@pytest.mark.parametrize(
    "host",
    [
        "evil.example",
        "memory.example.org.evil.example",
        "evil-memory.example.org",
        "memory.example.org:8443",
        "169.254.169.254",
        "127.0.0.1",
    ],
)
def test_a_foreign_host_is_misdirected(host: str) -> None:
    response = client("https://memory.example.org").get("/mcp", headers={"Host": host})
    assert response.status_code == 421
    assert host not in response.text.replace("https://memory.example.org", "")


@pytest.mark.threat("HH-03")
@pytest.mark.parametrize(
    "host", ["memory.example.org/x", "memory.example.org#", "a\\@memory.example.org", ""]
)
def test_a_malformed_host_is_a_bad_request(host: str) -> None:
    assert client("https://memory.example.org").get("/mcp", headers={"Host": host}).status_code == 400


@pytest.mark.parametrize("host", ["memory.example.org", "MEMORY.example.org", "memory.example.org:443"])
def test_every_spelling_of_the_own_host_passes(host: str) -> None:
    assert client("https://memory.example.org").get("/mcp", headers={"Host": host}).status_code == 200


def test_a_port_that_is_not_the_scheme_s_own_must_be_named() -> None:
    loopback = client("http://127.0.0.1:8788")
    assert loopback.get("/mcp").status_code == 200
    assert loopback.get("/mcp", headers={"Host": "127.0.0.1"}).status_code == 421


def test_health_is_asked_by_any_address() -> None:
    assert (
        client("https://memory.example.org").get("/health/live", headers={"Host": "10.0.0.7"}).status_code
        == 200
    )


def test_a_request_is_logged_once_with_its_id_and_without_what_only_its_holder_may_know(
    caplog: pytest.LogCaptureFixture,
) -> None:
    http = client("https://memory.example.org")
    with caplog.at_level(logging.INFO, logger="connector.middleware"):
        response = http.get("/setup/very-secret-token?code=also-secret")
        http.get("/mcp?access_token=secret")
        http.get("/a-secret-typed-as-an-address")
    assert [record.message for record in caplog.records] == ["http.request"] * 3
    assert [record.__dict__["path"] for record in caplog.records] == ["/setup/…", "/mcp", "…"]
    assert response.headers["x-request-id"]
    assert "secret" not in "".join(str(record.__dict__) for record in caplog.records)


async def _tell_client(request: Request) -> PlainTextResponse:
    return PlainTextResponse(request.client.host if request.client else "")


@pytest.mark.threat("HH-02")
@pytest.mark.parametrize(
    ("peer", "forwarded", "client_address"),
    [
        ("203.0.113.9", "198.51.100.1", "203.0.113.9"),
        ("127.0.0.1", "198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "6.6.6.6, 198.51.100.1", "198.51.100.1"),
        ("127.0.0.1", "6.6.6.6, 198.51.100.1, 10.0.0.3", "198.51.100.1"),
        ("127.0.0.1", "2001:db8::7", "2001:db8::7"),
        ("127.0.0.1", "6.6.6.6, nonsense", "127.0.0.1"),
        ("127.0.0.1", "", "127.0.0.1"),
        ("127.0.0.1", "10.0.0.3", "10.0.0.3"),
    ],
)
def test_only_a_trusted_proxy_says_who_the_client_is(peer: str, forwarded: str, client_address: str) -> None:
    trusted = [ip_network("127.0.0.0/8"), ip_network("10.0.0.0/8")]
    app = Starlette(
        routes=[Route("/", _tell_client)], middleware=[Middleware(ClientAddress, trusted=trusted)]
    )
    headers = {"X-Forwarded-For": forwarded} if forwarded else {}
    assert TestClient(app, client=(peer, 50000)).get("/", headers=headers).text == client_address
