"""Clients that are described by a document: what it must say, and what happens when it cannot be had."""

import asyncio
from typing import Any

import httpx2
import pytest

from oauth import authorize, client_documents, clients
from oauth.errors import OAuthError
from oauth.safe_fetch import BadDocument, Unreachable
from oauth.server import AuthorizationServer
from tests.oauth.stand import REDIRECT_URI, Clock, Host, MemoryRecords, error, make_server
from tests.oauth.web import Web

URL = "https://client.example/metadata.json"
CLAUDE = "https://claude.ai/oauth/mcp-oauth-client-metadata"
DOCUMENT: dict[str, Any] = {"client_id": URL, "client_name": "Published", "redirect_uris": [REDIRECT_URI]}


def resolve(server: AuthorizationServer, client_id: str = URL) -> clients.Client | None:
    asyncio.run(client_documents.resolve(server, client_id))
    return clients.find(server, client_id)


@pytest.fixture
def published(host: Host, web: Web) -> Host:
    web.publish(URL, DOCUMENT)
    asyncio.run(client_documents.resolve(host.server, URL))
    host.client_id = URL
    return host


def test_a_published_client_connects(published: Host) -> None:
    tokens = published.connect()
    assert published.refresh(tokens["refresh_token"]).status_code == 200
    assert published.revoke(tokens["refresh_token"]).status_code == 200


def test_its_document_says_who_it_is(published: Host, clock: Clock) -> None:
    client = clients.find(published.server, URL)
    assert client is not None
    assert (client.client_name, client.is_cimd, client.verified_host) == ("Published", True, "client.example")
    assert client.created_at == clock()
    assert client.vouches_for(REDIRECT_URI)
    assert not client.vouches_for("http://localhost/callback")


def test_a_registered_client_has_nobody_to_vouch_for_it(host: Host) -> None:
    client = clients.find(host.server, host.client_id)
    assert client is not None
    assert (client.is_cimd, client.verified_host, client.vouches_for(REDIRECT_URI)) == (False, None, False)


def test_ids_that_were_handed_out_are_not_fetched(host: Host, web: Web) -> None:
    for client_id in (host.client_id, "nobody", None, "", "file:///etc/passwd"):
        asyncio.run(client_documents.resolve(host.server, client_id))
    assert web.resolved == []


@pytest.mark.threat("CI-03")
@pytest.mark.parametrize(
    "client_id", ["http://client.example/m", "https://127.0.0.1/m", "https:", "HTTPS://a.example/b"]
)
def test_an_address_that_may_not_be_fetched_is_a_bad_client(
    server: AuthorizationServer, web: Web, client_id: str
) -> None:
    with pytest.raises(BadDocument) as refused:
        resolve(server, client_id)
    assert refused.value.error == "invalid_client"
    assert web.resolved == []
    with pytest.raises(OAuthError):
        authorize.identify(server, [("client_id", client_id)])


@pytest.mark.threat("CI-09")
@pytest.mark.parametrize(
    "changes",
    [
        {"client_id": URL + "/"},
        {"client_id": None},
        {"client_secret": "s"},
        {"client_secret_expires_at": 0},
        {"token_endpoint_auth_method": "client_secret_basic"},
        {"token_endpoint_auth_method": "client_secret_post"},
        {"token_endpoint_auth_method": "private_key_jwt"},
        {"jwks": {"keys": [{"kty": "oct", "k": "c2VjcmV0"}]}},
        {"redirect_uris": []},
        {"redirect_uris": None},
        {"redirect_uris": ["javascript:alert(1)"]},
        {"redirect_uris": ["http://evil.example/cb"]},
        {"client_name": 7},
    ],
    ids=str,
)
def test_a_document_that_is_not_right_is_refused_and_not_kept(
    server: AuthorizationServer, web: Web, records: MemoryRecords, changes: dict[str, Any]
) -> None:
    web.publish(URL, DOCUMENT | changes)
    with pytest.raises(BadDocument):
        resolve(server)
    assert records.dump() == {}
    assert clients.find(server, URL) is None


@pytest.mark.threat("CI-10")
def test_many_first_requests_at_once_fetch_once(server: AuthorizationServer, web: Web) -> None:
    web.publish(URL, DOCUMENT)
    web.delay = 0.01

    async def flood() -> None:
        await asyncio.gather(*(client_documents.resolve(server, URL) for _ in range(100)))

    asyncio.run(flood())
    assert len(web.connected) == 1


@pytest.mark.threat("CI-10")
def test_a_caller_that_leaves_takes_nobody_with_him(server: AuthorizationServer, web: Web) -> None:
    web.publish(URL, DOCUMENT)
    web.delay = 0.01

    async def leave() -> None:
        first = asyncio.create_task(client_documents.resolve(server, URL))
        second = asyncio.create_task(client_documents.resolve(server, URL))
        await asyncio.sleep(0)
        first.cancel()
        await second

    asyncio.run(leave())
    assert clients.find(server, URL) is not None
    assert len(web.connected) == 1


@pytest.mark.threat("CI-10")
@pytest.mark.parametrize(
    ("cache_control", "seconds"),
    [
        ({}, 3600),
        ({"Cache_Control": "max-age=1"}, 300),
        ({"Cache_Control": "no-store"}, 3600),
        ({"Cache_Control": "max-age=1800"}, 1800),
        ({"Cache_Control": "max-age=31536000"}, 86400),
    ],
)
def test_a_copy_is_fresh_between_five_minutes_and_a_day(
    server: AuthorizationServer, web: Web, clock: Clock, cache_control: dict[str, str], seconds: int
) -> None:
    web.publish(URL, DOCUMENT, status=200, **cache_control)
    resolve(server)
    clock.advance(seconds=seconds - 1)
    resolve(server)
    assert len(web.connected) == 1
    clock.advance(seconds=1)
    resolve(server)
    assert len(web.connected) == 2


@pytest.mark.threat("CI-10")
def test_changed_redirect_uris_count_from_the_next_fetch(
    server: AuthorizationServer, web: Web, clock: Clock
) -> None:
    web.publish(URL, DOCUMENT)
    resolve(server)
    moved = "https://client.example/moved"
    web.publish(URL, DOCUMENT | {"redirect_uris": [moved]})
    clock.advance(hours=1)
    client = resolve(server)
    assert client is not None
    assert client.redirect_uris == (moved,)


@pytest.mark.threat("CI-08")
@pytest.mark.threat("CI-10")
def test_failures_are_not_kept(server: AuthorizationServer, web: Web, records: MemoryRecords) -> None:
    web.answers[URL] = httpx2.ConnectError("no")
    for _ in range(2):
        with pytest.raises(Unreachable):
            resolve(server)
    assert len(web.connected) == 2
    assert records.dump() == {}
    web.publish(URL, DOCUMENT)
    assert resolve(server) is not None


def test_the_last_good_copy_serves_while_the_host_is_away_and_nobody_waits_for_it(
    server: AuthorizationServer, web: Web, clock: Clock
) -> None:
    web.publish(URL, DOCUMENT)
    resolve(server)
    web.publish(URL, status=403)
    clock.advance(days=30)
    for _ in range(3):
        assert resolve(server) is not None
    assert len(web.connected) == 2
    clock.advance(minutes=5)
    resolve(server)
    assert len(web.connected) == 3
    web.publish(URL, DOCUMENT | {"client_name": "Back"})
    clock.advance(minutes=5)
    client = resolve(server)
    assert client is not None
    assert client.client_name == "Back"


def test_a_document_that_turned_bad_is_refused_despite_its_copy(
    server: AuthorizationServer, web: Web, clock: Clock
) -> None:
    web.publish(URL, DOCUMENT)
    resolve(server)
    web.publish(URL, status=404)
    clock.advance(days=1)
    with pytest.raises(BadDocument):
        resolve(server)


def test_hosts_that_are_left_alone_are_forgotten_in_the_end(
    server: AuthorizationServer, web: Web, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("oauth.fetched_copies.MAX_REMEMBERED", 1)
    for pinned in (CLAUDE, "https://chatgpt.com/oauth/client.json", CLAUDE):
        web.publish(pinned, status=403)
        assert resolve(server, pinned) is not None
    assert len(web.connected) == 3


@pytest.mark.parametrize(
    ("client_id", "redirect_uri"),
    [
        (CLAUDE, "https://claude.ai/api/mcp/auth_callback"),
        ("https://claude.ai/oauth/claude-code-client-metadata", "http://localhost:54321/callback"),
        ("https://claude.ai/oauth/claude-code-client-metadata", "http://127.0.0.1:54321/callback"),
        ("https://chatgpt.com/oauth/client.json", "https://chatgpt.com/connector_platform_oauth_redirect"),
        ("https://chatgpt.com/oauth/codex/client.json", "http://127.0.0.1:9999/callback"),
    ],
)
def test_well_known_hosts_connect_even_when_their_documents_are_refused(
    host: Host, web: Web, client_id: str, redirect_uri: str
) -> None:
    web.publish(client_id, status=403)
    host.client_id = client_id
    response = host.redeem(host.code(redirect_uri=redirect_uri), redirect_uri=redirect_uri)
    assert response.status_code == 200, response.text


def test_the_first_good_fetch_replaces_the_copy_that_shipped(server: AuthorizationServer, web: Web) -> None:
    client = clients.find(server, CLAUDE)
    assert client is not None
    assert client.redirect_uris == ("https://claude.ai/api/mcp/auth_callback",)
    moved = "https://claude.com/api/mcp/auth_callback"
    web.publish(CLAUDE, {"client_id": CLAUDE, "client_name": "Claude", "redirect_uris": [moved]})
    client = resolve(server, CLAUDE)
    assert client is not None
    assert client.redirect_uris == (moved,)


def test_a_document_may_offer_several_methods(server: AuthorizationServer, web: Web) -> None:
    key = {"kty": "EC", "crv": "P-256", "x": "MKBCTNIcKUSDii11ySs3526iDZ8AiTo7Tu6KPAqv7D4"}
    key["y"] = "4Etl6SRW2YiLUrN5vfvVHuhp7x8PxltmWWlbbM4IFyM"
    members = {"token_endpoint_auth_method": "private_key_jwt", "jwks": {"keys": [key]}}
    offered = {"token_endpoint_auth_methods_supported": ["none", "private_key_jwt", "client_secret_basic"]}
    web.publish(URL, DOCUMENT | members | offered)
    client = resolve(server)
    assert client is not None
    assert client.auth_methods == {"none", "private_key_jwt"}


def test_at_the_token_endpoint_a_host_that_is_away_is_503_not_a_lost_client(
    published: Host, web: Web
) -> None:
    tokens = published.connect()
    fresh = Host(published.server, published.http, "https://other.example/metadata.json")
    web.answers[fresh.client_id] = httpx2.ConnectError("no")
    response = fresh.refresh(tokens["refresh_token"])
    assert error(response) == (503, "temporarily_unavailable")
    assert response.headers["retry-after"] == "60"
    assert published.refresh(tokens["refresh_token"]).status_code == 200


def test_at_the_token_endpoint_a_bad_document_is_invalid_client(host: Host, web: Web) -> None:
    web.publish(URL, status=404)
    assert error(host.redeem("code", client_id=URL)) == (401, "invalid_client")
    assert error(host.redeem("code", client_id="https://127.0.0.1/m")) == (401, "invalid_client")


def test_two_processes_storing_at_once_both_go_on(records: MemoryRecords, clock: Clock, web: Web) -> None:
    web.publish(URL, DOCUMENT)
    servers = [make_server(records, clock, fetcher=web.fetcher()) for _ in range(2)]

    async def both() -> None:
        await asyncio.gather(*(client_documents.resolve(server, URL) for server in servers))

    asyncio.run(both())
    assert all(clients.find(server, URL) is not None for server in servers)
