"""A headless agent with a personal access token sees what its profile allows, and nothing beside."""

from typing import Any

import pytest

from connector.app import Vademecum
from oauth import personal_tokens
from oauth.personal_tokens import Profile
from store.memory import Draft, Source
from tests.flows.conftest import Clock, Host

READ = frozenset({"memory:read"})


@pytest.fixture
def owner(parts: Vademecum) -> str:
    return parts.owners.list()[0].id


def token(parts: Vademecum, owner: str, **profile: Any) -> str:
    limits = Profile(**{"scopes": READ} | profile)
    return personal_tokens.create(parts.authorization_server, owner, "nightly job", limits)[1]


def test_it_saves_and_finds_under_its_own_name(host: Host, parts: Vademecum, owner: str) -> None:
    secret = token(parts, owner, scopes=READ | {"memory:write"})
    saved = host.call(secret, "save_context", content="Backups run at four")["structuredContent"]
    assert saved["item"]["metadata"]["source"]["client_name"] == "nightly job"
    assert host.call(secret, "search_context", query="backups")["structuredContent"]["matches"]


def test_it_ends_when_revoked_and_when_it_expires(
    host: Host, parts: Vademecum, owner: str, clock: Clock
) -> None:
    server = parts.authorization_server
    revoked, secret = personal_tokens.create(server, owner, "a", Profile(READ))
    assert host.mcp(secret, "tools/list").status_code == 200
    personal_tokens.revoke(server, revoked.token_id)
    assert host.mcp(secret, "tools/list").status_code == 401

    clock.advance(seconds=1)
    expires_at = clock().replace(year=clock().year + 1)
    _, secret = personal_tokens.create(server, owner, "b", Profile(READ), expires_at)
    assert host.mcp(secret, "tools/list").status_code == 200
    clock.advance(days=366)
    assert host.mcp(secret, "tools/list").status_code == 401


def test_a_tool_outside_its_profile_is_neither_listed_nor_run(
    host: Host, parts: Vademecum, owner: str
) -> None:
    secret = token(parts, owner, tools=("search_context",))
    assert "memory_status" not in host.mcp(secret, "tools/list").text
    assert host.call(secret, "memory_status")["isError"] is True
    assert not host.call(secret, "search_context", query="x").get("isError")


def test_states_origins_and_spaces_outside_it_read_like_nothing(
    host: Host, parts: Vademecum, owner: str
) -> None:
    space = parts.engine.spaces(owner)[0].id
    by_user = parts.engine.save(owner, space, "cli", Draft("The blue notebook", source=Source(origin="user")))
    by_agent = parts.engine.save(owner, space, "cli", Draft("The blue pencil", source=Source(origin="agent")))
    draft = parts.engine.save(owner, space, "cli", Draft("The blue draft", state="wip"))
    secret = token(parts, owner, states=("active",), origins=("user",))

    found = host.call(secret, "search_context", query="blue")["structuredContent"]["matches"]
    assert [match["id"] for match in found] == [by_user.memory.id]
    assert host.call(secret, "search_context", query="blue", filter_state="wip")["isError"] is True
    assert not host.call(secret, "fetch_context", id=by_user.memory.id).get("isError")
    for hidden in (by_agent, draft):
        missing = host.call(secret, "fetch_context", id="no-such-memory")
        assert host.call(secret, "fetch_context", id=hidden.memory.id) == missing

    elsewhere = token(parts, owner, spaces=("another-space",))
    assert host.call(elsewhere, "fetch_context", id=by_user.memory.id)["isError"] is True
    assert host.call(elsewhere, "search_context", query="blue")["isError"] is True
