"""The pair that ChatGPT's connectors expect: `search` and `fetch`, with exactly these keys."""

from typing import Annotated

from pydantic import Field

from connector.tools.core import Id
from connector.tools.shapes import answer_schema, metadata
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store.memory import Memory
from store.summary import cut

RESULTS = 10
TITLE_CHARACTERS = 120


class Search(Arguments):
    """Arguments of `search`."""

    query: Annotated[str, Field(description="Any text, taken literally")]


def _search(call: Call, arguments: Search) -> JsonObject:
    hits = call.search(arguments.query, limit=RESULTS)
    return {"results": [_reference(call, hit.memory) for hit in hits]}


class Fetch(Arguments):
    """Arguments of `fetch`."""

    id: Id


def _fetch(call: Call, arguments: Fetch) -> JsonObject:
    memory = call.read(arguments.id)
    return _reference(call, memory) | {"text": memory.content, "metadata": metadata(memory)}


def _reference(call: Call, memory: Memory) -> JsonObject:
    first_line = memory.content.strip().splitlines()[0].strip()
    return {
        "id": memory.id,
        "title": cut(first_line, TITLE_CHARACTERS),
        "url": f"{call.public_url}/memories/{memory.id}",
    }


_STRING: JsonObject = {"type": "string"}
_REFERENCE = answer_schema(id=_STRING, title=_STRING, url=_STRING)
TOOLS = (
    Tool(
        name="search",
        title="Search memories",
        description="Finds the owner's stored memories by meaning and by their words, in any language. "
        "Returns ids, titles and addresses, best first.",
        scope="memory:read",
        arguments=Search,
        output_schema=answer_schema(results={"type": "array", "items": _REFERENCE}),
        run=_search,
        read_only=True,
        listed="openai",
    ),
    Tool(
        name="fetch",
        title="Read a memory",
        description="Returns one stored memory whole, by an id that search returned.",
        scope="memory:read",
        arguments=Fetch,
        output_schema=answer_schema(
            id=_STRING, title=_STRING, text=_STRING, url=_STRING, metadata={"type": "object"}
        ),
        run=_fetch,
        read_only=True,
        listed="openai",
    ),
)
