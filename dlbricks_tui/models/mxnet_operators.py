"""MXNet's operators under their neutral names.

An operator that only MXNet has keeps its own name behind `mxnet.`. Operators that compute the same by different kernels
stay apart (`relu` and `Activation`, `broadcast_add` and `elemwise_add`), as their latencies differ.

"""

import json
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from functools import cache, lru_cache
from pathlib import Path

from dlbricks_tui.models.graph import UNKNOWN_TYPE, ParamValue
from dlbricks_tui.models.mxnet_file import SymbolFile
from dlbricks_tui.models.neutral import (
    InnerForms,
    LiteralError,
    Neutral,
    Site,
    Values,
    from_the_front,
    guess_value,
    parse_value,
    shared,
    without_defaults,
)

# Inputs for weights, states or training labels. All other inputs are data.
_BOUND_ONCE = frozenset(
    {"weight", "bias", "gamma", "beta", "moving_mean", "moving_var", "parameters", "state", "state_cell", "label"}
    | {"moving_inv_var", "min_data", "max_data", "min_weight", "max_weight", "min_bias", "max_bias"}
    | {"running_mean", "running_var"}
)


@dataclass(frozen=True, slots=True)
class Schema:
    """One operator: its name, the names of its inputs, and the types and defaults of its parameters."""

    name: str
    inputs: tuple[str, ...]
    types: Mapping[str, str]
    defaults: Values


@dataclass(frozen=True, slots=True)
class Parameters:
    """The parameters of a node. The table declares only those in `declared`."""

    values: Values
    declared: bool


def schema(op: str) -> Schema | None:
    """Return the schema of an operator by any of its names, None for an unknown one."""
    return _table().get(op)


def parameters(known: Schema | None, attributes: Iterable[tuple[str, str]]) -> Parameters:
    """Return all parameters with their values, defaults included.

    A value of another type than the declared one is guessed: MXNet itself will accept or reject it.
    """
    values, declared = (dict(known.defaults), True) if known else ({}, False)
    for key, text in attributes:
        kind = known.types.get(key) if known else None
        try:
            values[key] = parse_value(text, kind) if kind else guess_value(text)
        except LiteralError:
            kind, values[key] = None, guess_value(text)
        declared = declared and kind is not None
    return Parameters(values, declared)


@lru_cache(maxsize=1 << 10)
def bound_once(op: str, inputs: int) -> tuple[bool, ...]:
    """Return for each input of a node whether it takes a weight, a state or a label."""
    known = schema(op)
    if known is None or not known.inputs:
        return (False,) * inputs
    # Operators of many inputs repeat their last one.
    names = known.inputs + known.inputs[-1:] * (inputs - len(known.inputs))
    return tuple(name in _BOUND_ONCE for name in names[:inputs])


@cache
def _table() -> dict[str, Schema]:
    raw = json.loads(Path(__file__).with_name("mxnet_operators.json").read_text(encoding="utf-8"))
    table: dict[str, Schema] = {}
    for name, entry in raw.items():
        found = Schema(
            name,
            tuple(entry["inputs"]),
            {key: declared[0] for key, declared in entry["params"].items()},
            {key: parse_value(declared[1], declared[0]) for key, declared in entry["params"].items() if declared[1:]},
        )
        for known_as in (name, *entry.get("aliases", ())):
            table[known_as] = found
    return table


# None if MXNet's operator does more than the shared one.
Translation = Callable[[Values, Site], Neutral | None]


def _plain(op: str, **renamed: str) -> Translation:
    """The same operator by another name, with its parameters renamed."""
    return lambda values, site: shared(op, {new: values.get(old) for new, old in renamed.items()})


def _window(values: Values) -> dict[str, ParamValue]:
    """Return kernel, stride, padding and dilation, each with one value per axis of the image."""
    pad, layout = values.get("pad"), values.get("layout")
    return {
        "kernel": values.get("kernel"),
        "stride": values.get("stride"),
        "pads": (*pad, *pad) if isinstance(pad, tuple) else None,
        "dilation": values.get("dilate"),
        "layout": None if isinstance(layout, str) and layout.startswith("NC") else layout,
    }


def _conv_transpose(values: Values, site: Site) -> Neutral:
    more = {"output_pads": values.get("adj"), "target_shape": values.get("target_shape")}
    return shared("conv_transpose", _window(values) | {"groups": values.get("num_group"), **more})


_POOLS: Values = {"max": "max_pool", "avg": "mean_pool"}
_ROUNDINGS: Values = {"valid": "down", "full": "up", "same": "same"}


def _pool(values: Values, site: Site) -> Neutral | None:
    name = _POOLS.get(str(values.get("pool_type")))
    convention = str(values.get("pooling_convention"))
    if name is None or convention not in _ROUNDINGS:
        return None
    window = _window(values) | {"rounding": _ROUNDINGS[convention]}
    if values.get("global_pool"):
        return shared(f"global_{name}", {"layout": window["layout"]})
    pads = window["pads"]
    if name == "mean_pool" and isinstance(pads, tuple) and any(pads):
        window["count_padding"] = values.get("count_include_pad") is not False
    return shared(str(name), window)


def _batch_norm(values: Values, site: Site) -> Neutral | None:
    if values.get("output_mean_var") or values.get("min_calib_range") is not None:
        return None
    axis = from_the_front(values.get("axis"), site.rank)
    return shared("batch_norm", {"epsilon": values.get("eps"), "axis": axis})


_ACTIVATIONS = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softrelu": "softplus", "softsign": "softsign"}


def _activation(values: Values, site: Site) -> Neutral | None:
    name = _ACTIVATIONS.get(str(values.get("act_type")))
    return None if name is None else shared(name, {})


def _leaky_relu(values: Values, site: Site) -> Neutral | None:
    kind = str(values.get("act_type"))
    if kind in ("leaky", "elu"):
        return shared("elu" if kind == "elu" else "leaky_relu", {"alpha": values.get("slope")})
    return shared(kind, {}) if kind in ("prelu", "selu", "gelu") else None


def _linear(values: Values, site: Site) -> Neutral:
    # Flattening an input of two axes does nothing.
    return shared("linear", {"keep_axes": values.get("flatten") is False and site.rank != 2})


def _dropout(values: Values, site: Site) -> Neutral | None:
    # The other mode also drops at inference.
    return shared("dropout", {"ratio": values.get("p")}) if values.get("mode") == "training" else None


def _softmax(values: Values, site: Site) -> Neutral | None:
    if any(values.get(key) not in (None, False) for key in ("temperature", "dtype", "use_length")):
        return None
    return shared("softmax", {"axis": from_the_front(values.get("axis"), site.rank)})


def _reduce(op: str) -> Translation:
    def translate(values: Values, site: Site) -> Neutral | None:
        if values.get("exclude"):
            return None
        axes = from_the_front(values.get("axis"), site.rank)
        if isinstance(axes, tuple):
            numbers = sorted({axis for axis in axes if isinstance(axis, int)})
            axes = None if numbers == list(range(site.rank or 0)) else tuple(numbers)
        return shared(op, {"axes": axes, "keep_axes": values.get("keepdims")})

    return translate


def _upsample(values: Values, site: Site) -> Neutral | None:
    if values.get("sample_type") != "nearest" or len(site.inputs) != 1:
        return None
    return shared("upsample_nearest", {"scale": values.get("scale")})


def _pad(values: Values, site: Site) -> Neutral | None:
    widths, mode = values.get("pad_width"), values.get("mode")
    if not isinstance(widths, tuple):
        return None
    value = values.get("constant_value") if mode == "constant" else None
    return shared("pad", {"pads": widths[0::2] + widths[1::2], "mode": mode, "value": value})


def _to_shape(op: str) -> Translation:
    """Use the shape of the result: there are many spellings of the target (0, -1, -4, reverse)."""
    return lambda values, site: None if site.result is None else shared(op, {"shape": site.result})


def _transpose(values: Values, site: Site) -> Neutral:
    axes = values.get("axes") or (None if site.rank is None else tuple(reversed(range(site.rank))))
    return shared("transpose", {"axes": from_the_front(axes, site.rank)})


TRANSLATIONS: Mapping[str, Translation] = {
    "Activation": _activation,
    "BatchNorm": _batch_norm,
    "Concat": lambda values, site: shared("concat", {"axis": from_the_front(values.get("dim"), site.rank)}),
    "Convolution": lambda values, site: shared("conv", _window(values) | {"groups": values.get("num_group")}),
    "Deconvolution": _conv_transpose,
    "Dropout": _dropout,
    "Embedding": _plain("embedding"),
    "Flatten": _plain("flatten"),
    "FullyConnected": _linear,
    "InstanceNorm": _plain("instance_norm", epsilon="eps"),
    "LRN": _plain("lrn", size="nsize", alpha="alpha", beta="beta", bias="knorm"),
    "LeakyReLU": _leaky_relu,
    "Pad": _pad,
    "Pooling": _pool,
    "Reshape": _to_shape("reshape"),
    "UpSampling": _upsample,
    "_copy": _plain("identity"),
    "add_n": _plain("sum"),
    "broadcast_to": _to_shape("broadcast_to"),
    "clip": _plain("clip", min="a_min", max="a_max"),
    "elemwise_add": _plain("add"),
    "elemwise_div": _plain("div"),
    "elemwise_mul": _plain("mul"),
    "elemwise_sub": _plain("sub"),
    "exp": _plain("exp"),
    "log": _plain("log"),
    "max": _reduce("reduce_max"),
    "mean": _reduce("reduce_mean"),
    "softmax": _softmax,
    "sqrt": _plain("sqrt"),
    "square": _plain("square"),
    "sum": _reduce("reduce_sum"),
    "transpose": _transpose,
}

MXNET_PREFIX = "mxnet."

# Parameters that follow from the types of the inputs, or make no difference for inference on a CPU.
IGNORED = frozenset(
    {"no_bias", "num_args", "num_filter", "num_hidden", "input_dim"}
    | {"ctx", "workspace", "cudnn_off", "cudnn_tune", "sparse_grad"}
    | {"momentum", "fix_gamma", "use_global_stats"}
    | {"grad_scale", "normalization", "out_grad", "smooth_alpha", "ignore_label", "use_ignore", "valid_thresh"}
)
# Parameters that other operators need under these names.
IGNORED_OF_OP: Mapping[str, frozenset[str]] = {
    # The replicas of one layer find each other by these.
    "_contrib_SyncBatchNorm": frozenset({"key", "ndev"}),
}

_AXES = frozenset({"axis", "axis1", "axis2", "axes", "dim", "dim1", "dim2"})
# Operators whose axis is one of the result, which has one axis more than the input.
_ADD_AN_AXIS = frozenset({"expand_dims", "stack", "_npi_stack"})


# Most operators of a model occur several times.
@lru_cache(maxsize=1 << 15)
def neutral_operator(op: str, attributes: tuple[tuple[str, str], ...], site: Site) -> Neutral:
    """Return the neutral form of an MXNet operator; `attributes` are its parameters as in the file."""
    known = schema(op)
    if known is None:
        return Neutral(f"{MXNET_PREFIX}{op}", without_defaults(parameters(known, attributes).values, {}))
    ignored = IGNORED | IGNORED_OF_OP.get(known.name, frozenset())
    # The type of an integer scalar matters only beside integers.
    ignored |= {"is_int"} if site.computes_with_floats else frozenset()
    found = parameters(known, [(key, text) for key, text in attributes if key not in ignored])
    if found.declared and (translate := TRANSLATIONS.get(known.name)) is not None:
        neutral = translate(found.values, site)
        if neutral is not None:
            return neutral
    rank = site.rank + 1 if site.rank is not None and known.name in _ADD_AN_AXIS else site.rank
    values = {key: from_the_front(value, rank) if key in _AXES else value for key, value in found.values.items()}
    return Neutral(f"{MXNET_PREFIX}{known.name}", without_defaults(values, known.defaults))


def nested_graph(file: SymbolFile, forms: InnerForms) -> tuple[str, tuple[str, ...]]:
    """Return the canonical form of a subgraph, without names, and the neutral names of its operators.

    The file has no types for it, and they follow from the operator around it.
    """
    form: list[object] = []
    ops: list[str] = []
    for node in file.nodes:
        if node.is_variable:
            form.append("variable")
            continue
        neutral = neutral_operator(node.op, tuple(node.params.items()), Site((UNKNOWN_TYPE,) * len(node.inputs), ()))
        inner = [nested_graph(subgraph.file, forms) for subgraph in node.subgraphs]
        form.append([neutral.op, neutral.params, node.inputs, [canonical for canonical, _ in inner]])
        ops += [op for _, inside in inner for op in inside] or [neutral.op]
    form.append(file.heads)
    return forms.spell(form), tuple(ops)
