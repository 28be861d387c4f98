"""Summaries fit their limit and end where a reader expects."""

from hypothesis import given
from hypothesis import strategies as st

from store.summary import cut

FAMILY = "👩‍👩‍👧‍👦"


def test_a_short_text_stays_as_it_is_on_one_line() -> None:
    assert cut("  two\n lines ") == "two lines"


def test_a_cut_that_would_land_inside_an_emoji_falls_before_it() -> None:
    assert cut("a" * 215 + FAMILY + " and more") == "a" * 215 + "…"


@given(st.text(max_size=600), st.integers(min_value=2, max_value=300))
def test_any_text_is_cut_within_the_limit_to_valid_utf8(text: str, limit: int) -> None:
    summary = cut(text, limit)
    assert len(summary) <= limit
    summary.encode()


def test_a_very_long_text_costs_no_more_than_its_beginning() -> None:
    assert cut("word " * 1_000_000).endswith("…")
