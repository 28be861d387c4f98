"""Stand-ins that keep to the protocols: a clock that is set, and an embedder without a model."""

import hashlib
from collections.abc import Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta

import numpy as np
from numpy.typing import NDArray

from store.errors import StoreError


@dataclass
class Clock:
    """Stands still until told otherwise."""

    moment: datetime = datetime(2026, 1, 1, 12, tzinfo=UTC)

    def __call__(self) -> datetime:
        return self.moment

    def advance(self, step: timedelta) -> None:
        self.moment += step


@dataclass
class FakeEmbedder:
    """Hashed character trigrams: texts that share letters are near; always the same vector for a text."""

    name: str = "fake"
    dimensions: int = 64
    is_away: bool = False
    embedded: int = 0

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        if self.is_away:
            raise StoreError("unavailable", "the embedder is away")
        self.embedded += len(texts)
        return np.stack([self._vector(text.casefold()) for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return self.embed_queries(texts)

    def _vector(self, text: str) -> NDArray[np.float32]:
        # The constant keeps cosines high and close together, as those of real models are.
        vector = np.full(self.dimensions, 0.3, np.float32)
        for at in range(max(len(text) - 2, 1)):
            digest = hashlib.sha256(text[at : at + 3].encode()).digest()
            vector[digest[0] % self.dimensions] += 1.0
        unit: NDArray[np.float32] = vector / np.linalg.norm(vector)
        return unit
