"""Builds the encoder's ONNX graph: embedded tokens in, their text's unit vector out.

Each linear layer becomes one int8 matrix product whose input is quantized as it arrives. Weights take 7 bits,
per output column: on processors without VNNI two products are summed in 16 bits, which 8 would overflow.
Importing this module imports `onnx`; nothing but a build needs it.
"""

from collections.abc import Sequence
from typing import Any

import numpy as np
import onnx
from numpy.typing import NDArray
from onnx import TensorProto, helper, numpy_helper

from store.embedders.weights import Weights, unpack

INT8_LIMIT = 64
OPSET = 17
IR_VERSION = 8
CONTRIB = "com.microsoft"


class _Graph:
    """Nodes and constants of the encoder; each method adds one part and returns its output's name."""

    def __init__(self, weights: Weights) -> None:
        self.weights = weights
        self.shape = weights.shape
        self.nodes: list[onnx.NodeProto] = []
        self.constants: list[onnx.TensorProto] = []

    def node(
        self, operator: str, inputs: Sequence[str], output: str, domain: str = "", **options: Any
    ) -> str:
        self.nodes.append(helper.make_node(operator, inputs, [output], domain=domain, **options))
        return output

    def constant(self, name: str, values: NDArray[np.generic]) -> str:
        self.constants.append(numpy_helper.from_array(np.ascontiguousarray(values), name))
        return name

    def stored(self, name: str) -> str:
        return self.constant(name, self.weights.vector(name))

    def linear(self, source: str, name: str, columns: int) -> str:
        matrix = unpack(self.weights.blocks(f"{name}.w", columns)).T
        scale = np.abs(matrix).max(axis=0) / INT8_LIMIT
        inputs = [
            source,
            self.constant(f"{name}.w", np.rint(matrix / scale).astype(np.int8)),
            self.constant(f"{name}.scale", scale),
            self.constant(f"{name}.zero", np.zeros(scale.shape, np.int8)),
            self.stored(f"{name}.b"),
        ]
        return self.node("DynamicQuantizeMatMul", inputs, f"{name}.out", CONTRIB)

    def add_and_normalize(self, source: str, residual: str, name: str) -> str:
        inputs = [source, residual, self.stored(f"{name}.w"), self.stored(f"{name}.b")]
        epsilon = self.shape.epsilon
        return self.node("SkipLayerNormalization", inputs, f"{name}.out", CONTRIB, epsilon=epsilon)

    def layer(self, source: str, number: int) -> str:
        prefix, hidden = f"l{number}", self.shape.hidden
        query, key, value = (self.linear(source, f"{prefix}.{part}", hidden) for part in "qkv")
        attended = self.node(
            "MultiHeadAttention",
            [query, key, value],
            f"{prefix}.attended",
            CONTRIB,
            num_heads=self.shape.heads,
        )
        projected = self.linear(attended, f"{prefix}.ao", hidden)
        middle = self.add_and_normalize(source, projected, f"{prefix}.aln")
        widened = self.linear(middle, f"{prefix}.fi", hidden)
        activated = self.node("Gelu", [widened], f"{prefix}.activated", CONTRIB)
        narrowed = self.linear(activated, f"{prefix}.fo", self.shape.feed_forward)
        return self.add_and_normalize(middle, narrowed, f"{prefix}.oln")

    def pool(self, source: str) -> str:
        """The mean over all tokens at unit length, for which their sum will do."""
        axis = self.constant("token_axis", np.array([1], np.int64))
        summed = self.node("ReduceSum", [source, axis], "summed", keepdims=0)
        return self.node("LpNormalization", [summed], "vector", axis=-1, p=2)


def build_encoder(weights: Weights) -> bytes:
    """The serialized model: `tokens` float32[1, length, hidden] to `vector` float32[1, hidden]."""
    graph = _Graph(weights)
    hidden = weights.shape.hidden
    inputs = ["tokens", graph.stored("emb.ln.w"), graph.stored("emb.ln.b")]
    state = graph.node("LayerNormalization", inputs, "emb.out", axis=-1, epsilon=weights.shape.epsilon)
    for number in range(weights.shape.layers):
        state = graph.layer(state, number)
    graph.pool(state)
    model = helper.make_model(
        helper.make_graph(
            graph.nodes,
            "multilingual-e5-small",
            [
                helper.make_tensor_value_info("tokens", TensorProto.FLOAT, [1, "length", hidden]),
            ],
            [helper.make_tensor_value_info("vector", TensorProto.FLOAT, [1, hidden])],
            graph.constants,
        ),
        opset_imports=[helper.make_opsetid("", OPSET), helper.make_opsetid(CONTRIB, 1)],
        ir_version=IR_VERSION,
    )
    return bytes(model.SerializeToString())
