"""The whole journey in process: register, authorize, token, call, come back, revoke."""

import json
import sqlite3
from contextlib import closing

import pytest
from starlette.testclient import TestClient

from connector.app import Vademecum, create_app
from store.sqlite.database import Database
from tests.flows.conftest import PUBLIC_URL, Clock, Host


def test_discovery_leads_from_the_challenge_to_the_token_endpoint(http: TestClient) -> None:
    refused = http.post("/mcp")
    assert refused.status_code == 401
    challenge = refused.headers["www-authenticate"]
    assert challenge == (
        f'Bearer scope="memory:read memory:write", '
        f'resource_metadata="{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"'
    )
    resource = http.get("/.well-known/oauth-protected-resource/mcp").json()
    assert resource["resource"] == f"{PUBLIC_URL}/mcp"
    (issuer,) = resource["authorization_servers"]
    metadata = http.get("/.well-known/oauth-authorization-server").json()
    assert metadata["issuer"] == issuer == PUBLIC_URL
    assert {metadata[f"{name}_endpoint"] for name in ("authorization", "token", "registration")} == {
        f"{PUBLIC_URL}/authorize",
        f"{PUBLIC_URL}/token",
        f"{PUBLIC_URL}/register",
    }


def test_connect_save_search_fetch(host: Host) -> None:
    tokens = host.connect()
    access_token = tokens["access_token"]
    assert tokens["token_type"] == "Bearer" and tokens["scope"].split() == ["memory:read", "memory:write"]

    saved = host.call(access_token, "save_context", content="The spare key hangs behind the pantry door")
    memory = saved["structuredContent"]["item"]
    assert json.loads(saved["content"][0]["text"]) == saved["structuredContent"]
    assert memory["metadata"]["source"] == {"origin": "agent", "client_name": "Test host"}

    found = host.call(access_token, "search_context", query="spare key")["structuredContent"]
    assert [match["id"] for match in found["matches"]] == [memory["id"]]
    fetched = host.call(access_token, "fetch_context", id=memory["id"])["structuredContent"]
    assert fetched["item"] == memory
    status = host.call(access_token, "memory_status")["structuredContent"]
    assert status["counts"]["active"] == 1


def test_denying_tells_the_client_so(host: Host) -> None:
    host.register()
    answer = host.authorize(decision="deny")
    assert (answer["error"], answer["state"], answer["iss"]) == ("access_denied", "opaque-state", PUBLIC_URL)
    assert "code" not in answer


def test_weeks_later_the_refresh_token_still_opens_the_memories(host: Host, clock: Clock) -> None:
    tokens = host.connect()
    saved = host.call(tokens["access_token"], "save_context", content="Grandmother's recipe needs two lemons")
    clock.advance(days=29)
    assert host.mcp(tokens["access_token"], "tools/list").status_code == 401
    refreshed = host.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"]).json()
    assert refreshed["refresh_token"] != tokens["refresh_token"]
    found = host.call(refreshed["access_token"], "search_context", query="lemons")["structuredContent"]
    assert found["matches"][0]["id"] == saved["structuredContent"]["item"]["id"]


def test_a_restart_ends_neither_login_nor_registration_nor_memories(host: Host, parts: Vademecum) -> None:
    tokens = host.connect()
    saved = host.call(tokens["access_token"], "save_context", content="Boarding closes at ten past six")
    parts.database.close()
    restarted = Vademecum(parts.settings, parts.now)
    with TestClient(create_app(restarted), base_url=PUBLIC_URL, follow_redirects=False) as http:
        again = Host(http, host.client_id, host.verifier)
        memory_id = saved["structuredContent"]["item"]["id"]
        assert not again.call(tokens["access_token"], "fetch_context", id=memory_id).get("isError")
        assert (
            again.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"]).status_code == 200
        )
    restarted.database.close()


@pytest.mark.threat("RV-01")
def test_revoking_the_refresh_token_ends_the_login_at_once(host: Host) -> None:
    tokens = host.connect()
    assert host.mcp(tokens["access_token"], "tools/list").status_code == 200
    revoked = host.http.post("/revoke", data={"client_id": host.client_id, "token": tokens["refresh_token"]})
    assert revoked.status_code == 200
    assert host.mcp(tokens["access_token"], "tools/list").status_code == 401
    answer = host.token(grant_type="refresh_token", refresh_token=tokens["refresh_token"])
    assert (answer.status_code, answer.json()["error"]) == (400, "invalid_grant")


@pytest.mark.threat("BR-07")
def test_a_tool_beyond_the_granted_scopes_asks_for_them(host: Host) -> None:
    access_token = host.connect(scope="memory:read")["access_token"]
    assert "save_context" not in host.mcp(access_token, "tools/list").text
    refused = host.mcp(access_token, "tools/call", name="save_context", arguments={"content": "x"})
    assert refused.status_code == 403
    assert 'error="insufficient_scope"' in refused.headers["www-authenticate"]
    assert 'scope="memory:write"' in refused.headers["www-authenticate"]


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("save_context", {"content": "   \n\u200b"}, "invalid_argument"),
        ("save_context", {"content": "x", "owner": "somebody"}, "invalid_argument"),
        ("save_context", {"content": "x" * (512 * 1024 + 1)}, "too_large"),
        ("save_context", {"content": "x", "branch_state": "merged"}, "forbidden"),
        ("save_context", {"content": "x", "branch_state": "wip", "draft": True}, "invalid_argument"),
        ("search_context", {"query": " "}, "invalid_argument"),
        ("search_context", {"query": "x", "created_after": "yesterday"}, "invalid_argument"),
        ("fetch_context", {"id": "no-such-memory"}, "not_found"),
        ("fetch_context", {"id": "a", "document_id": "b"}, "invalid_argument"),
        ("fetch_context", {}, "invalid_argument"),
        ("search", {}, "invalid_argument"),
        ("fetch", {"id": "no-such-memory"}, "not_found"),
    ],
)
def test_a_bad_call_is_an_error_that_the_model_can_mend(
    host: Host, tool: str, arguments: dict[str, object], code: str
) -> None:
    result = host.call(host.connect()["access_token"], tool, **arguments)
    assert result["isError"] is True
    assert "structuredContent" not in result
    error = json.loads(result["content"][0]["text"])["error"]
    assert error["code"] == code
    assert error["message"] and "pydantic" not in error["message"] and "Traceback" not in error["message"]


def test_the_chatgpt_pair_answers_with_exactly_its_keys(host: Host, parts: Vademecum) -> None:
    access_token = host.connect()["access_token"]
    saved = host.call(access_token, "save_context", content="First line\nand the second")
    memory_id = saved["structuredContent"]["item"]["id"]
    (result,) = host.call(access_token, "search", query="second line")["structuredContent"]["results"]
    assert result == {"id": memory_id, "title": "First line", "url": f"{PUBLIC_URL}/memories/{memory_id}"}
    fetched = host.call(access_token, "fetch", id=memory_id)["structuredContent"]
    assert set(fetched) == {"id", "title", "text", "url", "metadata"}
    assert fetched["text"] == "First line\nand the second"


def test_clients_of_both_eras_are_served_on_one_path(host: Host) -> None:
    access_token = host.connect()["access_token"]
    old = host.mcp(
        access_token,
        "initialize",
        protocolVersion="2024-11-05",
        capabilities={},
        clientInfo={"name": "old", "version": "1"},
    )
    assert old.json()["result"]["protocolVersion"] == "2024-11-05"
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
    }
    new = host.http.post(
        "/mcp/",
        json={"jsonrpc": "2.0", "id": 1, "method": "server/discover", "params": {"_meta": meta}},
        headers={
            "Authorization": f"Bearer {access_token}",
            "MCP-Protocol-Version": "2026-07-28",
            "Mcp-Method": "server/discover",
            "Accept": "application/json",
        },
    )
    assert new.status_code == 200, new.text
    assert "2026-07-28" in new.text


def test_each_call_leaves_one_event_without_the_stored_text(host: Host, parts: Vademecum) -> None:
    access_token = host.connect()["access_token"]
    host.call(access_token, "save_context", content="a very private sentence")
    host.call(access_token, "search_context", query="private sentence")
    parts.activity.flush()
    (owner,) = parts.owners.list()
    events = parts.events.recent(owner.id, 10)
    assert [(event.name, event.status) for event in events] == [
        ("search_context", "ok"),
        ("save_context", "ok"),
    ]
    assert events[0].query_preview == "private sentence"
    assert "very private" not in repr(events)


@pytest.mark.parametrize(
    "path", ["/authorize/", "/token/", "/setup/x/", "/.well-known/nothing", "/.well-known/x/y"]
)
def test_a_path_that_does_not_exist_is_a_json_404_and_never_a_redirect(http: TestClient, path: str) -> None:
    response = http.get(path)
    assert response.status_code == 404
    assert response.json()["error"] == "not_found"


@pytest.mark.threat("BR-07")
def test_openai_s_hosts_step_up_through_the_tool_s_result(host: Host) -> None:
    redirect_uri = "https://chatgpt.com/connector_platform_oauth_redirect"
    host.register(redirect_uris=[redirect_uri])
    code = host.authorize(redirect_uri=redirect_uri, scope="memory:read")["code"]
    tokens = host.token(
        grant_type="authorization_code", code=code, redirect_uri=redirect_uri, code_verifier=host.verifier
    ).json()
    listed = host.mcp(tokens["access_token"], "tools/list").json()["result"]["tools"]
    assert {"search", "fetch"} <= {tool["name"] for tool in listed}
    assert all(tool["securitySchemes"] == tool["_meta"]["securitySchemes"] for tool in listed)
    result = host.call(tokens["access_token"], "save_context", content="x")
    assert result["isError"] is True
    (challenge,) = result["_meta"]["mcp/www_authenticate"]
    assert 'error="insufficient_scope"' in challenge and 'scope="memory:write"' in challenge
    assert f'resource_metadata="{PUBLIC_URL}/.well-known/oauth-protected-resource/mcp"' in challenge


def test_a_memory_is_pinned_forgotten_and_brought_back(host: Host) -> None:
    access_token = host.connect()["access_token"]
    saved = host.call(access_token, "save_context", content="The boat leaves at six")["structuredContent"]
    memory_id = saved["item"]["id"]
    pinned = host.call(access_token, "pin_context", id=memory_id, pinned=True)["structuredContent"]
    assert pinned["item"]["metadata"]["pinned"] is True
    assert host.call(access_token, "forget_context", id=memory_id)["structuredContent"]["forgotten"] is True
    assert host.call(access_token, "fetch_context", id=memory_id)["isError"] is True
    assert host.call(access_token, "forget_context", id=memory_id)["structuredContent"]["forgotten"] is True
    undone = host.call(access_token, "forget_context", id=memory_id, undo=True)["structuredContent"]
    assert undone == {"id": memory_id, "forgotten": False}
    fetched = host.call(access_token, "fetch_context", id=memory_id)["structuredContent"]["item"]
    assert fetched["metadata"]["pinned"] is True
    assert host.call(access_token, "forget_context", id="no-such-memory", undo=True)["isError"] is True


def test_a_space_is_chosen_by_name_and_an_unknown_one_is_refused_with_the_names(host: Host) -> None:
    access_token = host.connect()["access_token"]
    chosen = host.call(access_token, "use_space", space="default")["structuredContent"]
    assert chosen["active_space"]["name"] == "default"
    refused = host.call(access_token, "use_space", space="nowhere")
    assert refused["isError"] is True and "default" in refused["content"][0]["text"]


@pytest.mark.threat("LG-02")
@pytest.mark.parametrize("store", ["sqlite"], indirect=True)
def test_a_busy_store_is_503_for_oauth_and_an_error_for_a_tool_and_nothing_is_lost(
    host: Host, parts: Vademecum
) -> None:
    access_token = host.connect()["access_token"]
    assert isinstance(parts.database, Database)
    with parts.database.write() as connection:
        pass
    connection.execute("PRAGMA busy_timeout=50")
    with closing(sqlite3.connect(parts.settings.database_path, isolation_level=None)) as other:
        other.execute("BEGIN IMMEDIATE")
        registered = host.http.post("/register", json={"redirect_uris": ["https://app.example/cb"]})
        saved = host.call(access_token, "save_context", content="patience")
        other.execute("ROLLBACK")
    assert (registered.status_code, registered.json()["error"]) == (503, "temporarily_unavailable")
    assert registered.headers["retry-after"]
    assert saved["isError"] is True and "unavailable" in saved["content"][0]["text"]
    assert not host.call(access_token, "save_context", content="patience").get("isError")
