"""What the engine asks of a backend: keeping memories, and offering candidates for a search."""

from collections.abc import Collection, Sequence
from dataclasses import dataclass
from datetime import datetime
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from store.entities import Entity, Link
from store.memory import Document, Filters, Memory, Saved, Selection, Space, State, Status, Turn, View

Vector = NDArray[np.float32]


@dataclass(frozen=True)
class Passage:
    """A piece of a memory as it is indexed; `vector` is None while the embedding is owed."""

    text: str
    terms: tuple[str, ...]
    vector: Vector | None


@dataclass(frozen=True)
class Write:
    """A memory to be stored, as the engine prepared it: checked, split and embedded."""

    memory: Memory
    app: str
    passages: tuple[Passage, ...]
    fingerprint: bytes
    if_revision: int | None = None
    supersedes: str | None = None
    """The memory that this one stands for from now on."""


@dataclass(frozen=True)
class Owed:
    """A memory whose embedding is owed, as it was when that was found."""

    owner: str
    memory_id: str
    revision: int
    text: str


@dataclass(frozen=True)
class Background:
    """What a model's vectors have in common, measured on everyday sentences.

    `centre` is their mean: a space with few vectors is measured from it. `mean` and `deviation` describe
    their dot products with it; a query whose own is far above says nothing in particular. `spread` is the
    standard deviation of the cosines between unrelated sentences, seen from the centre: the unit in which
    a likeness to this model is great or small.
    """

    centre: Vector
    mean: float
    deviation: float
    spread: float

    def vagueness(self, query: Vector) -> float:
        """How many deviations the query is nearer to the centre than an everyday sentence."""
        return (float(query @ self.centre) - self.mean) / self.deviation


@dataclass(frozen=True)
class Query:
    """A search, prepared: distinct terms, and the vector where there is an embedder."""

    terms: tuple[str, ...]
    vector: Vector | None
    model: str | None
    dimensions: int
    background: Background | None


@dataclass(frozen=True)
class Candidates:
    """The passages that a search may return, as columns of equal length, in no order.

    `similarity` is the centred cosine to the query (NaN without a vector), `lexical` the BM25 score,
    `coverage` the share of the query's weight that the passage holds. `lowest` is the least cosine of any
    passage of the space, filtered or not, and `total` how many of them have a vector; `found` are the query's
    terms that the space holds at all.
    """

    memories: NDArray[np.int64]
    passages: NDArray[np.int64]
    similarity: NDArray[np.float64]
    lexical: NDArray[np.float64]
    coverage: NDArray[np.float64]
    lowest: float
    total: int
    found: frozenset[str]


class Memories(Protocol):
    """The memory tables of one installation."""

    def save(self, writes: Sequence[Write], model: str | None, duplicates_since: datetime) -> list[Saved]:
        """Stores each in one transaction, or finds that it is there already (TOOLS `save_context`).

        Raises:
            StoreError: `conflict` when `if_revision` is stale; `not_found` for an unknown space.
        """

    def find_duplicate(self, write: Write, model: str | None, since: datetime) -> Saved | None:
        """The live memory that this write would only repeat; asked before embedding, to save the work."""

    def find(self, owner: str, memory_id: str) -> Memory | None:
        """The memory, unless it is unknown, another owner's or forgotten."""

    def candidates(self, owner: str, space: str, query: Query, filters: Filters) -> Candidates:
        """What may answer the query, filters applied."""

    def load(self, owner: str, passages: Sequence[int]) -> dict[int, tuple[Memory, str]]:
        """The memory and the text of each of these passages; one that has gone meanwhile is left out."""

    def archive(self, owner: str, memory_id: str, archived_at: datetime) -> None:
        """Forgets a live memory."""

    def restore(self, owner: str, spaces: Collection[str], memory_id: str) -> bool:
        """Brings a forgotten memory back; False when none of these spaces holds it.

        Raises:
            StoreError: `conflict` when another memory has its `external_id` by now.
        """

    def mark_used(self, owner: str, memory_id: str, at: datetime) -> None:
        """Notes when a memory was last read; that it cannot be noted is no reason to fail."""

    def set_pinned(self, owner: str, memory_id: str, pinned: bool) -> bool:
        """Pins or unpins; False when there is no such live memory."""

    def find_forgotten(self, owner: str, memory_id: str) -> Memory | None:
        """The memory, if it is the owner's and forgotten."""

    def revisions(self, owner: str, memory_id: str) -> list[Memory]:
        """What the memory said before, oldest first."""

    def deprecate(self, owner: str, memory_id: str, successor: str | None, at: datetime) -> Memory:
        """Keeps the memory as history, as `store.succession` rules.

        Raises:
            StoreError: `not_found` for either; `invalid_argument` or `conflict` for the successor.
        """

    def approve(self, owner: str, ids: Sequence[str], at: datetime) -> list[Memory]:
        """What is relied on from now on, as `store.review` rules; all in one transaction.

        Raises:
            StoreError: `not_found`, `conflict`.
        """

    def reject(self, owner: str, ids: Sequence[str], at: datetime) -> None:
        """Forgets what waited; all in one transaction.

        Raises:
            StoreError: `not_found`, `conflict`.
        """

    def consolidate(self, write: Write, sources: Sequence[str], model: str | None) -> Memory:
        """Stores the memory and deprecates its sources in its favour, in one transaction.

        Raises:
            StoreError: `not_found`, `conflict`.
        """

    def delete(self, owner: str, memory_id: str) -> bool:
        """Deletes a memory, forgotten or not, for good, with all that was derived from it; False for none."""

    def find_document(self, owner: str, space: str, app: str, key: str) -> Document | None:
        """The live document that the app knows by this key."""

    def get_document(self, owner: str, document_id: str) -> Document | None:
        """The owner's document, forgotten or not."""

    def put_document(
        self, document: Document, writes: Sequence[Write], gone: Sequence[str], model: str | None
    ) -> Document:
        """Stores a document's next revision with its new chunks and forgets those that are gone, all at once.

        Raises:
            StoreError: `conflict` when the stored one is not at the revision before, or when there is one
                where the first is stored; `not_found` for an unknown space.
        """

    def archive_document(self, owner: str, document_id: str, at: datetime) -> None:
        """Forgets a document and its chunks, at once."""

    def restore_document(self, owner: str, document_id: str) -> None:
        """Brings a forgotten document and its chunks back, at once.

        Raises:
            StoreError: `conflict` when the app has stored it anew.
        """

    def delete_document(self, owner: str, document_id: str) -> bool:
        """Deletes a document and every chunk it ever had, for good; False for none."""

    def add_turn(self, turn: Turn, since: datetime) -> tuple[Turn, bool]:
        """The turn under its session's next number, and True; the last one and False if it repeats that.

        Raises:
            StoreError: `not_found` for an unknown space.
        """

    def turns(self, owner: str, space: str, session: str, after: int, limit: int) -> list[Turn]:
        """The session's turns behind this number, in order."""

    def add_space(self, owner: str, name: str) -> Space:
        """A new space.

        Raises:
            StoreError: `conflict` when one has this name.
        """

    def rename_space(self, owner: str, space: str, name: str) -> Space:
        """The space under its new name.

        Raises:
            StoreError: `not_found`; `conflict` when another one has this name.
        """

    def delete_space(self, owner: str, space: str) -> None:
        """Deletes a space with everything in it, for good.

        Raises:
            StoreError: `not_found`; `conflict` for the owner's only one.
        """

    def spaces(self, owner: str) -> list[Space]:
        """Oldest first."""

    def chosen_space(self, owner: str, app: str) -> str | None:
        """The space that this app uses."""

    def choose_space(self, owner: str, app: str, space: str) -> None:
        """Keeps the choice."""

    def status(self, owner: str, spaces: Collection[str]) -> Status:
        """Counts over these spaces."""

    def unindexed(self, model: str, limit: int) -> list[Owed]:
        """Memories whose embedding is owed, or of another model."""

    def count_unindexed(self, model: str) -> int:
        """How many of them there are."""

    def set_vectors(self, model: str, memory: Owed, vectors: Sequence[Vector]) -> bool:
        """Stores embeddings that came late, one for each of the memory's passages in order.

        False for a memory that has changed meanwhile: it goes on owing.
        """

    def select(self, view: View, selection: Selection) -> list[Memory]:
        """Memories of the view in order of (`created_at`, `id`)."""

    def entities(
        self, view: View, states: Sequence[State], keys: Collection[str] | None, limit: int
    ) -> list[Entity]:
        """What the view's memories in these states are connected with, commonest first."""

    def links(
        self, view: View, states: Sequence[State], keys: Collection[str], ids: Collection[str], limit: int
    ) -> list[Link]:
        """The edges at these entities and memories, newest memory first; both ends are in the view."""
