"""The default tools that keep memories in order: pin, forget, choose a space."""

from typing import Annotated

from pydantic import Field

from connector.tools.core import Id
from connector.tools.shapes import ITEM_SCHEMA, answer_schema, item, space
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store import documents, lifecycle


class PinContext(Arguments):
    """Arguments of `pin_context`."""

    id: Id
    pinned: Annotated[bool, Field(description="false unpins")]


def _pin_context(call: Call, arguments: PinContext) -> JsonObject:
    memory = call.find(arguments.id)
    pinned = call.engine.pin(call.owner, [memory.space], memory.id, arguments.pinned)
    return {"item": item(pinned)}


class ForgetContext(Arguments):
    """Arguments of `forget_context`."""

    id: Id
    undo: Annotated[bool, Field(description="Bring a forgotten memory back")] = False


def _forget_context(call: Call, arguments: ForgetContext) -> JsonObject:
    view = call.view_of_spaces
    if documents.is_document(call.engine, view, arguments.id):
        change = documents.restore if arguments.undo else documents.forget
        change(call.engine, view, arguments.id)
    elif arguments.undo:
        lifecycle.restore(call.engine, view, arguments.id)
    elif not lifecycle.is_forgotten(call.engine, view, arguments.id):
        memory = call.find(arguments.id)
        call.engine.forget(call.owner, [memory.space], memory.id)
    return {"id": arguments.id, "forgotten": not arguments.undo}


class UseSpace(Arguments):
    """Arguments of `use_space`."""

    space: Annotated[Id, Field(description="A space's name or id")]


def _use_space(call: Call, arguments: UseSpace) -> JsonObject:
    principal = call.principal
    chosen = call.engine.use_space(call.owner, principal.app, arguments.space, principal.spaces)
    return {"active_space": space(chosen), "spaces": [space(each) for each in call.spaces]}


TOOLS = (
    Tool(
        name="use_space",
        title="Choose a space",
        description="Makes a space the active one for this connection. Nothing is copied or moved.",
        scope="memory:write",
        arguments=UseSpace,
        output_schema=answer_schema(active_space={"type": "object"}, spaces={"type": "array"}),
        run=_use_space,
    ),
    Tool(
        name="pin_context",
        title="Pin a memory",
        description="Pins a memory, or unpins it.",
        scope="memory:write",
        arguments=PinContext,
        output_schema=answer_schema(item=ITEM_SCHEMA),
        run=_pin_context,
    ),
    Tool(
        name="forget_context",
        title="Forget a memory",
        description="Hides a memory from every search and tool. It is kept, and undo brings it back.",
        scope="memory:write",
        arguments=ForgetContext,
        output_schema=answer_schema(id={"type": "string"}, forgotten={"type": "boolean"}),
        run=_forget_context,
        destructive=True,
    ),
)
