"""Language models in OpenVINO: operators of ONNX Runtime as those that the CPU plugin fuses, and caches as state.

OpenVINO reads most of these operators by itself, but computes attention in pieces, and unpacks weights of 4 bits. Here
they become what its own tools write: weights that the products unpack, and attention whose cache the plugin keeps.
"""

from __future__ import annotations

import importlib
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.genai_engine import peak_bytes, prompt_of
from dlbricks_tui.runtime.inside.openvino_models import ask, compiled
from dlbricks_tui.runtime.protocol import EngineOpened, Generate, Generated, OpenEngine, Reason

_MICROSOFT = "com.microsoft"
# The name of the input that orders the beams of a search: the plugin fuses attention with it only.
_BEAMS = "beam_idx"
_STATE = "cache "
# What a position adds to a score that does not count.
_NEVER = numpy.float32(-65504)
# Weights of 4 and of 8 bits are stored with their zero in the middle.
_TYPES, _ZEROS = {4: "u4", 8: "u8"}, {4: 8, 8: 128}


def decoder_extensions(openvino: Any) -> list[Any]:
    """Return the extensions with which OpenVINO reads a language model."""
    conversion = importlib.import_module("openvino.frontend.onnx").ConversionExtension
    found = [conversion(op, _MICROSOFT, _Reader(openvino, read)) for op, read in _OF_MICROSOFT.items()]
    return [*found, conversion("SimplifiedLayerNormalization", _Reader(openvino, _norm))]


class _Reader:
    """Turns an operator into operators of OpenVINO."""

    def __init__(self, openvino: Any, read: Callable[[_Node], list[Any]]) -> None:
        self._openvino = openvino
        self._read = read

    def __call__(self, context: Any) -> list[Any]:
        return self._read(_Node(self._openvino, context))


class _Node:
    """An operator of a model, and the operators that take its place."""

    def __init__(self, openvino: Any, context: Any) -> None:
        self.openvino = openvino
        self._context = context
        self.input = context.get_input
        self.attribute = context.get_attribute

    def __getattr__(self, name: str) -> Callable[..., Any]:
        """Return the function that makes an operator of OpenVINO, such as `add`."""
        made: Callable[..., Any] = getattr(self.openvino.opset13, name)
        return made

    def whole(self, *numbers: int) -> Any:
        return self.constant(numpy.array(numbers, numpy.int64))

    def number(self, value: int) -> Any:
        """Return a single whole number, as axes and places are."""
        return self.constant(numpy.int64(value))

    def has(self, place: int) -> bool:
        """Return whether the operator has an input at a place."""
        there: bool = place < self._context.get_input_size()
        return there and self.input(place).get_node().get_type_name() != "NullNode"


def _norm(node: _Node, state: Any = None, weight: int = 1) -> list[Any]:
    state = node.input(0) if state is None else state
    mean = node.reduce_mean(node.power(state, numpy.float32(2)), node.whole(-1), keep_dims=True)
    root = node.sqrt(node.add(mean, numpy.float32(node.attribute("epsilon"))))
    return [node.multiply(node.multiply(state, node.divide(numpy.float32(1), root)), node.input(weight)).output(0)]


def _skip_norm(node: _Node) -> list[Any]:
    both = node.add(node.input(0), node.input(1))
    (normed,) = _norm(node, both, 2)
    return [normed, normed, normed, both.output(0)]


def _quick_gelu(node: _Node) -> list[Any]:
    return [node.swish(node.input(0), numpy.float32(node.attribute("alpha"))).output(0)]


def _unpacked(node: _Node, packed: int, scales: int) -> Any:
    """Return weights of few bits as a matrix, which the plugin multiplies without unpacking them first."""
    bits, size, openvino = node.attribute("bits"), node.attribute("block_size"), node.openvino
    factors = _values(node.input(scales))
    rows, blocks = node.input(scales).get_shape()
    values = numpy.ascontiguousarray(_values(node.input(packed))).reshape(-1)
    kind = getattr(openvino.Type, _TYPES[bits])
    stored = openvino.op.Constant(openvino.Tensor(values, [rows, blocks, size], kind))
    zero = node.constant(numpy.float16(_ZEROS[bits]).reshape(1, 1, 1))
    apart = node.subtract(node.convert(stored, "f16"), zero)
    scaled = node.multiply(apart, node.constant(factors.reshape(rows, blocks, 1).astype(numpy.float16)))
    return node.convert(node.reshape(scaled, node.whole(rows, blocks * size), special_zero=False), "f32")


def _values(output: Any) -> Any:
    """Return the numbers of a weight, which a node may only have reshaped."""
    found = output.get_node()
    while not hasattr(found, "data"):
        found = found.input_value(0).get_node()
    return found.data


def _product(node: _Node) -> list[Any]:
    made = node.matmul(node.input(0), _unpacked(node, 1, 2), False, True)
    return [(node.add(made, node.input(5)) if node.has(5) else made).output(0)]


def _rows(node: _Node) -> list[Any]:
    return [node.gather(_unpacked(node, 0, 2), node.input(1), node.number(0)).output(0)]


def _attention(node: _Node) -> list[Any]:
    """Return attention with rotary angles and a cache that grows, from the length that the graph gives it."""
    heads, kv_heads, state = node.attribute("num_heads"), node.attribute("kv_num_heads"), node.input(0)
    half = node.input(7).get_partial_shape()[1].get_length()
    shape = node.input(3).get_partial_shape()
    size = shape[3].get_length()
    parts = [state, node.input(1), node.input(2)] if node.has(1) else _apart(node, state, heads, kv_heads, size)
    queries, keys, values = (_by_head(node, part, size) for part in parts)
    held = [_cache(node, place, kv_heads, size) for place in (3, 4)]
    before = node.gather(node.shape_of(held[0], "i64"), node.number(2), node.number(0))
    total = node.add(before, node.gather(node.shape_of(queries, "i64"), node.number(2), node.number(0)))
    places = node.range(before, total, node.number(1), output_type="i64")
    angles = [_angles(node, place, places) for place in (7, 8)]
    queries, keys = (_rotated(node, it, angles, half, size) for it in (queries, keys))
    keys, values = node.concat([held[0], keys], 2), node.concat([held[1], values], 2)
    mask = _mask(node, places, total)
    repeated = [_repeated(node, it, heads, kv_heads, size) for it in (keys, values)]
    made = _scores(node, queries, repeated, mask)
    made = node.reshape(node.transpose(made, node.whole(0, 2, 1, 3)), node.whole(0, 0, heads * size), special_zero=True)
    return [made.output(0), keys.output(0), values.output(0)]


def _by_head(node: _Node, state: Any, size: int) -> Any:
    heads = node.reshape(state, node.whole(0, 0, -1, size), special_zero=True)
    return node.transpose(heads, node.whole(0, 2, 1, 3))


def _apart(node: _Node, state: Any, heads: int, kv_heads: int, size: int) -> list[Any]:
    sizes = node.whole(heads * size, kv_heads * size, kv_heads * size)
    return list(node.variadic_split(state, node.number(2), sizes).outputs())


def _cache(node: _Node, place: int, heads: int, size: int) -> Any:
    """Return the cache as the plugin keeps it from run to run, empty at first."""
    openvino, name = node.openvino, _STATE + node.input(place).get_node().get_friendly_name()
    first = node.constant(numpy.zeros((1, heads, 0, size), numpy.float32))
    kept = openvino.opset6.read_value(first, name, numpy.float32, openvino.PartialShape([1, heads, -1, size]))
    beams = node.constant(numpy.zeros(1, numpy.int32))
    beams.set_friendly_name(f"{_BEAMS} {name}")
    return node.gather(kept, beams, node.number(0))


def _angles(node: _Node, place: int, places: Any) -> Any:
    rows = node.unsqueeze(node.gather(node.input(place), places, node.number(0)), node.whole(0, 1))
    return node.concat([rows, rows], -1)


def _rotated(node: _Node, state: Any, angles: list[Any], half: int, size: int) -> Any:
    """Return queries or keys turned by the angles of their places; the rest of each head stays."""
    cosine, sine = angles
    first, second, *rest = node.variadic_split(
        state, node.number(3), node.whole(half, half, *([size - 2 * half] if size > 2 * half else []))
    ).outputs()
    turning = node.concat([first, second], -1) if rest else state
    turned = node.concat([node.multiply(second, numpy.float32(-1)), first], -1)
    made = node.add(node.multiply(turning, cosine), node.multiply(turned, sine))
    return node.concat([made, *rest], -1) if rest else made


def _mask(node: _Node, places: Any, total: Any) -> Any:
    """Return what is added to the scores: nothing where a token sees another, and a lot where it does not."""
    zero, one = node.number(0), node.number(1)
    keys = node.unsqueeze(node.range(zero, total, one, output_type="i64"), node.whole(0))
    queries = node.unsqueeze(places, node.whole(1))
    seen = node.less_equal(keys, queries)
    window = node.attribute("local_window_size", -1)
    if window > 0:
        seen = node.logical_and(seen, node.greater(keys, node.subtract(queries, node.number(window))))
    return node.unsqueeze(node.select(seen, numpy.float32(0), _NEVER), node.whole(0, 1))


def _repeated(node: _Node, state: Any, heads: int, kv_heads: int, size: int) -> Any:
    """Return keys or values for each head of queries, in the form that the plugin takes for a group."""
    if heads == kv_heads:
        return state
    apart = node.unsqueeze(state, node.number(2))
    shape = node.whole(1, 1, heads // kv_heads, 1, 1)
    every = node.openvino.opset3.broadcast(apart, shape, broadcast_spec="BIDIRECTIONAL")
    return node.reshape(every, node.whole(0, heads, -1, size), special_zero=True)


def _scores(node: _Node, queries: Any, kept: list[Any], mask: Any) -> Any:
    keys, values = kept
    scale, cap = numpy.float32(node.attribute("scale")), node.attribute("softcap", 0.0)
    if not cap:
        return node.scaled_dot_product_attention(queries, keys, values, mask, node.constant(scale))
    scores = node.multiply(node.matmul(queries, keys, False, True), scale)
    capped = node.multiply(node.tanh(node.divide(scores, numpy.float32(cap))), numpy.float32(cap))
    return node.matmul(node.softmax(node.add(capped, mask), 3), values, False, False)


class ModelRequest:
    """A model ready to run; one with caches keeps them from run to run, and they grow."""

    def __init__(self, model: Any, request: Any) -> None:
        self.request = request
        self.has_caches = bool(request.query_state())
        self._reads_prompt = self.has_caches and not tokens_before(model)

    def feed(self, keys: Sequence[str | int], tensors: Sequence[Any], in_place: Mapping[int, Any]) -> None:
        """Let the model read these tensors as its inputs, each known by name or place, and write outputs to some.

        OpenVINO may still compute such an output elsewhere and copy it. A model that keeps its caches has none.
        """
        for place, key in enumerate(keys):
            put = self.request.set_tensor if isinstance(key, str) else self.request.set_input_tensor
            put(key, tensors[place])
        if self.has_caches:
            beams = self.request.get_input_tensor(len(keys))
            beams.data[:] = 0
        for place, tensor in in_place.items():
            self.request.set_output_tensor(place, tensor)

    def begin(self) -> int:
        """Make caches as long as before the first run; return how often the model had to run for that."""
        if not self.has_caches:
            return 0
        self.request.reset_state()
        if self._reads_prompt:
            return 0
        # It copies the caches to where they can grow.
        self.request.infer(share_outputs=True)
        return 1

    def run(self) -> None:
        if self._reads_prompt:
            self.request.reset_state()
        self.request.infer(share_outputs=True)


def with_state(model: Any) -> Any:
    """Return a model that keeps its caches from run to run; one without caches stays as it is.

    Inputs keep their places: those of caches stay, and are not read. The last input orders the beams of a search.
    """
    kept = {op.get_variable_id(): op for op in model.get_ops() if op.get_type_name() == "ReadValue"}
    if not kept:
        return model
    openvino = importlib.import_module("openvino")
    sinks, written = [], set()
    past = tokens_before(model)
    beams = openvino.opset13.parameter([1], numpy.int32, name=_BEAMS)
    beams.output(0).set_names({_BEAMS})
    for name, op in kept.items():
        (_, heads, _, size) = op.input_value(0).get_shape()
        first = openvino.op.Constant(numpy.zeros((1, heads, past, size), numpy.float32))
        op.input(0).replace_source_output(first.output(0))
        (gather,) = (it.get_node() for it in op.output(0).get_target_inputs())
        gather.input(1).replace_source_output(beams.output(0))
        grown = _grown(gather)
        sinks.append(openvino.opset6.assign(grown, name))
        written.add(grown.get_friendly_name())
    results = [it for it in model.get_results() if it.input_value(0).get_node().get_friendly_name() not in written]
    return openvino.Model(results, sinks, [*model.get_parameters(), beams], "decoder")


def tokens_before(model: Any) -> int:
    """Return the tokens in the caches of a model before its first run."""
    # The tokens of a run, and those that the mask counts: both are rows of whole numbers.
    whole = [it.get_partial_shape() for it in model.inputs if it.get_element_type().get_type_name() == "i64"]
    rows = [it[1].get_length() for it in whole if it.is_static]
    return max(rows, default=0) - min(rows, default=0)


def _grown(gather: Any) -> Any:
    """Return the node that puts the newest keys or values behind those of a cache."""
    return next(
        it.get_node() for it in gather.output(0).get_target_inputs() if it.get_node().get_type_name() == "Concat"
    )


_OF_MICROSOFT: dict[str, Callable[[_Node], list[Any]]] = {
    "GroupQueryAttention": _attention,
    "GatherBlockQuantized": _rows,
    "MatMulNBits": _product,
    "QuickGelu": _quick_gelu,
    "SkipSimplifiedLayerNormalization": _skip_norm,
}


class OpenVinoEngine:
    """A whole language model in a folder, which generates tokens with OpenVINO itself."""

    def __init__(self, openvino: Any) -> None:
        self._openvino = openvino
        self._core = openvino.Core()
        for extension in decoder_extensions(openvino):
            self._core.add_extension(extension)
        self._request: Any = None
        self._vocabulary = 1

    def open(self, request: OpenEngine) -> EngineOpened:
        self._request = None
        began = time.perf_counter()
        path = str(Path(request.folder) / "model.onnx")
        model = ask(lambda: with_state(self._core.read_model(path)), Reason.UNBUILDABLE)
        found = compiled(self._core, model, Reason.UNBUILDABLE)
        self._request = ask(found.create_infer_request, Reason.UNBUILDABLE)
        self._vocabulary = found.outputs[0].get_partial_shape()[2].get_length()
        return EngineOpened(self._openvino.__version__.split("-")[0], time.perf_counter() - began)

    def generate(self, request: Generate) -> Generated:
        """Read a prompt and generate tokens, each the most probable one."""
        if self._request is None:
            raise RefusalError(Reason.MALFORMED, "no model is loaded into the engine")
        tokens, taken = prompt_of(request.prompt, self._vocabulary)[None], []
        self._request.reset_state()
        processor_ns, began = time.process_time_ns(), time.perf_counter_ns()
        for total in range(request.prompt, request.prompt + max(1, request.tokens)):
            tokens = ask(partial(self._next, tokens, total), Reason.UNBUILDABLE)
            ended = time.perf_counter_ns()
            taken.append(ended - began)
            began = ended
        return Generated(taken[0], tuple(taken[1:]), time.process_time_ns() - processor_ns, peak_bytes())

    def _next(self, tokens: Any, total: int) -> Any:
        """Return the token that follows these, as the next input."""
        fed = {"input_ids": tokens, "attention_mask": numpy.ones((1, total), numpy.int64)}
        self._request.infer({**fed, _BEAMS: numpy.zeros(1, numpy.int32)}, share_inputs=True, share_outputs=True)
        return self._request.get_output_tensor(0).data[:, -1:].argmax(-1)
