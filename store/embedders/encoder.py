"""The encoder at work: token ids to a unit vector, in the calling thread."""

from collections.abc import Sequence
from pathlib import Path

import numpy as np
import onnxruntime
from numpy.typing import NDArray

from store.embedders.weights import Weights


class Encoder:
    """Runs the model on one text at a time.

    One text, because the model quantizes over whatever it is given at once: in a batch a text's vector would
    depend on its neighbours. One thread, because two texts side by side on two cores take less time than one
    after the other on both.
    """

    def __init__(self, weights: Weights, model: Path) -> None:
        hidden = weights.shape.hidden
        self._words = weights.table("emb.word", hidden)
        positions = weights.vector("emb.pos").reshape(-1, hidden)
        self._positions = positions + weights.vector("emb.type")[:hidden]
        options = onnxruntime.SessionOptions()
        options.intra_op_num_threads = 1
        options.inter_op_num_threads = 1
        self._session = onnxruntime.InferenceSession(str(model), options, providers=["CPUExecutionProvider"])

    def encode(self, ids: Sequence[int]) -> NDArray[np.float32]:
        """float32[hidden] of unit length, for 1 to 512 ids. Safe to call from several threads at once."""
        tokens = self._words.rows(ids) + self._positions[: len(ids)]
        outputs = self._session.run(["vector"], {"tokens": tokens[None]})
        vector: NDArray[np.float32] = outputs[0][0]
        return vector
