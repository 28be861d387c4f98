"""The tools that put memories in order for good: history, merging, review, deletion."""

from typing import Annotated

from pydantic import Field

from connector.tools.core import Id
from connector.tools.filters import Topic
from connector.tools.shapes import ITEM_SCHEMA, answer_schema, item
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store import consolidation, documents, lifecycle
from store.consolidation import MAX_SOURCES, MIN_SOURCES
from store.errors import StoreError

Reviewed = Annotated[tuple[Id, ...], Field(min_length=1, max_length=lifecycle.MAX_REVIEWED)]


class DeprecateContext(Arguments):
    """Arguments of `deprecate_context`."""

    id: Id
    superseding_id: Annotated[Id | None, Field(description="The memory that takes its place")] = None


def _deprecate_context(call: Call, arguments: DeprecateContext) -> JsonObject:
    view = call.view_of_spaces
    return {"item": item(lifecycle.deprecate(call.engine, view, arguments.id, arguments.superseding_id))}


class ConsolidateContext(Arguments):
    """Arguments of `consolidate_context`."""

    topic: Annotated[Topic | None, Field(description="Merges the drafts (wip) of this topic")] = None
    source_ids: Annotated[
        tuple[Id, ...] | None,
        Field(
            min_length=MIN_SOURCES,
            max_length=MAX_SOURCES,
            description="Merges these memories, in any state",
        ),
    ] = None
    content: Annotated[
        str | None, Field(description="The merged text; left out, the server's language model writes it")
    ] = None


def _consolidate_context(call: Call, arguments: ConsolidateContext) -> JsonObject:
    if arguments.topic is not None and arguments.source_ids is None:
        sources = consolidation.drafts_of(call.engine, call.view, arguments.topic)
    elif arguments.source_ids is not None and arguments.topic is None:
        sources = consolidation.named(call.engine, call.view_of_spaces, arguments.source_ids)
    else:
        raise StoreError("invalid_argument", "give either topic or source_ids")
    principal = call.principal
    merged = consolidation.consolidate(
        call.engine,
        call.view_of_spaces,
        sources,
        principal.app,
        principal.client_name,
        arguments.content,
    )
    return {"item": item(merged), "deprecated": [source.id for source in sources]}


class ApproveContext(Arguments):
    """Arguments of `approve_context`."""

    ids: Reviewed


def _approve_context(call: Call, arguments: ApproveContext) -> JsonObject:
    approved = lifecycle.approve(call.engine, call.view_of_spaces, arguments.ids)
    return {"items": [item(memory) for memory in approved]}


class RejectContext(Arguments):
    """Arguments of `reject_context`."""

    ids: Reviewed


def _reject_context(call: Call, arguments: RejectContext) -> JsonObject:
    return {"rejected": lifecycle.reject(call.engine, call.view_of_spaces, arguments.ids)}


class DeleteContext(Arguments):
    """Arguments of `delete_context`."""

    id: Id
    confirm: Annotated[Id, Field(description="The same id again")]


def _delete_context(call: Call, arguments: DeleteContext) -> JsonObject:
    view = call.view_of_spaces
    if documents.is_document(call.engine, view, arguments.id):
        return {"id": documents.delete(call.engine, view, arguments.id, arguments.confirm), "deleted": True}
    return {"id": lifecycle.delete(call.engine, view, arguments.id, arguments.confirm), "deleted": True}


_IDS: JsonObject = {"type": "array", "items": {"type": "string"}}
TOOLS = (
    Tool(
        name="deprecate_context",
        title="Mark a memory as outdated",
        description="Keeps a memory as history, out of normal search, and can name its successor.",
        scope="memory:maintain",
        arguments=DeprecateContext,
        output_schema=answer_schema(item=ITEM_SCHEMA),
        run=_deprecate_context,
        destructive=True,
        listed="full",
    ),
    Tool(
        name="consolidate_context",
        title="Merge memories",
        description="Makes one memory of several, which are kept as history and point to it.",
        scope="memory:maintain",
        arguments=ConsolidateContext,
        output_schema=answer_schema(item=ITEM_SCHEMA, deprecated=_IDS),
        run=_consolidate_context,
        destructive=True,
        listed="full",
    ),
    Tool(
        name="approve_context",
        title="Accept waiting memories",
        description="Accepts memories from outside that wait for the owner's review (pending). One that was "
        "to change another memory becomes its next revision.",
        scope="memory:maintain",
        arguments=ApproveContext,
        output_schema=answer_schema(items={"type": "array", "items": ITEM_SCHEMA}),
        run=_approve_context,
        listed="full",
    ),
    Tool(
        name="reject_context",
        title="Turn waiting memories down",
        description="Forgets memories that wait for the owner's review (pending). This can be undone.",
        scope="memory:maintain",
        arguments=RejectContext,
        output_schema=answer_schema(rejected=_IDS),
        run=_reject_context,
        destructive=True,
        listed="full",
    ),
    Tool(
        name="delete_context",
        title="Delete a memory for good",
        description="Deletes one memory, its history and everything derived from it. It cannot be undone.",
        scope="memory:delete",
        arguments=DeleteContext,
        output_schema=answer_schema(id={"type": "string"}, deleted={"type": "boolean"}),
        run=_delete_context,
        destructive=True,
        listed="full",
    ),
)
