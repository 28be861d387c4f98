"""The default embedder: multilingual-e5-small in this process, without key or network."""

import os
from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from store.embedders.encoder import Encoder
from store.embedders.encoder_file import encoder_file
from store.embedders.unigram import UnigramTokenizer
from store.embedders.weights import Weights, find_weights, verify_weights

MAX_THREADS = 4
"""Unless told otherwise: each text being computed may hold some 30 MB."""


class LocalEmbedder:
    """Some hundred languages; what a text has beyond 512 tokens is left out.

    The same text always has the same vector, whatever it is embedded together with.
    """

    name = "multilingual-e5-small-int8"
    dimensions = 384

    def __init__(self, state_dir: Path, threads: int | None = None) -> None:
        """Loads the model; its first start on a machine also builds it.

        Args:
            state_dir: Where the built model is kept, in a directory of its own.
            threads: Texts computed at the same time; by default one per core, at most 4.

        Raises:
            StoreError: `unavailable`, the weights are missing or changed, or `state_dir` cannot be written.
        """
        path = find_weights()
        verify_weights(path)
        weights = Weights(path)
        self._window = weights.shape.positions
        self._tokenizer = UnigramTokenizer(weights.pieces, weights.scores, weights.normalization)
        self._encoder = Encoder(weights, encoder_file(weights, state_dir / "embedder"))
        # Two queues, each first come, first served: a search never waits behind an import.
        workers = threads or min(os.cpu_count() or 1, MAX_THREADS)
        self._singles = ThreadPoolExecutor(workers, "embedder-single")
        self._batches = ThreadPoolExecutor(workers, "embedder-batch")

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is looked for: float32[len(texts), 384]."""
        return self._embed([f"query: {text}" for text in texts])

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is to be found: float32[len(texts), 384]."""
        return self._embed([f"passage: {text}" for text in texts])

    def _embed(self, texts: list[str]) -> NDArray[np.float32]:
        vectors = np.empty((len(texts), self.dimensions), np.float32)
        if len(texts) == 1:
            vectors[0] = self._singles.submit(self._vector, texts[0]).result()
        else:
            for row, vector in enumerate(self._batches.map(self._vector, texts)):
                vectors[row] = vector
        return vectors

    def _vector(self, text: str) -> NDArray[np.float32]:
        return self._encoder.encode(self._tokenizer.encode(text, self._window))
