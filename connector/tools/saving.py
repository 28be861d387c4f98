"""`save_context`: one memory, from text or from an image that is put into words."""

import base64
from typing import Annotated, Literal

from pydantic import Field, StringConstraints

from connector.tools.core import Id
from connector.tools.dates import From, Until
from connector.tools.filters import Tags, Topic
from connector.tools.shapes import ITEM_SCHEMA, answer_schema, item
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store import images
from store.errors import StoreError
from store.memory import Draft, Kind, Source, State

Reference = Annotated[str, StringConstraints(min_length=1, max_length=1000)]


class SourceArguments(Arguments):
    """Where the memory comes from."""

    origin: Literal["user", "agent", "external"] = "agent"
    session: Reference | None = None
    url: Reference | None = None
    external_id: Reference | None = None
    derived_from: Annotated[tuple[Id, ...], Field(max_length=50)] = ()
    confidence: Annotated[float, Field(ge=0, le=1)] | None = None

    def source(self, call: Call) -> Source:
        """As the engine takes it; who calls is not for the caller to say."""
        return Source(**self.model_dump(), client_name=call.principal.client_name)


class SaveContext(Arguments):
    """Arguments of `save_context`."""

    content: Annotated[str | None, Field(description="The text to keep, at most 512 KiB")] = None
    topic: Annotated[Topic, Field(description="Groups memories; exact match in search")] = "general"
    draft: Annotated[bool | None, Field(description="Keep as work in progress, out of normal search")] = None
    kind: Kind = "note"
    tags: Tags = ()
    source: SourceArguments = SourceArguments()
    artifact_refs: Annotated[
        tuple[Reference, ...], Field(max_length=50, description="Paths or URLs of files")
    ] = ()
    image_base64: Annotated[str | None, Field(description="Described in words; not kept itself")] = None
    image_mime_type: Annotated[str | None, Field(description="PNG, JPEG, WebP or GIF, up to 2 MiB")] = None
    valid_from: Annotated[From, Field(description="RFC 3339 time or date")] = None
    valid_until: Annotated[Until, Field(description="RFC 3339 time or date, inclusive")] = None
    supersedes: Annotated[Id | None, Field(description="A memory that this one replaces")] = None
    branch_state: State | None = None
    if_revision: Annotated[int, Field(ge=1, description="Refuse if the memory has changed since")] | None = (
        None
    )


def _save_context(call: Call, arguments: SaveContext) -> JsonObject:
    state = _state(call, arguments)
    supersedes = _superseded(call, arguments.supersedes)
    image = _image(call, arguments)
    content = arguments.content if image is None else arguments.content or image.text
    if content is None:
        raise StoreError("invalid_argument", "give content or an image")
    draft = Draft(
        content=content,
        topic=arguments.topic,
        state=state,
        kind=arguments.kind,
        tags=arguments.tags,
        modality="text" if image is None else "image",
        artifact_refs=arguments.artifact_refs,
        source=arguments.source.source(call),
        valid_from=arguments.valid_from,
        valid_until=arguments.valid_until,
        if_revision=arguments.if_revision,
        supersedes=supersedes,
        retrieval_text=None if image is None else image.text,
        image_sha256=None if image is None else image.sha256,
    )
    saved = call.engine.save(call.owner, call.space.id, call.principal.app, draft)
    # A duplicate may be hidden from this app: it is told only what it said itself.
    shown = item(saved.memory)
    if not call.view.shows(saved.memory):
        shown = {"id": saved.memory.id, "content": content, "metadata": {}}
    answer = {"item": shown, "write_status": saved.write_status, "indexed": saved.indexed}
    return answer | ({"note": image.note} if image is not None and image.note else {})


def _image(call: Call, arguments: SaveContext) -> images.Read | None:
    if arguments.image_base64 is None:
        if arguments.image_mime_type is not None:
            raise StoreError("invalid_argument", "image_mime_type is given without image_base64")
        return None
    if arguments.image_mime_type is None:
        raise StoreError("invalid_argument", "image_mime_type is required with an image")
    try:
        image = base64.b64decode(arguments.image_base64, validate=True)
    except ValueError as error:
        raise StoreError("invalid_argument", "image_base64 is not base64") from error
    return images.read(call.engine, image, arguments.image_mime_type, bool(arguments.content))


def _state(call: Call, arguments: SaveContext) -> State:
    if arguments.draft is not None and arguments.branch_state is not None:
        raise StoreError("invalid_argument", "give draft or branch_state, not both")
    state: State = arguments.branch_state or ("wip" if arguments.draft else "active")
    if state not in ("active", "wip") and "memory:maintain" not in call.principal.scopes:
        raise StoreError("forbidden", f"branch_state {state} needs the permission memory:maintain")
    return state


def _superseded(call: Call, memory_id: str | None) -> str | None:
    if memory_id is None:
        return None
    if "memory:maintain" not in call.principal.scopes:
        raise StoreError("forbidden", "supersedes needs the permission memory:maintain")
    return call.find(memory_id).id


TOOLS = (
    Tool(
        name="save_context",
        title="Save a memory",
        description="Stores one memory for the signed-in owner, who sees it from every connected assistant. "
        "Saving the same text again within 15 minutes, or the same source.external_id, makes no second copy. "
        "Only what is passed here is stored.",
        scope="memory:write",
        arguments=SaveContext,
        output_schema=answer_schema(
            item=ITEM_SCHEMA,
            write_status={"enum": ["created", "duplicate", "updated", "pending"]},
            indexed={"type": "boolean"},
            note_={"type": "string"},
        ),
        run=_save_context,
    ),
)
