"""Neutral operators: one name and one spelling of parameters for what several file formats share.

An operator that only MXNet has keeps its own name behind `mxnet.`. Two MXNet operators that compute the same by
different kernels (`relu` and `Activation`, `broadcast_add` and `elemwise_add`) stay two: their latencies differ.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

from dlbricks_tui.models.graph import Params, ParamValue, Shape, TensorType
from dlbricks_tui.models.mxnet_ops import schema, undeclared_params

Values = Mapping[str, ParamValue]

# Parameters that change nothing that a CPU computes at inference.
IGNORED = frozenset(
    {"cudnn_off", "cudnn_tune", "cudnn_algo_verbose", "cudnn_algo_fwd", "workspace", "momentum", "grad_scale"}
    | {"normalization", "out_grad", "smooth_alpha", "num_args", "no_bias", "num_filter", "num_hidden", "fix_gamma"}
    | {"use_global_stats", "cudnn_algo_bwd_data", "cudnn_algo_bwd_filter", "cudnn_tensor_core_only"}
    | {"cudnn_algo_fwd_prec", "cudnn_algo_bwd_prec", "sparse_grad", "ctx", "name", "input_dim"}
)


@dataclass(frozen=True, slots=True)
class Neutral:
    """An operator under its neutral name; parameters that have their default value are left out."""

    op: str
    params: Params


@dataclass(frozen=True, slots=True)
class Site:
    """What an operator meets where it stands: the types of its inputs and outputs."""

    inputs: Sequence[TensorType]
    outputs: Sequence[TensorType]

    @property
    def rank(self) -> int | None:
        shape = self.inputs[0].shape if self.inputs else None
        return None if shape is None else len(shape)

    @property
    def result(self) -> Shape | None:
        return self.outputs[0].shape if self.outputs else None


def neutral_operator(op: str, attributes: dict[str, str], site: Site) -> Neutral:
    """The neutral form of an MXNet operator; raises LiteralError for a parameter that is no value."""
    known = schema(op)
    if known is None:
        return Neutral(f"mxnet.{op}", undeclared_params(attributes))
    values = known.normalise(attributes)
    translate = _TRANSLATIONS.get(known.name)
    if translate is not None:
        translated = translate(values, site)
        if translated is not None:
            return Neutral(translated[0], _without_defaults(translated[1], _DEFAULTS.get(translated[0], {})))
    kept = {key: _positive_axis(key, value, site) for key, value in values.items() if key not in IGNORED}
    return Neutral(f"mxnet.{known.name}", _without_defaults(kept, known.defaults))


def _without_defaults(values: Values, defaults: Values) -> Params:
    kept = ((key, value) for key, value in values.items() if value != defaults.get(key))
    return tuple(sorted((key, value) for key, value in kept if value is not None))


def _positive_axis(key: str, value: ParamValue, site: Site) -> ParamValue:
    if key in ("axis", "dim") and isinstance(value, int) and value < 0 and site.rank is not None:
        return value + site.rank
    return value


Translated = tuple[str, dict[str, ParamValue]] | None
Translation = Callable[[Values, Site], Translated]


def _window(values: Values, rank: int | None) -> dict[str, ParamValue]:
    """Kernel, stride, padding and dilation of a sliding window, each spelled for every image axis."""
    kernel = values.get("kernel") or ()
    axes = len(kernel) if isinstance(kernel, tuple) else 0
    pad = values.get("pad") or (0,) * axes
    window: dict[str, ParamValue] = {
        "kernel": kernel,
        "stride": _unless_all(values.get("stride"), 1),
        "pads": (*pad, *pad) if isinstance(pad, tuple) and any(pad) else None,
        "dilation": _unless_all(values.get("dilate"), 1),
    }
    layout = values.get("layout")
    if layout is not None and isinstance(layout, str) and not layout.startswith("NC"):
        window["layout"] = layout
    return window


def _unless_all(value: ParamValue, default: int) -> ParamValue:
    if isinstance(value, tuple) and any(item != default for item in value):
        return value
    return None


def _conv(values: Values, site: Site) -> Translated:
    return "conv", _window(values, site.rank) | {"groups": values["num_group"]}


def _conv_transpose(values: Values, site: Site) -> Translated:
    extra = {"output_pads": _unless_all(values.get("adj"), 0), "groups": values["num_group"]}
    target = _unless_all(values.get("target_shape"), 0)
    return "conv_transpose", _window(values, site.rank) | extra | {"target_shape": target}


def _pool(values: Values, site: Site) -> Translated:
    name = {"max": "max_pool", "avg": "mean_pool"}.get(str(values["pool_type"]))
    if name is None:
        return None
    if values["global_pool"]:
        return f"global_{name}", {}
    window = _window(values, site.rank)
    if values["pooling_convention"] != "valid":
        window["rounding"] = values["pooling_convention"]
    if name == "mean_pool" and window["pads"] is not None:
        window["count_padding"] = values["count_include_pad"] is not False
    return name, window


def _batch_norm(values: Values, site: Site) -> Translated:
    if values["output_mean_var"] or values["min_calib_range"] is not None:
        return None
    return "batch_norm", {"epsilon": values["eps"], "axis": _positive_axis("axis", values["axis"], site)}


def _activation(values: Values, site: Site) -> Translated:
    names = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softrelu": "softplus", "softsign": "softsign"}
    name = names.get(str(values.get("act_type")))
    return None if name is None else (name, {})


def _leaky_relu(values: Values, site: Site) -> Translated:
    kind = values["act_type"]
    if kind == "leaky":
        return "leaky_relu", {"alpha": values["slope"]}
    if kind == "elu":
        return "elu", {"alpha": values["slope"]}
    return (str(kind), {}) if kind in ("prelu", "selu", "gelu") else None


def _linear(values: Values, site: Site) -> Translated:
    # Flattening an input of two axes does nothing.
    keeps_axes = not values["flatten"] and site.rank != 2
    return "linear", {"keep_axes": keeps_axes}


def _softmax(values: Values, site: Site) -> Translated:
    if any(values.get(key) not in (None, False) for key in ("temperature", "dtype", "use_length")):
        return None
    return "softmax", {"axis": _positive_axis("axis", values["axis"], site)}


def _reduce(name: str) -> Translation:
    def translate(values: Values, site: Site) -> Translated:
        if values.get("exclude"):
            return None
        axes = values.get("axis")
        axes = tuple(_positive_axis("axis", axis, site) for axis in axes) if isinstance(axes, tuple) else None
        return name, {"axes": axes or None, "keep_axes": values.get("keepdims")}

    return translate


def _upsample(values: Values, site: Site) -> Translated:
    if values.get("sample_type") != "nearest" or len(site.inputs) != 1:
        return None
    return "upsample_nearest", {"scale": values.get("scale")}


def _pad(values: Values, site: Site) -> Translated:
    widths = values.get("pad_width")
    if not isinstance(widths, tuple):
        return None
    pads = widths[0::2] + widths[1::2]
    return "pad", {"mode": values.get("mode"), "pads": pads, "value": values.get("constant_value")}


def _reshape(values: Values, site: Site) -> Translated:
    # However the target is spelled (0, -1, -4, reverse), the resulting shape is what is done.
    return None if site.result is None else ("reshape", {"shape": site.result})


def _transpose(values: Values, site: Site) -> Translated:
    axes = values.get("axes") or (tuple(reversed(range(site.rank))) if site.rank is not None else None)
    return "transpose", {"axes": axes}


def _renamed(name: str, **renames: str) -> Translation:
    """The same operator under another name; only the named parameters count."""

    def translate(values: Values, site: Site) -> Translated:
        return name, {new: _positive_axis(old, values.get(old), site) for old, new in renames.items()}

    return translate


_TRANSLATIONS: dict[str, Translation] = {
    "Convolution": _conv,
    "Deconvolution": _conv_transpose,
    "FullyConnected": _linear,
    "BatchNorm": _batch_norm,
    "Activation": _activation,
    "LeakyReLU": _leaky_relu,
    "Pooling": _pool,
    "Concat": _renamed("concat", dim="axis"),
    "Dropout": _renamed("dropout", p="ratio"),
    "Embedding": _renamed("embedding"),
    "Flatten": _renamed("flatten"),
    "InstanceNorm": _renamed("instance_norm", eps="epsilon"),
    "LRN": _renamed("lrn", nsize="size", alpha="alpha", beta="beta", knorm="bias"),
    "Pad": _pad,
    "Reshape": _reshape,
    "UpSampling": _upsample,
    "_copy": _renamed("identity"),
    "add_n": _renamed("sum"),
    "clip": _renamed("clip", a_min="min", a_max="max"),
    "elemwise_add": _renamed("add"),
    "elemwise_div": _renamed("div"),
    "elemwise_mul": _renamed("mul"),
    "elemwise_sub": _renamed("sub"),
    "exp": _renamed("exp"),
    "log": _renamed("log"),
    "max": _reduce("reduce_max"),
    "mean": _reduce("reduce_mean"),
    "softmax": _softmax,
    "sqrt": _renamed("sqrt"),
    "square": _renamed("square"),
    "sum": _reduce("reduce_sum"),
    "transpose": _transpose,
}

_DEFAULTS: dict[str, dict[str, ParamValue]] = {
    "conv": {"groups": 1},
    "conv_transpose": {"groups": 1},
    "batch_norm": {"epsilon": 1e-5, "axis": 1},
    "instance_norm": {"epsilon": 1e-5},
    "leaky_relu": {"alpha": 0.01},
    "elu": {"alpha": 1.0},
    "concat": {"axis": 1},
    "linear": {"keep_axes": False},
    "lrn": {"alpha": 0.0001, "beta": 0.75, "bias": 1.0},
    "pad": {"mode": "constant", "value": 0.0},
    "dropout": {"ratio": 0.5},
    "reduce_mean": {"keep_axes": False},
    "reduce_sum": {"keep_axes": False},
    "reduce_max": {"keep_axes": False},
}
