"""The work of a layer of a language model in one run: the bytes that it moves, and its operations."""

from __future__ import annotations

import json
import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import lru_cache

from dlbricks_tui.language.decoder import WINDOW_SLACK
from dlbricks_tui.models.graph import Layer, Params, ParamValue, Shape, TensorType

_FLOAT_BYTES, _FLOAT_BITS = 4, 32
# Operators by the last part of their neutral names.
_PRODUCTS = frozenset({"MatMul", "MatMulNBits"})
_EXPERTS = frozenset({"MoE", "QMoE"})
_TABLES = frozenset({"Gather", "GatherBlockQuantized"})
ATTENTION = "GroupQueryAttention"
# They tell a type or a shape, or give an array another shape, and move nothing.
_FREE = frozenset({"Shape", "reshape", "Reshape"})


@dataclass(frozen=True, slots=True)
class BrickWork:
    """The bytes and operations of one run of a brick; a multiplication with its addition is two operations."""

    # The operator without its domain, such as "MatMulNBits".
    op: str
    # Those of a stored weight.
    bits: int
    # The tokens that it computes for: 1 when decoding.
    tokens: int
    # Of weights, only what is read: rows of a table that are looked up, and experts that have a token.
    weight_bytes: int
    # Of keys and values of earlier tokens.
    cache_bytes: int
    # Of activations that are read and written.
    moved_bytes: int
    operations: int

    @property
    def bytes_read(self) -> int:
        """The bytes of weights and caches."""
        return self.weight_bytes + self.cache_bytes

    @property
    def is_product(self) -> bool:
        """True if it multiplies activations with weights."""
        return self.op in _PRODUCTS or self.op in _EXPERTS

    @property
    def has_experts(self) -> bool:
        """True if it is a mixture of experts."""
        return self.op in _EXPERTS

    @property
    def is_table(self) -> bool:
        """True if it looks up rows of a table."""
        return self.op in _TABLES and self.weight_bytes > 0

    @property
    def is_decoding(self) -> bool:
        """True if it computes for a single token."""
        return self.tokens == 1


def work_of(brick: Layer | str) -> BrickWork:
    """Return the work of a layer with one operator, or of a brick by its canonical form."""
    if isinstance(brick, str):
        return _work_of_text(brick)
    (operator,) = brick.operators
    return form_work(operator.op, operator.params, brick.data, brick.weights)


@lru_cache(maxsize=1 << 12)
def form_work(op: str, params: Params, data: tuple[TensorType, ...], weights: tuple[TensorType, ...]) -> BrickWork:
    """Return the work of an operator with these parameters, inputs and weights."""
    return _Form(op.rpartition(".")[2], dict(params), data, weights).work()


@lru_cache(maxsize=1 << 12)
def _work_of_text(canonical: str) -> BrickWork:
    form = json.loads(canonical)
    (operator,) = form["operators"]
    data, weights = ([TensorType(tuple(shape or ()), dtype) for shape, dtype in form[it]] for it in ("data", "weights"))
    return _Form(operator["op"].rpartition(".")[2], operator.get("params", {}), data, weights).work()


class _Form:
    """An operator with its parameters, inputs and weights."""

    def __init__(
        self, op: str, params: Mapping[str, ParamValue], data: Sequence[TensorType], weights: Sequence[TensorType]
    ) -> None:
        self._op = op
        self._params = params
        self._data = data
        self._weights = weights
        self._read = sum(it.size_bytes for it in data)

    def work(self) -> BrickWork:
        if self._op in _PRODUCTS and self._weights:
            return self._product()
        if self._op in _EXPERTS:
            return self._experts()
        if self._op == ATTENTION:
            return self._attention()
        if self._op in _TABLES and self._weights:
            return self._table()
        return self._small()

    def _product(self) -> BrickWork:
        shape = _shape(self._data[0])
        tokens, width = math.prod(shape[:-1]), shape[-1]
        size = self._number("N") or _shape(self._weights[0])[-1]
        made = tokens * size * _FLOAT_BYTES
        read = sum(it.size_bytes for it in self._weights)
        bits = self._number("bits", _FLOAT_BITS)
        return BrickWork(self._op, bits, tokens, read, 0, self._read + made, 2 * tokens * width * size)

    def _experts(self) -> BrickWork:
        shape = _shape(self._data[0])
        tokens, chosen = math.prod(shape[:-1]), self._number("k", 1)
        bits = self._number("expert_weight_bits", _FLOAT_BITS)
        experts = _shape(self._weights[0])[0]
        # Tokens choose experts independently, and an expert is read if any token has chosen it.
        read = 1 - (1 - chosen / experts) ** tokens
        everything = sum(it.size_bytes for it in self._weights)
        # Each number of a matrix serves one multiplication; scales and biases are vectors beside them.
        matrices = [it for it in self._weights if it.dtype == "uint8" or (len(_shape(it)) > 2 and bits == _FLOAT_BITS)]
        numbers = sum(it.size_bytes for it in matrices) * 8 // bits
        operations = 2 * tokens * chosen * numbers // experts
        return BrickWork(self._op, bits, tokens, int(read * everything), 0, self._read + self._first, operations)

    def _attention(self) -> BrickWork:
        tokens = _shape(self._data[0])[1]
        cache = next(it for it in self._data if len(_shape(it)) == 4)
        _, kv_heads, buffer, size = _shape(cache)
        heads, window = self._number("num_heads"), self._number("local_window_size", -1)
        if tokens == 1:
            # The cache is full, or its length tells how much of it is.
            held = 2 * window + WINDOW_SLACK - buffer if self._number("sliding_window_cache", 0) else buffer
            pairs = seen = min(window, held) if window > 0 else buffer
        else:
            # A prompt is read at once, and the kernel computes what lies outside of a window, too.
            seen, pairs = tokens, tokens * (tokens + 1) // 2
        row = 2 * kv_heads * size * _FLOAT_BYTES
        activations = sum(it.size_bytes for it in self._data if len(_shape(it)) == 3)
        moved = activations + tokens * (row + heads * size * _FLOAT_BYTES)
        return BrickWork(self._op, _FLOAT_BITS, tokens, 0, seen * row, moved, 4 * heads * size * pairs)

    def _table(self) -> BrickWork:
        rows = math.prod(_shape(self._data[0]))
        bits = self._number("bits", _FLOAT_BITS)
        width = _shape(self._weights[0])[-1] * 8 // bits if bits < _FLOAT_BITS else _shape(self._weights[0])[-1]
        read = rows * sum(it.size_bytes // max(1, _shape(it)[0]) for it in self._weights)
        return BrickWork(self._op, bits, rows, read, 0, self._read + rows * width * _FLOAT_BYTES, rows * width)

    def _small(self) -> BrickWork:
        """Return the work of an operator whose output is as large as its first input."""
        if self._op in _FREE:
            return BrickWork(self._op, _FLOAT_BITS, 1, 0, 0, 0, 0)
        shape = _shape(self._data[0]) if self._data else ()
        tokens = math.prod(shape[:-1]) if len(shape) > 1 else 1
        weights = sum(it.size_bytes for it in self._weights)
        moved = self._read + max(self._first, *(it.size_bytes for it in self._data), 0)
        return BrickWork(self._op, _FLOAT_BITS, tokens, weights, 0, moved, moved // _FLOAT_BYTES)

    @property
    def _first(self) -> int:
        return self._data[0].size_bytes if self._data else 0

    def _number(self, name: str, default: int = 0) -> int:
        found = self._params.get(name, default)
        return int(found) if isinstance(found, int | float) else default


def _shape(found: TensorType) -> Shape:
    return found.shape or ()
