"""The synthetic values of networks. They need numpy, but no framework."""

import json
from math import prod

import numpy
import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.runtime.inside.symbol_file import SymbolNodes
from dlbricks_tui.runtime.inside.values import (
    LARGE_BYTES,
    THREADS_VARIABLE,
    data_values,
    learned_values,
    repeated,
    row_numbers,
    rows_counted,
    sampled_values,
    variance_values,
    variances,
)
from tests.runtime.symbols import Network, node, symbol_of

shapes = st.lists(st.integers(1, 9), min_size=1, max_size=4).map(tuple)
floats = st.sampled_from(("float16", "float32", "float64"))


@given(shapes, floats)
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


def test_the_same_values_are_made_at_every_start() -> None:
    assert (data_values((2, 3), "float32") == data_values((2, 3), "float32")).all()


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
    net = Network()
    found = net.add("Embedding", "embedding", "words", "table", input_dim="90", output_dim="4")
    net.add("elemwise_add", "sum", found, net.add("take", "take", "other", "places"))
    file = SymbolNodes(net.symbol("sum"))
    shapes = {file.variable("words"): (3,), file.variable("table"): (90, 4)}
    shapes |= {file.variable("other"): (7, 4), file.variable("places"): (3,)}
    assert rows_counted(file, shapes) == {file.variable("words"): 90, file.variable("places"): 7}


def test_a_variance_is_recognised_inside_a_fused_operator() -> None:
    inner = Network()
    inner.batch_norm("bn", inner.add("Convolution", "conv", "data", "weight", kernel="(1, 1)", num_filter="3"))
    subgraph = json.loads(inner.symbol("bn"))
    outer = [node("null", name) for name in ("image", "kernels", "g", "b", "m", "v", "other_var")]
    fused = {**node("_sg_mkldnn_conv", "fused", *((place, 0) for place in range(6))), "subgraphs": [subgraph]}
    plain = node("BatchNorm", "plain", (7, 0), (2, 0), (3, 0), (4, 0), (6, 0))
    assert variances(SymbolNodes(symbol_of([*outer, fused, plain], (8, 0)))) == {5, 6}
