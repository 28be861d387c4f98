"""A pack keeps its budget, cites every line, says nothing twice, and shows what it left out."""

from collections.abc import Iterator
from datetime import timedelta
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.context_packs import (
    INTENTS,
    MAX_BUDGET_TOKENS,
    MIN_BUDGET_TOKENS,
    OVER_BUDGET,
    PERSON,
    SECTIONS,
    Intent,
    Pack,
    compose,
    cost,
)
from store.engine import Engine
from store.errors import StoreError
from store.memory import Draft, Memory, Source, View
from store.sqlite.database import Database
from store.sqlite.memories import SQLiteMemories
from store.sqlite.owners import SQLiteOwners
from store.tokens import estimate
from tests.store.fakes import Clock


class Stand:
    def __init__(self, path: Path) -> None:
        self.clock = Clock()
        self.database = Database(path / "vademecum.db", self.clock)
        self.engine = Engine(SQLiteMemories(self.database), None, self.clock)
        self.owner = SQLiteOwners(self.database).create("test", "issuer", "subject", "a").id
        self.space = self.engine.spaces(self.owner)[0].id
        self.view = View(self.owner, (self.space,))

    def save(self, content: str, **fields: Any) -> Memory:
        self.clock.advance(timedelta(seconds=1))
        return self.engine.save(self.owner, self.space, "app", Draft(content, **fields)).memory

    def pack(self, task: str = "x", intent: Intent = "answer", budget: int = 2000, **options: Any) -> Pack:
        return compose(self.engine, options.pop("view", self.view), task, intent, budget, **options)


@pytest.fixture
def stand(tmp_path: Path) -> Iterator[Stand]:
    stand = Stand(tmp_path)
    yield stand
    stand.database.close()


def titles(pack: Pack) -> list[str]:
    return [section.title for section in pack.sections]


def ids(pack: Pack, title: str) -> list[str]:
    return [item.memory.id for section in pack.sections if section.title == title for item in section.items]


@pytest.mark.parametrize(
    ("text", "tokens"), [("", 0), ("word", 1), ("words", 2), ("слово", 3), ("漢字", 2), ("🚀", 1)]
)
def test_tokens_are_estimated_alike_everywhere(text: str, tokens: int) -> None:
    assert estimate(text) == tokens


def test_each_kind_stands_in_its_section_and_the_task_comes_first(stand: Stand) -> None:
    saved = {
        SECTIONS["constraints"]: stand.save("no flights on Sundays", kind="constraint"),
        SECTIONS["style"]: stand.save("write short letters", kind="style"),
        SECTIONS["decisions"]: stand.save("the Lisbon trip is by train", kind="decision"),
        SECTIONS["facts"]: stand.save("Lisbon has seven hills", kind="fact"),
        SECTIONS["procedures"]: stand.save("to book Lisbon trains, call first", kind="procedure"),
        SECTIONS["open"]: stand.save("renew the passport", kind="task"),
        SECTIONS["entities"]: stand.save("something about it", kind="task", tags=("lisbon trip",)),
        SECTIONS["pinned"]: stand.save("be kind", pinned=True),
    }
    draft = stand.save("half a thought", state="wip")
    pack = stand.pack("plan the Lisbon trip", "act")
    for title, memory in saved.items():
        assert memory.id in ids(pack, title), title
    assert ids(pack, SECTIONS["open"])[-1] == draft.id
    assert titles(pack)[:2] == [SECTIONS["pinned"], SECTIONS["constraints"]]


def test_the_intent_chooses_sections_and_their_order(stand: Stand) -> None:
    stand.save("write short letters", kind="style")
    stand.save("renew the passport", kind="task")
    assert titles(stand.pack(intent="draft")) == [SECTIONS["style"], SECTIONS["recent"]]
    assert titles(stand.pack(intent="act")) == [SECTIONS["open"], SECTIONS["style"]]
    assert titles(stand.pack(intent="recall")) == [SECTIONS["recent"]]


def test_a_section_that_the_intent_has_no_use_for_is_counted(stand: Stand) -> None:
    stand.save("half a thought", state="wip")
    assert [(each.section, each.count) for each in stand.pack(intent="answer").omitted] == [
        (SECTIONS["open"], 1)
    ]


def test_who_the_person_is_needs_a_permission_and_its_absence_is_told(stand: Stand) -> None:
    fact = stand.save("lives in Graz", kind="fact", source=Source(origin="user"))
    for _ in range(11):
        stand.save(f"note {_}")
    shown = stand.pack("nothing in common")
    assert ids(shown, PERSON) == [fact.id]
    hidden = stand.pack("nothing in common", without_person="ask")
    assert PERSON not in titles(hidden)
    assert [(each.count, each.reason) for each in hidden.omitted if each.section == PERSON] == [(1, "ask")]


def test_what_waits_is_forgotten_over_or_hidden_is_never_in_a_pack(stand: Stand) -> None:
    now = stand.clock()
    stand.save("trip pending", source=Source(origin="external"))
    stand.save("trip over", valid_until=now)
    stand.save("trip later", valid_from=now + timedelta(days=1))
    forgotten = stand.save("trip forgotten", kind="constraint", pinned=True)
    stand.engine.forget(stand.owner, [stand.space], forgotten.id)
    stand.save("trip deprecated", state="deprecated")
    for intent in INTENTS:
        assert stand.pack("trip", intent).sections == ()
    stand.save("trip of an agent")
    assert stand.pack("trip").sections
    for limits in ({"origins": frozenset({"user"})}, {"states": frozenset({"pending"})}):
        assert stand.pack("trip", view=View(stand.owner, (stand.space,), **limits)).sections == ()


def test_a_task_without_anything_in_it_is_refused(stand: Stand) -> None:
    with pytest.raises(StoreError) as caught:
        stand.pack(" \n")
    assert caught.value.code == "invalid_argument"


CONTENTS = (
    "The spare key hangs behind the pantry door. " * 30,
    "鍵は食料庫のドアの後ろに掛かっています。" * 20,
    "🚀" * 300,
    "short",
    "Anna Schmidt likes tea",
    "ключ висит за дверью",
    "한국어 문장입니다 " * 40,
)
KINDS = ("note", "fact", "decision", "preference", "constraint", "procedure", "style", "task")


@pytest.fixture(scope="module")
def full(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Stand]:
    stand = Stand(tmp_path_factory.mktemp("full"))
    for number in range(84):
        content = f"{CONTENTS[number % len(CONTENTS)]} {number}"
        kind = KINDS[number % len(KINDS)]
        stand.save(content, kind=kind, pinned=number % 9 == 0, state="wip" if number % 11 == 0 else "active")
    yield stand
    stand.database.close()


@settings(deadline=None, max_examples=60)
@given(
    st.sampled_from(("the key", "Anna Schmidt", "鍵", "🚀", "ключ", "문장", "nothing")),
    st.sampled_from(INTENTS),
    st.integers(MIN_BUDGET_TOKENS, 3000) | st.just(MAX_BUDGET_TOKENS),
)
def test_the_budget_is_never_exceeded(full: Stand, task: str, intent: Intent, budget: int) -> None:
    pack = full.pack(task, intent, budget)
    cited = [item.memory.id for section in pack.sections for item in section.items]
    assert 0 < pack.used_tokens == cost(pack.sections) <= budget
    assert len(cited) == len(set(cited))
    assert all(item.text for section in pack.sections for item in section.items)
    assert all(each.count > 0 or each.section == PERSON for each in pack.omitted)
    if budget < 1000:
        assert OVER_BUDGET in {each.reason for each in pack.omitted}
    assert pack == full.pack(task, intent, budget)
