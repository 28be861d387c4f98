"""The rules that a memory is checked by before it is stored (TOOLS "A memory" and `save_context`)."""

from collections.abc import Iterable
from dataclasses import replace

from store.characters import is_visible, well_formed
from store.errors import StoreError
from store.memory import Draft, Source

MAX_CONTENT_BYTES = 512 * 1024
MAX_TOPIC_CHARACTERS = 200
MAX_TAGS = 32
MAX_TAG_CHARACTERS = 100


def check(draft: Draft) -> Draft:
    """The draft with its text made valid Unicode.

    Raises:
        StoreError: `invalid_argument` or `too_large`, naming the argument and the limit.
    """
    content = _visible("content", draft.content)
    if len(content.encode()) > MAX_CONTENT_BYTES:
        raise StoreError("too_large", f"content is larger than {MAX_CONTENT_BYTES} bytes of UTF-8")
    topic = _visible("topic", draft.topic)
    if len(topic) > MAX_TOPIC_CHARACTERS:
        raise StoreError("invalid_argument", f"topic is longer than {MAX_TOPIC_CHARACTERS} characters")
    if len(draft.tags) > MAX_TAGS:
        raise StoreError("invalid_argument", f"more than {MAX_TAGS} tags")
    tags = tuple(dict.fromkeys(_visible("tags", tag) for tag in draft.tags))
    if any(len(tag) > MAX_TAG_CHARACTERS for tag in tags):
        raise StoreError("invalid_argument", f"a tag is longer than {MAX_TAG_CHARACTERS} characters")
    if draft.valid_from and draft.valid_until and draft.valid_until <= draft.valid_from:
        raise StoreError("invalid_argument", "valid_until is not after valid_from")
    if draft.if_revision is not None and draft.source.external_id is None:
        raise StoreError("invalid_argument", "if_revision is for memories with a source.external_id")
    if draft.supersedes is not None and draft.source.origin == "external":
        raise StoreError(
            "invalid_argument", "what comes from outside waits for review and supersedes nothing"
        )
    references = _all("artifact_refs", draft.artifact_refs)
    source = _source(draft.source)
    return replace(
        draft,
        content=content,
        topic=topic,
        tags=tags,
        artifact_refs=references,
        source=source,
        supersedes=_optional("supersedes", draft.supersedes),
    )


def _source(source: Source) -> Source:
    return replace(
        source,
        client_name=None if source.client_name is None else well_formed(source.client_name),
        session=_optional("session", source.session),
        url=_optional("url", source.url),
        external_id=_optional("external_id", source.external_id),
        derived_from=_all("derived_from", source.derived_from),
    )


def _optional(name: str, value: str | None) -> str | None:
    return None if value is None else _text(name, value)


def _all(name: str, values: Iterable[str]) -> tuple[str, ...]:
    return tuple(_text(name, value) for value in values)


def _visible(name: str, value: str) -> str:
    if not is_visible(value) and "\0" not in value:
        raise StoreError("invalid_argument", f"{name} is empty, or nothing of it is visible")
    return _text(name, value)


def _text(name: str, value: str) -> str:
    if "\0" in value:
        raise StoreError("invalid_argument", f"{name} contains NUL")
    return well_formed(value)
