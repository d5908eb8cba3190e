"""Synthetic values for ONNX models of all data types, and what is kept of results."""

from collections.abc import Sequence
from typing import Any

import numpy
import pytest

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.onnx_bytes import one_operator
from dlbricks_tui.runtime.inside.onnx_values import Filling, fillings, held, numpy_values
from dlbricks_tui.runtime.inside.values import data_values
from dlbricks_tui.runtime.protocol import ArrayType, Network

PAIR = ArrayType((2,), "float32")


def filled(network: Network, made_up: Filling | None = None) -> list[Any]:
    return [filling(*found) for found, filling in fillings(network, made_up)]


def test_bfloat16_is_the_upper_half_of_float32() -> None:
    found = numpy_values(ArrayType((2,), "bfloat16"), lambda shape, dtype: numpy.full(shape, 1.0, dtype))
    assert found.tolist() == [0x3F80, 0x3F80]


def test_a_type_without_values_is_refused() -> None:
    with pytest.raises(RefusalError, match="there are no synthetic values of float4e2m1"):
        numpy_values(ArrayType((2,), "float4e2m1"), data_values)


def test_given_numbers_come_before_made_up_ones() -> None:
    network = Network("", {"given": PAIR, "free": PAIR}, {}, values={"given": (3.0,)})
    zeros = filled(network, lambda shape, dtype: numpy.zeros(shape, dtype))
    assert [it.tolist() for it in zeros] == [[3.0, 3.0], [0.0, 0.0]]


def test_inputs_of_a_file_have_both_signs_and_those_of_layers_do_not() -> None:
    many = {"x": ArrayType((1, 2, 50), "float32")}
    (of_layers,), (of_file,) = filled(Network("", many, {})), filled(Network("", many, {}, "net.onnx"))
    assert of_layers.min() > 0 > of_file.min()


def test_tiny_networks_have_no_weights() -> None:
    assert [it.shape for it in filled(one_operator("Relu", PAIR))] == [(2,)]


@pytest.mark.parametrize(
    ("array", "numbers"),
    [
        (numpy.array([[1, 2]], "int64"), (1, 2)),
        (numpy.array([True, False]), (1, 0)),
        (numpy.array([1.0, numpy.inf], "float32"), ()),
        (numpy.zeros(65, "int64"), ()),
        (numpy.zeros(2, "float16"), ()),
    ],
)
def test_few_finite_numbers_of_usual_types_are_kept(array: Any, numbers: Sequence[float]) -> None:
    found = held(ArrayType(array.shape, array.dtype.name), lambda: array)
    assert (found.shape, found.dtype, found.numbers) == (array.shape, array.dtype.name, numbers)
