"""Sizes of arrays."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import mul
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.protocol import ArrayType, Reason


def array_bytes(arrays: Iterable[ArrayType]) -> int:
    """Return the size of arrays of these types."""
    return sum(reduce(mul, shape, numpy_dtype(dtype).itemsize) for shape, dtype in arrays)


def numpy_dtype(name: str) -> Any:
    """Return numpy's data type of that name."""
    try:
        return numpy.dtype(name)
    except TypeError as error:
        raise RefusalError(Reason.UNBUILDABLE, f"numpy has no {name} to make values of") from error
