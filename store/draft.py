"""The rules that a memory is checked by before it is stored (TOOLS "A memory" and `save_context`)."""

from dataclasses import replace

import regex

from store.errors import StoreError
from store.memory import Draft

MAX_CONTENT_BYTES = 512 * 1024
MAX_TOPIC_CHARACTERS = 200
MAX_TAGS = 32
MAX_TAG_CHARACTERS = 100
_VISIBLE = regex.compile(r"[^\p{C}\p{Z}\p{Mn}\u115F\u1160\u2800\u3164\uFFA0]")
_SURROGATE = regex.compile(r"[\ud800-\udfff]")


def check(draft: Draft) -> Draft:
    """The draft with its text made valid Unicode.

    Raises:
        StoreError: `invalid_argument` or `too_large`, naming the argument and the limit.
    """
    content = _text("content", draft.content)
    if len(content.encode()) > MAX_CONTENT_BYTES:
        raise StoreError("too_large", f"content is larger than {MAX_CONTENT_BYTES} bytes of UTF-8")
    topic = _text("topic", draft.topic)
    if len(topic) > MAX_TOPIC_CHARACTERS:
        raise StoreError("invalid_argument", f"topic is longer than {MAX_TOPIC_CHARACTERS} characters")
    if len(draft.tags) > MAX_TAGS:
        raise StoreError("invalid_argument", f"more than {MAX_TAGS} tags")
    tags = tuple(dict.fromkeys(_text("tags", tag) for tag in draft.tags))
    if any(len(tag) > MAX_TAG_CHARACTERS for tag in tags):
        raise StoreError("invalid_argument", f"a tag is longer than {MAX_TAG_CHARACTERS} characters")
    if draft.valid_from and draft.valid_until and draft.valid_until <= draft.valid_from:
        raise StoreError("invalid_argument", "valid_until is not after valid_from")
    return replace(draft, content=content, topic=topic, tags=tags)


def _text(name: str, value: str) -> str:
    if "\0" in value:
        raise StoreError("invalid_argument", f"{name} contains NUL")
    if not _VISIBLE.search(value):
        raise StoreError("invalid_argument", f"{name} is empty, or nothing of it is visible")
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", value)
