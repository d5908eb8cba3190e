"""How large arrays are."""

from __future__ import annotations

from collections.abc import Iterable
from functools import reduce
from operator import mul
from typing import Any

import numpy

from dlbricks_tui.runtime.inside.refusal import RefusalError
from dlbricks_tui.runtime.protocol import ArrayType, Reason


def array_bytes(arrays: Iterable[ArrayType]) -> int:
    """What arrays of these types take."""
    return sum(reduce(mul, shape, numpy_dtype(dtype).itemsize) for shape, dtype in arrays)


def numpy_dtype(name: str) -> Any:
    """The data type of that name."""
    try:
        return numpy.dtype(name)
    except TypeError as error:
        raise RefusalError(Reason.UNBUILDABLE, f"numpy has no {name} to make values of") from error
