"""Gemini's embedding models, each used as its documentation asks."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import partial

import numpy as np
from google import genai
from google.genai import types
from numpy.typing import NDArray

from store.embedders.remote import DEFAULT_PATIENCE, Batches, Patience, Vectors
from store.gemini import SERVICE

BATCH = 100
DIMENSIONS = 768
MAX_CHARACTERS = 6_000
"""What a text has beyond is left out; the smaller window, of `gemini-embedding-001`, is 2,048 tokens."""
MODELS = ("gemini-embedding-001", "gemini-embedding-2")


@dataclass(frozen=True)
class _Purpose:
    task_type: str
    prefix: str


_QUERY = _Purpose("RETRIEVAL_QUERY", "task: search result | query: ")
_PASSAGE = _Purpose("RETRIEVAL_DOCUMENT", "title: none | text: ")


class GeminiEmbedder:
    """One of `MODELS`.

    `gemini-embedding-001` has task types, and vectors of unit length only at 3,072 dimensions.
    `gemini-embedding-2` has none: what a text is for stands in front of it. It makes one vector of a list of
    strings, so each text is a content of its own.
    """

    def __init__(
        self,
        client: genai.Client,
        model: str = MODELS[0],
        dimensions: int = DIMENSIONS,
        patience: Patience = DEFAULT_PATIENCE,
    ) -> None:
        self.name = f"{model}:{dimensions}"
        self.dimensions = dimensions
        self._client = client
        self._model = model
        self._patience = patience
        self._queries = Batches(SERVICE, BATCH, dimensions, partial(self._request, _QUERY))
        self._passages = Batches(SERVICE, BATCH, dimensions, partial(self._request, _PASSAGE))

    def embed_queries(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is looked for."""
        return self._queries.vectors(texts, self._patience.query)

    def embed_passages(self, texts: Sequence[str]) -> NDArray[np.float32]:
        """Embeds what is to be found."""
        return self._passages.vectors(texts, self._patience.passages)

    def _request(self, purpose: _Purpose, texts: Sequence[str]) -> Vectors:
        has_task_types = self._model == MODELS[0]
        prefix = "" if has_task_types else purpose.prefix
        config = types.EmbedContentConfig(
            task_type=purpose.task_type if has_task_types else None, output_dimensionality=self.dimensions
        )
        contents: list[types.ContentUnion] = [
            types.Content(parts=[types.Part.from_text(text=prefix + text[:MAX_CHARACTERS])]) for text in texts
        ]
        answer = self._client.models.embed_content(model=self._model, contents=contents, config=config)
        return [embedding.values or [] for embedding in answer.embeddings or ()]
