"""Spaces, turns of conversations and app profiles on every backend."""

from concurrent.futures import ThreadPoolExecutor
from datetime import timedelta

import pytest

from store import documents, episodes
from store.documents import DocumentDraft
from store.errors import StoreError
from store.memory import Draft
from store.profiles import AppProfile
from tests.contract.conftest import Stand


def test_spaces_are_added_renamed_and_deleted_with_what_is_in_them(stand: Stand) -> None:
    memories = stand.backend.memories
    stand.clock.advance(timedelta(days=1))
    work = memories.add_space(stand.owner, "work")
    assert [space.name for space in memories.spaces(stand.owner)] == ["default", "work"]
    with pytest.raises(StoreError, match="already"):
        memories.add_space(stand.owner, "work")
    with pytest.raises(StoreError, match="already"):
        memories.rename_space(stand.owner, work.id, "default")
    assert memories.rename_space(stand.owner, work.id, "office").name == "office"
    saved = stand.engine.save(stand.owner, work.id, stand.app, Draft("the printer is on the third floor"))
    document = documents.ingest(
        stand.engine, stand.owner, work.id, stand.app, DocumentDraft("Plan", "a plan")
    )
    episodes.store(stand.engine, stand.owner, work.id, stand.app, "app", "s", "user", "hello")
    memories.delete_space(stand.owner, work.id)
    assert memories.find(stand.owner, saved.memory.id) is None
    assert memories.find_forgotten(stand.owner, saved.memory.id) is None
    assert memories.get_document(stand.owner, document.document.id) is None
    assert memories.turns(stand.owner, work.id, "s", 0, 9) == []
    for gone in (memories.delete_space, lambda *_: memories.rename_space(stand.owner, work.id, "x")):
        with pytest.raises(StoreError, match="no such space"):
            gone(stand.owner, work.id)


def test_the_only_space_stays(stand: Stand) -> None:
    with pytest.raises(StoreError, match="only space"):
        stand.backend.memories.delete_space(stand.owner, stand.space)


def test_an_app_whose_space_is_deleted_falls_back_to_the_oldest(stand: Stand) -> None:
    stand.clock.advance(timedelta(days=1))
    work = stand.backend.memories.add_space(stand.owner, "work")
    stand.engine.use_space(stand.owner, stand.app, "work", None)
    assert stand.engine.space_of(stand.owner, stand.app, None).id == work.id
    stand.backend.memories.delete_space(stand.owner, work.id)
    assert stand.engine.space_of(stand.owner, stand.app, None).id == stand.space


def say(stand: Stand, content: str, session: str = "s", app: str = "app") -> tuple[int, bool]:
    turn, is_new = episodes.store(stand.engine, stand.owner, stand.space, app, app, session, "user", content)
    return turn.number, is_new


def test_turns_are_kept_in_order_and_one_sent_twice_is_kept_once(stand: Stand) -> None:
    assert [say(stand, "one"), say(stand, "one"), say(stand, "two")] == [(1, True), (1, False), (2, True)]
    assert say(stand, "one") == (3, True)
    assert say(stand, "one", session="another") == (1, True)
    stand.clock.advance(timedelta(minutes=16))
    assert say(stand, "one") == (4, True)
    page = episodes.page(stand.engine, stand.owner, stand.space, "s", None)
    assert [turn.content for turn in page.turns] == ["one", "two", "one", "one"]
    assert page.next_cursor is None


def test_turns_of_two_processes_at_once_have_numbers_of_their_own(stand: Stand) -> None:
    with ThreadPoolExecutor(8) as pool:
        numbers = [number for number, _ in pool.map(lambda n: say(stand, f"turn {n}"), range(16))]
    assert sorted(numbers) == [*range(1, 17)]


def test_a_cursor_leads_on_and_opens_no_other_session(stand: Stand) -> None:
    for number in range(60):
        say(stand, f"turn {number}")
    first = episodes.page(stand.engine, stand.owner, stand.space, "s", None)
    say(stand, "turn 60")
    second = episodes.page(stand.engine, stand.owner, stand.space, "s", first.next_cursor)
    contents = [turn.content for turn in (*first.turns, *second.turns)]
    assert contents == [f"turn {number}" for number in range(61)]
    with pytest.raises(StoreError, match="cursor"):
        episodes.page(stand.engine, stand.owner, stand.space, "another", first.next_cursor)


def test_a_profile_is_kept_for_one_owner_s_app_beside_its_space(stand: Stand) -> None:
    profiles = stand.backend.profiles
    assert profiles.get(stand.owner, "app") == AppProfile()
    stand.engine.use_space(stand.owner, "app", "default", None)
    profile = AppProfile(tools=("search_context",), states=("active",), surface="full", episodes=True)
    profiles.put(stand.owner, "app", profile)
    assert profiles.get(stand.owner, "app") == profile
    assert profiles.get(stand.owner, "another") == AppProfile()
    assert stand.backend.memories.chosen_space(stand.owner, "app") == stand.space
    profiles.put(stand.owner, "app", AppProfile())
    assert profiles.get(stand.owner, "app") == AppProfile()
    with pytest.raises(StoreError, match="no such owner"):
        profiles.put("nobody", "app", profile)
