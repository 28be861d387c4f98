"""The tools that put memories together, through the MCP endpoint."""

import json
from typing import Any

import pytest

from connector.app import Vademecum
from oauth import personal_tokens
from oauth.personal_tokens import Profile
from store.memory import Draft, Memory, Source
from tests.flows.conftest import Host

READ = frozenset({"memory:read"})


@pytest.fixture
def owner(parts: Vademecum) -> str:
    return parts.owners.list()[0].id


def token(parts: Vademecum, owner: str, **profile: Any) -> str:
    limits = Profile(**{"scopes": READ} | profile)
    return personal_tokens.create(parts.authorization_server, owner, "reader", limits)[1]


def save(parts: Vademecum, owner: str, content: str, **fields: Any) -> Memory:
    space = parts.engine.spaces(owner)[0].id
    return parts.engine.save(owner, space, "cli", Draft(content, **fields)).memory


def answer(host: Host, secret: str, tool: str, **arguments: Any) -> dict[str, Any]:
    result = host.call(secret, tool, **arguments)
    assert not result.get("isError"), result
    structured: dict[str, Any] = result["structuredContent"]
    assert json.loads(result["content"][0]["text"]) == structured
    return structured


def test_a_pack_for_a_task_cites_every_line_and_says_what_it_left_out(
    host: Host, parts: Vademecum, owner: str
) -> None:
    constraint = save(parts, owner, "no flights on Sundays", kind="constraint")
    fact = save(parts, owner, "the aunt lives in Graz", kind="fact")
    save(parts, owner, "an aunt says hello", source=Source(origin="external"))
    task = {"task": "visit the aunt", "intent": "plan"}
    pack = answer(host, token(parts, owner), "get_context", **task)
    assert pack["sections"] == [
        {
            "title": "Constraints and preferences",
            "items": [{"text": constraint.content, "id": constraint.id}],
        },
        {"title": "Facts", "items": [{"text": fact.content, "id": fact.id}]},
    ]
    assert 0 < pack["used_tokens"] <= 2000
    assert [(each["section"], each["count"]) for each in pack["omitted"]] == [("Who the person is", 0)]
    exporting = token(parts, owner, scopes=READ | {"memory:export"})
    assert answer(host, exporting, "get_context", **task)["omitted"] == []
    hidden = token(parts, owner, states=("wip",))
    assert answer(host, hidden, "get_context", **task)["sections"] == []


def test_an_entity_is_told_with_the_memories_that_say_so(host: Host, parts: Vademecum, owner: str) -> None:
    secret = token(parts, owner)
    memory = save(
        parts, owner, "It rained. We had dinner with Anna Schmidt. Later on we slept.", tags=("food",)
    )
    listed = answer(host, secret, "get_entity")["entities"]
    assert {entity["name"] for entity in listed} == {"Anna Schmidt", "food"}
    told = answer(host, secret, "get_entity", name="anna schmidt")
    assert told["entity"] == {"name": "Anna Schmidt", "types": ["name"], "memories": 1}
    (telling,) = told["memories"]
    assert (telling["id"], telling["quote"]) == (memory.id, "We had dinner with Anna Schmidt.")
    assert telling["origin"] == "agent"
    assert [each["name"] for each in told["neighbours"]] == ["food"]


def test_the_graph_around_a_name_and_around_a_memory(host: Host, parts: Vademecum, owner: str) -> None:
    secret = token(parts, owner)
    memory = save(parts, owner, "dinner with Anna", tags=("food",))
    graph = answer(host, secret, "query_graph", entity="food")
    assert [(node["id"], node["type"], node["depth"]) for node in graph["nodes"]] == [
        ("food", "entity", 0),
        (memory.id, "memory", 1),
        ("anna", "entity", 2),
    ]
    assert {(edge["source"], edge["target"], edge["type"], edge["weight"]) for edge in graph["edges"]} == {
        (memory.id, "food", "belongs_to", 1),
        (memory.id, "anna", "mentions", 1),
    }
    assert graph["truncated"] is False
    assert answer(host, secret, "query_graph", entity=memory.id, max_depth=1)["nodes"][0]["id"] == memory.id


@pytest.mark.parametrize("tool", ["get_entity", "query_graph"])
def test_a_profile_s_states_and_origins_hold_for_the_graph(
    host: Host, parts: Vademecum, owner: str, tool: str
) -> None:
    save(parts, owner, "dinner with Anna")
    argument = "name" if tool == "get_entity" else "entity"
    for profile in ({"states": ("wip",)}, {"origins": ("user",)}):
        secret = token(parts, owner, **profile)
        refused = host.call(secret, tool, **{argument: "Anna"})
        assert refused == host.call(secret, tool, **{argument: "Nobody"})
        assert refused["isError"] is True and "structuredContent" not in refused


@pytest.mark.parametrize(
    ("tool", "arguments", "code"),
    [
        ("get_context", {"task": " ", "intent": "act"}, "invalid_argument"),
        ("get_context", {"task": "x", "intent": "muse"}, "invalid_argument"),
        ("get_context", {"task": "x", "intent": "act", "budget_tokens": 199}, "invalid_argument"),
        ("get_context", {"task": "x", "intent": "act", "budget_tokens": 20001}, "invalid_argument"),
        ("get_entity", {"name": "nobody"}, "not_found"),
        ("get_entity", {"name": ""}, "invalid_argument"),
        ("get_entity", {"nam": "x"}, "invalid_argument"),
        ("query_graph", {}, "invalid_argument"),
        ("query_graph", {"entity": "nobody"}, "not_found"),
        ("query_graph", {"entity": "x", "max_depth": 0}, "invalid_argument"),
        ("query_graph", {"entity": "x", "max_depth": 5}, "invalid_argument"),
    ],
)
def test_a_bad_call_is_an_error_that_the_model_can_mend(
    host: Host, parts: Vademecum, owner: str, tool: str, arguments: dict[str, object], code: str
) -> None:
    result = host.call(token(parts, owner), tool, **arguments)
    assert result["isError"] is True and "structuredContent" not in result
    assert json.loads(result["content"][0]["text"])["error"]["code"] == code


@pytest.mark.parametrize(
    ("tool", "arguments", "scope"),
    [
        ("get_context", {"task": "x", "intent": "act"}, "memory:read"),
        ("get_entity", {}, "memory:read"),
        ("query_graph", {"entity": "x"}, "memory:read"),
    ],
)
def test_a_scope_that_is_missing_is_asked_for(
    host: Host, parts: Vademecum, owner: str, tool: str, arguments: dict[str, object], scope: str
) -> None:
    others = frozenset({"memory:read", "memory:write", "memory:export"}) - {scope}
    secret = token(parts, owner, scopes=others)
    refused = host.mcp(secret, "tools/call", name=tool, arguments=arguments)
    assert refused.status_code == 403
    assert f'scope="{scope}"' in refused.headers["www-authenticate"]
