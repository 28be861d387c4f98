"""The tokenizer against published ids, against an exhaustive search, and against whatever people send."""

import time
from itertools import combinations, pairwise

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from store.embedders.unigram import BEGIN, END, UNKNOWN, WORD_MARK, UnigramTokenizer
from store.embedders.weights import Weights

ANY_TEXT = st.text(st.characters(exclude_categories=()))
HOSTILE = {
    "one character that stands for 18": "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 100,
    "half a megabyte of it": "\N{ARABIC LIGATURE SALLALLAHOU ALAYHE WASALLAM}" * 2**19,
    "half a megabyte of one letter": "a" * 2**19,
    "half a megabyte of one ideograph": "今" * 2**19,
    "half a megabyte of spaces": " " * 2**19,
    "half a megabyte of invisible characters": "\N{ZERO WIDTH JOINER}" * 2**19,
    "half a megabyte of control characters": "\x01" * 2**19,
    "accents that canonical ordering must sort": "a" + "\u0300\u0316" * 2**18,
    "unknown characters": "\U000e0fff" * 2**19,
    "lone surrogates": "\ud800" * 2**19,
    "as many words as characters": "a b " * 2**17,
}


@pytest.fixture(scope="module")
def log_probabilities(weights: Weights, pieces: list[str]) -> dict[str, float]:
    return dict(zip(pieces, weights.scores.tolist(), strict=True))


# Published with XLM-R, whose vocabulary this is: fairseq's examples/xlmr/README.md and hub tests, and the
# integration tests of Hugging Face's transformers.
@pytest.mark.parametrize(
    ("text", "ids"),
    [
        ("Hello world!", [0, 35378, 8999, 38, 2]),
        ("Hello World!", [0, 35378, 6661, 38, 2]),
        ("Bonjour le monde", [0, 84602, 95, 11146, 2]),
        ("你好，世界", [0, 6, 124084, 4, 3221, 2]),
        ("नमस्ते दुनिया", [0, 68700, 97883, 29405, 2]),
        ("مرحبا بالعالم", [0, 665, 193478, 258, 1705, 77796, 2]),
    ],
)
def test_texts_have_the_ids_published_with_the_vocabulary(
    tokenizer: UnigramTokenizer, text: str, ids: list[int]
) -> None:
    assert tokenizer.encode(text, 512) == ids


@pytest.mark.parametrize(
    ("text", "same_as"),
    [
        ("  Hello \t\r\n  world! ", "Hello world!"),
        ("\N{ZERO WIDTH NO-BREAK SPACE}Hello\N{IDEOGRAPHIC SPACE}world!", "Hello world!"),
        ("Ｈｅｌｌｏ ｗｏｒｌｄ！", "Hello world!"),
        ("Hel\x07lo wor\x1fld!", "Hello world!"),
        ("e\N{COMBINING ACUTE ACCENT}", "\N{LATIN SMALL LETTER E WITH ACUTE}"),
        (f"a{WORD_MARK}b", "a b"),
    ],
)
def test_texts_that_read_alike_have_the_same_ids(
    tokenizer: UnigramTokenizer, text: str, same_as: str
) -> None:
    assert tokenizer.encode(text, 512) == tokenizer.encode(same_as, 512)


@pytest.mark.parametrize("text", ["", " ", "\n\n", "\N{ZERO WIDTH SPACE}"])
def test_a_text_without_words_is_begin_and_end(tokenizer: UnigramTokenizer, text: str) -> None:
    assert tokenizer.encode(text, 512) == [BEGIN, END]


def test_neighbouring_unknown_characters_are_one_token(tokenizer: UnigramTokenizer) -> None:
    assert tokenizer.encode("\U00020001\U00020002\U00020003", 512).count(UNKNOWN) == 1


@pytest.mark.parametrize("text", HOSTILE.values(), ids=HOSTILE.keys())
def test_hostile_texts_take_little_work_and_few_tokens(tokenizer: UnigramTokenizer, text: str) -> None:
    started = time.thread_time()
    ids = tokenizer.encode(text, 512)
    assert time.thread_time() - started < 1  # 0.05 s at most; without bounds these take minutes
    assert len(ids) <= 512


@given(text=ANY_TEXT, limit=st.integers(2, 64))
@settings(deadline=None)
def test_any_text_gives_known_ids_between_begin_and_end(
    tokenizer: UnigramTokenizer, weights: Weights, text: str, limit: int
) -> None:
    first, *inner, last = tokenizer.encode(text, limit)
    assert (first, last) == (BEGIN, END)
    assert len(inner) <= limit - 2
    assert all(UNKNOWN <= id_ < len(weights.scores) for id_ in inner)


@given(words=st.lists(st.text("abehijlnorstué今天気日мир", min_size=1, max_size=40), max_size=20))
@settings(deadline=None)
def test_the_pieces_of_known_characters_spell_the_text(
    tokenizer: UnigramTokenizer, pieces: list[str], words: list[str]
) -> None:
    spelled = "".join(pieces[id_] for id_ in tokenizer.encode(" ".join(words), 2000)[1:-1])
    assert spelled == "".join(WORD_MARK + word for word in words)


@given(word=st.text("aeinorst", min_size=1, max_size=9))
@settings(deadline=None, max_examples=50)
def test_no_other_way_to_cut_a_word_is_likelier(
    tokenizer: UnigramTokenizer, log_probabilities: dict[str, float], pieces: list[str], word: str
) -> None:
    marked = WORD_MARK + word
    likelihoods = []
    for count in range(len(marked)):
        for cuts in combinations(range(1, len(marked)), count):
            parts = [marked[start:end] for start, end in pairwise([0, *cuts, len(marked)])]
            if all(part in log_probabilities for part in parts):
                likelihoods.append(sum(log_probabilities[part] for part in parts))
    found = sum(log_probabilities[pieces[id_]] for id_ in tokenizer.encode(word, 512)[1:-1])
    assert found == pytest.approx(max(likelihoods), abs=1e-4)


@given(text=st.text("ab今 ", max_size=200), limit=st.integers(2, 40))
@settings(deadline=None)
def test_a_smaller_limit_only_cuts_the_end(tokenizer: UnigramTokenizer, text: str, limit: int) -> None:
    whole = tokenizer.encode(text, 512)
    assert tokenizer.encode(text, limit)[:-1] == whole[: min(limit, len(whole)) - 1]
