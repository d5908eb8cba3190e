"""Translates a network of MXNet into ONNX, operator by operator: the same layers, names and shapes.

An operator of MXNet becomes one node, or several where ONNX has no such operator. Nodes that together are one layer say
so in their metadata, as do nodes whose kind differs from that of their operator.
"""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from onnx import TensorProto

from dlbricks_tui.models.cache import answer_key, parse_types
from dlbricks_tui.models.composites import KIND_ATTRIBUTE, LAYER_ATTRIBUTE, TIMES_ATTRIBUTE
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import ParamValue, Shape, TensorType
from dlbricks_tui.models.kinds import kind_of
from dlbricks_tui.models.mxnet_file import SymbolFile, SymbolNode, parse_symbol
from dlbricks_tui.models.mxnet_layers import Role, input_shapes, variable_roles
from dlbricks_tui.models.mxnet_operators import parameters, schema
from sample_models.builders.onnx.graph import LEFT_OUT, Graph

BATCH = "batch"
# An end past every axis.
_TO_THE_END = 2**31 - 1


@dataclass(frozen=True, slots=True)
class Site:
    """An operator of MXNet in its network."""

    net: Graph
    name: str
    inputs: Sequence[str]
    input_shapes: Sequence[Shape]
    shape: Shape
    params: Mapping[str, ParamValue]
    layer: Mapping[str, str]
    # True if the layer has several nodes.
    composite: bool

    def node(self, op: str, *inputs: str, outputs: int = 1, part: str = "", **attributes: Any) -> str:
        """Write a node; `part` names one that is not the last of an operator. Return its last output."""
        name = f"{self.name}/{part}" if part else self.name
        metadata = self.layer if self.composite or kind_of(op).value != self.layer[KIND_ATTRIBUTE] else {}
        return self.net.named(name, op, inputs, outputs, metadata, **attributes)[-1]

    def ints(self, param: str) -> list[int]:
        """Return a parameter as a list of whole numbers."""
        value = self.params[param]
        return [int(str(item)) for item in value] if isinstance(value, tuple) else [int(str(value))]

    def number(self, param: str) -> float:
        """Return a parameter as a float."""
        return float(str(self.params[param]))

    def scalar(self, value: float) -> str:
        """Store a single float."""
        return self.net.stored(value, "float32")

    def vector(self, values: Sequence[int]) -> str:
        """Store sizes or axes."""
        return self.net.stored(values, "int64")

    @property
    def target(self) -> list[int]:
        """The shape of the result, with a 1 for the batch, which broadcasts."""
        return [1 if self.keeps_batch else self.shape[0], *self.shape[1:]]

    @property
    def keeps_batch(self) -> bool:
        """Return true if the first axis of the first input is that of the result."""
        return bool(self.input_shapes[0]) and self.input_shapes[0][0] == self.shape[0]


Translation = Callable[[Site], str]


def translate_file(network: bytes, types: bytes, name: str) -> bytes:
    """Return a symbol file as an ONNX file; `types` is the content of its file of types."""
    file = parse_symbol(network, name)
    roles = variable_roles(file)
    known = parse_types(types, answer_key(network, input_shapes(file, roles, {}, {}, name)))
    if known is None:
        raise ModelError(f"the types of {name} are of another version of the file")
    return translate(file, roles, known.types)


def translate(file: SymbolFile, roles: Mapping[int, Role], types: Sequence[Sequence[TensorType]]) -> bytes:
    """Return a network as an ONNX file; `types` are those of all outputs of all nodes."""
    net = Graph()
    tensors: dict[tuple[int, int], str] = {}
    written = Counter(node.attributes[LAYER_ATTRIBUTE] for node in file.nodes if LAYER_ATTRIBUTE in node.attributes)
    ones = _fixed_scales(file)
    for number, node in enumerate(file.nodes):
        shape = types[number][0].shape or ()
        if not node.is_variable:
            tensors[number, 0] = _translated(net, file, types, tensors, number, written)
        elif roles[number] is Role.INPUT:
            tensors[number, 0] = net.input(node.name, types[number][0].dtype, BATCH, *shape[1:])
        else:
            value = 1.0 if number in ones else None
            tensors[number, 0] = net.weight(node.name, *shape, dtype=types[number][0].dtype, value=value)
    for head in file.heads:
        node = file.nodes[head.node]
        axes = types[head.node][head.output].shape or ()
        name = node.attributes.get(LAYER_ATTRIBUTE, node.name)
        net.output(tensors[head.node, head.output], name, "float32", *[None] * len(axes))
    return net.rendered()


def _fixed_scales(file: SymbolFile) -> frozenset[int]:
    """Return the scales of batch norms that MXNet takes for ones, whatever is stored."""
    norms = [node for node in file.nodes if node.op == "BatchNorm"]
    fixed = [it for it in norms if parameters(schema(it.op), it.params.items()).values["fix_gamma"]]
    return frozenset(node.inputs[1].node for node in fixed)


def _translated(
    net: Graph,
    file: SymbolFile,
    types: Sequence[Sequence[TensorType]],
    tensors: Mapping[tuple[int, int], str],
    number: int,
    written: Mapping[str, int],
) -> str:
    node = file.nodes[number]
    translation = TRANSLATIONS.get(node.op)
    if translation is None:
        raise ModelError(f"{node.name}: there is no translation of {node.op} into ONNX")
    site = Site(
        net,
        node.name,
        [tensors[entry.node, entry.output] for entry in node.inputs],
        [types[entry.node][entry.output].shape or () for entry in node.inputs],
        types[number][0].shape or (),
        parameters(schema(node.op), node.params.items()).values,
        *_layer(node, written),
    )
    return translation(site)


def _layer(node: SymbolNode, written: Mapping[str, int]) -> tuple[Mapping[str, str], bool]:
    """Return the annotations of the layer of a node, and true if the layer has other nodes, too."""
    name, kind = node.attributes.get(LAYER_ATTRIBUTE, node.name), kind_of(node.op).value
    layer = {LAYER_ATTRIBUTE: name, KIND_ATTRIBUTE: node.attributes.get(KIND_ATTRIBUTE, kind)}
    times = {TIMES_ATTRIBUTE: node.attributes[TIMES_ATTRIBUTE]} if TIMES_ATTRIBUTE in node.attributes else {}
    return layer | times, written.get(name, 1) > 1


def _plain(op: str) -> Translation:
    """The same operator, without parameters."""
    return lambda site: site.node(op, *site.inputs)


def _window(site: Site) -> dict[str, Any]:
    axes = len(site.ints("kernel"))
    pads, strides = site.ints("pad") or [0] * axes, site.ints("stride") or [1] * axes
    return {"kernel_shape": site.ints("kernel"), "strides": strides, "pads": pads * 2}


def _conv(site: Site) -> str:
    dilations = site.ints("dilate") or [1] * len(site.ints("kernel"))
    op = "ConvTranspose" if "target_shape" in site.params else "Conv"
    return site.node(op, *site.inputs, dilations=dilations, group=site.ints("num_group")[0], **_window(site))


def _pool(site: Site) -> str:
    op = {"max": "MaxPool", "avg": "AveragePool"}[str(site.params["pool_type"])]
    if site.params["global_pool"]:
        return site.node(f"Global{op}", *site.inputs)
    more: dict[str, Any] = {"ceil_mode": int(site.params["pooling_convention"] == "full")}
    if op == "AveragePool":
        more["count_include_pad"] = int(site.params["count_include_pad"] is not False)
    return site.node(op, *site.inputs, **_window(site), **more)


def _linear(site: Site) -> str:
    data, *weights = site.inputs
    if len(site.input_shapes[0]) > 2:
        site = replace(site, composite=True)
        data = site.node("Flatten", data, part="flatten", axis=1)
    return site.node("Gemm", data, *weights, transB=1)


_ACTIVATIONS = {"relu": "Relu", "sigmoid": "Sigmoid", "tanh": "Tanh", "softrelu": "Softplus", "softsign": "Softsign"}


def _leaky_relu(site: Site) -> str:
    return site.node("LeakyRelu", *site.inputs, alpha=site.number("slope"))


def _lrn(site: Site) -> str:
    given: dict[str, Any] = {key: site.number(key) for key in ("alpha", "beta")}
    return site.node("LRN", *site.inputs, size=site.ints("nsize")[0], bias=site.number("knorm"), **given)


def _clip(site: Site) -> str:
    return site.node("Clip", *site.inputs, site.scalar(site.number("a_min")), site.scalar(site.number("a_max")))


def _reshape(site: Site) -> str:
    first = 0 if site.keeps_batch else site.shape[0]
    return site.node("Reshape", *site.inputs, site.vector([first, *site.shape[1:]]))


def _pad(site: Site) -> str:
    widths = site.ints("pad_width")
    inputs = [*site.inputs, site.vector([*widths[0::2], *widths[1::2]])]
    if site.params["mode"] == "constant":
        inputs.append(site.scalar(site.number("constant_value")))
    return site.node("Pad", *inputs, mode=str(site.params["mode"]))


def _resize(site: Site, **how: Any) -> str:
    (before,), after = site.input_shapes, site.shape
    scales = [1.0, 1.0, *(new / old for new, old in zip(after[2:], before[2:], strict=True))]
    return site.node("Resize", *site.inputs, LEFT_OUT, site.net.stored(scales, "float32"), **how)


def _upsample(site: Site) -> str:
    return _resize(site, mode="nearest", coordinate_transformation_mode="asymmetric", nearest_mode="floor")


def _bilinear(site: Site) -> str:
    return _resize(site, mode="linear", coordinate_transformation_mode="align_corners")


def _mean(site: Site) -> str:
    return site.node("ReduceMean", *site.inputs, axes=site.ints("axis"), keepdims=int(bool(site.params["keepdims"])))


def _sum(site: Site) -> str:
    axes = site.vector(site.ints("axis"))
    return site.node("ReduceSum", *site.inputs, axes, keepdims=int(bool(site.params["keepdims"])))


def _slice(site: Site) -> str:
    begins, ends = _items(site.params["begin"]), _items(site.params["end"])
    cuts = [(axis, _begin(begin), _end(end)) for axis, (begin, end) in enumerate(zip(begins, ends, strict=True))]
    return _cut(site, [(axis, begin, end) for axis, begin, end in cuts if (begin, end) != (0, _TO_THE_END)])


def _items(value: ParamValue) -> tuple[ParamValue, ...]:
    return value if isinstance(value, tuple) else (value,)


def _slice_axis(site: Site) -> str:
    return _cut(site, [(site.ints("axis")[0], site.ints("begin")[0], _end(site.params["end"]))])


def _begin(begin: ParamValue) -> int:
    return 0 if begin is None else int(str(begin))


def _end(end: ParamValue) -> int:
    return _TO_THE_END if end is None else int(str(end))


def _cut(site: Site, cuts: Sequence[tuple[int, int, int]]) -> str:
    axes, begins, ends = zip(*cuts, strict=True)
    return site.node("Slice", *site.inputs, site.vector(begins), site.vector(ends), site.vector(axes))


def _stack(site: Site) -> str:
    axis = site.vector(site.ints("axis"))
    parts = [site.node("Unsqueeze", it, axis, part=f"part{place}") for place, it in enumerate(site.inputs)]
    return site.node("Concat", *parts, axis=site.ints("axis")[0])


def _last_of_sequence(site: Site) -> str:
    return site.node("Gather", *site.inputs, site.net.stored(-1, "int64"), axis=site.ints("axis")[0])


def _place_of_largest(site: Site) -> str:
    site = replace(site, composite=True)
    found = site.node(
        "TopK", *site.inputs, site.vector(site.ints("k")), outputs=2, part="largest", axis=site.ints("axis")[0]
    )
    return site.node("Cast", found, to=TensorProto.FLOAT)


def _pick(site: Site) -> str:
    """The element of each row at a place that a float says."""
    data, places = site.inputs
    axis = site.vector(site.ints("axis"))
    whole = site.node("Cast", places, part="places", to=TensorProto.INT64)
    wide = site.node("Unsqueeze", whole, axis, part="wide")
    found = site.node("GatherElements", data, wide, part="found", axis=site.ints("axis")[0])
    return site.node("Squeeze", found, axis)


def _with_scalar(op: str, *, scalar_first: bool = False) -> Translation:
    def translation(site: Site) -> str:
        scalar = site.scalar(site.number("scalar"))
        return site.node(op, scalar, *site.inputs) if scalar_first else site.node(op, *site.inputs, scalar)

    return translation


TRANSLATIONS: Mapping[str, Translation] = {
    "Activation": lambda site: site.node(_ACTIVATIONS[str(site.params["act_type"])], *site.inputs),
    "BatchNorm": lambda site: site.node("BatchNormalization", *site.inputs, epsilon=site.number("eps")),
    "Concat": lambda site: site.node("Concat", *site.inputs, axis=site.ints("dim")[0]),
    "Convolution": _conv,
    "Deconvolution": _conv,
    "Dropout": lambda site: site.node("Dropout", *site.inputs, site.scalar(site.number("p"))),
    "Flatten": lambda site: site.node("Flatten", *site.inputs, axis=1),
    "FullyConnected": _linear,
    "InstanceNorm": lambda site: site.node("InstanceNormalization", *site.inputs, epsilon=site.number("eps")),
    "LRN": _lrn,
    "LeakyReLU": _leaky_relu,
    "Pad": _pad,
    "Pooling": _pool,
    "Reshape": _reshape,
    "SequenceLast": _last_of_sequence,
    "UpSampling": _upsample,
    "_contrib_BilinearResize2D": _bilinear,
    "_copy": _plain("Identity"),
    "_maximum_scalar": _with_scalar("Max"),
    "_mul_scalar": _with_scalar("Mul"),
    "_plus_scalar": _with_scalar("Add"),
    "_rminus_scalar": _with_scalar("Sub", scalar_first=True),
    "add_n": _plain("Sum"),
    "broadcast_add": _plain("Add"),
    "broadcast_div": _plain("Div"),
    "broadcast_mul": _plain("Mul"),
    "broadcast_to": lambda site: site.node("Expand", *site.inputs, site.vector(site.target)),
    "clip": _clip,
    "elemwise_add": _plain("Add"),
    "elemwise_div": _plain("Div"),
    "elemwise_mul": _plain("Mul"),
    "elemwise_sub": _plain("Sub"),
    "exp": _plain("Exp"),
    "log": _plain("Log"),
    "mean": _mean,
    "pick": _pick,
    "slice": _slice,
    "slice_axis": _slice_axis,
    "softmax": lambda site: site.node("Softmax", *site.inputs, axis=site.ints("axis")[0]),
    "sqrt": _plain("Sqrt"),
    "square": lambda site: site.node("Mul", *site.inputs, *site.inputs),
    "squeeze": lambda site: site.node("Squeeze", *site.inputs, site.vector(site.ints("axis"))),
    "stack": _stack,
    "sum": _sum,
    "topk": _place_of_largest,
    "transpose": lambda site: site.node("Transpose", *site.inputs, perm=site.ints("axes")),
}
