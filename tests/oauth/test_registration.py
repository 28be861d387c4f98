"""Dynamic client registration: cheap and forgiving, except where a code could go astray."""

import json
from typing import Any

import httpx2
import pytest
from joserfc.jwk import RSAKey
from starlette.testclient import TestClient

from oauth import clients, registration
from oauth.errors import InvalidRedirectURI
from oauth.server import AuthorizationServer
from tests.oauth.stand import REDIRECT_URI, Clock, Host, MemoryRecords, error, make_server

BAD_URI = (400, "invalid_redirect_uri")
BAD_METADATA = (400, "invalid_client_metadata")


def send(http: TestClient, body: bytes, content_type: str = "application/json") -> httpx2.Response:
    return http.post("/register", content=body, headers={"Content-Type": content_type})


@pytest.mark.threat("DC-10")
def test_the_least_a_client_can_say_makes_it_a_public_client(host: Host) -> None:
    response = host.register(client_name=None)
    assert response.status_code == 201
    assert response.headers["cache-control"] == "no-store"
    body = response.json()
    assert body.keys() == {
        "client_id",
        "client_id_issued_at",
        "redirect_uris",
        "token_endpoint_auth_method",
        "grant_types",
        "response_types",
    }
    assert body["token_endpoint_auth_method"] == "none"
    assert body["grant_types"] == ["authorization_code", "refresh_token"]
    assert body["response_types"] == ["code"]


def test_registering_twice_makes_two_clients(host: Host) -> None:
    first = host.register().json()
    assert host.register().json()["client_id"] != first["client_id"]


@pytest.mark.parametrize("method", ["client_secret_basic", "client_secret_post"])
def test_who_asks_for_a_secret_gets_one(host: Host, records: MemoryRecords, method: str) -> None:
    body = host.register(token_endpoint_auth_method=method).json()
    assert body["token_endpoint_auth_method"] == method
    assert len(body["client_secret"]) >= 43
    assert body["client_secret_expires_at"] == 0
    assert body["client_secret"] not in repr(records.dump())


@pytest.mark.threat("DC-08")
@pytest.mark.parametrize("method", [None, "tls_client_auth", "client_secret_jwt", "none", ""])
def test_any_other_method_becomes_none_without_a_secret(host: Host, method: str | None) -> None:
    body = host.register(token_endpoint_auth_method=method).json()
    assert body["token_endpoint_auth_method"] == "none"
    assert "client_secret" not in body


@pytest.mark.threat("DC-08")
@pytest.mark.parametrize(
    ("members", "kept"),
    [
        ({"grant_types": ["authorization_code", "password"]}, ["authorization_code", "refresh_token"]),
        ({"grant_types": ["authorization_code"]}, ["authorization_code", "refresh_token"]),
        ({"grant_types": []}, ["authorization_code", "refresh_token"]),
        ({"response_types": ["code", "token"]}, ["authorization_code", "refresh_token"]),
    ],
)
def test_what_is_not_offered_is_dropped(host: Host, members: dict[str, Any], kept: list[str]) -> None:
    body = host.register(**members).json()
    assert (body["grant_types"], body["response_types"]) == (kept, ["code"])


@pytest.mark.threat("DC-08")
@pytest.mark.parametrize(
    "members",
    [{"grant_types": ["client_credentials"]}, {"grant_types": ["implicit"]}, {"response_types": ["token"]}],
)
def test_a_client_that_only_wants_what_is_not_offered_is_refused(host: Host, members: dict[str, Any]) -> None:
    assert error(host.register(**members)) == BAD_METADATA


@pytest.mark.threat("DC-08")
@pytest.mark.parametrize(
    ("scope", "echoed"), [("admin", None), ("memory:read admin", "memory:read"), ("offline_access", None)]
)
def test_the_registered_scope_is_echoed_and_limits_nothing(
    host: Host, scope: str, echoed: str | None
) -> None:
    assert host.register(scope=scope).json().get("scope") == echoed
    assert host.redeem(host.code()).json()["scope"] == "memory:read memory:write"


def test_unknown_members_and_nulls_are_ignored(host: Host) -> None:
    body: dict[str, Any] = {
        "redirect_uris": [REDIRECT_URI],
        "application_type": "native",
        "client_uri": None,
        "x": {"y": []},
    }
    response = host.http.post("/register", json=body)
    assert response.status_code == 201
    assert not {"application_type", "client_uri", "x"} & response.json().keys()


def test_every_uri_cursor_registers_at_once(host: Host) -> None:
    uris = [
        "cursor://anysphere.cursor-mcp/oauth/callback",
        "https://www.cursor.com/agents/mcp/oauth/callback",
        "http://localhost:8787/callback",
    ]
    assert host.register(redirect_uris=uris).json()["redirect_uris"] == uris


def test_app_schemes_are_a_setting(records: MemoryRecords, clock: Clock) -> None:
    uri = "com.example.app:/oauth"
    server = make_server(records, clock, app_redirect_uris=(uri,))
    assert registration.register(server, {"redirect_uris": [uri]})["redirect_uris"] == [uri]
    with pytest.raises(InvalidRedirectURI):
        registration.register(server, {"redirect_uris": ["cursor://anysphere.cursor-mcp/oauth/callback"]})


@pytest.mark.threat("DC-01")
@pytest.mark.parametrize(
    "uri",
    [
        "javascript:alert(1)",
        "JaVaScRiPt:alert(1)",
        "java\tscript:alert(1)",
        " javascript:alert(1)",
        "javascript://client.example/%0aalert(1)",
        "data:text/html,x",
        "vbscript:x",
        "file:///etc/passwd",
        "blob:https://client.example/x",
        "about:blank",
        "intent://x#Intent;end",
        "ftp://client.example/",
        "ws://localhost/x",
        "cursor://anysphere.cursor-mcp/oauth/callback/other",
        "com.example.app:/oauth",
    ],
)
def test_script_and_local_schemes_are_refused(host: Host, uri: str) -> None:
    assert error(host.register(redirect_uris=[uri])) == BAD_URI
    assert error(host.register(redirect_uris=[REDIRECT_URI, uri])) == BAD_URI


@pytest.mark.threat("DC-02")
@pytest.mark.parametrize(
    "uri",
    [
        "http://client.example/cb",
        "http://127.0.0.1.evil.example/cb",
        "http://localhost.evil.example/cb",
        "http://127.1/cb",
        "http://0.0.0.0/cb",
        "http://2130706433/cb",
        "https://client.example/cb#",
        "https://client.example/cb#x",
        "https://user@client.example/cb",
        "https://user:pass@client.example/cb",
        "https://*.example/cb",
        "https://client.example/*",
        "https://client.example/./cb",
        "https://client.example/a/../cb",
        "https://client.example/%2e%2E/cb",
        "/cb",
        "//client.example/cb",
        "client.example/cb",
        "https:/client.example/cb",
        "https:client.example",
        "https://",
        "https://client.example:0/cb",
        "https://client.example:99999/cb",
        "https://client.example/cb\r\nX: y",
        "https://client.example/c b",
        "https://client.example/cb\n",
        "https://client.example\\@evil.example/cb",
        "https://cl\u0456ent.example/cb",
        "https://client.example/%zz",
        "https://client.example/" + "x" * 20_000,
        "",
        7,
        None,
        {"uri": REDIRECT_URI},
    ],
)
def test_redirect_uris_are_https_or_loopback_and_nothing_fancy(host: Host, uri: object) -> None:
    assert error(host.register(redirect_uris=[uri])) == BAD_URI
    assert error(host.register(redirect_uris=[REDIRECT_URI, uri])) == BAD_URI


@pytest.mark.threat("DC-03")
@pytest.mark.parametrize(
    "query", ["code=x", "a=b&state=", "iss", "error=x", "%63ode=x", "error_description=x"]
)
def test_a_redirect_uri_cannot_carry_a_parameter_of_the_response(host: Host, query: str) -> None:
    assert error(host.register(redirect_uris=[f"{REDIRECT_URI}?{query}"])) == BAD_URI


@pytest.mark.parametrize(
    "uri",
    [
        "https://claude.ai/api/mcp/auth_callback",
        "https://claude.com/api/mcp/auth_callback",
        "https://chatgpt.com/connector_platform_oauth_redirect",
        "https://chatgpt.com/connector/oauth/abc123",
        "https://client.example:8443/cb?tenant=a%20b",
        "https://xn--e1awd7f.example/cb",
        "https://[2001:db8::1]/cb",
        "http://localhost:33418/",
        "http://[::1]:7000/oauth/callback",
        "http://127.0.0.1:19876/mcp/oauth/callback",
    ],
)
def test_redirect_uris_of_real_clients_are_fine(host: Host, uri: str) -> None:
    assert host.register(redirect_uris=[uri]).status_code == 201


@pytest.mark.threat("DC-04")
@pytest.mark.parametrize(
    "uris", [None, [], "https://client.example/cb", {"a": REDIRECT_URI}, [REDIRECT_URI] * 21, 7]
)
def test_redirect_uris_is_a_list_of_some(host: Host, uris: object) -> None:
    assert error(host.register(redirect_uris=uris)) == BAD_URI


@pytest.mark.threat("DC-04")
@pytest.mark.parametrize(
    "members",
    [
        {"client_name": 7},
        {"client_name": ["x"]},
        {"client_uri": 7},
        {"scope": ["memory:read"]},
        {"grant_types": "authorization_code"},
        {"grant_types": [7]},
        {"response_types": {"code": 1}},
        {"token_endpoint_auth_method": 7},
        {"jwks": "x"},
        {"jwks": {"keys": []}},
        {"jwks": {"keys": ["x"]}},
        {"jwks": {"keys": [{"kty": "nonsense"}]}},
        {"jwks": {"keys": [{"kty": "EC", "crv": "P-256", "x": "!", "y": "!"}]}},
        {"jwks_uri": "http://127.0.0.1/jwks"},
        {"jwks_uri": 7},
        {"software_id": {}},
        {"client_name": "x" * 2001},
        {"token_endpoint_auth_method": "private_key_jwt"},
    ],
)
def test_members_of_the_wrong_kind_are_refused(host: Host, members: dict[str, Any]) -> None:
    assert error(host.register(**members)) == BAD_METADATA


@pytest.mark.threat("DC-04")
@pytest.mark.parametrize(
    "body",
    [
        b"",
        b"[]",
        b"null",
        b'""',
        b"7",
        b"{",
        b'{"redirect_uris": ["https://client.example/cb"],}',
        b'{"redirect_uris": ["https://client.example/cb"], "client_name": "\xff"}',
        b'{"redirect_uris": ["https://client.example/cb"], "redirect_uris": ["https://evil.example/cb"]}',
        b'{"redirect_uris": ["https://client.example/cb"], "client_name": "\\ud800"}',
        b'{"redirect_uris": ["https://client.example/cb"], "x": NaN}',
        b'{"redirect_uris": ["https://client.example/cb"], "x": ' + b"1" * 5000 + b"}",
        b"[" * 50_000,
        b'{"x": ' * 10_000,
        b"redirect_uris=https%3A%2F%2Fclient.example%2Fcb",
    ],
)
def test_a_body_that_is_no_json_object_is_refused(http: TestClient, body: bytes) -> None:
    assert error(send(http, body)) == BAD_METADATA


@pytest.mark.threat("DC-04")
@pytest.mark.parametrize("content_type", ["application/x-www-form-urlencoded", "text/plain", "text/json", ""])
def test_only_json_is_read(http: TestClient, content_type: str) -> None:
    body = json.dumps({"redirect_uris": [REDIRECT_URI]}).encode()
    assert error(send(http, body, content_type)) == BAD_METADATA
    assert send(http, body, "Application/JSON; charset=utf-8").status_code == 201


@pytest.mark.threat("DC-05")
def test_a_body_that_is_too_large_is_refused(http: TestClient) -> None:
    body = json.dumps({"redirect_uris": [REDIRECT_URI], "x": "x" * 70_000}).encode()
    assert error(send(http, body)) == (413, "invalid_request")


@pytest.mark.threat("DC-06")
@pytest.mark.parametrize("name", ["client_uri", "logo_uri", "tos_uri", "policy_uri"])
@pytest.mark.parametrize(
    "uri",
    ["javascript:alert(1)", "data:text/html,x", "file:///x", "http://client.example", "https://a b", "x"],
)
def test_other_uris_must_be_https_or_are_dropped(host: Host, name: str, uri: str) -> None:
    assert name not in host.register(**{name: uri}).json()
    assert (
        host.register(**{name: "https://client.example/x?y=z"}).json()[name] == "https://client.example/x?y=z"
    )


@pytest.mark.threat("DC-07")
def test_the_server_chooses_id_and_secret(host: Host, server: AuthorizationServer) -> None:
    victim = clients.find(server, host.client_id)
    body = host.register(
        client_id=host.client_id,
        client_secret="mine",
        client_id_issued_at=1,
        owner="owner-2",
        redirect_uris=["https://evil.example/cb"],
    ).json()
    assert victim is not None
    assert body["client_id"] != victim.client_id
    assert not {"client_secret", "owner"} & body.keys()
    assert body["client_id_issued_at"] > 1
    assert clients.find(server, victim.client_id) == victim


@pytest.mark.threat("DC-10")
@pytest.mark.parametrize("method", ["GET", "PUT", "DELETE", "PATCH"])
def test_there_is_no_management_endpoint(host: Host, method: str) -> None:
    assert host.http.request(method, f"/register/{host.client_id}").status_code == 404
    assert error(host.http.request(method, "/register")) == (405, "invalid_request")


@pytest.mark.threat("DC-12")
@pytest.mark.parametrize(
    ("name", "shown"),
    [
        ("Claude\u202e\u2066", "Claude"),
        ("Cl\u200baude", "Cl aude"),
        ("two\r\nlines\x00", "two lines"),
        ("  spaces \t and  tabs ", "spaces and tabs"),
        ("x" * 1900, "x" * 79 + "…"),
        ("記憶 🗝 Müller", "記憶 🗝 Müller"),
        ("<b>", "<b>"),
    ],
)
def test_a_name_is_one_visible_line(host: Host, server: AuthorizationServer, name: str, shown: str) -> None:
    assert host.register(client_name=name).json()["client_name"] == shown
    client = clients.find(server, host.client_id)
    assert client is not None
    assert client.client_name == shown


@pytest.mark.threat("DC-12")
@pytest.mark.parametrize("name", [None, "", "\u200b\n"])
def test_a_client_without_a_visible_name_is_called_unnamed(
    host: Host, server: AuthorizationServer, name: str | None
) -> None:
    host.register(client_name=name)
    client = clients.find(server, host.client_id)
    assert client is not None
    assert client.client_name == "Unnamed client"


@pytest.mark.threat("DC-14")
def test_a_client_that_was_never_used_is_gone_after_ninety_days(host: Host, clock: Clock) -> None:
    clock.advance(days=89)
    assert error(host.redeem("code")) == (400, "invalid_grant")
    clock.advance(days=1)
    assert error(host.redeem("code")) == (401, "invalid_client")


def test_keys_are_public_ones_by_value_or_by_address(host: Host) -> None:
    key = RSAKey.generate_key(2048, private=True)
    public, private = key.as_dict(private=False), key.as_dict(private=True)
    method = "private_key_jwt"
    assert host.register(token_endpoint_auth_method=method, jwks={"keys": [public]}).status_code == 201
    address = "https://client.example/jwks.json"
    assert host.register(token_endpoint_auth_method=method, jwks_uri=address).json()["jwks_uri"] == address
    assert error(host.register(jwks={"keys": [private]})) == BAD_METADATA
    assert error(host.register(jwks={"keys": [public]}, jwks_uri=address)) == BAD_METADATA


def test_the_operator_can_enter_a_client_that_stays(server: AuthorizationServer, clock: Clock) -> None:
    answer = registration.preregister(
        server, {"client_name": "Mine", "redirect_uris": [REDIRECT_URI], "contacts": ["me@client.example"]}
    )
    clock.advance(days=3650)
    client = clients.find(server, answer["client_id"])
    assert client is not None
    assert clients.entered_by_operator(server) == [client]
    clients.touch(server, client)
    clock.advance(days=3650)
    found = clients.find(server, client.client_id)
    assert found is not None
    assert found.last_used_at is not None
    clients.delete(server, client.client_id)
    assert clients.find(server, client.client_id) is None
    clients.touch(server, client)
    clients.delete(server, "../x")
