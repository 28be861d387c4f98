"""A picture of the person, kind by kind; every line is a memory and names it."""

from collections.abc import Sequence
from dataclasses import dataclass

from store.engine import Engine
from store.memory import Kind, Memory, Selection, View

KINDS: dict[Kind, str] = {
    "fact": "Facts",
    "preference": "Preferences",
    "constraint": "Constraints",
    "style": "Style",
    "decision": "Decisions",
    "procedure": "Procedures",
    "task": "Open tasks",
    "note": "Notes",
}
PER_KIND = 25
READ = 500


@dataclass(frozen=True)
class Portrait:
    """The memories of one kind, and how many more there are (counted up to `READ`)."""

    title: str
    memories: tuple[Memory, ...]
    omitted: int


def picture(engine: Engine, view: View) -> list[Portrait]:
    """What is active and valid now, in the order of `KINDS`."""
    portraits = []
    for kind, title in KINDS.items():
        found = about(engine, view, [kind])
        if found:
            portraits.append(Portrait(title, tuple(found[:PER_KIND]), len(found[PER_KIND:])))
    return portraits


def about(engine: Engine, view: View, kinds: Sequence[Kind]) -> list[Memory]:
    """Pinned first, then what the owner said himself, then the newest."""
    selection = Selection(kinds=tuple(kinds), valid_at=engine.now(), limit=READ)
    found = engine.memories.select(view, selection)
    return sorted(found, key=lambda memory: (not memory.pinned, memory.source.origin != "user"))
