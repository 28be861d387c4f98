"""Sentences of a text, verbatim: what a citation can quote."""

from collections.abc import Iterator

import regex

MAX_SENTENCE_CHARACTERS = 400
_ABBREVIATED = r"(?<!\b(?:Dr|Mr|Mrs|Ms|St|Nr|No|vs|bzw|ca|\p{Lu})\.)"
_BETWEEN = regex.compile(rf"\s*\n\s*|{_ABBREVIATED}(?<=[.!?…])\s+(?!\p{{Ll}})|(?<=[。！？])")
_LAST_SPACE = regex.compile(r"\s+", regex.REVERSE)
_GRAPHEME = regex.compile(r"\X")


def sentences(text: str) -> Iterator[str]:
    """The sentences and lines in order, without the white space between; a long one comes in pieces."""
    start = 0
    for boundary in _BETWEEN.finditer(text):
        yield from _pieces(text[start : boundary.start()])
        start = boundary.end()
    yield from _pieces(text[start:])


def _pieces(sentence: str) -> Iterator[str]:
    rest = sentence.strip()
    while len(rest) > MAX_SENTENCE_CHARACTERS:
        end = _cut(rest[:MAX_SENTENCE_CHARACTERS])
        yield rest[:end].rstrip()
        rest = rest[end:].lstrip()
    if rest:
        yield rest


def _cut(window: str) -> int:
    space = _LAST_SPACE.search(window, len(window) // 2)
    if space is not None:
        return space.start()
    # The last cluster of the window may go on behind it.
    ends = [match.start() for match in _GRAPHEME.finditer(window)]
    return ends[-1] or len(window)
