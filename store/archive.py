"""The lossless export of all that one owner keeps: lines of JSON that any backend writes and reads alike.

The first line names the format, then come the owner's spaces, then space by space every memory, forgotten
ones too, with all it said before, the documents and the turns; the last line counts them and holds the
SHA-256 of all lines before it. What a backend can derive (passages, terms, vectors, edges) is left out. The
same data always make the same bytes.
"""

import hashlib
import json
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import IO, Any, Literal, Protocol

from store.archive_rows import Kept, Row, from_value, kind_of, line, moved, to_line
from store.backend import Passage
from store.engine import Engine
from store.errors import StoreError
from store.memory import Space, Turn

FORMAT = "vademecum-export"
VERSION = 1
BATCH = 64
Fate = Literal["created", "present", "different", "conflict"]
FATES: tuple[Fate, ...] = ("created", "present", "different", "conflict")


class Archive(Protocol):
    """What a backend brings so that its data can be moved. All of an owner's, whatever their state."""

    def read(self, owner: str) -> Iterator[Row]:
        """Everything of one moment: the spaces by (`created_at`, `id`), then what each of them holds.

        That is its memories and its documents, both by (`created_at`, `id`), then its turns by (`session`,
        `number`), texts compared by code point.
        """

    def put_spaces(self, owner: str, spaces: Sequence[Space]) -> Mapping[str, str]:
        """Makes the spaces that are missing, and says as which each is known here.

        A space is known by its id, else by its name. An owner who has no memories yet takes over the ids and
        the times of creation, so that the copy is like the original.
        """

    def put(self, owner: str, rows: Sequence[tuple[Row, Sequence[Passage]]]) -> list[Fate]:
        """Stores what is missing, each memory with its passages whole or not at all.

        Of one whose id is known nothing is changed: it is `present`, or `different` when it says something
        else. It is a `conflict` when something live has its `external_id` already. Vectors are owed.
        """


def export(archive: Archive, owner: str) -> Iterator[bytes]:
    """The lines, one by one."""
    counts = Counter[str]()
    written = line({"type": FORMAT, "version": VERSION})
    digest = hashlib.sha256(written)
    yield written
    for row in archive.read(owner):
        written = to_line(row)
        digest.update(written)
        counts[kind_of(row)] += 1
        yield written
    yield line(_end(counts, digest.hexdigest()))


def _end(counts: Mapping[str, int], sha256: str) -> dict[str, Any]:
    counted = {f"{kind}s": counts.get(kind, 0) for kind in ("space", "document", "turn")}
    return {"type": "end", "memories": counts.get("memory", 0)} | counted | {"sha256": sha256}


def is_export(first_line: bytes) -> bool:
    """Whether a file that begins with this line is such an export, of whatever version."""
    try:
        value = json.loads(first_line)
    except (ValueError, RecursionError):
        return False
    return isinstance(value, dict) and value.get("type") == FORMAT


@dataclass(frozen=True)
class Census:
    """What a whole, well-formed export holds."""

    spaces: tuple[Space, ...]
    rows: int
    """Without the spaces."""


def take_census(file: IO[bytes], owner: str) -> Census:
    """Reads the whole file without keeping it, so that a bad one changes nothing.

    Raises:
        StoreError: `invalid_argument`, naming the first line that is wrong, or that the file is cut off.
    """
    spaces, counts, is_ended = list[Space](), Counter[str](), False
    digest = hashlib.sha256()
    for number, written in enumerate(file, 1):
        try:
            value = _parsed(written)
            if number == 1:
                _expect_format(value)
            elif is_ended:
                raise StoreError("invalid_argument", "there is more after the end")
            elif value.get("type") == "end":
                _expect_end(value, _end(counts, digest.hexdigest()))
                is_ended = True
            else:
                _count(from_value(value, owner), spaces, counts)
        except StoreError as error:
            said = f"nothing was imported: line {number}: {error.message}"
            raise StoreError("invalid_argument", said) from error
        digest.update(written)
    if not is_ended:
        raise StoreError("invalid_argument", "nothing was imported: the file is cut off")
    return Census(tuple(spaces), counts.total() - len(spaces))


def _count(row: Row, spaces: list[Space], counts: Counter[str]) -> None:
    if isinstance(row, Space):
        if counts.total() > len(spaces):
            raise StoreError("invalid_argument", "spaces come before all else")
        spaces.append(row)
    elif _space_of(row) not in {space.id for space in spaces}:
        raise StoreError("invalid_argument", "its space is not in the file")
    counts[kind_of(row)] += 1


def _space_of(row: Row) -> str:
    if isinstance(row, Space):
        return row.id
    return row.memory.space if isinstance(row, Kept) else row.space


def load(
    engine: Engine, archive: Archive, owner: str, file: IO[bytes], spaces: Mapping[str, str]
) -> Iterator[list[tuple[str, Fate]]]:
    """Stores the rows of a file that `take_census` found good, batch by batch.

    Args:
        engine: Splits the texts.
        archive: Where they go.
        owner: Whose they become.
        file: The export, from its beginning.
        spaces: The file's spaces as they are known here, from `put_spaces`.

    Yields:
        How each row of a batch that is on disk is called, and its fate.
    """
    batch = list[Row]()
    for written in file:
        value = _parsed(written)
        if value.get("type") not in (FORMAT, "space", "end"):
            batch.append(moved(from_value(value, owner), spaces))
        if batch and (len(batch) == BATCH or value.get("type") == "end"):
            fates = archive.put(owner, [(row, _passages(engine, row)) for row in batch])
            yield [(_name(row), fate) for row, fate in zip(batch, fates, strict=True)]
            batch = []


def _passages(engine: Engine, row: Row) -> Sequence[Passage]:
    return engine.passages(row.memory) if isinstance(row, Kept) else ()


def _name(row: Row) -> str:
    if isinstance(row, Kept):
        return row.memory.id
    return f"{row.session}/{row.number}" if isinstance(row, Turn) else row.id


def _parsed(written: bytes) -> dict[str, Any]:
    try:
        value = json.loads(written)
    except (ValueError, RecursionError):
        raise StoreError("invalid_argument", "not JSON") from None
    if not isinstance(value, dict):
        raise StoreError("invalid_argument", "not an object")
    return value


def _expect_format(value: Mapping[str, Any]) -> None:
    if value.get("type") != FORMAT:
        raise StoreError("invalid_argument", "this is no export")
    if value.get("version") != VERSION:
        said = f"its version is {value.get('version')}, and this program knows {VERSION}"
        raise StoreError("invalid_argument", said)


def _expect_end(value: Mapping[str, Any], expected: Mapping[str, Any]) -> None:
    if value != expected:
        said = "the counts or the SHA-256 of the lines before are not as it says"
        raise StoreError("invalid_argument", said)
