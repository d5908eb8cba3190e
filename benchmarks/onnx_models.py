"""Write ONNX models into a folder: the networks in the onnx package with an open batch size, and a transformer encoder.

usage: python -m benchmarks.onnx_models FOLDER [--made-up]

    python -m benchmarks.accuracy FOLDER/*.onnx

then measures them in both ways. With `--made-up` they are encoders and recurrent networks of sizes that no known model
has: the prior of predictions has their layers (`benchmarks.prior`), and known models judge it.
"""

import argparse
from collections.abc import Sequence
from pathlib import Path
from random import Random
from typing import Any, NamedTuple

import numpy
import onnx
from onnx import ModelProto, NodeProto, TensorProto, numpy_helper
from onnx.helper import make_graph, make_model, make_node, make_opsetid, make_tensor, make_tensor_value_info

LIGHT = Path(onnx.__file__).parent / "backend" / "test" / "data" / "light"
MADE_UP = 16


class Size(NamedTuple):
    """The size of a network; in a recurrent one `heads` is the number of directions."""

    layers: int
    tokens: int
    width: int
    heads: int
    words: int


USUAL = Size(12, 384, 768, 12, 30522)


def main() -> None:
    """Write all of one kind."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("folder", type=Path)
    parser.add_argument("--made-up", action="store_true")
    arguments = parser.parse_args()
    write(arguments.folder, are_made_up=arguments.made_up)


def write(folder: Path, *, are_made_up: bool = False) -> None:
    """Write known networks, or made-up ones."""
    folder.mkdir(parents=True, exist_ok=True)
    if are_made_up:
        models = {f"made_up_{number:02}": made_up(number) for number in range(MADE_UP)}
    else:
        models = {path.stem: opened(onnx.load(path)) for path in sorted(LIGHT.glob("*.onnx"))}
        models["encoder"] = encoder()
    for name, model in models.items():
        onnx.save(model, folder / f"{name}.onnx")


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
    return _Writer(USUAL).encoder()


def made_up(number: int) -> ModelProto:
    """Even numbers are encoders, odd ones recurrent networks; a number is always the same network."""
    chance = Random(number)
    heads = chance.choice((2, 3, 4, 6, 8, 10, 14))
    width, words = heads * chance.choice((24, 32, 40, 48, 64, 80)), chance.randrange(1_000, 60_000)
    if number % 2:
        return _Writer(Size(2, chance.choice((12, 24, 48, 100, 200)), width, number // 2 % 2 + 1, words)).recurrent()
    return _Writer(Size(2, chance.choice((7, 20, 60, 120, 250, 500)), width, heads, words)).encoder()


class _Writer:
    def __init__(self, size: Size) -> None:
        self._size = size
        self._nodes: list[NodeProto] = []
        self._weights = 0
        self._stored: list[TensorProto] = []

    def encoder(self) -> ModelProto:
        _, tokens, width, _, _ = self._size
        data = self._norm(self._add("Add", self._words(), self._weight((tokens, width))))
        for _ in range(self._size.layers):
            data = self._norm(self._add("Add", data, self._attention(data)))
            wide = self._linear(data, width, 4 * width)
            data = self._norm(self._add("Add", data, self._linear(self._gelu(wide), 4 * width, width)))
        return self._model("encoder", data, (1, tokens, width))

    def recurrent(self) -> ModelProto:
        """A layer of LSTM and one of GRU, and a product for each word."""
        layers, tokens, width, directions, _ = self._size
        data, read = self._add("Transpose", self._words(), perm=[1, 0, 2]), width
        for layer in range(layers):
            op, gates = ("LSTM", 4) if layer % 2 == 0 else ("GRU", 3)
            weights = [self._weight((directions, gates * width, it)) for it in (read, width)]
            both = "bidirectional" if directions > 1 else "forward"
            made = self._add(op, data, *weights, hidden_size=width, direction=both)
            # Steps, directions, batch and width: the directions are put beside each other.
            read = directions * width
            moved = self._add("Transpose", made, perm=[0, 2, 1, 3])
            data = self._add("Reshape", moved, self._sizes((tokens, 1, read)))
        return self._model("recurrent", self._linear(data, read, width), (tokens, 1, width))

    def _words(self) -> str:
        return self._add("Gather", self._weight((self._size.words, self._size.width)), "words")

    def _model(self, name: str, data: str, shape: Sequence[int]) -> ModelProto:
        graph = make_graph(
            self._nodes,
            name,
            [make_tensor_value_info("words", TensorProto.INT64, (1, self._size.tokens))],
            [make_tensor_value_info(data, TensorProto.FLOAT, shape)],
            self._stored,
        )
        return make_model(graph, opset_imports=[make_opsetid("", 17)], ir_version=8)

    def _attention(self, data: str) -> str:
        _, tokens, width, heads, _ = self._size
        query, key, value = (self._heads(self._linear(data, width, width), order) for order in _ORDERS)
        scores = self._add("Div", self._add("MatMul", query, key), self._number((width / heads) ** 0.5))
        mixed = self._add("MatMul", self._add("Softmax", scores, axis=-1), value)
        together = self._add("Transpose", mixed, perm=[0, 2, 1, 3])
        return self._linear(self._add("Reshape", together, self._sizes((1, tokens, width))), width, width)

    def _heads(self, data: str, order: Sequence[int]) -> str:
        _, tokens, width, heads, _ = self._size
        apart = self._add("Reshape", data, self._sizes((1, tokens, heads, width // heads)))
        return self._add("Transpose", apart, perm=list(order))

    def _linear(self, data: str, read: int, made: int) -> str:
        return self._add("Add", self._add("MatMul", data, self._weight((read, made))), self._weight((made,)))

    def _norm(self, data: str) -> str:
        return self._add("LayerNormalization", data, *(self._weight((self._size.width,)) for _ in range(2)), axis=-1)

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
    main()
