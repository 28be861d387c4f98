"""Content is cut where a reader would cut it, and nothing of it is lost."""

from hypothesis import given
from hypothesis import strategies as st

from store.passages import PASSAGE_CHARACTERS, SURROUNDINGS_CHARACTERS, split

FAMILY = "👨‍👩‍👧‍👦"


def test_short_content_is_one_passage_in_one_stretch() -> None:
    (stretch,) = split("The spare key hangs behind the pantry door")
    assert stretch.passages == (stretch.text,)


@given(st.text(max_size=4_000))
def test_every_visible_character_is_in_a_passage_and_bounds_hold(content: str) -> None:
    stretches = split(content)
    together = "".join(passage for stretch in stretches for passage in stretch.passages)
    assert "".join(together.split()) == "".join(content.split())
    for stretch in stretches:
        assert 0 < len(stretch.text) <= SURROUNDINGS_CHARACTERS
        assert all(0 < len(passage) <= PASSAGE_CHARACTERS for passage in stretch.passages)


def test_cuts_fall_between_sentences_rather_than_inside_them() -> None:
    sentences = "This sentence is exactly as long as the others are. " * 40
    for stretch in split(sentences):
        assert all(passage.rstrip().endswith(".") for passage in stretch.passages)


def test_a_cut_never_falls_inside_an_emoji() -> None:
    for stretch in split(FAMILY * 300):
        assert all(passage == FAMILY * (len(passage) // len(FAMILY)) for passage in stretch.passages)
