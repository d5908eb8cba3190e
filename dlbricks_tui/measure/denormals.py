"""Denormal weights: numbers so small that some processors compute them slowly, up to ten times per kernel."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.models.loading import weights_in

# The mantissa bits of a float by its size in bytes.
_MANTISSA_BITS = {2: 10, 4: 23, 8: 52}


@dataclass(frozen=True, slots=True)
class DenormalCount:
    """The number of denormal values in an array."""

    array: str
    values: int
    denormals: int

    @property
    def share(self) -> float:
        """The share of denormal values, from 0 to 1."""
        return self.denormals / self.values if self.values else 0.0


def denormals_in(path: Path) -> tuple[DenormalCount, ...]:
    """Return the counts for each array of a `.params` file, or for each weight in a model file."""
    return tuple([_counted(name, pieces) for name, pieces in weights_in(path)])


def _counted(name: str, pieces: Iterable[NDArray[np.generic]]) -> DenormalCount:
    count = denormals = 0
    for values in pieces:
        count += values.size
        denormals += count_denormals(values)
    return DenormalCount(name, count, denormals)


def count_denormals(values: NDArray[np.generic]) -> int:
    """Return how many values are denormal; integers never are."""
    size = values.dtype.itemsize
    if values.dtype.kind != "f" or size not in _MANTISSA_BITS:
        return 0
    # Compare as integers: a process that flushes denormals to zero would not see them.
    bits = values.view(np.dtype(f"<u{size}"))
    magnitudes = bits & bits.dtype.type((1 << (8 * size - 1)) - 1)
    smallest_normal = bits.dtype.type(1 << _MANTISSA_BITS[size])
    return int(np.count_nonzero((magnitudes != 0) & (magnitudes < smallest_normal)))
