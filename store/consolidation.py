"""Making one memory of several (TOOLS `consolidate_context`): only ever when asked to."""

from collections.abc import Iterable, Sequence

from store.characters import well_formed
from store.draft import MAX_TAGS
from store.engine import Engine
from store.errors import StoreError
from store.lifecycle import get
from store.memory import Draft, Memory, Selection, Source, View

MIN_SOURCES = 2
MAX_SOURCES = 50
MAX_REFERENCES = 50
TASK = (
    "Merge these notes into one. Keep every fact, name, number and date, and nothing that is not in them. "
    "Where notes contradict each other, keep the later one; they are in order of time. Answer with the "
    "merged note alone, in the language of the notes."
)


def drafts_of(engine: Engine, view: View, topic: str) -> list[Memory]:
    """The drafts of a topic, oldest first.

    Raises:
        StoreError: `not_found` when there are none; `too_large` for more than can be merged at once.
    """
    selection = Selection(states=("wip",), topic=well_formed(topic), order="oldest", limit=MAX_SOURCES + 1)
    drafts = engine.memories.select(view, selection)
    if not drafts:
        raise StoreError("not_found", "the topic has no drafts")
    if len(drafts) > MAX_SOURCES:
        raise StoreError("too_large", f"the topic has more than {MAX_SOURCES} drafts; name up to that many")
    return drafts


def named(engine: Engine, view: View, ids: Sequence[str]) -> list[Memory]:
    """These memories, oldest first.

    Raises:
        StoreError: `not_found`; `invalid_argument` for too few, too many or the same one twice.
    """
    if len(set(ids)) != len(ids):
        raise StoreError("invalid_argument", "source_ids names a memory twice")
    if not MIN_SOURCES <= len(ids) <= MAX_SOURCES:
        raise StoreError("invalid_argument", f"source_ids needs {MIN_SOURCES} to {MAX_SOURCES} ids")
    found = [get(engine, view, memory_id) for memory_id in ids]
    if len({memory.space for memory in found}) > 1:
        raise StoreError("invalid_argument", "the memories are in different spaces")
    return sorted(found, key=lambda memory: (memory.created_at, memory.id))


def consolidate(
    engine: Engine, view: View, sources: Sequence[Memory], app: str, client_name: str, content: str | None
) -> Memory:
    """The memory that stands for all of them; asked again, the one that stands for them already.

    Raises:
        StoreError: `invalid_argument` without content and without a language model; `conflict` for a source
            that another memory has superseded.
    """
    if any(source.state == "pending" for source in sources):
        raise StoreError("conflict", "a source waits for review; approve it first")
    if (present := _standing_for(engine, view, sources)) is not None:
        return present
    merged = content if content is not None else _written(engine, sources)
    write = engine.prepare(sources[0].owner, sources[0].space, app, _draft(sources, client_name, merged))
    return engine.memories.consolidate(write, [source.id for source in sources], engine.model)


def _standing_for(engine: Engine, view: View, sources: Sequence[Memory]) -> Memory | None:
    successors = {source.superseded_by for source in sources if source.state == "deprecated"}
    successor = next(iter(successors), None)
    if len(successors) != 1 or successor is None or any(each.superseded_by is None for each in sources):
        return None
    known = engine.memories.find(sources[0].owner, successor)
    if known is None or not view.shows(known):
        return None
    is_made_of_them = set(known.source.derived_from) == {each.id for each in sources}
    return known if is_made_of_them else None


def _written(engine: Engine, sources: Sequence[Memory]) -> str:
    if engine.language_model is None:
        raise StoreError(
            "invalid_argument", "this server has no language model: give the merged text as content"
        )
    return engine.language_model.write(TASK, [source.content for source in sources])


def _draft(sources: Sequence[Memory], client_name: str, content: str) -> Draft:
    topics = {source.topic for source in sources}
    kinds = {source.kind for source in sources}
    return Draft(
        content=content,
        topic=topics.pop() if len(topics) == 1 else sources[-1].topic,
        kind=kinds.pop() if len(kinds) == 1 else "note",
        tags=_distinct((tag for source in sources for tag in source.tags), MAX_TAGS),
        artifact_refs=_distinct(
            (each for source in sources for each in source.artifact_refs), MAX_REFERENCES
        ),
        pinned=any(source.pinned for source in sources),
        source=Source(client_name=client_name, derived_from=tuple(source.id for source in sources)),
    )


def _distinct(values: Iterable[str], limit: int) -> tuple[str, ...]:
    return tuple(dict.fromkeys(values))[:limit]
