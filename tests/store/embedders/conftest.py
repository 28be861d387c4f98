"""The real weights and the real model, opened and built once for the whole run."""

from pathlib import Path

import pytest

from store.embedders.local import LocalEmbedder
from store.embedders.unigram import UnigramTokenizer
from store.embedders.weights import Weights, find_weights


@pytest.fixture(scope="session")
def weights() -> Weights:
    return Weights(find_weights())


@pytest.fixture(scope="session")
def pieces(weights: Weights) -> list[str]:
    return list(weights.pieces)


@pytest.fixture(scope="session")
def tokenizer(weights: Weights) -> UnigramTokenizer:
    return UnigramTokenizer(weights.pieces, weights.scores, weights.normalization)


@pytest.fixture(scope="session")
def encoder_dir(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A state directory in which the encoder is already built."""
    state_dir = tmp_path_factory.mktemp("state")
    LocalEmbedder(state_dir)
    return state_dir


@pytest.fixture(scope="session")
def embedder(encoder_dir: Path) -> LocalEmbedder:
    """One for all: it is immutable and safe to share."""
    return LocalEmbedder(encoder_dir)
