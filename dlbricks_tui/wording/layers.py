"""Layers in words: their titles, shapes and names, the slowest of them, and which run in parallel."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

from dlbricks_tui.models.graph import GraphInput, Layer, Shape, TensorType
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.neutral import plain_name
from dlbricks_tui.wording.numbers import PREDICTED, counted, in_ms, percent

if TYPE_CHECKING:
    from dlbricks_tui.estimate.parts import Slowest, SlowPart
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import LayerGraph

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
    plain = map(plain_name, layer.op.split("+"))
    names = [_SHORT_NAMES.get(name, name).replace("_", " ") for name in plain]
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


def _by(sizes: Sequence[int] | Shape) -> str:
    return "x".join(map(str, sizes))


def _once(sizes: Sequence[int]) -> str:
    """Return `2` for a stride of two along every axis, else the stride of each."""
    return str(sizes[0]) if len(set(sizes)) == 1 else _by(sizes)


def common_beginning(names: Sequence[str]) -> str:
    """Return the words that all names begin with; nothing for a single name."""
    if len(set(names)) < 2:
        return ""
    first, last = min(names), max(names)
    same = next((at for at, (one, other) in enumerate(zip(first, last, strict=False)) if one != other), len(first))
    return first[: max(first.rfind(sign, 0, same) for sign in "_/.") + 1]


def usual_beginning(names: Sequence[str]) -> str:
    """Return the words that at least four fifths of the names begin with; nothing for a single name."""
    ordered, odd = sorted(names), len(names) // 10
    # Names with the same beginning are neighbours.
    return common_beginning(ordered[odd : len(ordered) - odd])


def bricks_words(granularity: int) -> str:
    """Return the size of bricks: `bricks of 1 layer`, `bricks of up to 3 layers`."""
    return f"bricks of {'up to ' * (granularity > 1)}{counted(granularity, 'layer')}"


def title_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the titles of its layers: `conv 3x3 64 > pool 2x2`."""
    return " > ".join(layer_title(graph.layers[index]) for index in slow.part.layers)


def name_of(graph: LayerGraph, slow: SlowPart) -> str:
    """Return the name of its layer in the file, or of the first and the last one."""
    first, last = slow.part.layers[0], slow.part.layers[-1]
    name = graph.layers[first].name
    return name if first == last else f"{name} .. {graph.layers[last].name}"


def sign_of_part(slow: SlowPart) -> str:
    """Return the mark of a predicted latency; nothing for a measured one."""
    return PREDICTED if slow.part.predicted else ""


def slowest_in_words(slow: Slowest) -> str:
    """Return the share that the slowest sequences take together."""
    if not slow.parts:
        return "no layer has a latency"
    single = all(len(it.part.layers) == 1 for it in slow.parts)
    of = f"{len(slow.parts)} of {counted(slow.sequences, 'layer' if single else 'sequence')}"
    takes = "takes" if len(slow.parts) == 1 else "take"
    return f"{of} {takes} {percent(slow.parts[-1].cumulative)} of {in_ms(slow.total_ms)}"


# A smaller speed-up is shown as 1.00.
_LEAST_GAIN = 1.005


def parallel_sentences(one: SystemEstimate) -> str:
    """Return how much faster parallel layers could make the model, and why it may be less here; empty if unknown."""
    # Loaded here: the first screen needs no estimate.
    from dlbricks_tui.estimate.explanation import parallel_gain

    composed, workers = one.estimate.composed, one.estimate.options.workers
    if composed is None:
        return ""
    part = " for the part with a latency" if one.estimate.is_partial else ""
    gain = parallel_gain(composed)
    if composed.parallel_ms == composed.sequential_ms:
        return f"No two layers can run at the same time: parallel execution gains nothing{part}."
    if gain < _LEAST_GAIN:
        return f"Parallel layers gain less than 1 %{part}, even with cores of their own."
    sign = PREDICTED if one.estimate.coverage.predicted else ""
    most = f"At most {sign}{gain:.2f} times as fast{part}, if independent layers had cores of their own"
    told = f"{most}; {cores_in_words(one.variant.threads, one.cores)}."
    if composed.workers_ms is None or not composed.workers_ms or workers is None:
        return told
    with_workers = composed.sequential_ms / composed.workers_ms
    count = counted(workers, "worker")
    if f"{with_workers:.2f}" == f"{gain:.2f}":
        return f"{told} {count} {'is' if workers == 1 else 'are'} enough for that."
    return f"{told} With {count}: {sign}{with_workers:.2f} times."


def cores_in_words(threads: int | None, cores: int | None) -> str:
    """Return how many of the cores each brick used while it was timed."""
    if threads is None:
        return "here each brick used the default threads of the runtime"
    if cores is None:
        return f"here each brick used {counted(threads, 'thread')}"
    if threads < cores:
        return f"here each brick used {'one' if threads == 1 else threads} of {cores} cores"
    if cores == 1:
        return "this system has one core only"
    return f"here each brick already used {'both' if cores == 2 else f'all {cores}'} cores"
