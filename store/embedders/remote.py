"""What embedders over the network share: batches, and answers that are checked before they are believed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from numpy.typing import NDArray

from store.remote import ask

Vectors = Sequence[Sequence[float]]


@dataclass(frozen=True)
class Patience:
    """How long each request is tried again, in seconds: somebody waits for a query."""

    query: float = 5.0
    passages: float = 60.0


DEFAULT_PATIENCE = Patience()


@dataclass(frozen=True)
class Batches:
    """Texts in requests of at most `size`, each tried again by itself."""

    service: str
    size: int
    dimensions: int
    embed: Callable[[Sequence[str]], Vectors]

    def vectors(self, texts: Sequence[str], seconds: float) -> NDArray[np.float32]:
        """Unit vectors of all texts, float32[len(texts), dimensions].

        Raises:
            StoreError: `unavailable`.
        """
        rows = np.empty((len(texts), self.dimensions), np.float32)
        for start in range(0, len(texts), self.size):
            batch = texts[start : start + self.size]
            rows[start : start + len(batch)] = ask(self.service, partial(self._one, batch), seconds)
        return rows

    def _one(self, texts: Sequence[str]) -> NDArray[np.float32]:
        return unit(self.embed(texts), len(texts), self.dimensions)


def unit(vectors: Vectors, count: int, dimensions: int) -> NDArray[np.float32]:
    """The vectors at unit length, once they are what was asked for.

    Raises:
        ValueError: they are not.
    """
    if len(vectors) != count or any(len(vector) != dimensions for vector in vectors):
        raise ValueError("the service answered with other vectors than were asked for")
    rows = np.asarray(vectors, np.float32).reshape(count, dimensions)
    lengths = np.linalg.norm(rows, axis=1, keepdims=True)
    if not (np.isfinite(rows).all() and (lengths > 0).all()):
        raise ValueError("the service answered with vectors that have no direction")
    normalized: NDArray[np.float32] = rows / lengths
    return normalized
