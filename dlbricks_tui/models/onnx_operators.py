"""ONNX's operators under their neutral names, and back."""

from base64 import b64decode, b64encode
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache
from typing import TYPE_CHECKING

from dlbricks_tui.models.errors import FlawError
from dlbricks_tui.models.graph import NativeNode, ParamValue, Shape
from dlbricks_tui.models.neutral import Neutral, Site, from_the_front, shared, without_defaults
from dlbricks_tui.models.onnx_arrays import attribute_value
from dlbricks_tui.models.onnx_constants import rename_reads
from dlbricks_tui.models.onnx_file import graphs_inside, outer_tensors

if TYPE_CHECKING:
    from onnx import ModelProto, NodeProto, TensorProto

ONNX_PREFIX = "onnx."

Values = Mapping[str, ParamValue]
# Their keys leave out the last axis.
_OVER_AN_AXIS = ("LogSoftmax", "Hardmax")


@dataclass(frozen=True, slots=True)
class OnnxSite(Site):
    """The place of an ONNX operator in a graph.

    `stored` are inputs that are part of the operator, by place; `inputs` are the types of all others.
    """

    version: int
    stored: Mapping[int, ParamValue]
    results: int


# None if ONNX's operator does more than the shared one.
Translation = Callable[[Values, OnnxSite], Neutral | None]


def neutral_onnx(node: "NodeProto", site: OnnxSite) -> Neutral:
    """Return the neutral form of a node; its subgraphs are not part of the parameters."""
    attributes: dict[str, ParamValue] = {}
    for it in node.attribute:
        if it.HasField("g") or it.graphs:
            continue
        try:
            attributes[it.name] = attribute_value(it)
        except FlawError as damaged:
            label = f"{(node.name or node.op_type)[:80]!r}"
            raise FlawError(f"the attribute {it.name[:80]!r} of {label} is damaged: {damaged}") from None
    if node.op_type == "Split" and not node.domain and "split" not in attributes and not any(node.input[1:]):
        # Before version 18 the number of outputs is that of equal parts.
        attributes["num_outputs"] = len(node.output)
    if node.op_type in _OVER_AN_AXIS and not node.domain and site.rank is not None:
        # As for Softmax: before version 13 this axis, the second by default, and all later ones were one.
        is_one = site.version >= 13
        axis = from_the_front(attributes.pop("axis", -1 if is_one else 1), site.rank)
        if axis != site.rank - 1:
            attributes |= {"axis": axis} if is_one else {"axis": axis, "flattened": True}
    if not node.domain and (translate := ONNX_TRANSLATIONS.get(node.op_type)) is not None:
        neutral = translate(attributes, site)
        if neutral is not None:
            return neutral
    values = {**attributes, **{f"input{place}": value for place, value in site.stored.items()}}
    domain = f"{node.domain}." if node.domain else ""
    defaults = _defaults(node.op_type, node.domain, site.version)
    return Neutral(f"{ONNX_PREFIX}{domain}{node.op_type}", without_defaults(values, defaults))


@lru_cache(maxsize=1 << 10)
def _defaults(op: str, domain: str, version: int) -> Values:
    from onnx import defs

    try:
        schema = defs.get_schema(op, version, domain)
    except defs.SchemaError:
        return {}
    return {name: attribute_value(it.default_value) for name, it in schema.attributes.items() if it.default_value.name}


def _ints(value: ParamValue) -> tuple[int, ...] | None:
    if isinstance(value, int):
        return (value,)
    if not isinstance(value, tuple):
        return None
    return tuple([item for item in value if isinstance(item, int)])


def _window(values: Values, site: OnnxSite, kernel: Shape) -> dict[str, ParamValue] | None:
    """Return kernel, stride, padding and dilation, each with one value per axis of the image."""
    strides = _ints(values.get("strides")) or (1,) * len(kernel)
    dilations = _ints(values.get("dilations")) or (1,) * len(kernel)
    axes = len(kernel)
    if not len(strides) == len(dilations) == axes or min((*kernel, *strides, *dilations)) < 1:
        return None
    pads = _pads(values, site, kernel, strides, dilations)
    if pads is None or len(pads) != 2 * axes:
        return None
    return {"kernel": kernel, "stride": strides, "pads": pads, "dilation": dilations, "layout": None}


def _pads(values: Values, site: OnnxSite, kernel: Shape, strides: Shape, dilations: Shape) -> tuple[int, ...] | None:
    automatic = values.get("auto_pad", "NOTSET")
    if automatic == "NOTSET":
        return _ints(values.get("pads")) or (0,) * (2 * len(kernel))
    if automatic == "VALID":
        return (0,) * (2 * len(kernel))
    shape = site.inputs[0].shape if site.inputs else None
    if automatic not in ("SAME_UPPER", "SAME_LOWER") or shape is None or len(shape) != len(kernel) + 2:
        return None
    begins, ends = [], []
    for size, window, step, dilation in zip(shape[2:], kernel, strides, dilations, strict=True):
        reach = (window - 1) * dilation + 1
        both = max((-(-size // step) - 1) * step + reach - size, 0)
        begins.append(both // 2 if automatic == "SAME_UPPER" else both - both // 2)
        ends.append(both - begins[-1])
    return (*begins, *ends)


def _kernel(values: Values, site: OnnxSite) -> Shape | None:
    """Return the kernel of a convolution; without an attribute, the weight's shape tells it."""
    stored = _ints(values.get("kernel_shape"))
    weight = site.inputs[1].shape if len(site.inputs) > 1 else None
    return stored or (weight[2:] if weight is not None else None)


def _convolution(op: str) -> Translation:
    def translate(values: Values, site: OnnxSite) -> Neutral | None:
        kernel, more = _kernel(values, site), dict[str, ParamValue]()
        if op == "conv_transpose":
            more = {"output_pads": values.get("output_padding"), "target_shape": values.get("output_shape")}
            kernel = kernel if values.get("auto_pad", "NOTSET") == "NOTSET" else None
        window = _window(values, site, kernel) if kernel else None
        return None if window is None else shared(op, {**window, "groups": values.get("group", 1), **more})

    return translate


def _pool(op: str) -> Translation:
    def translate(values: Values, site: OnnxSite) -> Neutral | None:
        kernel = _ints(values.get("kernel_shape"))
        window = _window(values, site, kernel) if kernel else None
        if window is None or values.get("storage_order") or site.results > 1:
            return None
        window["rounding"] = "up" if values.get("ceil_mode") else "down"
        pads = window["pads"]
        if op == "mean_pool" and isinstance(pads, tuple) and any(pads):
            window["count_padding"] = bool(values.get("count_include_pad"))
        return shared(op, window)

    return translate


def _plain_op(op: str, **renamed: str) -> Translation:
    """The same operator by another name, with its parameters renamed."""

    def translate(values: Values, site: OnnxSite) -> Neutral | None:
        if not values.keys() <= {*renamed.values(), "consumed_inputs"}:
            return None
        return shared(op, {new: values[old] for new, old in renamed.items() if old in values})

    return translate


def _batch_norm(values: Values, site: OnnxSite) -> Neutral | None:
    if values.get("training_mode") or site.results > 1 or values.get("spatial") == 0:
        return None
    return shared("batch_norm", {"epsilon": values.get("epsilon", 1e-5), "axis": 1})


def _gemm(values: Values, site: OnnxSite) -> Neutral | None:
    """A fully connected layer whose weight has one row per output."""
    plain = values.get("alpha", 1.0) == 1.0 and values.get("beta", 1.0) == 1.0 and not values.get("transA")
    if not plain or values.get("transB") != 1 or len(site.inputs) < 2:
        return None
    weight = site.inputs[1].shape
    if weight is None or (len(site.inputs) > 2 and site.inputs[2].shape != weight[:1]):
        return None
    return shared("linear", {"keep_axes": False})


def _dropout(values: Values, site: OnnxSite) -> Neutral | None:
    if site.stored.get(2) or values.get("is_test") == 0:
        return None
    return shared("dropout", {"ratio": site.stored.get(1, values.get("ratio", 0.5))})


def _softmax(values: Values, site: OnnxSite) -> Neutral | None:
    if site.rank is None:
        return None
    axis = from_the_front(values.get("axis", -1 if site.version >= 13 else 1), site.rank)
    # Before version 13 this axis and all later ones were one.
    return shared("softmax", {"axis": axis}) if site.version >= 13 or axis == site.rank - 1 else None


def _alike(op: str) -> Translation:
    """Elementwise operators are the shared ones only without broadcasting and without stored values."""

    def translate(values: Values, site: OnnxSite) -> Neutral | None:
        alike = all(it.shape is not None and it.shape == site.result for it in site.inputs)
        return shared(op, {}) if alike and not site.stored else None

    return translate


def _concat(values: Values, site: OnnxSite) -> Neutral | None:
    return None if site.stored else shared("concat", {"axis": from_the_front(values.get("axis", 1), site.rank)})


def _to_shape(op: str) -> Translation:
    def translate(values: Values, site: OnnxSite) -> Neutral | None:
        stored = 1 in site.stored or "shape" in values
        alike = op == "reshape" or (site.result is not None and site.rank == len(site.result))
        return shared(op, {"shape": site.result}) if stored and alike and site.result is not None else None

    return translate


def _transpose(values: Values, site: OnnxSite) -> Neutral | None:
    if site.rank is None:
        return None
    return shared("transpose", {"axes": values.get("perm") or tuple(reversed(range(site.rank)))})


def _pad(values: Values, site: OnnxSite) -> Neutral | None:
    pads, mode = site.stored.get(1, values.get("pads", values.get("paddings"))), values.get("mode", "constant")
    if not isinstance(pads, tuple) or 3 in site.stored or len(site.inputs) > 1:
        return None
    value = site.stored.get(2, values.get("value", 0.0)) if mode == "constant" else None
    return shared("pad", {"pads": pads, "mode": mode, "value": value})


def _clip(values: Values, site: OnnxSite) -> Neutral | None:
    least, most = site.stored.get(1, values.get("min")), site.stored.get(2, values.get("max"))
    if least is None or most is None or len(site.inputs) > 1:
        return None
    return shared("clip", {"min": least, "max": most})


def _reduce(op: str) -> Translation:
    def translate(values: Values, site: OnnxSite) -> Neutral | None:
        axes = _ints(site.stored.get(1, values.get("axes")))
        if values.get("noop_with_empty_axes") or site.rank is None or len(site.inputs) > 1:
            return None
        found = sorted({axis % site.rank for axis in axes or () if site.rank})
        whole = found in ([], list(range(site.rank)))
        return shared(op, {"axes": None if whole else tuple(found), "keep_axes": values.get("keepdims", 1) == 1})

    return translate


def _upsample(values: Values, site: OnnxSite) -> Neutral | None:
    scales = site.stored.get(1, values.get("scales"))
    if values.get("mode", "nearest") != "nearest" or not isinstance(scales, tuple) or len(scales) != 4:
        return None
    whole = [scale for scale in scales if isinstance(scale, float) and scale.is_integer()]
    if len(whole) < 4 or whole[:2] != [1.0, 1.0] or whole[2] != whole[3]:
        return None
    return shared("upsample_nearest", {"scale": int(whole[2])})


def _resize(values: Values, site: OnnxSite) -> Neutral | None:
    """An enlargement that repeats each element, by the same integer along both axes of an image."""
    said = {"mode": "nearest", **{name: it for name, it in values.items() if name not in _IGNORED_OF_NEAREST}}
    if said != ({"mode": "nearest"} if site.version < 11 else _REPEATING):
        return None
    before, after = site.inputs[0].shape if site.inputs else None, site.result
    if before is None or after is None or len(before) != 4 or len(after) != 4 or 0 in before or len(site.inputs) > 1:
        return None
    batch, channels, *scales = (new / old for old, new in zip(before, after, strict=True))
    if (batch, channels) != (1, 1) or scales[0] != scales[1] or not scales[0].is_integer():
        return None
    return shared("upsample_nearest", {"scale": int(scales[0])})


# The attributes with which a resize repeats elements. Before version 11 it always does in the mode `nearest`.
_REPEATING = {"mode": "nearest", "coordinate_transformation_mode": "asymmetric", "nearest_mode": "floor"}
# Attributes of other modes.
_IGNORED_OF_NEAREST = frozenset({"cubic_coeff_a", "exclude_outside", "extrapolation_value"})

# Operators whose shared names are theirs in lower case: those without parameters, and those that may broadcast.
_PLAIN = ("Exp", "Identity", "Log", "PRelu", "Relu", "Selu", "Sigmoid", "Softplus", "Softsign", "Sqrt", "Tanh")
_ALIKE = ("Add", "Div", "Mul", "Sub", "Sum")
ONNX_TRANSLATIONS: Mapping[str, Translation] = {
    **{op: _plain_op(op.lower()) for op in _PLAIN},
    **{op: _alike(op.lower()) for op in _ALIKE},
    "AveragePool": _pool("mean_pool"),
    "BatchNormalization": _batch_norm,
    "Clip": _clip,
    "Concat": _concat,
    "Conv": _convolution("conv"),
    "ConvTranspose": _convolution("conv_transpose"),
    "Dropout": _dropout,
    "Elu": _plain_op("elu", alpha="alpha"),
    "Expand": _to_shape("broadcast_to"),
    "Flatten": lambda values, site: shared("flatten", {}) if values.get("axis", 1) == 1 else None,
    "Gelu": lambda values, site: shared("gelu", {}) if values.get("approximate", "none") == "none" else None,
    "Gemm": _gemm,
    "GlobalAveragePool": _plain_op("global_mean_pool"),
    "GlobalMaxPool": _plain_op("global_max_pool"),
    "InstanceNormalization": _plain_op("instance_norm", epsilon="epsilon"),
    "LRN": _plain_op("lrn", size="size", alpha="alpha", beta="beta", bias="bias"),
    "LeakyRelu": _plain_op("leaky_relu", alpha="alpha"),
    "MaxPool": _pool("max_pool"),
    "Pad": _pad,
    "ReduceMax": _reduce("reduce_max"),
    "ReduceMean": _reduce("reduce_mean"),
    "ReduceSum": _reduce("reduce_sum"),
    "Reshape": _to_shape("reshape"),
    "Resize": _resize,
    "Softmax": _softmax,
    "Transpose": _transpose,
    "Upsample": _upsample,
}

# The inputs of a stored node: omitted, a value stored with it, or a tensor from elsewhere.
_LEFT_OUT, _STORED, _READ = "", "stored", "read"
_NODE, _VERSION = "node", "version"
# The places of weights that are inputs of the model as well. Without them, runtimes prepare weights for their kernels.
REPLACEABLE = "replaceable"
# Separates the domain of an operator, unless it is ONNX's own.
_DOMAIN_END = "."


def native_node(
    node: "NodeProto", stored: Mapping[int, str], version: int, replaceable: Sequence[int] = ()
) -> NativeNode:
    """Return the node to store; `stored` are the values of some inputs as text, by place."""
    from onnx import NodeProto

    outer = outer_tensors(node)
    kept = NodeProto(op_type=node.op_type, domain=node.domain, attribute=node.attribute)
    places = [*node.input, *outer]
    kept.input.extend(_STORED if place in stored else _READ if name else _LEFT_OUT for place, name in enumerate(places))
    kept.output.extend(_READ if name else _LEFT_OUT for name in node.output)
    for graph in graphs_inside(kept):
        rename_reads(graph, {name: f"outer{number}" for number, name in enumerate(outer)})
    attributes = [(_NODE, text_of(kept)), (_VERSION, str(version))]
    attributes += [(f"{_STORED}{place}", value) for place, value in sorted(stored.items())]
    if replaceable:
        attributes.append((REPLACEABLE, " ".join(map(str, replaceable))))
    return NativeNode(f"{node.domain}{_DOMAIN_END}{node.op_type}" if node.domain else node.op_type, tuple(attributes))


def plain_native(op: str, domain: str = "") -> NativeNode:
    """Return a node of one input and one output that suits any operator version."""
    from onnx import NodeProto

    node = NodeProto(op_type=op, domain=domain, input=[_READ], output=[_READ])
    return NativeNode(f"{domain}{_DOMAIN_END}{op}" if domain else op, ((_NODE, text_of(node)),))


def version_among(natives: Iterable[NativeNode]) -> int | None:
    """Return the version of ONNX's own operators among these, None without any. One file has one version."""
    for native in natives:
        if _DOMAIN_END not in native.op:
            found = dict(native.attributes).get(_VERSION)
            if found is not None:
                return int(found)
    return None


class NodeInPlace:
    """A stored node, to be written into a graph."""

    def __init__(self, native: NativeNode) -> None:
        from onnx import NodeProto

        self._attributes = dict(native.attributes)
        self.node = NodeProto.FromString(b64decode(self._attributes[_NODE]))
        # The version of its operator set, None if it makes no difference.
        self.version = int(self._attributes[_VERSION]) if _VERSION in self._attributes else None
        self.replaceable = [int(place) for place in self._attributes.get(REPLACEABLE, "").split()]
        # The number of outputs.
        self.results = sum(1 for what in self.node.output if what)

    def written(self, name: str, read: Sequence[str], written: Sequence[str]) -> "tuple[NodeProto, list[TensorProto]]":
        """Return the node with these names for its inputs and outputs, and the values that it needs."""
        from onnx import NodeProto, TensorProto

        waiting = iter(read)
        values: list[TensorProto] = []
        names = []
        for place, what in enumerate(self.node.input):
            if what == _STORED:
                value = TensorProto.FromString(b64decode(self._attributes[f"{_STORED}{place}"]))
                value.name = f"{name}_stored{place}"
                values.append(value)
                names.append(value.name)
            else:
                names.append(next(waiting) if what == _READ else "")
        node = NodeProto()
        node.CopyFrom(self.node)
        node.name = name
        outer = len(outer_tensors(node))
        count = len(names) - outer
        for graph in graphs_inside(node):
            # Copies of a node need different names inside.
            rename_reads(graph, {f"outer{number}": names[count + number] for number in range(outer)})
        del node.input[:], node.output[:]
        node.input.extend(names[:count])
        results = iter(written)
        node.output.extend(next(results) if what else "" for what in self.node.output)
        return node, values


def text_of(message: "ModelProto | NodeProto | TensorProto") -> str:
    """Return a model, node or value as text, from which it can be read again."""
    return b64encode(message.SerializeToString(deterministic=True)).decode()
