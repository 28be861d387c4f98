"""What every backend promises of memories: saved once, found at once, never somebody else's, never lost."""

from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from datetime import UTC, datetime, timedelta
from typing import Any

import numpy as np
import pytest

from store.backend import Query
from store.embedding import background as background_of
from store.errors import StoreError
from store.memory import Draft, Filters, Saved, Source
from tests.contract.conftest import Stand
from tests.store.fakes import FakeEmbedder

KEY = "The spare key hangs behind the pantry door"


def save(stand: Stand, content: str = KEY, **fields: Any) -> Saved:
    return stand.engine.save(stand.owner, stand.space, stand.app, Draft(content, **fields))


def found(stand: Stand, query: str, filters: Filters = Filters(), limit: int = 10) -> list[str]:  # noqa: B008
    return [hit.memory.id for hit in stand.engine.search(stand.owner, stand.space, query, filters, limit)]


def refused(code: str, action: Callable[[], object]) -> StoreError:
    with pytest.raises(StoreError) as caught:
        action()
    assert caught.value.code == code
    return caught.value


def test_what_was_saved_is_fetched_whole(stand: Stand) -> None:
    saved = save(
        stand, topic="house", tags=("key", "door"), source=Source(origin="user", url="https://x.example")
    )
    assert (saved.write_status, saved.indexed, saved.memory.revision) == ("created", True, 1)
    assert stand.engine.fetch(stand.owner, [stand.space], saved.memory.id) == saved.memory


def test_another_process_finds_it_at_once(stand: Stand) -> None:
    other = stand.another_process()
    assert other.search(stand.owner, stand.space, "spare key") == []
    saved = save(stand)
    (hit,) = other.search(stand.owner, stand.space, "spare key")
    assert hit.memory.id == saved.memory.id
    stand.engine.forget(stand.owner, [stand.space], saved.memory.id)
    assert other.search(stand.owner, stand.space, "spare key") == []


@pytest.mark.parametrize(
    "content", ["", "   \n\t", "\u200b\u2060", "\u3164", "\u0301", "nul\0inside"], ids=lambda text: repr(text)
)
def test_content_without_anything_visible_or_with_nul_is_refused(stand: Stand, content: str) -> None:
    refused("invalid_argument", lambda: save(stand, content))


def test_content_has_a_limit_in_bytes_and_lone_surrogates_are_replaced(stand: Stand) -> None:
    refused("too_large", lambda: save(stand, "é" * (256 * 1024) + "x"))
    assert save(stand, "é" * (256 * 1024)).write_status == "created"
    assert save(stand, "broken \ud83d text").memory.content == "broken \ufffd text"


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": ""},
        {"topic": "t" * 201},
        {"tags": ("t" * 101,)},
        {"tags": tuple(str(n) for n in range(33))},
        {"valid_from": datetime(2026, 2, 1, tzinfo=UTC), "valid_until": datetime(2026, 1, 1, tzinfo=UTC)},
    ],
)
def test_fields_out_of_bounds_are_refused(stand: Stand, fields: dict[str, Any]) -> None:
    refused("invalid_argument", lambda: save(stand, **fields))


def test_a_write_into_no_space_is_refused(stand: Stand) -> None:
    refused("not_found", lambda: stand.engine.save(stand.owner, "nowhere", stand.app, Draft(KEY)))


def test_the_same_write_within_fifteen_minutes_is_the_same_memory(stand: Stand) -> None:
    first = save(stand)
    again = save(stand, "  the SPARE key hangs\nbehind the pantry door ")
    assert (again.write_status, again.memory.id) == ("duplicate", first.memory.id)
    stand.clock.advance(timedelta(minutes=15))
    assert save(stand).write_status == "created"


@pytest.mark.parametrize(
    "fields",
    [
        {"topic": "other"},
        {"kind": "fact"},
        {"tags": ("other",)},
        {"state": "wip"},
        {"artifact_refs": ("a.txt",)},
        {"source": Source(origin="user")},
        {"valid_until": datetime(2027, 1, 1, tzinfo=UTC)},
    ],
)
def test_another_topic_kind_or_origin_is_another_memory(stand: Stand, fields: dict[str, Any]) -> None:
    save(stand)
    assert save(stand, **fields).write_status == "created"


def test_twenty_at_once_are_one_memory(stand: Stand) -> None:
    with ThreadPoolExecutor(20) as pool:
        saved = list(pool.map(lambda _: save(stand), range(20)))
    assert len({each.memory.id for each in saved}) == 1
    assert sorted(each.write_status for each in saved) == ["created"] + ["duplicate"] * 19


def test_twenty_different_at_once_are_twenty_memories(stand: Stand) -> None:
    with ThreadPoolExecutor(20) as pool:
        saved = list(pool.map(lambda n: save(stand, f"memory number {n}"), range(20)))
    assert len({each.memory.id for each in saved}) == 20
    assert stand.engine.status(stand.owner, [stand.space]).counts == {"active": 20}


def test_a_duplicate_of_a_forgotten_memory_is_a_new_one(stand: Stand) -> None:
    first = save(stand)
    stand.engine.forget(stand.owner, [stand.space], first.memory.id)
    again = save(stand)
    assert again.write_status == "created" and again.memory.id != first.memory.id


def external(content: str, **fields: Any) -> dict[str, Any]:
    return {"content": content, "source": Source(external_id="doc-1"), **fields}


def test_the_same_external_id_is_the_next_revision_of_the_same_memory(stand: Stand) -> None:
    first = save(stand, **external("the gate code is 4711"))
    assert save(stand, **external("the gate code is 4711")).write_status == "duplicate"
    stand.clock.advance(timedelta(days=1))
    assert save(stand, **external("the gate code is 4711")).write_status == "duplicate"
    second = save(stand, **external("the gate code is 1234"))
    assert (second.write_status, second.memory.id, second.memory.revision) == ("updated", first.memory.id, 2)
    assert second.memory.created_at == first.memory.created_at
    assert found(stand, "4711") == []
    assert found(stand, "1234") == [first.memory.id]


def test_what_was_forgotten_does_not_come_back_by_being_sent_again(stand: Stand) -> None:
    first = save(stand, **external("the gate code is 4711"))
    stand.engine.forget(stand.owner, [stand.space], first.memory.id)
    again = save(stand, **external("the gate code is 1234"))
    assert (again.write_status, again.memory.id == first.memory.id) == ("created", False)
    refused("conflict", lambda: stand.engine.restore(stand.owner, [stand.space], first.memory.id))
    stand.engine.forget(stand.owner, [stand.space], again.memory.id)
    stand.engine.restore(stand.owner, [stand.space], first.memory.id)
    assert found(stand, "gate code") == [first.memory.id]


def test_two_external_ids_may_say_the_same(stand: Stand) -> None:
    one = save(stand, source=Source(external_id="a"))
    two = save(stand, source=Source(external_id="b"))
    assert one.memory.id != two.memory.id


def test_an_external_id_belongs_to_its_app(stand: Stand) -> None:
    first = save(stand, source=Source(external_id="a"))
    draft = Draft("something else", source=Source(external_id="a"))
    other = stand.engine.save(stand.owner, stand.space, "another app", draft)
    assert (other.write_status, other.memory.id != first.memory.id) == ("created", True)


def test_a_stale_revision_changes_nothing_and_is_told_the_current_one(stand: Stand) -> None:
    first = save(stand, **external("one"))
    save(stand, **external("two", if_revision=1))
    error = refused("conflict", lambda: save(stand, **external("three", if_revision=1)))
    assert "2" in error.message
    assert stand.engine.fetch(stand.owner, [stand.space], first.memory.id).content == "two"


def test_untrusted_text_waits_and_never_changes_what_is_relied_on(stand: Stand) -> None:
    untrusted = Source(origin="external", external_id="doc-1")
    first = save(stand, **external("the gate code is 4711"))
    proposed = save(stand, "the gate code is 6666", source=untrusted)
    assert (proposed.write_status, proposed.memory.state) == ("pending", "pending")
    assert stand.engine.fetch(stand.owner, [stand.space], first.memory.id).content == "the gate code is 4711"
    assert found(stand, "gate code") == [first.memory.id]
    assert found(stand, "gate code", Filters(state="pending")) == [proposed.memory.id]


def test_untrusted_text_waits_once_however_often_it_is_sent(stand: Stand) -> None:
    untrusted = Source(origin="external", external_id="doc-1")
    first = save(stand, **external("the gate code is 4711"))
    proposed = save(stand, "the gate code is 6666", source=untrusted)
    stand.clock.advance(timedelta(days=1))
    again = save(stand, "the gate code is 6666", source=untrusted)
    assert (again.write_status, again.memory.id) == ("duplicate", proposed.memory.id)
    changed = save(stand, "the gate code is 7777", source=untrusted)
    assert (changed.write_status, changed.memory.id) == ("pending", proposed.memory.id)
    assert changed.memory.revision == 2
    assert stand.engine.status(stand.owner, [stand.space]).counts == {"active": 1, "pending": 1}
    same = save(stand, "the gate code is 4711", source=untrusted)
    assert (same.write_status, same.memory.id) == ("duplicate", first.memory.id)


def test_without_the_embedder_it_is_stored_and_found_by_its_words_and_embedded_later(stand: Stand) -> None:
    assert stand.embedder is not None
    stand.embedder.is_away = True
    saved = save(stand)
    assert saved.indexed is False
    assert found(stand, "pantry") == [saved.memory.id]
    stand.embedder.is_away = False
    assert stand.engine.index_pending() == 1
    assert stand.engine.index_pending() == 0
    assert save(stand).indexed is True


def test_content_too_long_to_embed_at_once_is_embedded_later(stand: Stand) -> None:
    saved = save(stand, "The hedge was cut in March by the neighbour. " * 2_000)
    assert saved.indexed is False
    assert found(stand, "hedge neighbour") == [saved.memory.id]
    assert stand.engine.index_pending() == 1
    assert stand.engine.index_pending() == 0


def test_an_embedding_that_comes_after_the_next_revision_is_not_kept(stand: Stand) -> None:
    assert stand.embedder is not None
    stand.embedder.is_away = True
    save(stand, **external("the gate code is 4711"))
    assert stand.backend.memories.count_unindexed("fake") == 1
    (owed,) = stand.backend.memories.unindexed("fake", 10)
    save(stand, **external("the gate code is 1234"))
    stand.embedder.is_away = False
    vectors = [stand.embedder.embed_passages([owed.text])[0]]
    assert not stand.backend.memories.set_vectors("fake", owed, vectors)
    assert stand.engine.index_pending() == 1


def test_another_embedder_embeds_everything_again_and_search_goes_on_meanwhile(stand: Stand) -> None:
    saved = save(stand)
    other = stand.another_process(FakeEmbedder(name="other", dimensions=32))
    assert [hit.memory.id for hit in other.search(stand.owner, stand.space, "pantry")] == [saved.memory.id]
    assert other.owed() == 1
    assert other.index_pending() == 1
    assert (other.index_pending(), other.owed()) == (0, 0)
    (hit,) = other.search(stand.owner, stand.space, "pantry", explain=True)
    assert hit.parts["vector"] > 0


@pytest.mark.parametrize("dimensions", [FakeEmbedder.dimensions, FakeEmbedder.dimensions // 2])
def test_vectors_of_two_models_are_never_compared(stand: Stand, dimensions: int) -> None:
    for number in range(4):
        save(stand, f"the spare key number {number} hangs behind the pantry door")
    embedder = FakeEmbedder(name="other", dimensions=dimensions)
    other = stand.another_process(embedder)
    assert other.index_pending(2) == 2
    background = background_of(embedder)
    query = Query((), embedder.embed_queries(["pantry"])[0], "other", dimensions, background)
    found = other.memories.candidates(stand.owner, stand.space, query, Filters())
    assert (len(found.passages), found.total) == (2, 2)
    assert not np.isnan(found.similarity).any()


@pytest.mark.parametrize(
    "source",
    [Source(url="\ud83d"), Source(session="a\ud83d"), Source(external_id="\ud83d", derived_from=("\ud83d",))],
)
def test_no_text_is_too_broken_to_be_kept_or_asked_for(stand: Stand, source: Source) -> None:
    saved = save(stand, source=source, artifact_refs=("\ud83d",))
    assert saved.memory.artifact_refs == ("\ufffd",)
    assert found(stand, "spare \ud83d key \0") == [saved.memory.id]
    assert found(stand, "spare key", Filters(topic="\ud83d", tags=("\ud83d",))) == []
    refused("not_found", lambda: stand.engine.fetch(stand.owner, [stand.space], "\ud83d"))
    refused("not_found", lambda: stand.engine.restore(stand.owner, [stand.space], "\ud83d"))
    refused("invalid_argument", lambda: save(stand, source=Source(url="nul\0")))


def test_long_content_is_found_by_any_of_its_parts_and_summarised_by_the_best(stand: Stand) -> None:
    filler = "Nothing of interest happens in this sentence at all. " * 200
    saved = save(stand, filler + "The zebra sleeps in the garage. " + filler)
    (hit,) = stand.engine.search(stand.owner, stand.space, "zebra garage")
    assert hit.memory.id == saved.memory.id
    assert "zebra" in hit.summary and len(hit.summary) <= 220


@pytest.mark.parametrize(
    "query", ["しりとり", "用户身份", "🚀", "C++", "don't", '"x', "AND", "status: done", "끝말잇기"]
)
def test_any_text_is_a_literal_query_in_any_script(stand: Stand, query: str) -> None:
    others = ["I write C", "status pending", "今日は雨", "사과를 먹었다", "OR NOT NEAR", "y marks the spot"]
    for content in others:
        save(stand, content)
    target = {
        "しりとり": "今日は成語しりとりをした",
        "用户身份": "需要用户身份验证",
        "🚀": "launch 🚀 day",
        "C++": "I write C++",
        "don't": "they don't know",
        '"x': 'the variable "x is quoted',
        "AND": "use AND between terms",
        "status: done": "status: done",
        "끝말잇기": "어제 끝말잇기를 했다",
    }[query]
    saved = save(stand, target)
    assert found(stand, query)[0] == saved.memory.id


def test_an_empty_query_is_refused(stand: Stand) -> None:
    refused("invalid_argument", lambda: found(stand, " \n"))


def test_filters_limit_and_never_eat_the_limit(stand: Stand) -> None:
    for n in range(30):
        save(stand, f"blue paper number {n}", topic="noise")
    kept = [save(stand, f"blue paper kept {n}", topic="kept", tags=("t",)).memory.id for n in range(3)]
    draft = save(stand, "blue paper draft", state="wip")
    assert set(found(stand, "blue paper", Filters(topic="kept"), 3)) == set(kept)
    assert set(found(stand, "blue paper", Filters(tags=("t",)), 3)) == set(kept)
    assert found(stand, "blue paper", Filters(state="wip")) == [draft.memory.id]
    assert found(stand, "blue paper", Filters(kind="decision")) == []
    assert found(stand, "blue paper", Filters(origin="user")) == []


def test_dates_limit_from_one_moment_up_to_another(stand: Stand) -> None:
    start = stand.clock()
    first = save(stand, "blue paper one").memory.id
    stand.clock.advance(timedelta(days=1))
    second = save(stand, "blue paper two", valid_until=stand.clock() + timedelta(days=1)).memory.id
    assert found(stand, "blue paper", Filters(created_before=stand.clock())) == [first]
    assert found(stand, "blue paper", Filters(created_after=stand.clock())) == [second]
    assert set(found(stand, "blue paper", Filters(valid_at=stand.clock()))) == {first, second}
    assert found(stand, "blue paper", Filters(valid_at=start + timedelta(days=9))) == [first]


def test_another_owner_s_memory_does_not_exist(stand: Stand) -> None:
    saved = save(stand)
    other = stand.backend.owners.create("test", "issuer", "another", "b").id
    space = stand.engine.spaces(other)[0].id
    assert stand.engine.search(other, space, KEY) == []
    assert stand.engine.search(other, stand.space, KEY) == []
    for spaces in ([space], [stand.space], [space, stand.space]):
        foreign = refused("not_found", lambda: stand.engine.fetch(other, spaces, saved.memory.id))  # noqa: B023
        missing = refused("not_found", lambda: stand.engine.fetch(other, spaces, "no-such-id"))  # noqa: B023
        assert foreign.message == missing.message
        refused("not_found", lambda: stand.engine.forget(other, spaces, saved.memory.id))  # noqa: B023
    assert stand.engine.fetch(stand.owner, [stand.space], saved.memory.id) == saved.memory


def test_forgetting_hides_and_undoing_brings_back(stand: Stand) -> None:
    saved = save(stand)
    stand.engine.forget(stand.owner, [stand.space], saved.memory.id)
    refused("not_found", lambda: stand.engine.fetch(stand.owner, [stand.space], saved.memory.id))
    assert found(stand, "spare key") == []
    assert stand.engine.status(stand.owner, [stand.space]).counts == {}
    refused("not_found", lambda: stand.engine.restore(stand.owner, ["elsewhere"], saved.memory.id))
    stand.engine.restore(stand.owner, [stand.space], saved.memory.id)
    assert found(stand, "spare key") == [saved.memory.id]
    stand.engine.restore(stand.owner, [stand.space], saved.memory.id)
    assert found(stand, "spare key") == [saved.memory.id]


def test_reading_is_noted_and_changes_nothing_else(stand: Stand) -> None:
    saved = save(stand)
    stand.engine.fetch(stand.owner, [stand.space], saved.memory.id)
    read_at = stand.clock()
    stand.clock.advance(timedelta(minutes=59))
    assert stand.engine.fetch(stand.owner, [stand.space], saved.memory.id).last_used_at == read_at
    stand.clock.advance(timedelta(days=1))
    stand.engine.fetch(stand.owner, [stand.space], saved.memory.id)
    again = stand.another_process().fetch(stand.owner, [stand.space], saved.memory.id)
    assert (again.last_used_at, again.revision) == (stand.clock(), 1)


def test_a_memory_is_found_by_its_topic_and_tags(stand: Stand) -> None:
    saved = save(stand, topic="Hausverwaltung", tags=("schlüssel",))
    assert found(stand, "Hausverwaltung") == [saved.memory.id]
    assert found(stand, "Schlüssel") == [saved.memory.id]


def test_copies_of_a_text_do_not_use_up_the_limit(stand: Stand) -> None:
    for number in range(4):
        save(stand, "the gate code is 4711", source=Source(external_id=str(number)))
    other = save(stand, "the gate code of the neighbour is 1234")
    assert other.memory.id in found(stand, "gate code", limit=2)


def test_a_batch_is_stored_whole_or_not_at_all(stand: Stand) -> None:
    drafts = [Draft("first of the batch"), Draft("second of the batch"), Draft(" ")]
    refused("invalid_argument", lambda: stand.engine.import_many(stand.owner, stand.space, stand.app, drafts))
    assert stand.engine.status(stand.owner, [stand.space]).counts == {}


def test_the_chosen_space_is_the_app_s_and_within_what_it_may_use(stand: Stand) -> None:
    engine, owner = stand.engine, stand.owner
    assert engine.space_of(owner, "app", None).id == stand.space
    assert engine.use_space(owner, "app", "default", None).id == stand.space
    refused("not_found", lambda: engine.use_space(owner, "app", "nowhere", None))
    refused("not_found", lambda: engine.space_of(owner, "app", ["elsewhere"]))


def test_status_counts_states_and_topics(stand: Stand) -> None:
    save(stand, "one", topic="a")
    save(stand, "two", topic="a")
    save(stand, "three", topic="b")
    save(stand, "four", topic="c", state="wip")
    status = stand.engine.status(stand.owner, [stand.space])
    assert status.counts == {"active": 3, "wip": 1}
    assert status.topics == (("a", 2), ("b", 1))
    assert status.updated_at == stand.clock()
    assert [space.name for space in status.spaces] == ["default"]
