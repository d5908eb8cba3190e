"""The synthetic values of weights and inputs, the same at every start.

A denormal number, an infinity or a NaN can make a kernel ten times slower. So all values are positive and near one, and
weights are such that the mean stays about the same from layer to layer, however deep the network.

"""

from __future__ import annotations

import os
from collections.abc import Iterable, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from functools import lru_cache, reduce
from operator import mul
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.mxnet_framework import SymbolNodes
from dlbricks_tui.runtime.protocol import ArrayType, Reason, Value


def array_bytes(arrays: Iterable[ArrayType]) -> int:
    """Return the size of arrays of these types."""
    total = 0
    for shape, dtype in arrays:
        # Types that numpy lacks have 16 bits or fewer.
        try:
            item_bytes = int(numpy.dtype(dtype).itemsize)
        except TypeError:
            item_bytes = 2 if dtype == "bfloat16" else 1
        total += reduce(mul, shape, item_bytes)
    return total


def numpy_dtype(name: str) -> Any:
    try:
        return numpy.dtype(name)
    except TypeError as error:
        raise RefusalError(Reason.UNBUILDABLE, f"numpy has no {name} to make values of") from error


# A prime number of values, so that the rows of a matrix differ.
VALUES = 65521
LEAST, MOST = 0.5, 1.5

# The number of threads of all frameworks.
THREADS_VARIABLE = "OMP_NUM_THREADS"
# Larger arrays are filled by several threads.
LARGE_BYTES = 8 << 20

# Two numbers of 4 bits, each the zero of packed weights.
_PACKED_ZEROS = 0x88
# Distinct weights begin so far apart in the values.
_STEP = 7919

# The values of biases and of other one-dimensional weights, and the variances of batch norms. Such a batch norm at
# least halves its input, so that sums of many branches stay small.
QUARTER, VARIANCE = 0.25, 4.0

# The input from which a batch norm reads its variance.
BATCH_NORMS = ("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")
VARIANCE_PLACE = 4

# Operators that look up rows by number: the input with the numbers, and the input with the table.
LOOK_UPS = {"Embedding": (0, 1), "_contrib_SparseEmbedding": (0, 1), "take": (1, 0)}


def data_values(shape: tuple[int, ...], dtype: str) -> Any:
    """Return the values of a data input. Integer types get 0 and 1, which are valid flags and row numbers.

    All channels are alike, as between the layers of our models. Max pooling predicts its branches from the first
    channel; with random channels it would take half as long again.
    """
    channel = reduce(mul, shape[2:], 1)
    return _repeated(_spread()[:channel] if channel > 1 else _spread(), shape, dtype)


def sampled_values(shape: tuple[int, ...], dtype: str) -> Any:
    """Return numbers of both signs for the inputs of a model file, whose own weights keep them in range.

    Integer types get 0 and 1, as in `data_values`.
    """
    if not numpy.issubdtype(numpy.dtype(dtype), numpy.floating):
        return data_values(shape, dtype)
    return numpy.random.default_rng(VALUES).standard_normal(shape).astype(dtype)


def given_values(shape: tuple[int, ...], dtype: str, numbers: Sequence[Value]) -> Any:
    """Return an array of these numbers or texts, or of one of them throughout."""
    if any(isinstance(it, str) for it in numbers):
        numbers, dtype = [str(it) for it in numbers], "object"
    return repeated(numpy.array(numbers, dtype), shape)


def learned_values(shape: tuple[int, ...], dtype: str) -> Any:
    if not numpy.issubdtype(numpy.dtype(dtype), numpy.floating):
        return _repeated(_spread(), shape, dtype)
    return _repeated(_spread() * _mean_of_weights(shape), shape, dtype)


def fill_distinct(kept: Any, number: int) -> None:
    """Fill an array of a weight with values that differ from those of others, by its number.

    Packed weights of 4 bits are next to their zero, so that what is computed from them stays in range.
    """
    values = numpy.roll(_spread(), number * _STEP)
    if numpy.issubdtype(kept.dtype, numpy.floating):
        values = values * _mean_of_weights(kept.shape)
    elif kept.dtype == numpy.uint8:
        values = values + _PACKED_ZEROS
    repeated(values.astype(kept.dtype), kept.shape, kept)


def _mean_of_weights(shape: tuple[int, ...]) -> float:
    fan_in = reduce(mul, shape[1:], 1)
    return 1 / fan_in if len(shape) > 1 else QUARTER


def variance_values(shape: tuple[int, ...], dtype: str) -> Any:
    return _repeated(_spread() * VARIANCE, shape, dtype)


def row_numbers(shape: tuple[int, ...], dtype: str, rows: int) -> Any:
    """Return row numbers from all over a table."""
    return _repeated(numpy.floor((_spread() - LEAST) * rows), shape, dtype)


def variances(file: SymbolNodes) -> frozenset[int]:
    """Return the variables that hold variances."""
    found = (reads[VARIANCE_PLACE : VARIANCE_PLACE + 1] for op, reads in file.uses() if op in BATCH_NORMS)
    return frozenset(node for nodes in found for node in nodes if node is not None)


def rows_counted(file: SymbolNodes, shapes: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """Return the variables that hold row numbers, each with the number of rows; `shapes` are those of variables."""
    counted = {}
    for op, reads in file.uses():
        numbers, table = (reads[place] for place in LOOK_UPS[op]) if op in LOOK_UPS else (None, None)
        if numbers is not None and numbers in shapes and table is not None and table in shapes:
            counted[numbers] = shapes[table][0]
    return counted


# A model has hundreds of arrays, and drawing the numbers takes longer than filling most arrays.
@lru_cache(maxsize=1)
def _spread() -> Any:
    return numpy.random.RandomState(0).uniform(LEAST, MOST, size=VALUES)


def _repeated(values: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return repeated(values.astype(dtype), shape)


def repeated(values: Any, shape: tuple[int, ...], kept: Any = None) -> Any:
    """Return an array of this shape with the same values again and again: one that is there already, or a new one.

    As many threads as the framework has fill a large array: pages of memory lie near the thread that writes them first.
    """
    # The number of threads in the settings, or the number of processors.
    text = os.environ.get(THREADS_VARIABLE, "")
    size, threads = reduce(mul, shape, 1), (int(text) if text.isdecimal() else 0) or os.cpu_count() or 1
    if 0 < len(values) < VALUES < size:
        # To copy a few values at a time is slow.
        values = numpy.resize(values, len(values) * -(-VALUES // len(values)))
    if kept is None and (threads == 1 or not values.size or size * values.itemsize < LARGE_BYTES):
        return numpy.resize(values, shape)
    found = numpy.empty(size, values.dtype) if kept is None else kept.reshape(-1)
    filled = size - size % len(values)
    rows = found[:filled].reshape(-1, len(values))
    found[filled:] = values[: size - filled]
    each = max(1, -(-len(rows) // threads))

    def fill(first: int) -> None:
        rows[first : first + each] = values

    with ThreadPoolExecutor(threads) as pool:
        list(pool.map(fill, range(0, len(rows), each)))
    return found.reshape(shape)
