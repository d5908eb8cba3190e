"""Translations of MXNet's operators into shared ones."""

from collections.abc import Callable, Mapping

from dlbricks_tui.models.graph import ParamValue
from dlbricks_tui.models.neutral import Site, Translated, Values, from_the_front

# None if MXNet's operator does more than the shared one.
Translation = Callable[[Values, Site], Translated | None]


def _plain(op: str, **renamed: str) -> Translation:
    """The same operator by another name, with its parameters renamed."""

    def translate(values: Values, site: Site) -> Translated:
        return Translated(op, {new: values.get(old) for new, old in renamed.items()})

    return translate


def _window(values: Values) -> dict[str, ParamValue]:
    """Return kernel, stride, padding and dilation, each with one value per axis of the image."""
    pad = values.get("pad")
    return {
        "kernel": values.get("kernel"),
        "stride": values.get("stride"),
        "pads": (*pad, *pad) if isinstance(pad, tuple) else None,
        "dilation": values.get("dilate"),
        "layout": _layout(values),
    }


def _layout(values: Values) -> ParamValue:
    layout = values.get("layout")
    return None if isinstance(layout, str) and layout.startswith("NC") else layout


def _conv(values: Values, site: Site) -> Translated:
    return Translated("conv", _window(values) | {"groups": values.get("num_group")})


def _conv_transpose(values: Values, site: Site) -> Translated:
    more = {
        "groups": values.get("num_group"),
        "output_pads": values.get("adj"),
        "target_shape": values.get("target_shape"),
    }
    return Translated("conv_transpose", _window(values) | more)


_POOLS: Values = {"max": "max_pool", "avg": "mean_pool"}
_ROUNDINGS: Values = {"valid": "down", "full": "up", "same": "same"}


def _pool(values: Values, site: Site) -> Translated | None:
    name = _POOLS.get(str(values.get("pool_type")))
    convention = str(values.get("pooling_convention"))
    if name is None or convention not in _ROUNDINGS:
        return None
    if values.get("global_pool"):
        return Translated(f"global_{name}", {"layout": _layout(values)})
    window = _window(values) | {"rounding": _ROUNDINGS[convention]}
    pads = window["pads"]
    if name == "mean_pool" and isinstance(pads, tuple) and any(pads):
        window["count_padding"] = values.get("count_include_pad") is not False
    return Translated(str(name), window)


def _batch_norm(values: Values, site: Site) -> Translated | None:
    if values.get("output_mean_var") or values.get("min_calib_range") is not None:
        return None
    axis = from_the_front(values.get("axis"), site.rank)
    return Translated("batch_norm", {"epsilon": values.get("eps"), "axis": axis})


_ACTIVATIONS = {"relu": "relu", "sigmoid": "sigmoid", "tanh": "tanh", "softrelu": "softplus", "softsign": "softsign"}


def _activation(values: Values, site: Site) -> Translated | None:
    name = _ACTIVATIONS.get(str(values.get("act_type")))
    return None if name is None else Translated(name, {})


def _leaky_relu(values: Values, site: Site) -> Translated | None:
    kind = str(values.get("act_type"))
    if kind in ("leaky", "elu"):
        return Translated("elu" if kind == "elu" else "leaky_relu", {"alpha": values.get("slope")})
    return Translated(kind, {}) if kind in ("prelu", "selu", "gelu") else None


def _linear(values: Values, site: Site) -> Translated:
    # Flattening an input of two axes does nothing.
    return Translated("linear", {"keep_axes": values.get("flatten") is False and site.rank != 2})


def _dropout(values: Values, site: Site) -> Translated | None:
    # The other mode also drops at inference.
    return Translated("dropout", {"ratio": values.get("p")}) if values.get("mode") == "training" else None


def _softmax(values: Values, site: Site) -> Translated | None:
    if any(values.get(key) not in (None, False) for key in ("temperature", "dtype", "use_length")):
        return None
    return Translated("softmax", {"axis": from_the_front(values.get("axis"), site.rank)})


def _concat(values: Values, site: Site) -> Translated:
    return Translated("concat", {"axis": from_the_front(values.get("dim"), site.rank)})


def _reduce(op: str) -> Translation:
    def translate(values: Values, site: Site) -> Translated | None:
        if values.get("exclude"):
            return None
        axes = from_the_front(values.get("axis"), site.rank)
        if isinstance(axes, tuple):
            numbers = sorted({axis for axis in axes if isinstance(axis, int)})
            axes = None if numbers == list(range(site.rank or 0)) else tuple(numbers)
        return Translated(op, {"axes": axes, "keep_axes": values.get("keepdims")})

    return translate


def _upsample(values: Values, site: Site) -> Translated | None:
    if values.get("sample_type") != "nearest" or len(site.inputs) != 1:
        return None
    return Translated("upsample_nearest", {"scale": values.get("scale")})


def _pad(values: Values, site: Site) -> Translated | None:
    widths, mode = values.get("pad_width"), values.get("mode")
    if not isinstance(widths, tuple):
        return None
    value = values.get("constant_value") if mode == "constant" else None
    return Translated("pad", {"pads": widths[0::2] + widths[1::2], "mode": mode, "value": value})


def _to_shape(op: str) -> Translation:
    """Use the shape of the result: there are many spellings of the target (0, -1, -4, reverse)."""

    def translate(values: Values, site: Site) -> Translated | None:
        return None if site.result is None else Translated(op, {"shape": site.result})

    return translate


def _transpose(values: Values, site: Site) -> Translated:
    axes = values.get("axes") or (None if site.rank is None else tuple(reversed(range(site.rank))))
    return Translated("transpose", {"axes": from_the_front(axes, site.rank)})


TRANSLATIONS: Mapping[str, Translation] = {
    "Activation": _activation,
    "BatchNorm": _batch_norm,
    "Concat": _concat,
    "Convolution": _conv,
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
