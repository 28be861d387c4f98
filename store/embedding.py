"""How contents become the vectors of their passages, and what a model's vectors have in common."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np

from store.backend import Background, Vector
from store.embedders.protocol import Embedder
from store.passages import split


def embed(embedder: Embedder, contents: Sequence[str]) -> list[list[Vector]]:
    """For each content one vector a passage, in order: the mean of the passage's and its surroundings'.

    Raises:
        StoreError: `unavailable`.
    """
    stretches = [split(content) for content in contents]
    texts = [
        text
        for content in stretches
        for stretch in content
        for text in (stretch.text, *(stretch.passages if len(stretch.passages) > 1 else ()))
    ]
    if not texts:
        return [[] for _ in contents]
    vectors = iter(embedder.embed_passages(texts))
    embedded: list[list[Vector]] = []
    for content in stretches:
        of_content: list[Vector] = []
        for stretch in content:
            around = next(vectors)
            if len(stretch.passages) == 1:
                of_content.append(around)
            else:
                of_content += [(around + next(vectors)) / 2 for _ in stretch.passages]
        embedded.append(of_content)
    return embedded


def background(embedder: Embedder) -> Background:
    """What the model makes of everyday sentences in many languages.

    Raises:
        StoreError: `unavailable`.
    """
    sentences = Path(__file__).with_name("background.txt").read_text(encoding="utf-8").splitlines()
    vectors = embedder.embed_passages(sentences)
    centre = vectors.mean(axis=0)
    nearness = vectors @ centre
    return Background(
        centre, float(nearness.mean()), max(float(nearness.std()), 1e-6), _spread(vectors, centre)
    )


def _spread(vectors: Vector, centre: Vector) -> float:
    offsets = vectors - centre
    directions = offsets / np.maximum(np.linalg.norm(offsets, axis=1, keepdims=True), 1e-6)
    cosines = directions @ directions.T
    return max(float(cosines[~np.eye(len(vectors), dtype=bool)].std()), 1e-3)
