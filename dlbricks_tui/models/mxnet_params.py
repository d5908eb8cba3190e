"""Reads `.params` files of MXNet, the weights of a model, without a framework."""

import struct
from collections.abc import Iterator
from math import prod
from pathlib import Path
from typing import IO, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.models.errors import UnreadableModelError

_LIST_MAGIC = 0x112
# Arrays begin with a magic number, since 0.12 followed by the storage type. The oldest begin with their shape.
_V1, _V2, _V3 = 0xF993FAC8, 0xF993FAC9, 0xF993FACA
_DENSE, _ROW_SPARSE, _CSR = 0, 1, 2
# The number of index arrays of each storage type.
_INDEX_ARRAYS = {_DENSE: 0, _ROW_SPARSE: 1, _CSR: 2}
_DTYPES = {0: "<f4", 1: "<f8", 2: "<f2", 3: "u1", 4: "<i4", 5: "i1", 6: "<i8", 7: "?"}
_MOST_DIMENSIONS = 32
_CHUNK_BYTES = 1 << 22


class StoredArray(NamedTuple):
    """The place of an array in a file."""

    dtype: str
    offset: int
    elements: int


class ParamsFile:
    """The arrays of an open file. Values are read in pieces because a file may be larger than the memory."""

    def __init__(self, path: Path, file: IO[bytes]) -> None:
        self._path = path
        self._file = file
        self._size = file.seek(0, 2)
        file.seek(0)
        # By name.
        self.arrays = self._read_directory()

    def values(self, array: StoredArray) -> Iterator[NDArray[np.generic]]:
        """Yield all values of an array, in pieces."""
        dtype = np.dtype(array.dtype)
        self._file.seek(array.offset)
        left = array.elements
        while left:
            count = min(left, _CHUNK_BYTES // dtype.itemsize)
            yield np.frombuffer(self._bytes(count * dtype.itemsize), dtype=dtype)
            left -= count

    def _read_directory(self) -> list[tuple[str, StoredArray]]:
        if self._number("<Q") != _LIST_MAGIC:
            raise self._broken("does not begin like a file of MXNet arrays")
        self._number("<Q")
        unnamed = [self._read_array() for _ in range(self._count(at_least_bytes=8))]
        names = [self._bytes(self._count()).decode(errors="replace") for _ in range(self._count(at_least_bytes=8))]
        if not names:
            names = [f"array {number}" for number in range(len(unnamed))]
        if len(names) != len(unnamed):
            raise self._broken(f"has {len(names)} names for {len(unnamed)} arrays")
        return list(zip(names, unnamed, strict=True))

    def _read_array(self) -> StoredArray:
        magic = self._number("<I")
        storage = self._number("<i") if magic in (_V2, _V3) else _DENSE
        if storage not in _INDEX_ARRAYS:
            raise self._broken(f"has an array of the unknown storage type {storage}")
        indices = _INDEX_ARRAYS[storage]
        stored_shape = self._shape(magic) if indices else None
        shape = self._shape(magic)
        if not shape and magic != _V3:
            # Only the newest format has scalars. In older ones an array without dimensions is empty.
            return StoredArray("u1", self._file.tell(), 0)
        # The type and number of the device that saved it.
        self._bytes(8)
        dtype = self._dtype()
        index_arrays = [(self._dtype(), self._shape(magic)) for _ in range(indices)]
        offset = self._file.tell()
        # The stored shape of a CSR array is wrong: it has one value per column index.
        count = prod(index_arrays[-1][1] if storage == _CSR else stored_shape or shape)
        self._skip(count * np.dtype(dtype).itemsize)
        for index_dtype, index_shape in index_arrays:
            self._skip(prod(index_shape) * np.dtype(index_dtype).itemsize)
        return StoredArray(dtype, offset, count)

    def _shape(self, magic: int) -> tuple[int, ...]:
        old = magic not in (_V1, _V2, _V3)
        # The oldest arrays have the number of dimensions in place of the magic number.
        dimensions = magic if old else self._number("<i")
        if not 0 <= dimensions <= _MOST_DIMENSIONS:
            raise self._broken(f"has an array of {dimensions} dimensions")
        sizes = tuple(self._number("<I" if old else "<q") for _ in range(dimensions))
        if min(sizes, default=0) < 0:
            raise self._broken(f"has an array of the shape {sizes}")
        return sizes

    def _dtype(self) -> str:
        if (flag := self._number("<i")) not in _DTYPES:
            raise self._broken(f"has an array of the unknown data type {flag}")
        return _DTYPES[flag]

    def _count(self, at_least_bytes: int = 1) -> int:
        count = self._number("<Q")
        if count * at_least_bytes > self._size - self._file.tell():
            raise self._broken("is cut off")
        return count

    def _number(self, layout: str) -> int:
        return int(struct.unpack(layout, self._bytes(struct.calcsize(layout)))[0])

    def _bytes(self, count: int) -> bytes:
        read = self._file.read(count)
        if len(read) < count:
            raise self._broken("is cut off")
        return read

    def _skip(self, count: int) -> None:
        if count > self._size - self._file.tell():
            raise self._broken("is cut off")
        self._file.seek(count, 1)

    def _broken(self, how: str) -> UnreadableModelError:
        return UnreadableModelError(f"{self._path} {how}; give the path of a *.params file that MXNet has saved")
