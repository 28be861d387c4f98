"""Names and links are read from how a text is written; what cannot be told is left out."""

from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.entities import edges
from store.memory import Memory, Source
from store.names import MAX_LINKS, MAX_NAME_CHARACTERS, MAX_NAMES, key, links, names
from tests.store.fakes import Clock


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("Anna Schmidt likes tea. She works at Acme Corp with Bob.", {"Anna Schmidt", "Acme Corp", "Bob"}),
        ("The Eiffel Tower is in Paris", {"Eiffel Tower", "Paris"}),
        ("Charles de Gaulle met Ludwig van Beethoven", {"Charles de Gaulle", "Ludwig van Beethoven"}),
        ("Anna's cat and the cat of Anna", {"Anna"}),
        ("Встреча с Иваном Петровым в Москве", {"Иваном Петровым", "Москве"}),
        ("Ο Γιώργος μένει στην Αθήνα", {"Γιώργος", "Αθήνα"}),
        ("彼は「しりとり」が好き", {"しりとり"}),
        ("《红楼梦》很好", {"红楼梦"}),
        ("он читает «Войну и мир»", {"Войну и мир"}),
        ('the plan called "blue whale"', {"blue whale"}),
        ("see [[Project Apollo|the project]]", {"Project Apollo"}),
        ("GitHub is down, and so is C++", {"GitHub", "C++"}),
    ],
)
def test_names_are_found_in_any_script(text: str, expected: set[str]) -> None:
    assert set(names(text)) == expected


@pytest.mark.parametrize(
    "text",
    [
        "Tomorrow is a good day. Everything else can wait.",
        "I'm here and I think so",
        "- Buy milk\n- Water the plants",
        "Der Schlüssel hängt hinter der Tür",
        "DO NOT USE THIS",
        'she said "I never liked tea."',
        "on Monday in March",
        "用户身份 設備 끝말잇기",
        "",
    ],
)
def test_a_capital_that_grammar_asks_for_is_no_name(text: str) -> None:
    assert not names(text)


def test_a_sentence_s_first_word_is_a_name_when_it_is_one_elsewhere() -> None:
    assert names("Berlin is large. We met in Berlin.") == {"Berlin": 2}


def test_links_end_before_what_is_around_them() -> None:
    text = "See https://example.com/a?b=1. And (http://example.org/x), twice: https://example.com/a?b=1"
    assert links(text) == {"https://example.com/a?b=1": 2, "http://example.org/x": 1}
    assert not names("see https://Example.com/Anna")


def test_spellings_of_one_name_share_a_key() -> None:
    assert key("  ＡＮＮＡ \n schmidt ") == key("Anna Schmidt")


def memory(content: str, **fields: Any) -> Memory:
    now = Clock()()
    values: dict[str, Any] = {
        "topic": "general",
        "tags": (),
        "artifact_refs": (),
        "source": Source(),
    } | fields
    return Memory(
        id="m",
        owner="o",
        space="s",
        content=content,
        state="active",
        kind="note",
        modality="text",
        pinned=False,
        valid_from=None,
        valid_until=None,
        superseded_by=None,
        created_at=now,
        updated_at=now,
        last_used_at=None,
        revision=1,
        **values,
    )


def test_a_memory_is_connected_with_where_it_is_filed_what_it_says_and_what_it_came_from() -> None:
    found = edges(
        memory(
            "Ask Anna, see https://a.example, and ask Anna again",
            topic="Garden",
            tags=("rose", "Garden"),
            artifact_refs=("plan.pdf",),
            source=Source(url="https://b.example", derived_from=("other",)),
        )
    )
    assert {(edge.kind, edge.target, edge.weight) for edge in found} == {
        ("belongs_to", "garden", 1),
        ("belongs_to", "rose", 1),
        ("mentions", "anna", 2),
        ("references", "https://a.example", 1),
        ("references", "https://b.example", 1),
        ("depends_on", "plan.pdf", 1),
        ("derived_from", "other", 1),
    }


def test_the_default_topic_connects_nothing() -> None:
    assert edges(memory("nothing in particular")) == []


_PIECES = st.sampled_from(
    ["Anna", "de", "der", '"', "«", "「", "[[", "]]", "https://", ". ", "\n", "'s", "Ａ", "ß"]
)


@settings(deadline=None)
@given(st.one_of(st.text(), st.lists(_PIECES, max_size=60).map("".join), st.lists(_PIECES).map(" ".join)))
def test_any_text_has_few_short_names(text: str) -> None:
    found, linked = names(text), links(text)
    assert len(found) <= MAX_NAMES and len(linked) <= MAX_LINKS
    assert all(0 < len(name) <= MAX_NAME_CHARACTERS and key(name) for name in found)
    assert all(edge.target and edge.weight > 0 for edge in edges(memory(text, tags=(text,), topic=text)))
    assert len({key(name) for name in found}) == len(found)
