"""How memories, spaces and filters look in a tool's answer, and the schemas that promise it."""

from collections.abc import Mapping
from typing import Any

from connector.tools.dates import rfc3339
from connector.tools.tool import JsonObject
from store.memory import Document, Filters, Hit, Memory, Source, Space
from store.summary import cut

# The names alone: what is in them the answers show, and a host's context holds this in every conversation.
ITEM_SCHEMA: JsonObject = {"type": "object", "required": ["id", "content", "metadata"]}
MATCH_SCHEMA: JsonObject = {"type": "object", "required": ["id", "summary", "score", "metadata"]}

SUMMARY_SCHEMA: JsonObject = {"type": "object", "required": ["id", "summary", "metadata"]}


def answer_schema(**properties: JsonObject) -> JsonObject:
    """An output schema; a property whose key ends in `_` (cut off) may be absent."""
    return {
        "type": "object",
        "properties": {name.rstrip("_"): value for name, value in properties.items()},
        "required": [name for name in properties if not name.endswith("_")],
    }


def item(memory: Memory) -> JsonObject:
    """A whole memory."""
    return {"id": memory.id, "content": memory.content, "metadata": metadata(memory)}


def document(value: Document, content: str) -> JsonObject:
    """A whole document."""
    about = {
        "title": value.title,
        "kind": "document",
        "space": value.space,
        "chunks": list(value.chunks),
        "source": _source(value.source),
        "created_at": rfc3339(value.created_at),
        "updated_at": rfc3339(value.updated_at),
        "revision": value.revision,
    }
    return {"id": value.id, "content": content, "metadata": about}


def match(hit: Hit) -> JsonObject:
    """A memory found by a search."""
    shape: JsonObject = {
        "id": hit.memory.id,
        "summary": hit.summary,
        "score": round(hit.score, 4),
        "metadata": metadata(hit.memory),
    }
    return shape | ({"explain": dict(hit.parts)} if hit.parts else {})


def summary(memory: Memory) -> JsonObject:
    """A memory in a list."""
    return {"id": memory.id, "summary": cut(memory.content), "metadata": metadata(memory)}


def metadata(memory: Memory) -> JsonObject:
    """Everything about a memory but its id and content; absent fields are left out."""
    return _present(
        {
            "topic": memory.topic,
            "branch_state": memory.state,
            "kind": memory.kind,
            "tags": list(memory.tags),
            "modality": memory.modality,
            "artifact_refs": list(memory.artifact_refs),
            "pinned": memory.pinned or None,
            "space": memory.space,
            "source": _source(memory.source),
            "valid_from": memory.valid_from and rfc3339(memory.valid_from),
            "valid_until": memory.valid_until and rfc3339(memory.valid_until),
            "document_id": memory.document_id,
            "image_sha256": memory.image_sha256,
            "superseded_by": memory.superseded_by,
            "created_at": rfc3339(memory.created_at),
            "updated_at": rfc3339(memory.updated_at),
            "last_used_at": memory.last_used_at and rfc3339(memory.last_used_at),
            "revision": memory.revision,
        }
    )


def _source(source: Source) -> JsonObject:
    return _present(
        {
            "origin": source.origin,
            "client_name": source.client_name,
            "session": source.session,
            "url": source.url,
            "external_id": source.external_id,
            "derived_from": list(source.derived_from),
            "confidence": source.confidence,
        }
    )


def space(value: Space) -> JsonObject:
    """A space as the tools name it."""
    return {"id": value.id, "name": value.name}


def applied_filters(filters: Filters, **others: Any) -> JsonObject:
    """What the search was limited to after clamping; keys are null when unset."""
    return {
        "state": filters.state,
        "topic": filters.topic,
        "kind": filters.kind,
        "tags": list(filters.tags) or None,
        "origin": filters.origin,
        "created_after": filters.created_after and rfc3339(filters.created_after),
        "created_before": filters.created_before and rfc3339(filters.created_before),
        "valid_at": filters.valid_at and rfc3339(filters.valid_at),
    } | others


def _present(fields: Mapping[str, Any]) -> JsonObject:
    return {name: value for name, value in fields.items() if value is not None and value != []}
