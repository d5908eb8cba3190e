"""Language models in OpenVINO: operators of ONNX Runtime as those that the CPU plugin fuses, and caches as state.

OpenVINO reads most of these operators by itself, but computes attention in pieces, and unpacks weights of 4 bits. Here
they become what its own tools write: weights that the products unpack, and attention whose cache the plugin keeps.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy

_MICROSOFT = "com.microsoft"
# The name of the input that orders the beams of a search: the plugin fuses attention with it only.
_BEAMS = "beam_idx"
_STATE = "cache "
# What a position adds to a score that does not count.
_NEVER = numpy.float32(-65504)
# Weights of 4 and of 8 bits have their zero in the middle, unless they have an input for it.
_TYPES, _ZEROS, _ZEROS_PLACE = {4: "u4", 8: "u8"}, {4: 8, 8: 128}, 3


def decoder_extensions(openvino: Any) -> list[Any]:
    """Return the extensions with which OpenVINO reads a language model."""
    conversion = importlib.import_module("openvino.frontend.onnx").ConversionExtension

    def reading(read: Callable[[_Node], list[Any]]) -> Callable[[Any], list[Any]]:
        return lambda context: read(_Node(openvino, context))

    found = [conversion(op, _MICROSOFT, reading(read)) for op, read in _OF_MICROSOFT.items()]
    return [*found, conversion("SimplifiedLayerNormalization", reading(_norm))]


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
    """Return weights of few bits as a matrix, which the plugin multiplies without unpacking them first.

    It multiplies whole numbers only where zeros have the type of the weights.
    """
    bits, size, openvino = node.attribute("bits"), node.attribute("block_size"), node.openvino
    factors = _values(node.input(scales))
    rows, blocks = node.input(scales).get_shape()
    values = numpy.ascontiguousarray(_values(node.input(packed))).reshape(-1)
    kind = getattr(openvino.Type, _TYPES[bits])
    # A row that shares one scale is no block.
    inner = [blocks, size] if blocks > 1 else [size]
    stored = openvino.op.Constant(openvino.Tensor(values, [rows, *inner], kind))
    shape, zeros = [1] * (1 + len(inner)), numpy.array([_ZEROS[bits]], numpy.uint8)
    if node.has(_ZEROS_PLACE):
        shape, zeros = [rows, *inner[:-1], 1], _apart_in_bytes(_values(node.input(_ZEROS_PLACE)), bits, rows, blocks)
    zero = openvino.op.Constant(kind, openvino.Shape(shape), zeros)
    apart = node.subtract(node.convert(stored, "f16"), node.convert(zero, "f16"))
    scaled = node.multiply(apart, node.constant(factors.reshape(rows, *inner[:-1], 1).astype(numpy.float16)))
    matrix = node.reshape(scaled, node.whole(rows, blocks * size), special_zero=False) if blocks > 1 else scaled
    return node.convert(matrix, "f32")


def _apart_in_bytes(packed: Any, bits: int, rows: int, blocks: int) -> Any:
    """Return the zeros of all blocks, each in a byte; those of a row begin in a byte of their own."""
    each = packed.reshape(rows, -1)
    if bits == 4:
        each = numpy.stack([each & 15, each >> 4], -1).reshape(rows, -1)
    return each[:, :blocks].reshape(-1)


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
        held = [it.input_value(0).get_shape()[2] for it in model.get_ops() if it.get_type_name() == "ReadValue"]
        self._reads_prompt = self.has_caches and not any(held)
        # The inputs whose length is open.
        self._open = [place for place, it in enumerate(model.inputs) if it.get_partial_shape().is_dynamic]
        self._short: Any = None

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

    def prepare(self) -> None:
        """Run with a single token, if a prompt comes next: an engine that reads one has made tokens before.

        All nodes then adapt to the other length.
        """
        if not self._reads_prompt or not self._open:
            return
        tensors = [self.request.get_input_tensor(it) for it in self._open]
        if self._short is None:
            self._short = importlib.import_module("openvino").Tensor(numpy.zeros((1, 1), numpy.int64))
        for place in self._open:
            self.request.set_input_tensor(place, self._short)
        self.run()
        for place, tensor in zip(self._open, tensors, strict=True):
            self.request.set_input_tensor(place, tensor)

    def run(self) -> None:
        if self._reads_prompt:
            self.request.reset_state()
        self.request.infer(share_outputs=True)


def with_state(model: Any, *, is_whole: bool = False) -> Any:
    """Return a model that keeps its caches from run to run; one without caches stays as it is.

    Inputs keep their places: those of caches stay, and are not read; a whole model loses them. The last input orders
    the beams of a search.
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
    # Caches have four axes.
    given = [it for it in model.get_parameters() if not is_whole or len(it.get_partial_shape()) < 4]
    made = openvino.Model(results, sinks, [*given, beams], "decoder")
    if not is_whole:
        # Their length is open, as in an engine.
        made.reshape({place: [1, -1] for place, it in enumerate(made.inputs) if _is_row(it)})
    return made


def tokens_before(model: Any) -> int:
    """Return the tokens in the caches of a model before its first run."""
    # The tokens of a run, and those that the mask counts: both are rows of whole numbers.
    rows = [it.get_partial_shape()[1].get_length() for it in model.inputs if _is_row(it)]
    return max(rows, default=0) - min(rows, default=0)


def _is_row(given: Any) -> bool:
    shape = given.get_partial_shape()
    return given.get_element_type().get_type_name() == "i64" and shape.is_static and len(shape) == 2


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
