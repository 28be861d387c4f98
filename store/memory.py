"""A memory and what is said about it: the records that engine, backends and tools exchange."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from typing import Literal, get_args

State = Literal["active", "wip", "merged", "deprecated", "pending"]
Kind = Literal[
    "note",
    "fact",
    "decision",
    "preference",
    "constraint",
    "procedure",
    "style",
    "task",
    "episode",
    "document",
]
Modality = Literal["text", "image", "document"]
Origin = Literal["user", "agent", "external", "import"]
STATES: tuple[State, ...] = get_args(State)
ORIGINS: tuple[Origin, ...] = get_args(Origin)
Role = Literal["user", "assistant", "system"]
WriteStatus = Literal["created", "duplicate", "updated", "pending"]


@dataclass(frozen=True)
class Source:
    """Where a memory comes from. `client_name` is set by the server, the rest by the caller."""

    origin: Origin = "agent"
    client_name: str | None = None
    session: str | None = None
    url: str | None = None
    external_id: str | None = None
    derived_from: tuple[str, ...] = ()
    confidence: float | None = None


@dataclass(frozen=True)
class Draft:
    """A memory as the caller proposes it; `Engine.save` checks it and gives it an id."""

    content: str
    topic: str = "general"
    state: State = "active"
    kind: Kind = "note"
    tags: tuple[str, ...] = ()
    modality: Modality = "text"
    artifact_refs: tuple[str, ...] = ()
    pinned: bool = False
    source: Source = field(default_factory=Source)
    valid_from: datetime | None = None
    valid_until: datetime | None = None
    created_at: datetime | None = None
    """Only an import brings its own; otherwise the engine's clock."""
    if_revision: int | None = None
    supersedes: str | None = None
    """The id of the memory that this one takes the place of."""
    retrieval_text: str | None = None
    """What a model saw in the memory's image: searched like the content."""
    image_sha256: str | None = None
    document_id: str | None = None
    """The document that the memory is a chunk of."""


@dataclass(frozen=True)
class Memory:
    """A stored memory. All datetimes are aware UTC."""

    id: str
    owner: str
    space: str
    content: str
    topic: str
    state: State
    kind: Kind
    tags: tuple[str, ...]
    modality: Modality
    artifact_refs: tuple[str, ...]
    pinned: bool
    source: Source
    valid_from: datetime | None
    valid_until: datetime | None
    superseded_by: str | None
    created_at: datetime
    updated_at: datetime
    last_used_at: datetime | None
    revision: int
    archived_at: datetime | None = None
    """Set when forgotten: invisible to every tool, restorable by undo."""
    retrieval_text: str | None = None
    """What a model saw in the memory's image: searched like the content."""
    image_sha256: str | None = None
    """Hexadecimal; the image itself is not kept."""
    document_id: str | None = None
    """The document that the memory is a chunk of."""

    @property
    def searched_text(self) -> str:
        """All that is split, embedded and searched."""
        return self.content if self.retrieval_text is None else f"{self.content}\n\n{self.retrieval_text}"


@dataclass(frozen=True)
class Saved:
    """The answer of a save. `indexed` is False while the embedding is still owed."""

    memory: Memory
    write_status: WriteStatus
    indexed: bool


@dataclass(frozen=True)
class Filters:
    """What a search is limited to; None means no limit. The state filter is always applied.

    `created_after` is inclusive, `created_before` exclusive.
    """

    state: State = "active"
    topic: str | None = None
    kind: Kind | None = None
    tags: tuple[str, ...] = ()
    origin: Origin | None = None
    within_origins: tuple[str, ...] | None = None
    """The origins that the asking app may see at all."""
    created_after: datetime | None = None
    created_before: datetime | None = None
    valid_at: datetime | None = None


@dataclass(frozen=True)
class View:
    """What an app may see of one owner's memories, forgotten ones left out; None means no limit."""

    owner: str
    spaces: tuple[str, ...]
    states: frozenset[str] | None = None
    origins: frozenset[str] | None = None

    def shows(self, memory: Memory) -> bool:
        """Whether this memory is among them."""
        return (
            memory.owner == self.owner
            and memory.space in self.spaces
            and (self.states is None or memory.state in self.states)
            and (self.origins is None or memory.source.origin in self.origins)
        )


@dataclass(frozen=True)
class Selection:
    """Which memories of a view to read, without a query; None means no limit."""

    states: tuple[State, ...] | None = ("active",)
    kinds: tuple[Kind, ...] | None = None
    ids: tuple[str, ...] | None = None
    topic: str | None = None
    tags: tuple[str, ...] = ()
    origin: Origin | None = None
    only_pinned: bool = False
    created_after: datetime | None = None
    created_before: datetime | None = None
    valid_at: datetime | None = None
    order: Literal["newest", "oldest"] = "newest"
    after: tuple[datetime, str] | None = None
    """The `created_at` and id of the last one read before."""
    limit: int = 20


@dataclass(frozen=True)
class Hit:
    """A memory found: `summary` is its best passage, at most 220 characters, `score` 0 to 1.

    `parts` holds the score and rank of each leg, filled only when the search was asked to explain.
    """

    memory: Memory
    summary: str
    score: float
    parts: Mapping[str, float] = field(default_factory=dict)


@dataclass(frozen=True)
class Document:
    """A document as it is stored: `chunks` are the ids of its memories, in order."""

    id: str
    owner: str
    space: str
    app: str
    key: str
    """How the app knows it again: by its `external_id`, or by its text."""
    title: str
    source: Source
    content_hash: str
    chunks: tuple[str, ...]
    created_at: datetime
    updated_at: datetime
    revision: int
    archived_at: datetime | None = None


@dataclass(frozen=True)
class Turn:
    """One turn of a conversation, numbered from 1 within its session."""

    owner: str
    space: str
    session: str
    number: int
    app: str
    client_name: str
    role: Role
    content: str
    at: datetime


@dataclass(frozen=True)
class Space:
    """A separate shelf of one owner's memories."""

    id: str
    owner: str
    name: str
    created_at: datetime


@dataclass(frozen=True)
class Status:
    """What `memory_status` tells about one owner: counts over the given spaces, forgotten ones left out."""

    counts: Mapping[State, int]
    topics: tuple[tuple[str, int], ...]
    """The 50 commonest of active memories, commonest first."""
    updated_at: datetime | None
    spaces: tuple[Space, ...]
    """Oldest first."""
