"""Write ONNX models into a folder: the networks in the onnx package with an open batch size, and a transformer encoder.

usage: python -m benchmarks.onnx_models FOLDER

    python -m benchmarks.accuracy FOLDER/*.onnx

then measures them in both ways.
"""

import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
LAYERS, TOKENS, WIDTH, HEADS, WORDS = 12, 384, 768, 12, 30522


def main(folder: Path) -> None:
    """Write all of them."""
    folder.mkdir(parents=True, exist_ok=True)
    for path in sorted(LIGHT.glob("*.onnx")):
        onnx.save(opened(onnx.load(path)), folder / path.name)
    onnx.save(encoder(), folder / "encoder.onnx")


def opened(model: ModelProto) -> ModelProto:
    """Return a model whose batch size is open; the networks of the onnx package fix it at 1."""
    graph = model.graph
    stored = {weight.name: weight for weight in graph.initializer}
    stored |= {node.output[0]: node.attribute[0].t for node in graph.node if node.op_type == "Constant"}
    for given in (*graph.input, *graph.output):
        sizes = given.type.tensor_type.shape.dim
        if given.name not in stored and sizes and sizes[0].dim_value == 1:
            sizes[0].dim_param = "batch"
    for node in graph.node:
        if node.op_type == "Reshape" and node.input[1] in stored:
            target = numpy_helper.to_array(stored[node.input[1]])
            if target[0] == 1 and -1 not in target:
                free = numpy_helper.from_array(numpy.concatenate([[-1], target[1:]]), node.input[1])
                stored[node.input[1]].CopyFrom(free)
    del graph.value_info[:]
    return model


def encoder() -> ModelProto:
    """An encoder of the usual size, from the numbers of words to one vector for each of them."""
    return _Encoder().model()


class _Encoder:
    def __init__(self) -> None:
        self._nodes: list[NodeProto] = []
        self._weights = 0
        self._stored: list[TensorProto] = []

    def model(self) -> ModelProto:
        words = self._add("Gather", self._weight((WORDS, WIDTH)), "words")
        data = self._norm(self._add("Add", words, self._weight((TOKENS, WIDTH))))
        for _ in range(LAYERS):
            data = self._norm(self._add("Add", data, self._attention(data)))
            wide = self._linear(data, WIDTH, 4 * WIDTH)
            data = self._norm(self._add("Add", data, self._linear(self._gelu(wide), 4 * WIDTH, WIDTH)))
        graph = make_graph(
            self._nodes,
            "encoder",
            [make_tensor_value_info("words", TensorProto.INT64, (1, TOKENS))],
            [make_tensor_value_info(data, TensorProto.FLOAT, (1, TOKENS, WIDTH))],
            self._stored,
        )
        return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)

    def _attention(self, data: str) -> str:
        query, key, value = (self._heads(self._linear(data, WIDTH, WIDTH), order) for order in _ORDERS)
        scores = self._add("Div", self._add("MatMul", query, key), self._number((WIDTH / HEADS) ** 0.5))
        mixed = self._add("MatMul", self._add("Softmax", scores, axis=-1), value)
        together = self._add("Transpose", mixed, perm=[0, 2, 1, 3])
        return self._linear(self._add("Reshape", together, self._sizes((1, TOKENS, WIDTH))), WIDTH, WIDTH)

    def _heads(self, data: str, order: Sequence[int]) -> str:
        apart = self._add("Reshape", data, self._sizes((1, TOKENS, HEADS, WIDTH // HEADS)))
        return self._add("Transpose", apart, perm=list(order))

    def _linear(self, data: str, read: int, made: int) -> str:
        return self._add("Add", self._add("MatMul", data, self._weight((read, made))), self._weight((made,)))

    def _norm(self, data: str) -> str:
        return self._add("LayerNormalization", data, self._weight((WIDTH,)), self._weight((WIDTH,)), axis=-1)

    def _gelu(self, data: str) -> str:
        share = self._add("Erf", self._add("Div", data, self._number(2**0.5)))
        both = self._add("Mul", data, self._add("Add", share, self._number(1.0)))
        return self._add("Mul", both, self._number(0.5))

    def _add(self, op: str, *inputs: str, **attributes: Any) -> str:
        name = f"{op.lower()}{len(self._nodes)}"
        self._nodes.append(make_node(op, list(inputs), [f"{name}_out"], name=name, **attributes))
        return f"{name}_out"

    def _weight(self, shape: Sequence[int]) -> str:
        """Made by the model itself, as in the networks of the onnx package.

        Each has another value. OpenVINO runs equal operators on equal inputs only once.
        """
        self._weights += 1
        value = make_tensor("value", TensorProto.FLOAT, (1,), (0.01 + 1e-5 * self._weights,))
        return self._add("ConstantOfShape", self._sizes(shape), value=value)

    def _number(self, value: float) -> str:
        return self._store(TensorProto.FLOAT, (), (value,))

    def _sizes(self, sizes: Sequence[int]) -> str:
        return self._store(TensorProto.INT64, (len(sizes),), sizes)

    def _store(self, kind: int, shape: Sequence[int], values: Sequence[float]) -> str:
        self._stored.append(make_tensor(f"stored{len(self._stored)}", kind, shape, values))
        return self._stored[-1].name


# Of keys the last two axes are exchanged, for the product with queries.
_ORDERS = ((0, 2, 1, 3), (0, 2, 3, 1), (0, 2, 1, 3))


if __name__ == "__main__":
    main(Path(sys.argv[1]))
