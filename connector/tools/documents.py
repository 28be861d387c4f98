"""Documents, and turns of conversations."""

from typing import Annotated

from pydantic import Field, StringConstraints

from connector.tools.dates import rfc3339
from connector.tools.listing import Cursor
from connector.tools.saving import Reference, SourceArguments
from connector.tools.shapes import answer_schema
from connector.tools.tool import Arguments, Call, JsonObject, Tool
from store import documents, episodes
from store.documents import DocumentDraft
from store.errors import StoreError
from store.memory import Role, Turn

Session = Annotated[str, StringConstraints(min_length=1, max_length=episodes.MAX_SESSION_CHARACTERS)]


class IngestDocument(Arguments):
    """Arguments of `ingest_document`."""

    title: Annotated[str, StringConstraints(min_length=1, max_length=documents.MAX_TITLE_CHARACTERS)]
    content: Annotated[str, Field(description="Markdown or plain text")]
    source: SourceArguments = SourceArguments()
    external_id: Annotated[
        Reference | None, Field(description="Known again by it: the next version replaces this one")
    ] = None


def _ingest_document(call: Call, arguments: IngestDocument) -> JsonObject:
    given = {arguments.external_id, arguments.source.external_id} - {None}
    if len(given) > 1:
        raise StoreError("invalid_argument", "external_id and source.external_id must agree")
    source = arguments.source.model_copy(update={"external_id": next(iter(given), None)}).source(call)
    draft = DocumentDraft(arguments.title, arguments.content, source)
    ingested = documents.ingest(call.engine, call.owner, call.space.id, call.principal.app, draft)
    return {
        "document_id": ingested.document.id,
        "chunks": len(ingested.document.chunks),
        "write_status": ingested.write_status,
    }


class StoreEpisode(Arguments):
    """Arguments of `store_episode`."""

    session_id: Session
    role: Role
    content: Annotated[str, Field(description="The turn, at most 512 KiB")]


def _store_episode(call: Call, arguments: StoreEpisode) -> JsonObject:
    _must_be_enabled(call)
    principal = call.principal
    turn, is_new = episodes.store(
        call.engine,
        call.owner,
        call.space.id,
        principal.app,
        principal.client_name,
        arguments.session_id,
        arguments.role,
        arguments.content,
    )
    return {"turn": turn.number, "write_status": "created" if is_new else "duplicate"}


class ListEpisodes(Arguments):
    """Arguments of `list_episodes`."""

    session_id: Session
    cursor: Annotated[Cursor | None, Field(description="next_cursor of the page before")] = None


def _list_episodes(call: Call, arguments: ListEpisodes) -> JsonObject:
    _must_be_enabled(call)
    page = episodes.page(call.engine, call.owner, call.space.id, arguments.session_id, arguments.cursor)
    return {"turns": [_turn(turn) for turn in page.turns], "next_cursor": page.next_cursor}


def _must_be_enabled(call: Call) -> None:
    if not call.principal.episodes:
        raise StoreError(
            "forbidden", "keeping turns of conversations is off for this app; the owner can turn it on"
        )


def _turn(turn: Turn) -> JsonObject:
    return {
        "turn": turn.number,
        "role": turn.role,
        "content": turn.content,
        "client_name": turn.client_name,
        "at": rfc3339(turn.at),
    }


TOOLS = (
    Tool(
        name="ingest_document",
        title="Store a document",
        description="Splits a document at its headings, paragraphs and lists, and stores it; each part is "
        "found by searching. The same text again changes nothing; a new version under the same external_id "
        "replaces the last.",
        scope="memory:write",
        arguments=IngestDocument,
        output_schema=answer_schema(
            document_id={"type": "string"},
            chunks={"type": "integer"},
            write_status={"enum": ["created", "unchanged", "updated"]},
        ),
        run=_ingest_document,
        listed="full",
    ),
    Tool(
        name="store_episode",
        title="Keep a turn of a conversation",
        description="Keeps one turn that is passed here, in order. Off until the owner turns it on.",
        scope="memory:write",
        arguments=StoreEpisode,
        output_schema=answer_schema(
            turn={"type": "integer"}, write_status={"enum": ["created", "duplicate"]}
        ),
        run=_store_episode,
        listed="full",
    ),
    Tool(
        name="list_episodes",
        title="Read turns of a conversation",
        description="Returns the kept turns of one session, in order, page by page. Off until the owner "
        "turns it on.",
        scope="memory:read",
        arguments=ListEpisodes,
        output_schema=answer_schema(
            turns={"type": "array", "items": {"type": "object"}}, next_cursor={"type": ["string", "null"]}
        ),
        run=_list_episodes,
        read_only=True,
        listed="full",
    ),
)
