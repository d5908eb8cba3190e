"""Layers, shapes and inputs of models in words."""

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import Any

from dlbricks_tui.models.graph import GraphInput, Layer, Shape, TensorType
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.neutral import plain_name

_MOST_OPERATORS = 4
# Other titles are the neutral name of the operator.
_SHORT_NAMES = {
    "conv_transpose": "deconv",
    "upsample_nearest": "upsample",
    # Layers as ONNX Runtime and OpenVINO execute them.
    "Conv": "conv",
    "MaxPool": "max pool",
    "AveragePool": "mean pool",
    **dict.fromkeys(("Reorder", "ReorderInput", "ReorderOutput"), "layout conversion"),
}
# ONNX's names of parameters.
_NEUTRAL = {"kernel_shape": "kernel", "strides": "stride", "dilations": "dilation", "group": "groups"}
_JOINS = (Kind.CONCAT, Kind.COMBINE)
_UNKNOWN = "?"


def layer_title(layer: Layer) -> str:
    """Return the operators of a layer, its kernel and stride, its number of output channels, and the number of joined
    tensors.
    """
    names = [_short_name(op) for op in layer.op.split("+")]
    if activation := _params(layer).get("activation"):
        names.append(str(activation).lower())
    words = "+".join(names[:_MOST_OPERATORS]) + ("+..." if len(names) > _MOST_OPERATORS else "")
    joined = len(layer.data)
    of_many = f"of {joined}" if layer.kind in _JOINS and (joined > 2 or layer.kind is Kind.CONCAT) else ""
    return " ".join(filter(None, (words, *_window(layer), of_many)))


def shape_text(tensor: TensorType) -> str:
    """Return a shape as `1x64x56x56`."""
    return _UNKNOWN if tensor.shape is None else _by(tensor.shape) or "scalar"


def input_text(given: GraphInput) -> str:
    """Return the name of an input, its value if one is given, as `sr = 16000`, and its assumed sizes."""
    said = f"{given.name} = {','.join(map(str, given.value))}" if given.value else given.name
    return f"{said} ({_assumed(given)} assumed)" if given.assumed else said


def assumption(inputs: Iterable[GraphInput]) -> str:
    """Return which sizes of inputs are assumed, and how to give others; empty if there are none."""
    found = [it for it in inputs if it.assumed]
    sizes = [f"{_assumed(it)} in input {it.name[:80]}" for it in found]
    # Only first axes are.
    options = [f"--input {it.name[:80]}={','.join(['SIZE', *map(str, (it.type.shape or ())[1:])])}" for it in found]
    return f"assumed: {listed(sizes)}; {options[0]} gives another" if found else ""


def _assumed(given: GraphInput) -> str:
    return ", ".join(f"{axis[:80]} = 1" for axis in given.assumed)


def _window(layer: Layer) -> list[str]:
    params = _params(layer)
    kernel, strides, dilations = (params.get(name) or () for name in ("kernel", "stride", "dilation"))
    words = [_by(kernel) + (f"/{_once(strides)}" if {*strides} - {1} else ""), _width(layer)]
    words += [f"d{_once(dilations)}" if {*dilations} - {1} else ""]
    words += [f"g{params['groups']}" if params.get("groups", 1) != 1 else ""]
    if "scale" in params:
        words.append(f"x{params['scale']}")
    return words


def _width(layer: Layer) -> str:
    """Return the number of output channels or features of a layer with weights."""
    shape = layer.outputs[0].shape if layer.outputs else None
    if not shape or len(shape) < 2:
        return ""
    if layer.kind in (Kind.CONVOLUTION, Kind.DECONVOLUTION):
        return str(shape[1])
    return str(shape[-1]) if layer.kind is Kind.LINEAR else ""


def _params(layer: Layer) -> Mapping[str, Any]:
    """Return the parameters of the first operator with a kernel, else of the first operator. Fused operators hold
    theirs inside.
    """
    forms: list[Mapping[str, Any]] = [
        {_NEUTRAL.get(name, name): value for name, value in operator.params} for operator in layer.operators
    ]
    forms += [params for operator in layer.operators for inner in operator.inner for params in _nested_params(inner)]
    return next((params for params in forms if "kernel" in params), forms[0] if forms else {})


@lru_cache(maxsize=1 << 10)
def _nested_params(canonical: str) -> tuple[Mapping[str, Any], ...]:
    """Return the parameters of each operator in the canonical form of a subgraph."""
    *nodes, _heads = json.loads(canonical)
    return tuple([dict(node[1]) for node in nodes if isinstance(node, list)])


def _short_name(op: str) -> str:
    name = plain_name(op)
    return _SHORT_NAMES.get(name, name).replace("_", " ")


def _by(sizes: Sequence[int] | Shape) -> str:
    return "x".join(map(str, sizes))


def _once(sizes: Sequence[int]) -> str:
    """Return `2` for a stride of two along every axis, else the stride of each."""
    return str(sizes[0]) if len(set(sizes)) == 1 else _by(sizes)
