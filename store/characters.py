"""Text that can be stored: valid Unicode, and something of it visible."""

import regex

_VISIBLE = regex.compile(r"[^\p{C}\p{Z}\p{Mn}\u115F\u1160\u2800\u3164\uFFA0]")
_SURROGATE = regex.compile(r"[\ud800-\udfff]")


def well_formed(text: str) -> str:
    """The text with U+FFFD for each lone surrogate, which no UTF-8 can hold."""
    return _SURROGATE.sub("\N{REPLACEMENT CHARACTER}", text)


def is_visible(text: str) -> bool:
    """Whether a reader would see anything."""
    return _VISIBLE.search(text) is not None
