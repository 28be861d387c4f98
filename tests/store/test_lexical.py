"""Words in any script, and which of them a query asks for."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from store import lexical

JAPANESE = "今日は成語しりとりをした 用户身份验证"


@pytest.mark.parametrize(
    ("text", "query"),
    [
        (JAPANESE, "しりとり"),
        (JAPANESE, "用户身份"),
        ("这台设备坏了", "设备"),
        ("launch 🚀 on Friday", "🚀"),
        ("I write C++ and C#", "C++"),
        ("they don't know", "don't"),
        ("status: done", "status: done"),
        ("Résumé für Ana", "resume"),
        ("the CATS were running", "cat run"),
        ("ｆｕｌｌ width", "full"),
        ("ไปตลาดพรุ่งนี้", "ตลาด"),
    ],
)
def test_what_is_asked_is_found_in_the_text(text: str, query: str) -> None:
    asked = lexical.query_terms(query)
    assert asked
    assert set(asked) <= set(lexical.terms(text))


def test_a_korean_word_is_found_under_its_particles() -> None:
    asked = set(lexical.query_terms("끝말잇기"))
    assert asked - set(lexical.terms("어제 끝말잇기를 했다")) == {"끝말잇기"}


def test_c_plus_plus_is_not_c() -> None:
    assert not set(lexical.query_terms("C++")) & set(lexical.terms("I write C"))


def test_stop_words_count_only_when_there_is_nothing_else() -> None:
    assert lexical.query_terms("what is the deadline") == lexical.query_terms("deadline")
    assert lexical.query_terms("to be or not to be") != []
    assert lexical.query_terms("AND") != []


def test_a_query_asks_for_each_term_once() -> None:
    assert len(lexical.query_terms("tea tea TEA")) == 1


def test_a_query_of_any_length_asks_for_a_bounded_number_of_terms() -> None:
    assert len(lexical.query_terms(" ".join(f"word{n}" for n in range(10_000)))) <= lexical.MAX_QUERY_TERMS


@given(st.text(max_size=300))
def test_any_text_has_terms_without_white_space(text: str) -> None:
    for term in lexical.terms(text):
        assert term and not any(character.isspace() for character in term)
        assert len(term) <= lexical.MAX_TERM_CHARACTERS


def test_a_foreign_script_is_one_of_which_not_a_character_is_found() -> None:
    asked = lexical.query_terms("狗叫什么名字")
    assert lexical.is_foreign_script(asked, frozenset())
    assert not lexical.is_foreign_script(asked, frozenset({"狗"}))
    assert not lexical.is_foreign_script(lexical.query_terms("what is it called"), frozenset())
