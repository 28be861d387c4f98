"""All tools by name, and which of them an app's list shows. Hiding is never authorization."""

from collections.abc import Mapping
from typing import Any

from connector.access import Principal
from connector.tools import (
    chatgpt,
    core,
    documents,
    keeping,
    listing,
    maintenance,
    person,
    saving,
    understanding,
)
from connector.tools.tool import Tool
from store.profiles import Surface

Catalogue = Mapping[str, Tool[Any]]

_FAMILIES = (
    saving,
    core,
    keeping,
    chatgpt,
    understanding,
    listing,
    documents,
    maintenance,
    person,
)
TOOLS: Catalogue = {tool.name: tool for family in _FAMILIES for tool in family.TOOLS}


def scopes_of(name: str) -> frozenset[str] | None:
    """The scopes that a tool needs; None for a tool that does not exist."""
    return frozenset({TOOLS[name].scope}) if name in TOOLS else None


def is_allowed(tool: Tool[Any], principal: Principal) -> bool:
    """Whether scopes and profile let this app call the tool, listed or not."""
    in_profile = principal.tools is None or tool.name in principal.tools
    return in_profile and tool.scope in principal.scopes


def listed_for(principal: Principal, surface: Surface) -> list[Tool[Any]]:
    """The tools that `tools/list` shows this app, in a fixed order."""
    return [
        tool
        for tool in TOOLS.values()
        if is_allowed(tool, principal)
        and ("full" in (surface, principal.surface) or _is_listed(tool, principal))
    ]


def capabilities(principal: Principal) -> tuple[tuple[str, str, bool], ...]:
    """The whole catalogue as `Call.capabilities` has it."""
    return tuple((tool.name, tool.scope, is_allowed(tool, principal)) for tool in TOOLS.values())


def _is_listed(tool: Tool[Any], principal: Principal) -> bool:
    if principal.is_openai:
        return tool.listed == "openai" or (tool.listed == "default" and not tool.replaced_for_openai)
    return tool.listed == "default"
