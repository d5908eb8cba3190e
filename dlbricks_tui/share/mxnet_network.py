"""Write layers of a model as a symbol file: operators and shapes, without names, weights or other attributes.

Operators are spelled in one way: differences would tell which model or framework they come from.
"""

from collections.abc import Hashable, Mapping, Sequence
from typing import Any

from dlbricks_tui.models.composites import LAYER_ATTRIBUTE, TIMES_ATTRIBUTE
from dlbricks_tui.models.graph import Layer, LayerGraph, NativeNode, Operator, Origin, ParamValue, TensorType, Wire
from dlbricks_tui.models.mxnet_file import VARIABLE, parse_symbol, symbol_document, symbol_file
from dlbricks_tui.models.mxnet_layers import SHAPE_ATTRIBUTE
from dlbricks_tui.models.mxnet_operators import IGNORED, IGNORED_OF_OP, Schema, parameters, schema
from dlbricks_tui.share.errors import UnsuitableLayersError

_NUM_ARGS = "num_args"
# Parameters that make no difference to a brick but decide which inputs there are.
_DECIDES_INPUTS = frozenset({"no_bias", _NUM_ARGS, "num_filter", "num_hidden", "input_dim"})

# Operators that run code, read files or memory by address, or that only a runtime creates.
_NEVER = frozenset(
    {"Custom", "_CachedOp", "_CachedOpThreadSafe", "_CrossDeviceCopy", "_CustomFunction", "_NDArray", "_Native"}
    | {"_cvimdecode", "_cvimread", "_cvimresize", "_imdecode"}
)
# A fused operator holds the written operators inside.
_FUSED_PREFIX = "_sg_"
_ANYTHING = "0"
# The values of a window along every axis unless the file names others.
_IMPLIED: Mapping[str, ParamValue] = {"pad": 0, "adj": 0, "stride": 1, "dilate": 1}


def known_operator(op: str) -> Schema:
    """Return MXNet's declaration of an operator that a suite may hold."""
    found = schema(op)
    if found is None:
        raise UnsuitableLayersError(f"holds an operator {op[:40]!r} that MXNet does not have")
    if found.name in _NEVER or found.name.startswith(_FUSED_PREFIX):
        raise UnsuitableLayersError(f"holds an operator {op[:40]!r}, which no suite may hold")
    return found


def spelled(known: Schema, attributes: Mapping[str, str]) -> dict[str, str]:
    """Return the relevant parameters of an operator that differ from the default, each in its only spelling."""
    declared = {key: text for key, text in attributes.items() if key in known.types}
    found = parameters(known, declared.items())
    if not found.declared:
        raise UnsuitableLayersError(f"holds an operator {known.name} with a parameter of the wrong type")
    dropped = (IGNORED | IGNORED_OF_OP.get(known.name, frozenset())) - _DECIDES_INPUTS
    written = {key: value for key, value in found.values.items() if value != known.defaults.get(key)}
    if "kernel" in known.types:
        written = _window(written)
    # MXNet requires it of sums without declaring it.
    if (count := attributes.get(_NUM_ARGS, "")).isdecimal() and _NUM_ARGS not in known.types:
        written[_NUM_ARGS] = int(count)
    return {
        # A parameter without a default is required even if it makes no difference.
        key: _ANYTHING if key in dropped else _literal(value)
        for key, value in sorted(written.items())
        if key not in dropped or key not in known.defaults
    }


def _window(written: Mapping[str, ParamValue]) -> dict[str, ParamValue]:
    """Return the parameters of a window without those that repeat a default."""
    if written.get("global_pool"):
        written = {key: value for key, value in written.items() if key in ("pool_type", "global_pool", "layout")}
    pad = written.get("pad")
    padded = isinstance(pad, tuple) and any(pad)
    return {
        key: value
        for key, value in written.items()
        if not (isinstance(value, tuple) and set(value) <= {_IMPLIED.get(key)})
        and not (key == "layout" and str(value).startswith("NC"))
        and not (key == "count_include_pad" and (value or not padded))
    }


def _literal(value: ParamValue) -> str:
    if isinstance(value, tuple):
        items = [_literal(item) for item in value]
        return f"({items[0]},)" if len(items) == 1 else f"({', '.join(items)})"
    return value if isinstance(value, str) else repr(value)


DTYPE_ATTRIBUTE = "__dtype__"
USUAL_DTYPE = "float32"
# The order of MXNet's numbers for data types.
DTYPES = ("float32", "float64", "float16", "uint8", "int32", "int8", "int64", "bool")
DATA, WEIGHT, CONSTANT = "data", "weight", "constant"

# One output of a node of a packed file: the numbers of both.
_Entry = tuple[int, int]


def packed(graph: LayerGraph) -> bytes:
    """Return the symbol file of an excerpt; operators have the number of their layer, and fused ones are unfused."""
    return _Packer(graph).file()


def packed_network(graph: LayerGraph) -> bytes:
    """Return the symbol file of a whole network, which any program reads as a model; its layers may be repeated."""
    # The names of weights say their role: whatever reads them would be a data input otherwise.
    return _Packer(graph, weights_end="_weight").file()


class _Packer:
    def __init__(self, graph: LayerGraph, weights_end: str = "") -> None:
        self._graph = graph
        self._weights_end = weights_end
        self._nodes: list[dict[str, Any]] = []
        self._counts: dict[str, int] = {}
        self._inputs = [self._variable(DATA, found.type) for found in graph.inputs]
        self._stored: dict[tuple[str, Hashable, int], _Entry] = {}
        # The outputs of each repetition of each layer.
        self._results: list[list[list[_Entry]]] = []

    def file(self) -> bytes:
        for layer in self._graph.layers:
            self._results.append([self._layer(layer, repetition) for repetition in range(layer.times)])
        heads = [self._inputs[head.output] for head in self._graph.heads if head.layer is None]
        heads += [self._results[it.layer][-1][it.output] for it in self._graph.heads if it.layer is not None]
        # Results of repetitions that no layer reads are outputs: others are left out of the network.
        read = {(node, output) for it in self._nodes for node, output, _ in it["inputs"]}
        repeated = (entry for results in self._results for entries in results[:-1] for entry in entries)
        heads += [entry for entry in repeated if entry not in read]
        return symbol_file(symbol_document(self._nodes, heads))

    def _layer(self, layer: Layer, repetition: int) -> list[_Entry]:
        """Write one repetition, which reads the same repetition of its inputs, or the last if there are fewer."""
        sources = []
        for feed in layer.feeds:
            if feed.layer is None:
                sources.append(self._inputs[feed.output])
                continue
            made_before = self._results[feed.layer]
            place = repetition if len(made_before) == layer.times else -1
            sources.append(made_before[place][feed.output])
        role, mark = (WEIGHT, None) if layer.operators else (CONSTANT, layer.index)
        weights = []
        for number, found in enumerate(layer.weights):
            if (stored := (role, layer.array(number), repetition)) not in self._stored:
                self._stored[stored] = self._variable(role, found, mark)
            weights.append(self._stored[stored])
        made: list[list[_Entry]] = []

        def entry(wire: Wire) -> _Entry:
            if wire.origin is Origin.OPERATOR:
                return made[wire.number][wire.output]
            return (sources if wire.origin is Origin.DATA else weights)[wire.number]

        for operator in layer.operators:
            made.append(self._operator(operator, [entry(wire) for wire in operator.inputs], layer))
        return [entry(wire) for wire in layer.results]

    def _operator(self, operator: Operator, inputs: Sequence[_Entry], layer: Layer) -> list[_Entry]:
        native = operator.native
        if native.op.startswith(_FUSED_PREFIX):
            return self._unfused(native, inputs, layer)
        if native.subgraphs:
            raise UnsuitableLayersError(f"holds an operator {native.op[:40]!r} with a graph inside")
        return self._node(native.op, dict(native.attributes), inputs, layer, len(operator.outputs))

    def _unfused(self, native: NativeNode, inputs: Sequence[_Entry], layer: Layer) -> list[_Entry]:
        if len(native.subgraphs) != 1:
            raise UnsuitableLayersError(f"holds {native.op[:40]!r}, which does not name its fused operators")
        file = parse_symbol(native.subgraphs[0], native.op)
        outside = iter(inputs)
        made: list[list[_Entry]] = []
        for node in file.nodes:
            if node.is_variable:
                made.append([next(outside)])
                continue
            if node.subgraphs:
                raise UnsuitableLayersError(f"holds an operator {node.op[:40]!r} with a graph inside")
            read = [made[source][output] for source, output in node.inputs]
            most = max([0, *(it.output for it in (*file.heads, *(e for n in file.nodes for e in n.inputs)))])
            made.append(self._node(node.op, node.params, read, layer, most + 1))
        return [made[source][output] for source, output in file.heads]

    def _node(
        self, op: str, attributes: dict[str, str], inputs: Sequence[_Entry], layer: Layer, outputs: int
    ) -> list[_Entry]:
        known = known_operator(op)
        times = {TIMES_ATTRIBUTE: str(layer.times)} if layer.times > 1 else {}
        node = {
            "op": known.name,
            "name": self._name("op"),
            "attrs": {**spelled(known, attributes), LAYER_ATTRIBUTE: str(layer.index), **times},
            "inputs": [[*source, 0] for source in inputs],
        }
        self._nodes.append(node)
        return [(len(self._nodes) - 1, output) for output in range(outputs)]

    def _variable(self, role: str, found: TensorType, layer: int | None = None) -> _Entry:
        if found.shape is None or found.dtype not in DTYPES:
            raise UnsuitableLayersError(f"reads a {role} whose shape or data type is unknown")
        attributes = {SHAPE_ATTRIBUTE: repr(found.shape)}
        if found.dtype != USUAL_DTYPE:
            attributes[DTYPE_ATTRIBUTE] = str(DTYPES.index(found.dtype))
        if layer is not None:
            attributes[LAYER_ATTRIBUTE] = str(layer)
        self._nodes.append({"op": VARIABLE, "name": self._name(role), "attrs": attributes, "inputs": []})
        return len(self._nodes) - 1, 0

    def _name(self, role: str) -> str:
        number = self._counts[role] = self._counts.get(role, -1) + 1
        return f"{role}{number}{self._weights_end if role == WEIGHT else ''}"
