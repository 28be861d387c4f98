"""Splitting long content into passages that an embedder reads whole.

A memory is found through its best passage. Cuts fall on paragraphs, else on sentences, else on words, else
between grapheme clusters; every character of the content is in a passage.
"""

from collections.abc import Iterator

import regex

PASSAGE_CHARACTERS = 1200
_BOUNDARIES = (
    regex.compile(r"\n\s*\n"),
    regex.compile(r"\n|[.!?…](?=\s)\s|[。！？]"),
    regex.compile(r"\s"),
    regex.compile(r"\X"),
)


def split(content: str, limit: int = PASSAGE_CHARACTERS) -> list[str]:
    """The passages in order, each of 1 to `limit` characters and more than white space."""
    return [passage for passage in _pieces(content, limit) if passage.strip()]


def _pieces(content: str, limit: int) -> Iterator[str]:
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
