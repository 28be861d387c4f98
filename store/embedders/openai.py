"""Any address that speaks OpenAI's `POST /v1/embeddings`: OpenAI, Ollama, vLLM, LM Studio and many more."""

from collections.abc import Sequence
from typing import Any

import httpx2
import numpy as np
from numpy.typing import NDArray

from store.embedders.remote import DEFAULT_PATIENCE, Batches, Patience, Vectors

BATCH = 64
MAX_CHARACTERS = 8_000
"""What a text has beyond is left out: the common models read 8,192 tokens and refuse more."""
TIMEOUT_SECONDS = 20.0


class OpenAIEmbedder:
    """One model of the service; queries and passages are embedded alike."""

    def __init__(
        self,
        base_url: str,
        api_key: str | None,
        model: str,
        dimensions: int,
        patience: Patience = DEFAULT_PATIENCE,
    ) -> None:
        """An embedder that has not asked for anything yet.

        Args:
            base_url: up to and without `/embeddings`, such as `https://api.openai.com/v1`.
            api_key: sent as a bearer token; None for services without one.
            model: as the service names it.
            dimensions: of the model's vectors; models that can shorten them are asked to.
            patience: how long a request is tried again.
        """
        self.name = f"openai:{model}:{dimensions}"
        self.dimensions = dimensions
        self._url = base_url.rstrip("/") + "/embeddings"
        self._model = model
        headers = {} if api_key is None else {"Authorization": f"Bearer {api_key}"}
        self._http = httpx2.Client(timeout=TIMEOUT_SECONDS, headers=headers)
        self._patience = patience
        self._batches = Batches("the embedding service", BATCH, dimensions, self._request)

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is looked for."""
        return self._batches.vectors(texts, self._patience.query)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is to be found."""
        return self._batches.vectors(texts, self._patience.passages)

    def _request(self, texts: Sequence[str]) -> Vectors:
        body: dict[str, Any] = {
            "model": self._model,
            "input": [text[:MAX_CHARACTERS] for text in texts],
            "dimensions": self.dimensions,
            "encoding_format": "float",
        }
        answer = self._http.post(self._url, json=body)
        answer.raise_for_status()
        data = answer.json()["data"]
        return [row["embedding"] for row in sorted(data, key=lambda row: row["index"])]
