"""One space's passages as columns in memory: a cache of the file, brought up to date before each search.

Every row has a slot in the columns, in ascending order of its number; a passage that goes leaves an empty
slot until the next rebuild. Numbers only grow, so new ones are appended.
"""

import sqlite3
from collections import OrderedDict
from dataclasses import dataclass, field
from threading import Lock

import numpy as np
from numpy.typing import NDArray

from store import centring
from store.memory import STATES

GONE = -1
MAX_BYTES = 256 * 1024 * 1024
GROWTH = 1.5


@dataclass
class Shelf:
    """The columns; `generation` says which changes they hold."""

    dimensions: int
    model: str | None
    generation: int = -1
    rebuilt: int = -1
    used: int = 0
    numbers: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    memories: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    lengths: NDArray[np.int64] = field(default_factory=lambda: np.empty(0, np.int64))
    states: NDArray[np.int8] = field(default_factory=lambda: np.empty(0, np.int8))
    vectors: NDArray[np.float32] = field(default_factory=lambda: np.empty((0, 0), np.float32))
    embedded: NDArray[np.bool_] = field(default_factory=lambda: np.empty(0, np.bool_))
    is_centred: bool = False
    centre: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    """The mean of the space's vectors, drawn to the model's background while there are few."""
    distances: NDArray[np.float32] = field(default_factory=lambda: np.empty(0, np.float32))
    """Of each vector from the centre."""
    lock: Lock = field(default_factory=Lock)

    @property
    def size_bytes(self) -> int:
        """What the columns occupy."""
        return self.vectors.nbytes + self.numbers.nbytes * 4

    def slots(self, numbers: NDArray[np.int64]) -> NDArray[np.int64]:
        """Where these passages are; -1 for one that is not here."""
        found = np.searchsorted(self.numbers[: self.used], numbers)
        found[found == self.used] = 0
        return np.where(self.numbers[found] == numbers, found, -1) if self.used else np.full(len(numbers), -1)

    def refresh(self, connection: sqlite3.Connection, owner: str, space: str) -> None:
        """Takes in what has changed since; `connection` is in a snapshot."""
        row = connection.execute("SELECT generation, rebuilt FROM owners WHERE id = ?", (owner,)).fetchone()
        generation, rebuilt = row or (0, 0)
        if (generation, rebuilt) == (self.generation, self.rebuilt):
            return
        if rebuilt != self.rebuilt:
            self.used = 0
            self.generation = -1
        self._take_in(connection, owner, space)
        self.generation, self.rebuilt = generation, rebuilt
        self.is_centred = False

    def cosines(self, query: NDArray[np.float32], background: NDArray[np.float32]) -> NDArray[np.float32]:
        """The cosine of each slot's vector to the query, both seen from the centre of the space."""
        vectors = self.vectors[: self.used]
        if not self.is_centred:
            self._find_centre(vectors, background)
        return centring.cosines(vectors, self.distances, query, self.centre)

    def _find_centre(self, vectors: NDArray[np.float32], background: NDArray[np.float32]) -> None:
        weights = (self.embedded[: self.used] & (self.states[: self.used] != GONE)).astype(np.float32)
        self.centre = centring.centre_of(weights @ vectors, float(weights.sum()), background)
        self.distances = centring.distances_from(self.centre, vectors)
        self.is_centred = True

    def _take_in(self, connection: sqlite3.Connection, owner: str, space: str) -> None:
        changed = connection.execute(
            "SELECT n FROM memories WHERE owner = ? AND space = ? AND changed > ?",
            (owner, space, self.generation),
        ).fetchall()
        if self.used:
            gone = np.isin(self.memories[: self.used], [number for (number,) in changed])
            self.states[: self.used][gone] = GONE
        rows = connection.execute(
            """SELECT passages.n, passages.memory, length, state, vector, model
               FROM memories JOIN passages ON passages.memory = memories.n
               WHERE memories.owner = ? AND space = ? AND changed > ? AND archived_at IS NULL
               ORDER BY passages.n""",
            (owner, space, self.generation),
        ).fetchall()
        self._reserve(len(rows))
        for row in rows:
            self._put(row)

    def _put(self, row: tuple[int, int, int, str, bytes | None, str | None]) -> None:
        number, memory, length, state, vector, model = row
        slot = int(np.searchsorted(self.numbers[: self.used], number))
        if slot < self.used and self.numbers[slot] != number:
            self._make_room(slot)
        elif slot == self.used:
            self.used += 1
        self.numbers[slot] = number
        self.memories[slot] = memory
        self.lengths[slot] = length
        self.states[slot] = STATES.index(state)
        is_current = vector is not None and model == self.model and len(vector) == 4 * self.dimensions
        self.embedded[slot] = is_current
        self.vectors[slot] = np.frombuffer(vector, np.float32) if is_current and vector else 0.0

    def _make_room(self, slot: int) -> None:
        """A passage that was forgotten before this cache knew it has come back between others."""
        for column in (self.numbers, self.memories, self.lengths, self.states, self.embedded, self.vectors):
            column[slot + 1 : self.used + 1] = column[slot : self.used].copy()
        self.used += 1

    def _reserve(self, more: int) -> None:
        needed = self.used + more
        if needed <= len(self.numbers):
            return
        size = max(needed, int(len(self.numbers) * GROWTH))
        for name in ("numbers", "memories", "lengths", "states", "embedded", "vectors"):
            old = getattr(self, name)
            shape = (size, self.dimensions) if name == "vectors" else (size,)
            new = np.zeros(shape, old.dtype)
            if self.used:
                new[: self.used] = old[: self.used]
            setattr(self, name, new)


class Shelves:
    """The shelves in use, least recently used dropped first beyond `MAX_BYTES`."""

    def __init__(self) -> None:
        self._shelves: OrderedDict[tuple[str, str, str | None], Shelf] = OrderedDict()
        self._lock = Lock()

    def get(self, owner: str, space: str, model: str | None, dimensions: int) -> Shelf:
        """The shelf, empty when it is new."""
        key = (owner, space, model)
        with self._lock:
            shelf = self._shelves.setdefault(key, Shelf(dimensions, model))
            self._shelves.move_to_end(key)
            while (
                len(self._shelves) > 1 and sum(each.size_bytes for each in self._shelves.values()) > MAX_BYTES
            ):
                self._shelves.popitem(last=False)
            return shelf
