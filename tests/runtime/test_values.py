"""The synthetic values of networks. They need numpy, but no framework."""

import json
from collections.abc import Sequence
from functools import partial
from math import prod
from typing import Any

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.mxnet_framework import SymbolNodes
from dlbricks_tui.runtime.inside.onnx_backend import (
    Filling,
    fillings,
    held,
    numpy_values,
)
from dlbricks_tui.runtime.inside.ort_session import array_value
from dlbricks_tui.runtime.inside.values import (
    LARGE_BYTES,
    THREADS_VARIABLE,
    array_bytes,
    data_values,
    given_values,
    learned_values,
    repeated,
    row_numbers,
    rows_counted,
    sampled_values,
    variance_values,
    variances,
)
from dlbricks_tui.runtime.protocol import ArrayType, Network
from tests.models.symbols import node
from tests.runtime.symbols import Network as SymbolNetwork
from tests.runtime.symbols import symbol_of

shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
kinds = st.sampled_from(("float16", "float32", "float64"))


@given(shapes, kinds)
def test_all_values_are_positive_and_not_denormal(shape: tuple[int, ...], dtype: str) -> None:
    for make in (data_values, learned_values, variance_values):
        values = make(shape, dtype)
        assert values.shape == shape
        assert values.dtype == dtype
        assert values.min() > numpy.finfo(dtype).tiny
        assert values.max() < 8


def test_all_channels_of_an_input_are_alike_and_none_is_flat() -> None:
    values = data_values((2, 5, 7, 9), "float32")
    assert (values == values[0, 0]).all()
    assert len(numpy.unique(values[0, 0])) == 7 * 9
    # Rows of features are no channels. With one value per channel, channels differ.
    for shape in ((2, 50), (1, 100, 1, 1)):
        assert len(numpy.unique(data_values(shape, "float32"))) == 100


@given(shapes, st.sampled_from(("int8", "uint8", "int32", "int64", "bool")))
def test_integers_are_flags(shape: tuple[int, ...], dtype: str) -> None:
    for values in (data_values(shape, dtype), learned_values(shape, dtype)):
        assert values.dtype == dtype
        assert set(values.ravel().tolist()) <= {0, 1}


def test_inputs_of_a_model_file_have_both_signs_and_differ_everywhere() -> None:
    values = sampled_values((1, 3, 8, 8), "float32")
    assert values.dtype == "float32"
    assert len(numpy.unique(values)) == values.size
    assert 0.3 < (values < 0).mean() < 0.7
    assert set(sampled_values((2, 9), "int64").ravel().tolist()) <= {0, 1}


@pytest.mark.parametrize("shape", [(64, 3, 7, 7), (512, 512, 3, 3), (1000, 2048)])
def test_the_mean_stays_about_the_same_from_layer_to_layer(shape: tuple[int, ...]) -> None:
    rows = learned_values(shape, "float32").reshape(shape[0], prod(shape[1:])).sum(axis=1)
    assert rows.min() > 0.8
    assert rows.max() < 1.2


@given(st.integers(1, 50_000), st.sampled_from(("float32", "int32", "int64")))
def test_row_indices_spread_over_the_whole_table(rows: int, dtype: str) -> None:
    numbers = row_numbers((20, 30), dtype, rows)
    assert numbers.min() >= 0
    assert numbers.max() < rows
    assert len(set(numbers.ravel().tolist())) > min(rows, 300) / 2
    assert (numbers == numpy.floor(numbers)).all()


@pytest.mark.parametrize("threads", ["1", "3", "64"])
@pytest.mark.parametrize("dtype", ["float32", "float16", "uint8"])
@pytest.mark.parametrize("count", [0, 1, 3, 65521, 70_000])
def test_threads_fill_large_arrays_with_the_values_of_small_ones(
    count: int, dtype: str, threads: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, threads)
    values = (numpy.arange(count) % 251).astype(dtype)
    size = LARGE_BYTES // numpy.dtype(dtype).itemsize + 7
    found = repeated(values, (1, size))
    assert found.dtype == dtype
    expected = values[numpy.arange(size) % count] if count else numpy.zeros(size, dtype)
    assert (found == expected).all()
    assert (repeated(values, (3, 50)) == expected[:150].reshape(3, 50)).all()


def test_row_indices_are_recognised_by_their_operator() -> None:
    net = SymbolNetwork()
    found = net.add("Embedding", "embedding", "words", "table", input_dim="90", output_dim="4")
    net.add("elemwise_add", "sum", found, net.add("take", "take", "other", "places"))
    file = SymbolNodes(net.symbol("sum"))
    shapes = {file.variable("words"): (3,), file.variable("table"): (90, 4)}
    shapes |= {file.variable("other"): (7, 4), file.variable("places"): (3,)}
    assert rows_counted(file, shapes) == {file.variable("words"): 90, file.variable("places"): 7}


def test_a_variance_is_recognised_inside_a_fused_operator() -> None:
    inner = SymbolNetwork()
    inner.batch_norm("bn", inner.add("Convolution", "conv", "data", "weight", kernel="(1, 1)", num_filter="3"))
    subgraph = json.loads(inner.symbol("bn"))
    outer = [node("null", name) for name in ("image", "kernels", "g", "b", "m", "v", "other_var")]
    fused = {**node("_sg_mkldnn_conv", "fused", *((place, 0) for place in range(6))), "subgraphs": [subgraph]}
    plain = node("BatchNorm", "plain", (7, 0), (2, 0), (3, 0), (4, 0), (6, 0))
    assert variances(SymbolNodes(symbol_of([*outer, fused, plain], (8, 0)))) == {5, 6}


# Synthetic values for ONNX models of all data types, and what is kept of results.

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


# Arrays of ONNX Runtime of all data types.


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
    for shape in ((3, 5), ()):
        found = array_value(ort, ArrayType(shape, dtype), data_values)
        assert (found.data_type(), found.shape()) == (declared, list(shape))


def test_given_texts_are_the_texts_and_others_are_whole_numbers(ort: Any) -> None:
    made_up = array_value(ort, ArrayType((4,), "object"), data_values)
    assert set(made_up.numpy().tolist()) <= {"0", "1"}
    found = array_value(ort, ArrayType((1, 2), "object"), partial(given_values, numbers=("ja, sí", "no")))
    assert found.numpy().tolist() == [["ja, sí", "no"]]
    same = array_value(ort, ArrayType((3,), "object"), partial(given_values, numbers=("a",)))
    assert same.numpy().tolist() == ["a", "a", "a"]


def test_types_that_numpy_lacks_have_a_size() -> None:
    assert array_bytes([ArrayType((10,), "bfloat16"), ArrayType((10,), "int4"), ArrayType((10,), "float32")]) == 70
