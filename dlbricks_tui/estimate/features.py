"""The features of a brick from which its latency is predicted, read from its canonical form and its context."""

import json
import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from dlbricks_tui.bricks.contexts import KEPT, STREAMED, VARIED
from dlbricks_tui.bricks.identity import operators_inside
from dlbricks_tui.models.graph import LOOK_UPS, Shape, TensorType
from dlbricks_tui.models.kinds import Kind, heaviest, kind_of

Params = Mapping[str, Any]
Types = Sequence[TensorType]

# Parameters of windows, in the neutral spelling and in that of ONNX.
_KERNEL, _STRIDE, _DILATION, _PADS = (
    ("kernel", "kernel_shape"),
    ("stride", "strides"),
    ("dilation", "dilations"),
    ("pads",),
)
# ONNX Runtime's quantised convolutions and poolings have it; the axes of their weights stay as they are.
_CHANNELS_LAST = "channels_last"
# Parameters that the sizes contain, or that no latency depends on.
_SILENT = frozenset(
    {*_KERNEL, *_STRIDE, *_PADS, "groups", "group", "epsilon", "alpha", "beta", "gamma", "lambd", "momentum", "shape"}
)

_FLAGS = frozenset({KEPT, STREAMED, VARIED})
# Before the names of depthwise convolutions, which are another operator than full ones.
DEPTHWISE = "depthwise "
_MULTIPLYING = frozenset({Kind.CONVOLUTION, Kind.DECONVOLUTION, Kind.LINEAR, Kind.RECURRENT, Kind.ATTENTION})
# Kernels of convolutions compute so many channels at a time.
_LARGE_BLOCK, _SMALL_BLOCK = 16, 8


class Sizes(NamedTuple):
    """The sizes of a brick: how much it computes and moves, and its shape."""

    # Multiplications; elements where a layer multiplies by no weights.
    arithmetic: float
    bytes_read: float
    bytes_written: float
    bytes_of_weights: float
    # The points of the result in batch and space.
    positions: float
    # Per group.
    channels_read: float
    channels_written: float
    kernel: float = 1.0
    stride: float = 1.0
    groups: float = 1.0


class Features(NamedTuple):
    """The features of a brick; only bricks of the same operator are compared."""

    # The heaviest operator.
    operator: str
    kind: Kind
    # The natural logarithms of the sizes.
    sizes: tuple[float, ...]
    # Everything else that makes a difference: fused operators, parameters, layouts and caches, data types.
    traits: frozenset[str]

    @property
    def multiplies(self) -> bool:
        """True if most of its arithmetic is multiplications by weights, or of matrices."""
        return multiplies(self.kind)

    @property
    def operations(self) -> float:
        """The floating-point operations, of which a multiplication with its addition has two."""
        return (2.0 if self.multiplies else 1.0) * round(math.exp(self.sizes[0]))


def multiplies(kind: Kind) -> bool:
    """True for layers whose arithmetic is a number of multiplications, each followed by an addition."""
    return kind in _MULTIPLYING


def features_of(canonical: str, context: str) -> Features | None:
    """Return the features of a brick in a context; None without an operator, or without known and possible shapes."""
    found = features_anywhere(canonical)
    return None if found is None else found._replace(traits=found.traits | _traits_in(context))


@lru_cache(maxsize=1 << 14)
def features_anywhere(canonical: str) -> Features | None:
    """Return the features of a brick that it has in any context."""
    form = json.loads(canonical)
    data, weights = _types(form["data"]), _types(_read_in_full(form))
    parts = list(_parts(form["operators"]))
    if not parts or data is None or weights is None:
        return None
    kind = heaviest(kind_of(op) for op, _ in parts)
    head = next(place for place, (op, _) in enumerate(parts) if kind_of(op) is kind)
    op, params = parts[head]
    if params.get(_CHANNELS_LAST):
        data = [_with_channels_first(it) for it in data]
    try:
        sizes = _sizes(kind, op, params, _Operands(data, weights))
    except OverflowError:
        # A file may state any size.
        return None
    if kind is Kind.CONVOLUTION and sizes.groups > 1 and sizes.channels_read == 1:
        op = f"{DEPTHWISE}{op}"
    logarithms = tuple([math.log(max(1.0, size)) for size in sizes])
    return Features(op, kind, logarithms, frozenset(_traits(kind, sizes, parts, head, data)))


def _with_channels_first(found: TensorType) -> TensorType:
    """Return the type of an image whose channels are its last axis with its axes in the usual order."""
    batch, *space = _shape(found) or (1,)
    return found._replace(shape=(batch, *space[-1:], *space[:-1])) if len(space) > 1 else found


def _read_in_full(form: Mapping[str, Any]) -> Iterator[Any]:
    """Yield the weights that a brick reads whole; of a mask that it slices, it reads a row."""
    slices = (it["inputs"] for it in form["operators"] if kind_of(it["op"]) is Kind.SLICE)
    sliced = {number for inputs in slices for what, number, *_ in inputs if what == "weight"}
    yield from (weight for number, weight in enumerate(form["weights"]) if number not in sliced)


def _parts(operators: Iterable[Mapping[str, Any]]) -> Iterator[tuple[str, Params]]:
    """Yield operators with their parameters; a fused operator yields those inside of it."""
    for operator in operators:
        fused = [part for graph in operator.get("inner", ()) for part in operators_inside(graph)]
        yield from fused or [(operator["op"], operator.get("params", {}))]


def _traits(kind: Kind, sizes: Sizes, parts: Sequence[tuple[str, Params]], head: int, data: Types) -> Iterator[str]:
    params = parts[head][1]
    yield from (f"with {op}" for place, (op, _) in enumerate(parts) if place != head)
    yield from (f"{name}={value}" for name, value in params.items() if name not in _SILENT and not _is_usual(value))
    yield from _blocks(kind, sizes)
    yield from (f"of {each.dtype}" for each in data if each.dtype != "float32")


@lru_cache(maxsize=1 << 12)
def _traits_in(context: str) -> frozenset[str]:
    """Return the layouts and caches of a context."""
    inputs, _, cold = context.partition(";")
    found = {cold} if cold else set()
    for read in inputs.split("+"):
        # Details of a layout, such as sizes, follow these signs.
        layout, *flags = re.split("[:~/]", read)
        found.add(f"reads {layout}")
        found.update(f"reads {flag}" for flag in flags if flag in _FLAGS)
    return frozenset(found)


def _blocks(kind: Kind, sizes: Sizes) -> Iterator[str]:
    """Yield how the channels of a convolution fill the blocks of its kernels, which have 16 or 8 channels."""
    if kind in (Kind.CONVOLUTION, Kind.DECONVOLUTION):
        for name, channels in (("reads", sizes.channels_read), ("writes", sizes.channels_written)):
            if channels % _LARGE_BLOCK:
                yield f"{name} part of a block"
            if channels % _SMALL_BLOCK:
                yield f"{name} part of a small block"


def _is_usual(value: object) -> bool:
    """True for a value such as a dilation of one, which changes nothing."""
    return all(each in (None, 1, False) for each in (value if isinstance(value, list) else [value]))


def _types(types: Iterable[tuple[Sequence[int] | None, str]]) -> Types | None:
    # A tensor without elements counts as one with an element.
    found = [
        TensorType(None if shape is None else tuple([max(1, it) for it in shape]), dtype) for shape, dtype in types
    ]
    return None if any(each.shape is None for each in found) else found


class _Operands(NamedTuple):
    """The tensors that a brick reads."""

    data: Types
    weights: Types

    @property
    def first(self) -> Shape:
        """The shape of the first input."""
        return _shape(self.data[0]) if self.data else ()

    @property
    def matrix(self) -> Shape:
        """The shape of the largest weight."""
        return max(map(_shape, self.weights), key=math.prod, default=())

    @property
    def item_bytes(self) -> float:
        """The bytes of an element."""
        return _bytes(self.data) / _elements(self.data) or 4.0

    @property
    def windows(self) -> bool:
        """True if its weights are windows that move over a tensor."""
        return len(self.matrix) > 2 and len(self.first) > 2


def _sizes(kind: Kind, op: str, params: Params, read: _Operands) -> Sizes:
    if kind in (Kind.CONVOLUTION, Kind.DECONVOLUTION) and read.windows:
        return _of_convolution(kind, params, read)
    if kind is Kind.LINEAR and (len(read.matrix) > 1 or len(read.data) > 1):
        return _of_product(read)
    if kind is Kind.RECURRENT and read.weights:
        return _of_recurrence(read)
    if kind is Kind.ATTENTION and len(read.first) > 2 and "Rotary" not in op:
        return _of_attention(op, params, read)
    return _of_elements(kind, op, params, read)


def _of_convolution(kind: Kind, params: Params, read: _Operands) -> Sizes:
    """Return the sizes of a convolution, or of a deconvolution, in which each position of the input has a window."""
    (batch, channels, *space), (written, depth, *kernel) = read.first, read.matrix
    stride, groups = math.prod(_each(params, _STRIDE, 1, len(space))), 1.0
    if kind is Kind.DECONVOLUTION:
        depth, written = written, depth
        positions = batch * math.prod(space)
        results = positions * stride
    else:
        results = positions = batch * math.prod(_result(params, space, kernel))
        groups = max(1.0, channels / depth)
    return Sizes(
        arithmetic=positions * math.prod(read.matrix),
        bytes_read=_bytes(read.data),
        bytes_written=results * written * read.item_bytes,
        bytes_of_weights=_bytes(read.weights),
        positions=positions,
        channels_read=depth,
        channels_written=written,
        kernel=math.prod(kernel),
        stride=stride,
        groups=groups,
    )


def _of_product(read: _Operands) -> Sizes:
    """Return the sizes of a product of matrices, the second of which may be a weight."""
    first, matrix = read.first or (1,), read.matrix
    second = matrix if len(matrix) > 1 else _shape(read.data[1]) or (1,)
    inner = first[-1] if first[-1] in second[-2:] else max(1, math.gcd(first[-1], math.prod(second)))
    if len(matrix) == 2 and math.prod(first) % matrix[1] == 0 and first[-1] not in matrix:
        # The axes behind the first one are flattened.
        inner = matrix[1]
    rows = math.prod(first) / inner
    batch = 1 if len(matrix) > 1 else math.prod(second[:-2])
    columns = math.prod(second) / (inner * batch)
    return Sizes(
        arithmetic=rows * inner * columns,
        bytes_read=_bytes(read.data),
        bytes_written=rows * columns * read.item_bytes,
        bytes_of_weights=_bytes(read.weights),
        positions=rows,
        channels_read=inner,
        channels_written=columns,
        groups=batch,
    )


def _of_recurrence(read: _Operands) -> Sizes:
    *before, inner = read.first or (1,)
    steps, moved_bytes = math.prod(before), _bytes(read.data)
    return Sizes(
        arithmetic=steps * _elements(read.weights),
        bytes_read=moved_bytes,
        bytes_written=moved_bytes,
        bytes_of_weights=_bytes(read.weights),
        positions=steps,
        channels_read=inner,
        channels_written=1,
    )


def _of_attention(op: str, params: Params, read: _Operands) -> Sizes:
    """Return the sizes of attention: queries times keys, scores times values, and the projection before, if any."""
    first, others = read.first, [_shape(it) for it in read.data[1:] if len(_shape(it)) > 2]
    inner, made = read.matrix if len(read.matrix) == 2 and read.matrix[0] == first[-1] else (0, 0)
    if op.startswith("onnx."):
        products, keys = 2, max([first[-2], *(shape[-2] for shape in others)])
        queries, width = first[0] * first[-2], math.prod(first) // (first[0] * first[-2])
        # Queries, keys and values may be one tensor; caches say the size of a head.
        heads, head = params.get("num_heads"), next((shape[-1] for shape in others if len(shape) > 3), 0)
        width = made // 3 or min(width, heads * head if isinstance(heads, int) and head else width)
    else:
        # MXNet has an operator for each product, of tensors with the tokens first: (queries, keys, values) in one
        # tensor, or keys and values.
        products, keys = 1, others[0][0 if op.endswith("qk") else -2] if others else first[0]
        queries = first[0] * first[1]
        width = first[-1] // next(parts for name, parts in (("selfatt", 3), ("valatt", 2), ("", 1)) if name in op)
    return Sizes(
        arithmetic=queries * (products * keys * width + inner * made),
        bytes_read=_bytes(read.data),
        bytes_written=queries * width * read.item_bytes,
        bytes_of_weights=_bytes(read.weights),
        positions=queries,
        channels_read=keys,
        channels_written=width,
    )


def _of_elements(kind: Kind, op: str, params: Params, read: _Operands) -> Sizes:
    """Return the sizes of a layer that does the same for each element, or for each window of elements."""
    first, item_bytes = read.first, read.item_bytes
    written = _written(kind, op, params, read)
    weight_bytes = _bytes(read.weights)
    if op in LOOK_UPS or kind is Kind.EMBEDDING:
        columns = read.matrix[-1] if read.matrix else 1
        written = min(weight_bytes / item_bytes, _elements(read.data) * columns)
        weight_bytes = written * item_bytes
    space = max(0, len(first) - 2)
    kernel, stride = (math.prod(_each(params, names, 1, space)) for names in (_KERNEL, _STRIDE))
    channels = first[1] if len(first) > 1 else 1
    return Sizes(
        arithmetic=max(_elements(read.data), written * kernel),
        bytes_read=_bytes(read.data),
        bytes_written=written * item_bytes,
        bytes_of_weights=weight_bytes,
        positions=written / channels,
        channels_read=channels,
        channels_written=channels,
        kernel=kernel,
        stride=stride,
    )


def _written(kind: Kind, op: str, params: Params, read: _Operands) -> float:
    """Return the number of elements of the result, as far as the parameters tell; else as many as are read."""
    first = read.first
    if kind is Kind.POOLING:
        space = [1] if "global" in op.lower() else _result(params, first[2:], _each(params, _KERNEL, 1, len(first) - 2))
        return math.prod(first[:2]) * math.prod(space)
    if kind is Kind.REDUCE:
        axes = params.get("axes", params.get("axis"))
        axes = [axes] if isinstance(axes, int) else axes or list(range(len(first)))
        gone = [first[axis] for axis in axes if isinstance(axis, int) and -len(first) <= axis < len(first)]
        return math.prod(first) / math.prod(gone)
    if kind is Kind.RESIZE:
        scale = params.get("scale", 1)
        return math.prod(first) * (scale**2 if isinstance(scale, int) else 1)
    if kind is Kind.BROADCAST and isinstance(params.get("shape"), list):
        return math.prod([size for size in params["shape"] if isinstance(size, int) and size > 0])
    if kind is Kind.CONCAT:
        return _elements(read.data)
    return max(map(math.prod, map(_shape, read.data)), default=1)


def _result(params: Params, read: Sequence[int], kernel: Sequence[int]) -> list[int]:
    """Return the size of the result of a window along each axis in space."""
    axes = len(read)
    pads, stride, dilation = (
        _each(params, _PADS, 0, 2 * axes),
        *(_each(params, it, 1, axes) for it in (_STRIDE, _DILATION)),
    )
    return [
        max(1, (read[at] + pads[at] + pads[at + axes] - dilation[at] * (kernel[at] - 1) - 1) // stride[at] + 1)
        for at in range(axes)
    ]


def _each(params: Params, names: Sequence[str], default: int, count: int) -> list[int]:
    """Return a parameter with a number for each axis; one number may stand for all."""
    found = next((params[name] for name in names if params.get(name) is not None), None)
    if found is None:
        return [default] * count
    values = found if isinstance(found, list) else [found]
    usable = values and count % len(values) == 0 and all(isinstance(each, int) for each in values)
    return [max(default, each) for each in (values * count)[:count]] if usable else [default] * count


def _shape(tensor: TensorType) -> Shape:
    return tensor.shape or ()


def _elements(types: Types) -> float:
    return float(max(1, sum(math.prod(_shape(each)) for each in types)))


def _bytes(types: Types) -> float:
    return float(sum(each.size_bytes for each in types))


# A brick of as much work takes at most this many times as long: of the same operator, and of another one.
_LIKE, _UNLIKE = math.exp(0.5), math.exp(2.0)


class UpperBounds:
    """Bricks with upper bounds of their latencies."""

    def __init__(self, bricks: Iterable[tuple[str, float]]) -> None:
        known_ms = {canonical: high_ms for canonical, high_ms in bricks if high_ms}
        found = [(features_of(canonical, ""), high_ms) for canonical, high_ms in known_ms.items()]
        self._highest_ms = max(known_ms.values(), default=0.0)
        self._known = [(features, high_ms) for features, high_ms in found if features is not None]

    def most_ms(self, canonical: str) -> float:
        """Return the bound of a brick: what the nearest one takes, in proportion to their work, several times."""
        features = features_of(canonical, "") if self._known else None
        if features is None:
            return self._highest_ms
        nearest, high_ms = min(self._known, key=lambda it: _distance(features, it[0]))
        more = max(one - other for one, other in zip(_work(features), _work(nearest), strict=True))
        return high_ms * math.exp(more) * (_LIKE if features.operator == nearest.operator else _UNLIKE)


def _distance(one: Features, other: Features) -> float:
    work = sum(abs(mine - yours) for mine, yours in zip(_work(one), _work(other), strict=True))
    return work + 2.0 * (one.operator != other.operator)


def _work(features: Features) -> tuple[float, float]:
    """Return the logarithms of the arithmetic and of all bytes that are read and written."""
    arithmetic, *moved = features.sizes[:4]
    return arithmetic, math.log(math.fsum(map(math.exp, moved)))
