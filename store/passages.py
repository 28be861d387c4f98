"""Splitting content into passages, each embedded together with what surrounds it.

A memory is found through its best passage, which is also its summary. A short passage says exactly one thing
but may not say of what; so its vector is the mean of its own and of its surroundings', which makes its cosine
to a query the mean of both cosines. Cuts fall on paragraphs, else on sentences, else on words, else between
grapheme clusters; every character of the content is in a passage.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import regex

PASSAGE_CHARACTERS = 250
SURROUNDINGS_CHARACTERS = 1200
_BOUNDARIES = (
    regex.compile(r"\n\s*\n"),
    regex.compile(r"\n|[.!?…](?=\s)\s|[。！？]"),
    regex.compile(r"\s"),
    regex.compile(r"\X"),
)


@dataclass(frozen=True)
class Surroundings:
    """A stretch of content, and the passages that it consists of; white space alone is none."""

    text: str
    passages: tuple[str, ...]


def split(content: str) -> list[Surroundings]:
    """The content in order, in stretches of at most `SURROUNDINGS_CHARACTERS`."""
    stretches = pieces(content, SURROUNDINGS_CHARACTERS)
    return [Surroundings(text, _passages(text)) for text in stretches if text.strip()]


def _passages(text: str) -> tuple[str, ...]:
    return tuple(piece for piece in pieces(text, PASSAGE_CHARACTERS) if piece.strip())


def pieces(content: str, limit: int) -> Iterator[str]:
    """The content in order, in pieces of at most `limit` characters."""
    start = 0
    while len(content) - start > limit:
        end = start + _cut(content[start : start + limit])
        yield content[start:end]
        start = end
    yield content[start:]


def _cut(window: str) -> int:
    """Where to end the passage: after the last boundary in the second half, of the best kind there is."""
    for boundary in _BOUNDARIES:
        ends = [match.end() for match in boundary.finditer(window, len(window) // 2)]
        # A grapheme cluster that touches the window's end may go on behind it.
        if boundary is _BOUNDARIES[-1]:
            ends = ends[:-1]
        if ends:
            return ends[-1]
    return len(window)
