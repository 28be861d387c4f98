"""Words as both backends index them, and the one function that scores them.

Any script works with any embedder or with none: words with light stemming, single characters and pairs for
scripts without spaces, symbols as words of their own.
"""

from collections.abc import Collection, Sequence
from functools import lru_cache
from pathlib import Path
from unicodedata import normalize

import numpy as np
import regex
import Stemmer
from numpy.typing import NDArray

_UNSPACED = r"\p{Han}\p{Hiragana}\p{Katakana}\p{Thai}\p{Lao}\p{Khmer}\p{Myanmar}ー々"
_TOKEN = regex.compile(
    rf"(?P<unspaced>[{_UNSPACED}][{_UNSPACED}\p{{M}}]*)"
    rf"|(?P<hangul>\p{{Hangul}}+)"
    rf"|(?P<word>[[\p{{L}}\p{{N}}\p{{M}}]--[{_UNSPACED}\p{{Hangul}}]]+(?:['’][\p{{L}}\p{{M}}]+)*[+#]*)"
    rf"|(?P<symbol>[\p{{So}}\p{{Sm}}\p{{Sc}}--[+<>=~^|`]])",
    regex.VERSION1,
)
_CHARACTER = regex.compile(rf"[{_UNSPACED}\p{{Hangul}}]")
_LATIN_MARKS = regex.compile(r"(?<=\p{Latin}\p{M}*)\p{Mn}+")
_APOSTROPHE = regex.compile(r"['’](s$)?")
K1 = 0.5
B = 0.2
"""Low, both of them: passages are short and of similar length."""
MAX_TERM_CHARACTERS = 64
MAX_QUERY_TERMS = 64

STOP_WORDS = frozenset(Path(__file__).with_name("stop_words.txt").read_text(encoding="utf-8").split())
"""The commonest words of the languages that have spaces and many speakers; dropped from queries only."""


def terms(text: str) -> list[str]:
    """The terms of a text, repeats included, in order."""
    found: list[str] = []
    for match in _TOKEN.finditer(normalize("NFKC", text).casefold()):
        kind, token = match.lastgroup, match.group()
        if kind == "unspaced":
            found += _grams(token)
        elif kind == "hangul":
            found += [token[:MAX_TERM_CHARACTERS], *_grams(token)]
        elif kind == "word":
            found.append(_stem(token))
        else:
            found.append(token)
    return found


def query_terms(query: str) -> list[str]:
    """The distinct terms a query asks for; stop words count only when there is nothing else."""
    words = [token for token in _words(query) if token not in STOP_WORDS]
    asked = dict.fromkeys(terms(" ".join(words)) or terms(query))
    return list(asked)[:MAX_QUERY_TERMS]


def _words(query: str) -> list[str]:
    return [match.group() for match in _TOKEN.finditer(normalize("NFKC", query).casefold())]


def _grams(run: str) -> list[str]:
    return [*run, *(run[i : i + 2] for i in range(len(run) - 1))]


@lru_cache(50_000)
def _stem(word: str) -> str:
    plain = _APOSTROPHE.sub("", _LATIN_MARKS.sub("", normalize("NFD", word)))
    # A stemmer holds state and is not shared between threads; making one costs microseconds, once a word.
    stemmed = Stemmer.Stemmer("english", 0).stemWord(plain) if plain.isascii() and plain.isalpha() else plain
    return normalize("NFC", stemmed)[:MAX_TERM_CHARACTERS]


def idf(count: int, matching: int) -> float:
    """How much a term tells: 0 when every passage has it."""
    return float(np.log1p((count - matching + 0.5) / (matching + 0.5)))


def weights(
    frequencies: NDArray[np.int64], lengths: NDArray[np.int64], average_length: float
) -> NDArray[np.float64]:
    """BM25's saturated term frequency, float64[n], to be multiplied by the term's `idf`."""
    norm = K1 * (1 - B + B * lengths / max(average_length, 1.0))
    result: NDArray[np.float64] = frequencies * (K1 + 1) / (frequencies + norm)
    return result


def is_foreign_script(asked: Sequence[str], found: Collection[str]) -> bool:
    """Whether a query is written in a script that the searched texts do not use at all.

    Told by single characters, which are terms of their own in scripts without spaces.
    """
    characters = [term for term in asked if len(term) == 1 and _CHARACTER.fullmatch(term)]
    return bool(characters) and not any(character in found for character in characters)
