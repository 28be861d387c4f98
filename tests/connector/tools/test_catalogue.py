"""What hosts and directories read of a tool before anybody calls it."""

import json

import pytest

from connector.access import Principal
from connector.mcp_server import INSTRUCTIONS, _description
from connector.tools import catalogue
from connector.tools.catalogue import TOOLS

READ_WRITE = frozenset({"memory:read", "memory:write"})


def principal(scopes: frozenset[str] = READ_WRITE, *, is_openai: bool = False) -> Principal:
    return Principal("owner", "app", "Host", scopes, None, is_openai)


def names(who: Principal) -> list[str]:
    return [tool.name for tool in catalogue.listed_for(who, "default")]


def test_the_list_follows_the_scopes() -> None:
    assert "save_context" in names(principal())
    assert "save_context" not in names(principal(frozenset({"memory:read"})))
    assert names(principal(frozenset())) == []


def test_openai_s_hosts_see_their_pair_in_place_of_ours() -> None:
    assert {"search", "fetch"} <= set(names(principal(is_openai=True)))
    assert not {"search_context", "fetch_context"} & set(names(principal(is_openai=True)))
    assert not {"search", "fetch"} & set(names(principal()))


def test_the_default_list_is_small_enough_for_a_host_s_context() -> None:
    listed = [
        _description(tool).model_dump(mode="json", by_alias=True, exclude_none=True)
        for tool in catalogue.listed_for(principal(), "default")
    ]
    assert len(json.dumps({"tools": listed}, separators=(",", ":"))) < 10_000


@pytest.mark.parametrize("tool", TOOLS.values(), ids=lambda tool: tool.name)
def test_a_tool_is_described_as_both_directories_ask(tool: catalogue.Tool) -> None:  # type: ignore[name-defined]
    described = _description(tool)
    hints = described.annotations
    assert described.title and len(tool.name) <= 64
    assert hints is not None
    assert None not in (hints.read_only_hint, hints.destructive_hint, hints.idempotent_hint)
    assert hints.open_world_hint is False
    assert described.output_schema and described.output_schema["type"] == "object"
    assert described.input_schema["additionalProperties"] is False
    assert "$ref" not in json.dumps(described.input_schema)


@pytest.mark.parametrize("text", [INSTRUCTIONS, *(tool.description for tool in TOOLS.values())])
def test_descriptions_give_the_model_no_orders(text: str) -> None:
    words = text.lower()
    assert not any(
        order in words for order in ("always", "you must", "you should", "never forget", "before answering")
    )
