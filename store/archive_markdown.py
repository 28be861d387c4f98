"""The export for people: one Markdown document of what is remembered, by space and topic."""

from collections.abc import Iterator
from itertools import groupby

from store.archive import Archive
from store.archive_rows import Kept
from store.memory import Memory, Space


def document(archive: Archive, owner: str) -> Iterator[str]:
    """Lines with their ends; what was forgotten and what was said before are left out.

    The texts are quoted, so that a heading inside one is no heading of the document.
    """
    yield "# Memories\n"
    spaces, memories = list[Space](), list[Memory]()
    for each in archive.read(owner):
        if isinstance(each, Space):
            spaces.append(each)
        elif isinstance(each, Kept) and each.memory.archived_at is None:
            memories.append(each.memory)
    for space in spaces:
        of_space = [memory for memory in memories if memory.space == space.id]
        yield f"\n## {_inline(space.name)}\n"
        if not of_space:
            yield "\nNothing yet.\n"
        of_space.sort(key=lambda memory: (memory.topic, memory.created_at, memory.id))
        for topic, of_topic in groupby(of_space, key=lambda memory: memory.topic):
            yield f"\n### {_inline(topic)}\n"
            for memory in of_topic:
                yield from _entry(memory)


def _entry(memory: Memory) -> Iterator[str]:
    yield "\n"
    for line in memory.content.split("\n"):
        yield f"> {line}".rstrip() + "\n"
    said = [f"{memory.created_at:%Y-%m-%d}", memory.kind]
    if memory.state != "active":
        said.append(memory.state)
    if memory.pinned:
        said.append("pinned")
    said += [f"#{_inline(tag)}" for tag in memory.tags]
    if memory.source.url is not None:
        said.append(f"<{_inline(memory.source.url)}>")
    yield f">\n> *{' · '.join(said)}* `{memory.id}`\n"


def _inline(text: str) -> str:
    return " ".join(text.split())
