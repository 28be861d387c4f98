"""What the engine asks of an embedder."""

from collections.abc import Sequence
from typing import Protocol

import numpy as np
from numpy.typing import NDArray


class Embedder(Protocol):
    """Turns texts into vectors for cosine search, synchronously and from any thread.

    Cosines are for ranking within one model: their absolute values mean nothing.
    """

    name: str
    """Model and version, stored beside each vector: only vectors of one name are compared."""
    dimensions: int

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is looked for.

        Args:
            texts: Any number, of any length; what exceeds the model's window is left out.

        Returns:
            float32[len(texts), dimensions], each row of unit length.

        Raises:
            StoreError: `unavailable` when the model cannot answer.
        """
        ...

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is to be found; as `embed_queries`, but not interchangeable with it."""
        ...
