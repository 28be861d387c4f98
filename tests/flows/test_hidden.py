"""An app that is held to some states or origins learns nothing of the others, by whatever tool."""

import json
from typing import Any

import pytest

from connector.app import Vademecum
from oauth import personal_tokens
from oauth.personal_tokens import Profile
from tests.flows.conftest import PUBLIC_URL, Host

ALL = frozenset({"memory:read", "memory:write", "memory:maintain", "memory:export", "memory:delete"})


class App:
    """A tool's answer, or its error, as one app gets it."""

    def __init__(self, host: Host, parts: Vademecum, **limits: Any) -> None:
        owner = parts.owners.list()[0].id
        self._host = host
        self.token = personal_tokens.create(
            parts.authorization_server, owner, "Agent", Profile(ALL, **limits)
        )[1]

    def __call__(self, tool: str, **arguments: Any) -> Any:
        told = json.loads(self._host.call(self.token, tool, **arguments)["content"][0]["text"])
        return told.get("error", told)


@pytest.fixture
def free(host: Host, parts: Vademecum) -> App:
    return App(host, parts)


@pytest.fixture
def limited(host: Host, parts: Vademecum) -> App:
    return App(host, parts, states=("wip", "pending", "merged", "deprecated"))


def test_a_merged_memory_that_is_hidden_is_not_told_to_who_merges_again(free: App, limited: App) -> None:
    drafts = [free("save_context", content=f"half {n}", draft=True)["item"]["id"] for n in range(2)]
    free("consolidate_context", source_ids=drafts, content="the hidden whole")
    again = limited("consolidate_context", source_ids=drafts, content="x")
    assert again["code"] == "conflict" and "hidden whole" not in str(again)


def test_a_duplicate_that_is_hidden_tells_only_what_was_sent(free: App, limited: App) -> None:
    free("save_context", content="the gate code", source={"session": "hidden session"})
    told = limited("save_context", content="the gate code")
    assert told["item"]["content"] == "the gate code"
    assert told["item"]["metadata"] == {} and "hidden session" not in str(told)


def test_counts_and_topics_are_those_of_the_profile(free: App, limited: App) -> None:
    free("save_context", content="one", topic="hidden topic")
    free("save_context", content="two", draft=True)
    for tool in ("memory_status", "list_capabilities"):
        told = limited(tool)
        assert told["counts"] == {"wip": 1} and "hidden topic" not in str(told)


def test_new_text_brings_back_nothing_that_was_put_aside(free: App) -> None:
    source = {"external_id": "note"}
    first = free("save_context", content="old", source=source)["item"]["id"]
    free("deprecate_context", id=first)
    again = free("save_context", content="new", source=source)["item"]
    assert (again["id"], again["metadata"]["branch_state"]) == (first, "deprecated")


def test_half_a_character_in_a_json_escape_is_replaced_and_a_whole_one_kept(host: Host, free: App) -> None:
    content = rb"half \ud83d whole \ud83d\ude80 escaped \\ud83d"
    body = (
        rb'{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"save_context",'
        rb'"arguments":{"content":"' + content + rb'"}}}'
    )
    headers = {
        "Authorization": f"Bearer {free.token}",
        "Content-Type": "application/json",
        "MCP-Protocol-Version": "2025-11-25",
        "Accept": "application/json, text/event-stream",
    }
    answer = host.http.post(f"{PUBLIC_URL}/mcp", content=body, headers=headers).json()
    saved = answer["result"]["structuredContent"]["item"]["content"]
    assert saved == "half \N{REPLACEMENT CHARACTER} whole \N{ROCKET} escaped \\ud83d"
