"""Arrays of ONNX Runtime of all data types."""

from functools import partial
from typing import Any

import pytest

from dlbricks_tui.runtime.inside.ort_values import array_value
from dlbricks_tui.runtime.inside.values import array_bytes, data_values, given_values
from dlbricks_tui.runtime.protocol import ArrayType


@pytest.mark.parametrize(
    ("dtype", "declared"),
    [
        ("float16", "tensor(float16)"),
        ("uint64", "tensor(uint64)"),
        ("bfloat16", "tensor(bfloat16)"),
        ("float8e4m3fn", "tensor(float8e4m3fn)"),
        ("int4", "tensor(int4)"),
        ("object", "tensor(string)"),
    ],
)
def test_an_array_has_the_type_and_shape(dtype: str, declared: str, ort: Any) -> None:
    found = array_value(ort, ArrayType((3, 5), dtype), data_values)
    assert (found.data_type(), found.shape()) == (declared, [3, 5])


def test_texts_are_whole_numbers_as_text(ort: Any) -> None:
    found = array_value(ort, ArrayType((4,), "object"), data_values)
    assert set(found.numpy().tolist()) <= {"0", "1"}


def test_given_texts_are_the_texts(ort: Any) -> None:
    found = array_value(ort, ArrayType((1, 2), "object"), partial(given_values, numbers=("ja, sí", "no")))
    assert found.numpy().tolist() == [["ja, sí", "no"]]
    same = array_value(ort, ArrayType((3,), "object"), partial(given_values, numbers=("a",)))
    assert same.numpy().tolist() == ["a", "a", "a"]


@pytest.mark.parametrize("dtype", ["bfloat16", "int4", "float8e5m2", "float32"])
def test_a_single_number_is_an_array_too(dtype: str, ort: Any) -> None:
    assert array_value(ort, ArrayType((), dtype), data_values).shape() == []


def test_types_that_numpy_lacks_have_a_size() -> None:
    assert array_bytes([ArrayType((10,), "bfloat16"), ArrayType((10,), "int4"), ArrayType((10,), "float32")]) == 70
