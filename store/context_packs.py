"""What an assistant should know before a task, within a budget of tokens.

Each section is gathered from the memories: those that the task calls for first, and where something holds
whatever the task is, the others too. The intent chooses the sections and their order. A memory stands in the
first section that has it, once; no section takes more than its share before the others had theirs.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, get_args

from store import graph, profile
from store.engine import Engine
from store.errors import StoreError
from store.memory import Hit, Kind, Memory, Selection, State, View
from store.names import folded
from store.reading import relevant
from store.sentences import sentences
from store.summary import cut
from store.tokens import estimate

Intent = Literal["answer", "act", "draft", "plan", "recall"]
INTENTS: tuple[Intent, ...] = get_args(Intent)
MIN_BUDGET_TOKENS = 200
MAX_BUDGET_TOKENS = 20_000
ITEM_TOKENS = 20
"""For an item's id and the JSON around it."""
SECTION_TOKENS = 10
"""For a section's title and the JSON around it."""
ITEM_CHARACTERS = 500
HITS = 50
STANDING = 30
RECENT = 10
ENTITIES = 5
PER_ENTITY = 5

PERSON = "Who the person is"
SECTIONS: dict[str, str] = {
    "pinned": "Pinned",
    "constraints": "Constraints and preferences",
    "style": "Style",
    "decisions": "Decisions",
    "facts": "Facts",
    "entities": "Named in the task",
    "procedures": "Procedures",
    "open": "Open tasks and drafts",
    "recent": "Recent",
    "person": PERSON,
}
ORDERS: dict[Intent, tuple[str, ...]] = {
    "answer": (
        "pinned", "facts", "entities", "constraints", "decisions", "person", "procedures", "style", "recent",
    ),
    "act": (
        "pinned", "constraints", "procedures", "decisions", "facts", "entities", "open", "style", "person",
        "recent",
    ),
    "draft": ("pinned", "style", "constraints", "facts", "entities", "decisions", "person", "recent"),
    "plan": (
        "pinned", "constraints", "open", "decisions", "facts", "entities", "procedures", "person", "recent",
    ),
    "recall": (
        "pinned", "entities", "facts", "decisions", "recent", "open", "procedures", "constraints", "person",
    ),
}  # fmt: skip
FOR_ANOTHER_INTENT = "not used for this intent"
OVER_BUDGET = "over the budget"


@dataclass(frozen=True)
class Item:
    """A memory in a pack."""

    text: str
    memory: Memory


@dataclass(frozen=True)
class Section:
    """Items under a title."""

    title: str
    items: tuple[Item, ...]


@dataclass(frozen=True)
class Omitted:
    """How many memories a section would have had besides, and why it has not."""

    section: str
    count: int
    reason: str


@dataclass(frozen=True)
class Pack:
    """`used_tokens` is the sections' cost, as `cost` counts it."""

    sections: tuple[Section, ...]
    used_tokens: int
    omitted: tuple[Omitted, ...]


def cost(sections: Sequence[Section]) -> int:
    """The tokens that sections take."""
    items = (item for section in sections for item in section.items)
    return len(sections) * SECTION_TOKENS + sum(ITEM_TOKENS + estimate(item.text) for item in items)


def compose(
    engine: Engine,
    view: View,
    task: str,
    intent: Intent,
    budget_tokens: int,
    without_person: str | None = None,
) -> Pack:
    """The pack for a task; `without_person` is the reason why who the person is stays out.

    Raises:
        StoreError: `invalid_argument` for a task without anything in it.
    """
    if not task.strip():
        raise StoreError("invalid_argument", "task is empty")
    gathered = _Gathering(engine, view, task, relevant(engine, view, task, HITS))
    chosen = [name for name in ORDERS[intent] if name != "person" or without_person is None]
    claimed: set[str] = set()
    candidates = {name: _claim(gathered.of(name), claimed) for name in chosen}
    filling = _Filling(budget_tokens, candidates)
    filling.fill()
    omitted = [Omitted(SECTIONS[name], len(rest), OVER_BUDGET) for name, rest in filling.rest.items() if rest]
    for name in (name for name in SECTIONS if name not in chosen):
        reason = without_person if name == "person" and without_person else FOR_ANOTHER_INTENT
        count = len(_claim(gathered.of(name), claimed))
        if count or name == "person":
            omitted.append(Omitted(SECTIONS[name], count, reason))
    sections = filling.sections()
    return Pack(sections, cost(sections), tuple(omitted))


def _claim(items: Iterator[Item], claimed: set[str]) -> list[Item]:
    fresh = []
    for item in items:
        if item.memory.id not in claimed:
            claimed.add(item.memory.id)
            fresh.append(item)
    return fresh


@dataclass
class _Filling:
    """First each section within its share, then in order whatever still fits."""

    budget: int
    rest: dict[str, list[Item]]
    taken: dict[str, list[Item]] = field(default_factory=dict)
    used: int = 0

    def fill(self) -> None:
        share = self.budget // 3
        for limit in (share, self.budget):
            for name, waiting in self.rest.items():
                self.rest[name] = [item for item in waiting if not self._take(name, item, limit)]

    def _take(self, name: str, item: Item, limit: int) -> bool:
        room = max(self.budget // 6, MIN_BUDGET_TOKENS // 4) - ITEM_TOKENS
        item = Item(_fit(item.text, room), item.memory)
        now = cost(self.sections_of(name))
        then = cost([Section("", (*self.taken.get(name, ()), item))])
        if then > limit or self.used + then - now > self.budget:
            return False
        self.taken.setdefault(name, []).append(item)
        self.used += then - now
        return True

    def sections_of(self, name: str) -> list[Section]:
        return [Section(SECTIONS[name], tuple(self.taken[name]))] if name in self.taken else []

    def sections(self) -> tuple[Section, ...]:
        return tuple(section for name in self.rest for section in self.sections_of(name))


def _fit(text: str, tokens: int) -> str:
    """The text cut to so many tokens."""
    while estimate(text) > tokens:
        text = cut(text, min(len(text) - 1, len(text) * tokens // estimate(text)))
    return text


@dataclass(frozen=True)
class _Gathering:
    """The items of each section, best first."""

    engine: Engine
    view: View
    task: str
    hits: Sequence[Hit]

    def of(self, name: str) -> Iterator[Item]:
        sections: dict[str, Callable[[], Iterator[Item]]] = {
            "pinned": lambda: self._select(limit=STANDING, only_pinned=True),
            "constraints": lambda: self._standing("constraint", "preference"),
            "style": lambda: self._standing("style"),
            "decisions": lambda: self._found("decision"),
            "facts": lambda: self._found("fact", "note", "document", "episode"),
            "entities": self._entities,
            "procedures": lambda: self._found("procedure"),
            "open": self._open,
            "recent": lambda: self._select(limit=RECENT),
            "person": self._person,
        }
        return sections[name]()

    def _found(self, *kinds: Kind) -> Iterator[Item]:
        for hit in self.hits:
            if hit.memory.kind in kinds:
                is_long = len(hit.memory.content) > ITEM_CHARACTERS
                yield Item(hit.summary, hit.memory) if is_long else _whole(hit.memory)

    def _standing(self, *kinds: Kind) -> Iterator[Item]:
        yield from self._found(*kinds)
        yield from self._select(kinds=kinds, limit=STANDING)

    def _open(self) -> Iterator[Item]:
        yield from self._standing("task")
        yield from self._select(states=("wip",), limit=STANDING)

    def _entities(self) -> Iterator[Item]:
        memories = self.engine.memories
        for entity in graph.named_in(memories, self.view, self.task, ENTITIES):
            for memory in graph.telling(memories, self.view, entity, PER_ENTITY, self.engine.now()):
                said = (each for each in sentences(memory.content) if entity.key in folded(each))
                yield Item(next(said, _whole(memory).text), memory)

    def _person(self) -> Iterator[Item]:
        return map(_whole, profile.about(self.engine, self.view, ("fact", "preference"))[:STANDING])

    def _select(
        self,
        limit: int,
        states: tuple[State, ...] = ("active",),
        kinds: tuple[Kind, ...] | None = None,
        only_pinned: bool = False,
    ) -> Iterator[Item]:
        selection = Selection(states, kinds, only_pinned=only_pinned, valid_at=self.engine.now(), limit=limit)
        return map(_whole, self.engine.memories.select(self.view, selection))


def _whole(memory: Memory) -> Item:
    return Item(cut(memory.content, ITEM_CHARACTERS), memory)
