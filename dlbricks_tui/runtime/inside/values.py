"""The numbers that a network computes with when it is timed: made up, the same at every start, none of them special.

A denormal number, or one that is none, can make a kernel ten times slower. So all values are positive and near one,
and weights are such that every layer hands on about the mean of what it gets, however deep the network.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import lru_cache, reduce
from operator import mul
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.symbol_file import SymbolFile

# A prime number of values, so that the rows of a matrix do not repeat one another.
VALUES = 65521
LEAST, MOST = 0.5, 1.5

# What is learned beside matrices, and the variances that batch norms divide by: four of them make a batch norm that
# halves what it gets at most, so that the sums of many branches stay small.
QUARTER, VARIANCE = 0.25, 4.0

# By which input a batch norm reads its variance.
BATCH_NORMS = ("BatchNorm", "BatchNorm_v1", "_contrib_SyncBatchNorm", "_contrib_BatchNormWithReLU")
VARIANCE_PLACE = 4

# The operators that look up rows by number: which input has the numbers, and which the rows.
LOOK_UPS = {"Embedding": (0, 1), "_contrib_SparseEmbedding": (0, 1), "take": (1, 0)}


def data_values(shape: tuple[int, ...], dtype: str) -> Any:
    """What is fed to a data input; where only whole numbers fit, 0 and 1: flags, or numbers of what is surely there.

    All channels are alike, as those are that our layers hand on: what asks which of two values is larger learns in the
    first channel what to expect of the others, and takes half as long again where there is nothing to learn.
    """
    channel = reduce(mul, shape[2:], 1)
    return _repeated(_spread()[:channel] if channel > 1 else _spread(), shape, dtype)


def learned_values(shape: tuple[int, ...], dtype: str) -> Any:
    """What stands in an array that never changes."""
    if not numpy.issubdtype(numpy.dtype(dtype), numpy.floating):
        return _repeated(_spread(), shape, dtype)
    fan_in = reduce(mul, shape[1:], 1)
    return _repeated(_spread() * (1 / fan_in if len(shape) > 1 else QUARTER), shape, dtype)


def variance_values(shape: tuple[int, ...], dtype: str) -> Any:
    """What a batch norm divides by."""
    return _repeated(_spread() * VARIANCE, shape, dtype)


def row_numbers(shape: tuple[int, ...], dtype: str, rows: int) -> Any:
    """The numbers of rows from all over a table."""
    return _repeated(numpy.floor((_spread() - LEAST) * rows), shape, dtype)


def variances(file: SymbolFile) -> frozenset[int]:
    """The variables that hold variances."""
    found = (reads[VARIANCE_PLACE : VARIANCE_PLACE + 1] for op, reads in file.uses() if op in BATCH_NORMS)
    return frozenset(node for nodes in found for node in nodes if node is not None)


def rows_counted(file: SymbolFile, shapes: Mapping[int, tuple[int, ...]]) -> dict[int, int]:
    """The variables that hold the numbers of rows, each with how many rows there are; `shapes` are of variables."""
    counted = {}
    for op, reads in file.uses():
        numbers, table = (reads[place] for place in LOOK_UPS[op]) if op in LOOK_UPS else (None, None)
        if numbers is not None and numbers in shapes and table is not None and table in shapes:
            counted[numbers] = shapes[table][0]
    return counted


# A model has hundreds of arrays, and making the numbers takes longer than filling most of them.
@lru_cache(maxsize=1)
def _spread() -> Any:
    return numpy.random.RandomState(0).uniform(LEAST, MOST, size=VALUES)


def _repeated(values: Any, shape: tuple[int, ...], dtype: str) -> Any:
    return numpy.resize(values.astype(dtype), shape)
