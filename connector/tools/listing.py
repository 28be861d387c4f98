"""Reading what is stored page by page, without a query."""

from typing import Annotated

from pydantic import Field, StringConstraints

from connector.tools.filters import FilterArguments
from connector.tools.shapes import SUMMARY_SCHEMA, answer_schema, applied_filters, summary
from connector.tools.tool import Call, JsonObject, Tool
from store import listing
from store.cursors import MAX_CURSOR_CHARACTERS

MAX_LISTED = 100

Cursor = Annotated[str, StringConstraints(max_length=MAX_CURSOR_CHARACTERS)]


class ListContext(FilterArguments):
    """Arguments of `list_context`."""

    cursor: Annotated[Cursor | None, Field(description="next_cursor of the page before")] = None
    limit: Annotated[int, Field(description=f"1 to {MAX_LISTED}")] = 20


def _list_context(call: Call, arguments: ListContext) -> JsonObject:
    filters = arguments.filters()
    call.must_see(filters.state)
    limit = min(max(arguments.limit, 1), MAX_LISTED)
    page = listing.page(call.engine, call.view, filters, limit, arguments.cursor)
    return {
        "items": [summary(memory) for memory in page.memories],
        "next_cursor": page.next_cursor,
        "applied_filters": applied_filters(filters, limit=limit, space=call.space.name),
    }


TOOLS = (
    Tool(
        name="list_context",
        title="List memories",
        description="Lists the memories of the active space, newest first, page by page.",
        scope="memory:read",
        arguments=ListContext,
        output_schema=answer_schema(
            items={"type": "array", "items": SUMMARY_SCHEMA},
            next_cursor={"type": ["string", "null"]},
            applied_filters={"type": "object"},
        ),
        run=_list_context,
        read_only=True,
        listed="full",
    ),
)
