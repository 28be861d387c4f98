"""Cutting text where a reader would: between grapheme clusters, never inside an emoji or an accent."""

import regex

ELLIPSIS = "…"
_GRAPHEME = regex.compile(r"\X")
_SPACE = regex.compile(r"\s+")


def cut(text: str, limit: int = 220) -> str:
    """One line of at most `limit` characters (code points), with an ellipsis when something was left out."""
    line = _SPACE.sub(" ", text[: limit * 8]).strip()
    if len(line) <= limit and len(text) <= limit * 8:
        return line
    kept = 0
    for grapheme in _GRAPHEME.finditer(line):
        if grapheme.end() > limit - len(ELLIPSIS):
            break
        kept = grapheme.end()
    return line[:kept].rstrip() + ELLIPSIS
