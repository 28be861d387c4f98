"""Splitting a document on its structure into chunks, each of which becomes a memory.

A chunk is a stretch of the source under a line that names the document and the headings it stands below. The
stretches in order are the source. A heading begins a chunk; code blocks, tables, lists and paragraphs are cut
only where one alone is longer than a chunk: lists and quotations between their items, code and tables between
lines, paragraphs as `store.passages` does. Plain text is Markdown without headings.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import pairwise

import regex
from markdown_it import MarkdownIt
from markdown_it.token import Token

from store.passages import SURROUNDINGS_CHARACTERS, pieces
from store.summary import cut

CHUNK_CHARACTERS = SURROUNDINGS_CHARACTERS
"""With its path: one stretch, whose vector every passage shares."""
PATH_CHARACTERS = 200
HEADING_CHARACTERS = 80
SEPARATOR = " › "
_BELOW_PATH = "\n\n"
_CONTAINERS = ("bullet_list_open", "ordered_list_open", "list_item_open", "blockquote_open")
_CUT_BY_LINES = ("fence", "code_block", "table_open", "html_block")
_LINE = regex.compile(r"[^\r\n]*(?:\r\n|\r|\n)|[^\r\n]+")
_FRONT_MATTER = regex.compile(
    r"---[ \t]*(?:\r\n|\r|\n)(?:[^\r\n]*(?:\r\n|\r|\n))*?(?:---|\.\.\.)[ \t]*(?:\r\n|\r|\n|\Z)"
)
MAX_INLINE_CHARACTERS = 1000


@dataclass(frozen=True)
class Chunk:
    """A stretch of a document; `path` is its title and headings, outermost first."""

    path: str
    text: str

    @property
    def content(self) -> str:
        """What the memory says."""
        return self.path + _BELOW_PATH + self.text


@dataclass(frozen=True)
class _Piece:
    """What is not cut any more; `headings` are those it stands below, its own included."""

    text: str
    headings: tuple[str, ...]
    is_heading: bool


def split(title: str, content: str) -> list[Chunk]:
    """The document's chunks in order; stretches of white space alone are none."""
    chunks: list[Chunk] = []
    text, path, is_headings = "", "", True
    for piece in _pieces(title, content):
        own = path_of(title, piece.headings)
        # Headings that nothing stands below go on with the next one.
        goes_on = is_headings or not piece.is_heading
        if not (goes_on and len(text) + len(piece.text) <= _room(own)):
            chunks.append(Chunk(path, text))
            text, is_headings = "", True
        text, path, is_headings = text + piece.text, own, is_headings and piece.is_heading
    chunks.append(Chunk(path, text))
    return [chunk for chunk in chunks if chunk.text.strip()]


def body(content: str, title: str) -> str:
    """The stretch of the source in a chunk's content; all of it once it says something else."""
    path, separator, text = content.partition(_BELOW_PATH)
    first = path_of(title, ())
    is_path = path == first or path.startswith(first + SEPARATOR)
    return text if separator and is_path else content


def path_of(title: str, headings: Sequence[str]) -> str:
    """One line; of many or long headings the nearest stay."""
    first = cut(title, HEADING_CHARACTERS)
    below = [cut(heading, HEADING_CHARACTERS) for heading in headings if heading]
    if below and below[0].casefold() == first.casefold():
        del below[0]
    while len(SEPARATOR.join((first, *below))) > PATH_CHARACTERS:
        del below[0]
    return SEPARATOR.join((first, *below))


def first_heading(content: str) -> str | None:
    """The document's own title, where it has one."""
    for token, inline in pairwise(_Source(content).tokens):
        if token.type == "heading_open" and token.level == 0 and (heading := _plain(inline.content)):
            return heading
    return None


def _room(path: str) -> int:
    return CHUNK_CHARACTERS - len(path + _BELOW_PATH)


def _pieces(title: str, content: str) -> Iterator[_Piece]:
    source = _Source(content)
    if source.before:
        for text in _lines(source.before, _room(path_of(title, ()))):
            yield _Piece(text, (), is_heading=False)
    open_headings: list[tuple[int, str]] = []
    for block in source.blocks():
        is_heading = block.kind == "heading_open"
        if is_heading:
            level = int(block.tokens[0].tag[1:])
            open_headings = [each for each in open_headings if each[0] < level]
            open_headings.append((level, _plain(block.tokens[1].content)))
        headings = tuple(heading for _, heading in open_headings)
        for text in source.cut(block, _room(path_of(title, headings))):
            yield _Piece(text, headings, is_heading)


@dataclass(frozen=True)
class _Block:
    """A block and all within it; its lines run to where the next block begins."""

    tokens: Sequence[Token]
    start: int
    end: int

    @property
    def kind(self) -> str:
        return self.tokens[0].type if self.tokens else "paragraph_open"


class _Source:
    """A document's lines, and what CommonMark (with tables) makes of them."""

    def __init__(self, content: str) -> None:
        found = _FRONT_MATTER.match(content)
        self.before = found.group() if found else ""
        """The front matter, which is no Markdown."""
        markdown = content[len(self.before) :]
        self._lines = _LINE.findall(markdown)
        self.tokens = MarkdownIt("commonmark").enable("table").disable("inline").parse(markdown)

    def text(self, block: _Block) -> str:
        return "".join(self._lines[block.start : block.end])

    def blocks(self) -> Iterator[_Block]:
        """The outermost blocks, each with the blank lines and link definitions that follow it."""
        yield from _blocks(self.tokens, 0, len(self._lines))

    def cut(self, block: _Block, room: int) -> Iterator[str]:
        """The block in one piece, or in pieces that fit."""
        text = self.text(block)
        if len(text) <= room:
            yield text
        elif block.kind in _CONTAINERS:
            for inner in _blocks(block.tokens[1:-1], block.start, block.end):
                yield from self.cut(inner, room)
        elif block.kind in _CUT_BY_LINES:
            yield from _lines(text, room)
        else:
            yield from pieces(text, room)


def _blocks(tokens: Sequence[Token], start: int, end: int) -> Iterator[_Block]:
    """The outermost blocks among the tokens; the first also has what stands before it."""
    openings = [
        (at, token.map[0])
        for at, token in enumerate(tokens)
        if token.level == tokens[0].level and token.nesting >= 0 and token.map
    ]
    if not openings:
        yield _Block((), start, end)
        return
    openings[0] = (0, start)
    for (at, first), (following, last) in pairwise([*openings, (len(tokens), end)]):
        yield _Block(tokens[at:following], first, last)


def _lines(text: str, room: int) -> Iterator[str]:
    """Whole lines, as many as fit; a longer one is cut as a paragraph is."""
    held = ""
    for line in _LINE.findall(text):
        if len(held) + len(line) > room:
            if held:
                yield held
            *whole, held = pieces(line, room)
            yield from whole
        else:
            held += line
    yield held


def _plain(heading: str) -> str:
    """A heading's words without their markup."""
    (inline,) = MarkdownIt("commonmark").parseInline(heading[:MAX_INLINE_CHARACTERS])
    words = [
        " " if token.type in ("softbreak", "hardbreak") else token.content
        for token in inline.children or ()
        if token.type != "html_inline"
    ]
    return cut("".join(words), HEADING_CHARACTERS)
