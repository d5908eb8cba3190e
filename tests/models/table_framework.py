"""A framework for tests: it infers by a table of a few operators."""

import json
from ast import literal_eval
from collections.abc import Callable, Mapping, Sequence
from math import prod
from typing import Any

from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.graph import UNKNOWN_TYPE, Shape, TensorType
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.protocol import Reason

Params = Mapping[str, str]
# From the shapes of the data inputs to those of the outputs, and to those of the weights.
Rule = Callable[[Sequence[Shape], Params], tuple[list[Shape], list[Shape]]]


class TableFramework:
    """Infers by a table of operators; `asked` lists the questions."""

    def __init__(self, identity: str = "table-1", more: Mapping[str, Rule] | None = None) -> None:
        self._identity = identity
        self._rules = RULES | dict(more or {})
        self.asked: list[str] = []

    @property
    def identity(self) -> str:
        return self._identity

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        self.asked.append("infer")
        nodes = json.loads(symbol)["nodes"]
        types, unknown = self._types(nodes, shapes)
        return GraphAnswer(types, frozenset(unknown))

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Fuse each relu with the convolution before it."""
        self.asked.append("fuse")
        document = json.loads(symbol)
        if any(node["op"] == "NeverFuses" for node in document["nodes"]):
            raise WorkerRefusedError(Reason.UNFUSABLE, "Error in operator n1: Shape inconsistent", None)
        fused, parts = _fused(document)
        types, unknown = self._types(fused["nodes"], shapes)
        return GraphAnswer(types, frozenset(unknown), json.dumps(fused), parts)

    def _types(self, nodes: Sequence[Any], shapes: Mapping[str, Shape]) -> tuple[list[list[TensorType]], set[int]]:
        found: list[list[TensorType]] = [[_of_variable(node, shapes)] for node in nodes]
        unknown = set()
        for number, node in enumerate(nodes):
            if node["op"] == "null":
                continue
            rule = self._rules.get(node["op"])
            if rule is None:
                unknown.add(number)
                continue
            sources = [(source, output) for source, output, *_ in node["inputs"]]
            data = [entry for entry in sources if nodes[entry[0]]["op"] != "null" or _is_data(nodes[entry[0]], shapes)]
            known = [found[source][output].shape for source, output in data if output < len(found[source])]
            complete = [shape for shape in known if shape is not None]
            if len(complete) < len(data):
                continue
            try:
                outputs, learned = rule(complete, node.get("attrs", {}))
            except AssertionError:
                raise WorkerRefusedError(Reason.INCONSISTENT, f"operator {node['name']} disagrees", number) from None
            found[number] = [TensorType(shape) for shape in outputs]
            arrays = [source for source, _ in sources if (source, 0) not in data]
            for source, shape in zip(arrays, learned, strict=False):
                found[source] = [TensorType(shape)]
        return found, unknown


def _is_data(node: Any, shapes: Mapping[str, Shape]) -> bool:
    return node["name"] in shapes or "__shape__" in node.get("attrs", {})


def _of_variable(node: Any, shapes: Mapping[str, Shape]) -> TensorType:
    if node["op"] != "null":
        return UNKNOWN_TYPE
    declared = node.get("attrs", {}).get("__shape__")
    shape = shapes.get(node["name"]) or (literal_eval(declared) if declared else None)
    return UNKNOWN_TYPE if shape is None else TensorType(tuple(shape))


def _fused(document: Any) -> tuple[Any, list[list[int]]]:
    nodes = document["nodes"]
    number_of: dict[int, int] = {}
    fused: list[Any] = []
    parts: list[list[int]] = []
    for number, node in enumerate(nodes):
        source = node["inputs"][0][0] if node["inputs"] else -1
        if node["op"] == "Activation" and nodes[source]["op"] == "Convolution":
            place = number_of[number] = number_of[source]
            fused[place] = _fused_convolution(fused[place], node)
            parts[place].append(number)
            continue
        number_of[number] = len(fused)
        fused.append(node | {"inputs": [[number_of[entry[0]], *entry[1:]] for entry in node["inputs"]]})
        parts.append([number])
    return {"nodes": fused, "heads": [[number_of[head[0]], *head[1:]] for head in document["heads"]]}, parts


def _fused_convolution(convolution: Any, activation: Any) -> Any:
    variables = [{"op": "null", "name": f"in{i}", "inputs": []} for i in range(len(convolution["inputs"]))]
    inner = convolution | {"inputs": [[i, 0, 0] for i in range(len(variables))]}
    last = activation | {"inputs": [[len(variables), 0, 0]]}
    subgraph = {"nodes": [*variables, inner, last], "heads": [[len(variables) + 1, 0, 0]]}
    return {
        "op": "_sg_mkldnn_conv",
        "name": "sg_mkldnn_conv_act_0",
        "attrs": {**convolution["attrs"], "with_act": "true"},
        "inputs": convolution["inputs"],
        "subgraphs": [subgraph],
    }


def _numbers(text: str) -> Shape:
    value = literal_eval(text.replace("L", "").replace("[", "(").replace("]", ",)") if text else "()")
    return (value,) if isinstance(value, int) else tuple(value)


def _same(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    assert len(set(data)) == 1
    return [data[0]], []


def _convolution(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    batch, channels, *image = data[0]
    kernel, filters = _numbers(params["kernel"]), int(params["num_filter"])
    strides = _numbers(params.get("stride", "")) or (1,) * len(kernel)
    pads = _numbers(params.get("pad", "")) or (0,) * len(kernel)
    sides = [(a + 2 * p - k) // s + 1 for a, k, s, p in zip(image, kernel, strides, pads, strict=True)]
    return [(batch, filters, *sides)], [(filters, channels, *kernel), (filters,)]


def _pooling(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    if params.get("global_pool") in ("True", "1"):
        return [(*data[0][:2], *(1 for _ in data[0][2:]))], []
    outputs, _ = _convolution(data, {**params, "num_filter": str(data[0][1])})
    return outputs, []


def _linear(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    batch, *rest = data[0]
    hidden = int(params["num_hidden"])
    return [(batch, hidden)], [(hidden, prod(rest)), (hidden,)]


def _batch_norm(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    return [data[0]], [(data[0][1],)] * 4


def _flatten(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    return [(data[0][0], prod(data[0][1:]))], []


def _concat(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    axis = int(params.get("dim", "1"))
    joined = sum(shape[axis] for shape in data)
    return [(*data[0][:axis], joined, *data[0][axis + 1 :])], []


def _slices(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    count, (batch, channels, *image) = int(params["num_outputs"]), data[0]
    return [(batch, channels // count, *image)] * count, []


def _softmax_output(data: Sequence[Shape], params: Params) -> tuple[list[Shape], list[Shape]]:
    return [data[0]], [data[0][:1]]


RULES: dict[str, Rule] = {
    **dict.fromkeys(
        ("Activation", "relu", "elemwise_add", "elemwise_mul", "_Plus", "Dropout", "_copy", "add_n"), _same
    ),
    **dict.fromkeys(("softmax", "sigmoid", "tanh", "NeverFuses"), _same),
    "Convolution": _convolution,
    "_sg_mkldnn_conv": _convolution,
    "Pooling": _pooling,
    "FullyConnected": _linear,
    "BatchNorm": _batch_norm,
    "Flatten": _flatten,
    "Concat": _concat,
    "SliceChannel": _slices,
    "SoftmaxOutput": _softmax_output,
}
