import struct
from pathlib import Path

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from numpy.typing import NDArray
from onnx.helper import make_node
from onnx.numpy_helper import from_array

from dlbricks_tui.api.doctor import DenormalCount, count_denormals, denormals_in
from dlbricks_tui.models.errors import UnreadableModelError
from tests.models.onnx_models import kept_in, model, saved

DTYPE_FLAGS = {"float32": 0, "float64": 1, "float16": 2, "int32": 4}
V1, V2 = 0xF993FAC8, 0xF993FAC9


def stored(array: NDArray[np.generic], magic: int | None) -> bytes:
    """One array as MXNet saves it; without a magic number as the first versions did."""
    dimensions = struct.pack("<i", array.ndim)
    if magic is None:
        head = dimensions + struct.pack(f"<{array.ndim}I", *array.shape)
    else:
        storage = struct.pack("<i", 0) if magic == V2 else b""
        head = struct.pack("<I", magic) + storage + dimensions + struct.pack(f"<{array.ndim}q", *array.shape)
    return head + struct.pack("<iii", 1, 0, DTYPE_FLAGS[array.dtype.name]) + array.tobytes()


def params(arrays: dict[str, NDArray[np.generic]], magic: int | None = V2) -> bytes:
    """A whole file."""
    names = b"".join(struct.pack("<Q", len(name)) + name.encode() for name in arrays)
    content = b"".join(stored(array, magic) for array in arrays.values())
    return struct.pack("<QQQ", 0x112, 0, len(arrays)) + content + struct.pack("<Q", len(arrays)) + names


WEIGHTS = {
    "arg:w": np.array([[1.0, 1e-40, -1e-42], [0.0, np.inf, np.nan]], dtype="float32"),
    "aux:h": np.array([6e-8, 1.0], dtype="float16"),
    "arg:i": np.array([1, 2, 3], dtype="int32"),
    "arg:d": np.array([5e-324], dtype="float64"),
}


@pytest.mark.parametrize("magic", [None, V1, V2])
def test_denormals_are_counted_in_every_version_of_the_file_format(tmp_path: Path, magic: int | None) -> None:
    (tmp_path / "m.params").write_bytes(params(WEIGHTS, magic))
    assert denormals_in(tmp_path / "m.params") == (
        DenormalCount("arg:w", 6, 2),
        DenormalCount("aux:h", 2, 1),
        DenormalCount("arg:i", 3, 0),
        DenormalCount("arg:d", 1, 1),
    )


def test_denormals_are_counted_in_the_weights_of_onnx_models(tmp_path: Path) -> None:
    weights = [from_array(array, name) for name, array in WEIGHTS.items()]
    # One of them in a file of its own, behind something else.
    (tmp_path / "big").write_bytes(b"else" + weights[0].raw_data)
    weights[0].ClearField("raw_data")
    kept_in("big", weights[0], offset=4, length=24)
    path = saved(tmp_path, model([make_node("Relu", ["x"], ["y"])], {"x": (2,)}, ["y"], weights))
    assert [(it.values, it.denormals) for it in denormals_in(path)] == [(6, 2), (2, 1), (3, 0), (1, 1)]
    (tmp_path / "big").write_bytes(b"else")
    with pytest.raises(UnreadableModelError, match="'arg:w' is kept in 'big', which is too short"):
        denormals_in(path)


@given(st.lists(st.floats(width=32), min_size=1))
def test_exactly_the_numbers_between_zero_and_the_smallest_normal_one_count(numbers: list[float]) -> None:
    values = np.array(numbers, dtype="float32")
    smallest = float(np.finfo(np.float32).tiny)
    assert count_denormals(values) == sum(0 < abs(float(value)) < smallest for value in values)


def test_a_truncated_file_is_named_and_never_read_in_part(tmp_path: Path) -> None:
    whole = params(WEIGHTS)
    path = tmp_path / "cut.params"
    for end in range(len(whole)):
        path.write_bytes(whole[:end])
        with pytest.raises(UnreadableModelError, match="cut off"):
            denormals_in(path)


@pytest.mark.parametrize("content", [b"", b"{}" * 20, b"\0" * 64, struct.pack("<QQQI", 0x112, 0, 1, 77) + b"\1" * 500])
def test_a_file_of_another_format_is_refused(tmp_path: Path, content: bytes) -> None:
    path = tmp_path / "no.params"
    path.write_bytes(content)
    with pytest.raises(UnreadableModelError, match=r"no\.params"):
        denormals_in(path)
    with pytest.raises(UnreadableModelError, match="is a directory"):
        denormals_in(tmp_path)
