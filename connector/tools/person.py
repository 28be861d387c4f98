"""The whole person: profile and export; and what this server can do."""

from typing import Annotated, Literal

from pydantic import Field

from connector.tools.dates import rfc3339
from connector.tools.listing import Cursor
from connector.tools.shapes import answer_schema, item
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store import listing, profile
from store.memory import Memory
from store.summary import cut

LINE_CHARACTERS = 500
EXPORTED = 100
EXPORTED_CHARACTERS = 200_000


class GetProfile(Arguments):
    """`get_profile` takes no arguments."""


def _get_profile(call: Call, arguments: GetProfile) -> JsonObject:
    sections = [
        {
            "title": portrait.title,
            "items": [_line(memory) for memory in portrait.memories],
            "omitted": portrait.omitted,
        }
        for portrait in profile.picture(call.engine, call.view)
    ]
    return {"account": call.account, "space": call.space.name, "sections": sections}


def _line(memory: Memory) -> JsonObject:
    return {
        "id": memory.id,
        "text": cut(memory.content, LINE_CHARACTERS),
        "origin": memory.source.origin,
        "updated_at": rfc3339(memory.updated_at),
    }


class ExportContext(Arguments):
    """Arguments of `export_context`."""

    format: Literal["json", "markdown"] = "json"
    cursor: Annotated[Cursor | None, Field(description="next_cursor of the page before")] = None


def _export_context(call: Call, arguments: ExportContext) -> JsonObject:
    page = listing.everything(
        call.engine, call.view_of_spaces, EXPORTED, EXPORTED_CHARACTERS, arguments.cursor
    )
    if arguments.format == "json":
        exported: JsonObject = {"items": [item(memory) for memory in page.memories]}
    else:
        exported = {"markdown": "\n".join(_markdown(memory) for memory in page.memories)}
    return exported | {"next_cursor": page.next_cursor}


def _markdown(memory: Memory) -> str:
    """A comment that names the memory, then the content as it is, which may be Markdown itself."""
    about = [memory.topic, memory.kind, memory.state, rfc3339(memory.created_at), *memory.tags]
    line = " · ".join(each.replace("--", "‐‐").replace("\n", " ") for each in about)
    return f"<!-- {memory.id} · {line} -->\n\n{memory.content}\n"


class ListCapabilities(Arguments):
    """`list_capabilities` takes no arguments."""


def _list_capabilities(call: Call, arguments: ListCapabilities) -> JsonObject:
    status = call.status()
    return {
        "counts": dict(status.counts),
        "scopes": sorted(call.principal.scopes),
        "retrieval": call.engine.retrieval_mode(),
        "episodes": call.principal.episodes,
        "tools": [
            {"name": name, "scope": scope, "allowed": allowed} for name, scope, allowed in call.capabilities
        ],
    }


TOOLS = (
    Tool(
        name="list_capabilities",
        title="What this connection can do",
        description="Returns counts, the permissions of this connection, and every tool with the permission "
        "that it needs.",
        scope="memory:read",
        arguments=ListCapabilities,
        output_schema=answer_schema(
            counts={"type": "object"},
            scopes={"type": "array", "items": {"type": "string"}},
            retrieval={"type": "object"},
            episodes={"type": "boolean"},
            tools={"type": "array", "items": {"type": "object"}},
        ),
        run=_list_capabilities,
        read_only=True,
        listed="full",
    ),
    Tool(
        name="get_profile",
        title="Profile of the owner",
        description="Returns what is stored about the owner, kind by kind: facts, preferences, constraints, "
        "style, decisions, procedures, tasks. Every line names its memory.",
        scope="memory:export",
        arguments=GetProfile,
        output_schema=answer_schema(
            account={"type": "string"},
            space={"type": "string"},
            sections={"type": "array", "items": {"type": "object"}},
        ),
        run=_get_profile,
        read_only=True,
        listed="full",
    ),
    Tool(
        name="export_context",
        title="Export everything",
        description="Returns everything that this connection may see, in whatever state, oldest first, "
        "page by page: as JSON or as Markdown.",
        scope="memory:export",
        arguments=ExportContext,
        output_schema=answer_schema(
            items_={"type": "array", "items": {"type": "object"}},
            markdown_={"type": "string"},
            next_cursor={"type": ["string", "null"]},
        ),
        run=_export_context,
        read_only=True,
        listed="full",
    ),
)
