"""The memory engine: checks, splits and embeds what is saved; searches, ranks and cuts what is found."""

import logging
import secrets
import sys
from collections.abc import Callable, Collection, Sequence
from dataclasses import replace
from datetime import datetime, timedelta
from typing import Any

import numpy as np

from store import lexical, ranking
from store.arrangement import SPARE, Placed, arrange
from store.backend import Background, Memories, Passage, Query, Write
from store.characters import is_visible, well_formed
from store.cursors import Cursors
from store.draft import check
from store.embedders.protocol import Embedder
from store.embedding import background, embed
from store.errors import NO_SUCH_MEMORY, StoreError
from store.fingerprints import fingerprint
from store.ids import new_id
from store.language_model import LanguageModel, VisionModel
from store.memory import Draft, Filters, Hit, Memory, Saved, Space, Status
from store.passages import split
from store.summary import cut

log = logging.getLogger(__name__)

EVERYTHING_ACTIVE = Filters()
DUPLICATE_WINDOW = timedelta(minutes=15)
SAME_USE = timedelta(hours=1)
"""Reading again within it is not written down again: what reads should seldom write."""
ANY_TOPIC = "general"
MAX_QUERY_CHARACTERS = 8_192
MAX_PASSAGES_AT_ONCE = 200
"""A save that has more is answered before they are embedded: a caller waits two seconds, not twenty."""


class Engine:
    """One engine over one backend; synchronous, safe to share between threads."""

    def __init__(
        self,
        memories: Memories,
        embedder: Embedder | None,
        now: Callable[[], datetime],
        cursor_key: bytes | None = None,
        language_model: LanguageModel | None = None,
        vision_model: VisionModel | None = None,
    ) -> None:
        """Without an embedder, search is by words alone; without a key, cursors end with this engine."""
        self._memories = memories
        self._embedder = embedder
        self._now = now
        self._background: Background | None = None
        self.language_model = language_model
        self.vision_model = vision_model
        self.cursors = Cursors(cursor_key or secrets.token_bytes(32))

    def save(self, owner: str, space: str, app: str, draft: Draft) -> Saved:
        """Stores a memory; once this returns it is on disk and any search finds it.

        Raises:
            StoreError: `invalid_argument`, `too_large`, `conflict`, or `not_found` for the space.
        """
        return self._store(owner, space, app, [draft], MAX_PASSAGES_AT_ONCE)[0]

    def import_many(self, owner: str, space: str, app: str, drafts: Sequence[Draft]) -> list[Saved]:
        """Stores several in one transaction, all or none, and embeds them however long it takes.

        Raises:
            StoreError: as `save`.
        """
        return self._store(owner, space, app, drafts, None)

    def _store(
        self, owner: str, space: str, app: str, drafts: Sequence[Draft], max_passages: int | None
    ) -> list[Saved]:
        now = self._now()
        writes = [self._prepare(owner, space, app, check(draft), now) for draft in drafts]
        since = now - DUPLICATE_WINDOW
        known = [self._find_duplicate(write, since) for write in writes]
        fresh = [write for write, duplicate in zip(writes, known, strict=True) if duplicate is None]
        if _count(fresh) <= (max_passages or sys.maxsize):
            fresh = self._embedded(fresh)
        stored = iter(self._memories.save(fresh, self.model, since) if fresh else ())
        return [duplicate or next(stored) for duplicate in known]

    def _find_duplicate(self, write: Write, since: datetime) -> Saved | None:
        """One that also supersedes has that to do, whether it is a duplicate or not."""
        return self._memories.find_duplicate(write, self.model, since) if write.supersedes is None else None

    def search(
        self,
        owner: str,
        space: str,
        query: str,
        filters: Filters = EVERYTHING_ACTIVE,
        limit: int = 5,
        min_score: float = 0.0,
        explain: bool = False,
    ) -> list[Hit]:
        """The memories that answer the query, best first; none rather than the least bad.

        Raises:
            StoreError: `invalid_argument` for an empty query.
        """
        if not is_visible(query):
            raise StoreError("invalid_argument", "query is empty")
        prepared = self._query(well_formed(query[:MAX_QUERY_CHARACTERS]))
        candidates = self._memories.candidates(owner, space, prepared, _well_formed(filters))
        ranked = ranking.rank(candidates, prepared, limit + SPARE)
        loaded = self._memories.load(owner, [found.passage for found in ranked])
        placed = [Placed(found, *loaded[found.passage]) for found in ranked if found.passage in loaded]
        return [
            Hit(each.memory, cut(each.text), each.ranked.score, each.ranked.parts if explain else {})
            for each in arrange(placed, self._now(), limit)
            if each.ranked.score >= min_score
        ]

    def fetch(self, owner: str, spaces: Collection[str], memory_id: str) -> Memory:
        """One memory whole; being read is what counts as being used.

        Raises:
            StoreError: `not_found`, the same for an unknown, foreign, forgotten or hidden one.
        """
        memory = self._find(owner, spaces, memory_id)
        self.note_use(memory)
        return memory

    def note_use(self, memory: Memory) -> None:
        """Notes that the memory was read."""
        now = self._now()
        if memory.last_used_at is None or now - memory.last_used_at > SAME_USE:
            self._memories.mark_used(memory.owner, memory.id, now)

    def _find(self, owner: str, spaces: Collection[str], memory_id: str) -> Memory:
        memory = self._memories.find(owner, well_formed(memory_id))
        if memory is None or memory.space not in spaces:
            raise StoreError("not_found", NO_SUCH_MEMORY)
        return memory

    def forget(self, owner: str, spaces: Collection[str], memory_id: str) -> None:
        """Archives the memory: invisible to every tool, restorable by `restore`."""
        memory = self._find(owner, spaces, memory_id)
        self._memories.archive(owner, memory.id, self._now())

    def restore(self, owner: str, spaces: Collection[str], memory_id: str) -> None:
        """Undoes `forget`; of a memory that was not forgotten it changes nothing.

        Raises:
            StoreError: `not_found`, as `fetch`; `conflict` when its `external_id` has been saved anew.
        """
        if not self._memories.restore(owner, spaces, well_formed(memory_id)):
            raise StoreError("not_found", NO_SUCH_MEMORY)

    def pin(self, owner: str, spaces: Collection[str], memory_id: str, pinned: bool) -> Memory:
        """Pins or unpins."""
        memory = self._find(owner, spaces, memory_id)
        self._memories.set_pinned(owner, memory.id, pinned)
        return self._find(owner, spaces, memory.id)

    def spaces(self, owner: str) -> list[Space]:
        """Oldest first."""
        return self._memories.spaces(owner)

    def space_of(self, owner: str, app: str, allowed: Collection[str] | None) -> Space:
        """The space this app uses: its choice, else the oldest that it may use.

        Raises:
            StoreError: `not_found` when it may use none.
        """
        spaces = [space for space in self.spaces(owner) if allowed is None or space.id in allowed]
        chosen = self._memories.chosen_space(owner, app)
        for space in spaces:
            if space.id == chosen:
                return space
        if not spaces:
            raise StoreError(
                "not_found", "this connection has no space it may use; the owner can give it one"
            )
        return spaces[0]

    def use_space(self, owner: str, app: str, name_or_id: str, allowed: Collection[str] | None) -> Space:
        """Chooses the space for this app from now on.

        Raises:
            StoreError: `not_found`, naming the spaces there are.
        """
        spaces = [space for space in self.spaces(owner) if allowed is None or space.id in allowed]
        for space in spaces:
            if name_or_id in (space.id, space.name):
                self._memories.choose_space(owner, app, space.id)
                return space
        names = ", ".join(space.name for space in spaces)
        raise StoreError("not_found", f"no such space; there are: {names}")

    def status(self, owner: str, spaces: Collection[str]) -> Status:
        """What is stored in these spaces."""
        return self._memories.status(owner, spaces)

    def retrieval_mode(self) -> dict[str, Any]:
        """What search works with."""
        embedder, model, vision = self._embedder, self.language_model, self.vision_model
        return {
            "embedder": None if embedder is None else embedder.name,
            "dimensions": None if embedder is None else embedder.dimensions,
            "lexical": True,
            "language_model": None if model is None else model.name,
            "vision_model": None if vision is None else vision.name,
        }

    def nearness(self, query: str, texts: Sequence[str]) -> list[float]:
        """How near each text is to the query, for comparing these texts with one another only.

        The share of the query's words that it has, and where there is an embedder, its cosine between the
        least and the greatest of these texts.
        """
        asked = set(lexical.query_terms(well_formed(query)))
        near = np.array([len(asked.intersection(lexical.terms(text))) / max(len(asked), 1) for text in texts])
        vector = self._query(well_formed(query[:MAX_QUERY_CHARACTERS])).vector
        if self._embedder is not None and vector is not None and texts:
            cosines = self._embedder.embed_passages(texts[:MAX_PASSAGES_AT_ONCE]) @ vector
            spread = (cosines - cosines.min()) / max(float(np.ptp(cosines)), 1e-6)
            near[: len(spread)] += spread
        return [float(each) for each in near]

    def index_pending(self, limit: int = 256) -> int:
        """Embeds memories that owe it, or whose vectors are of another model; returns how many it stored.

        Raises:
            StoreError: `unavailable` while it still is.
        """
        if self._embedder is None:
            return 0
        owed = self._memories.unindexed(self._embedder.name, limit)
        vectors = embed(self._embedder, [memory.text for memory in owed])
        return sum(
            self._memories.set_vectors(self._embedder.name, memory, of_memory)
            for memory, of_memory in zip(owed, vectors, strict=True)
        )

    def owed(self) -> int:
        """How many memories wait for `index_pending`.

        Raises:
            StoreError: `unavailable`.
        """
        return 0 if self._embedder is None else self._memories.count_unindexed(self._embedder.name)

    @property
    def memories(self) -> Memories:
        """The backend, for the modules beside this one that read it."""
        return self._memories

    def now(self) -> datetime:
        """The engine's time."""
        return self._now()

    @property
    def model(self) -> str | None:
        """The embedder's name."""
        return None if self._embedder is None else self._embedder.name

    def _query(self, query: str) -> Query:
        terms = tuple(lexical.query_terms(query))
        if self._embedder is None:
            return Query(terms, None, None, 0, None)
        try:
            vector = self._embedder.embed_queries([query])[0]
            background = self._background_of(self._embedder)
        except StoreError as error:
            log.warning("embedder.unavailable", extra={"code": error.code})
            vector, background = None, None
        return Query(terms, vector, self._embedder.name, self._embedder.dimensions, background)

    def _background_of(self, embedder: Embedder) -> Background:
        """Computed once; two threads that both do it first come to the same."""
        if self._background is None:
            self._background = background(embedder)
        return self._background

    def prepare(self, owner: str, space: str, app: str, draft: Draft) -> Write:
        """A new memory, checked, split and embedded, for the modules beside this one to store.

        Raises:
            StoreError: `invalid_argument`, `too_large`.
        """
        return self.prepare_many(owner, space, app, [draft])[0]

    def prepare_many(
        self, owner: str, space: str, app: str, drafts: Sequence[Draft], is_patient: bool = False
    ) -> list[Write]:
        """Several; their embeddings are left owing when there are more passages than a caller waits for."""
        now = self._now()
        writes = [self._prepare(owner, space, app, check(draft), now) for draft in drafts]
        return self._embedded(writes) if is_patient or _count(writes) <= MAX_PASSAGES_AT_ONCE else writes

    def _prepare(self, owner: str, space: str, app: str, draft: Draft, now: datetime) -> Write:
        memory = Memory(
            id=new_id(16),
            owner=owner,
            space=space,
            content=draft.content,
            topic=draft.topic,
            state="pending" if draft.source.origin == "external" else draft.state,
            kind=draft.kind,
            tags=draft.tags,
            modality=draft.modality,
            artifact_refs=draft.artifact_refs,
            pinned=draft.pinned,
            source=draft.source,
            valid_from=draft.valid_from,
            valid_until=draft.valid_until,
            superseded_by=None,
            created_at=draft.created_at or now,
            updated_at=now,
            last_used_at=None,
            revision=1,
            retrieval_text=draft.retrieval_text,
            image_sha256=draft.image_sha256,
            document_id=draft.document_id,
        )
        passages = self.passages(memory)
        return Write(memory, app, passages, fingerprint(memory), draft.if_revision, draft.supersedes)

    def passages(self, memory: Memory) -> tuple[Passage, ...]:
        """What the memory is found by; the vectors are owed."""
        texts = [text for stretch in split(memory.searched_text) for text in stretch.passages]
        # A memory is found by the words of its labels too, whatever its passages say.
        labels = [label for label in (memory.topic, *memory.tags) if label != ANY_TOPIC]
        about = tuple(term for label in labels for term in lexical.terms(label))
        return tuple(Passage(text, (*lexical.terms(text), *about), None) for text in texts)

    def _embedded(self, writes: Sequence[Write]) -> list[Write]:
        """The writes with their vectors; without them when the embedder is away."""
        if self._embedder is None:
            return [*writes]
        try:
            vectors = embed(self._embedder, [write.memory.searched_text for write in writes])
        except StoreError as error:
            log.warning("embedder.unavailable", extra={"code": error.code})
            return [*writes]
        return [
            replace(
                write,
                passages=tuple(
                    replace(passage, vector=vector)
                    for passage, vector in zip(write.passages, of_memory, strict=True)
                ),
            )
            for write, of_memory in zip(writes, vectors, strict=True)
        ]


def _count(writes: Sequence[Write]) -> int:
    return sum(len(write.passages) for write in writes)


def _well_formed(filters: Filters) -> Filters:
    """Stored text has no lone surrogates, so what asks for one asks for its replacement."""
    topic = None if filters.topic is None else well_formed(filters.topic)
    return replace(filters, topic=topic, tags=tuple(well_formed(tag) for tag in filters.tags))
