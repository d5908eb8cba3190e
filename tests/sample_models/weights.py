"""ONNX samples with stored weights in place of those that the files only describe."""

from collections.abc import Callable, Sequence
from typing import Any

from onnx import GraphProto
from onnx.numpy_helper import from_array, to_array

# From the name, the shape and the described value of a weight to its numbers.
Drawn = Callable[[str, Sequence[int], Any], Any]


def store_weights(graph: GraphProto, drawn: Drawn) -> dict[str, Any]:
    """Replace each weight by an initialiser with these numbers, and return them by name."""
    shapes = {it.name: to_array(it).tolist() for it in graph.initializer}
    values: dict[str, Any] = {}
    others = []
    for node in graph.node:
        for inner in (it.g for it in node.attribute if it.HasField("g")):
            values |= store_weights(inner, drawn)
        if node.op_type != "ConstantOfShape" or node.name != node.output[0]:
            others.append(node)
            continue
        (filling,) = to_array(node.attribute[0].t)
        values[node.name] = drawn(node.name, shapes[node.input[0]], filling)
        graph.initializer.append(from_array(values[node.name], node.name))
    del graph.node[:]
    graph.node.extend(others)
    return values
