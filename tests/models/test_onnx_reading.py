"""Reading ONNX files: large arrays stay on disk, and oversized files are refused unread."""

import gzip
import tracemalloc
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy
import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor, make_tensor_value_info
from onnx.numpy_helper import from_array

from dlbricks_tui.models.errors import UnreadableModelError
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.onnx import model_file
from dlbricks_tui.models.onnx.model_file import read_onnx, refuse_too_many_parts
from dlbricks_tui.models.onnx.stored_arrays import onnx_weights
from tests.models.onnx_models import kept_in, loaded, model, saved, small
from tests.models.table_framework import TableFramework

LARGE = 2**19


@pytest.fixture(autouse=True)
def _files_of_megabytes_are_large(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(model_file, "_SMALL_FILE", 2**20)


@contextmanager
def little_memory(most_bytes: int) -> Iterator[None]:
    tracemalloc.start()
    try:
        yield
        _, peak = tracemalloc.get_traced_memory()
    finally:
        tracemalloc.stop()
    assert peak < most_bytes


def with_large_arrays() -> ModelProto:
    """Return a model with three large arrays: one of raw bytes, one of numbers, and one inside a node."""
    values = numpy.arange(LARGE, dtype=numpy.float32)
    numbers = TensorProto(name="numbers", data_type=TensorProto.FLOAT, dims=(LARGE,), float_data=values)
    nodes = [
        make_node("Constant", [], ["held"], value=from_array(values)),
        make_node("Add", ["x", "raw"], ["a"]),
        make_node("Add", ["a", "numbers"], ["b"]),
        make_node("Add", ["b", "held"], ["y"]),
    ]
    return model(nodes, {"x": (LARGE,)}, ["y"], [from_array(values, "raw"), numbers])


def refusal(path: Path) -> str:
    with pytest.raises(UnreadableModelError) as refused:
        refuse_too_many_parts(read_onnx(path, "net"), "net")
    return str(refused.value)


def test_a_small_file_is_read_as_it_is(tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    assert read_onnx(path, "net") == path.read_bytes()
    content = path.read_bytes()
    path.write_bytes(gzip.compress(content))
    assert read_onnx(path, "net") == content


def test_large_arrays_stay_on_disk_and_are_found_there(tmp_path: Path) -> None:
    made = with_large_arrays()
    path = saved(tmp_path, made)
    with little_memory(2**20):
        content = read_onnx(path, "net")
    assert len(content) < 2_000
    assert [layer.weights[0].shape for layer in loaded(tmp_path, made).layers] == [(LARGE,)] * 3
    weights = {name: numpy.concatenate(list(values)) for name, values in onnx_weights(path)}
    assert set(weights) == {"raw", "numbers"}
    for values in weights.values():
        assert numpy.array_equal(values, numpy.arange(LARGE, dtype=numpy.float32))


def test_a_sparse_file_of_a_gigabyte_is_refused_unread(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(2**30)
    with little_memory(2**20):
        assert refusal(path) == "net is not an ONNX file, or is damaged"


def test_a_large_file_that_ends_too_early_is_refused(tmp_path: Path) -> None:
    path = saved(tmp_path, with_large_arrays())
    content = path.read_bytes()
    path.write_bytes(content[: len(content) // 2])
    assert refusal(path) == "net is not an ONNX file, or is damaged"


def test_a_file_larger_than_protobuf_can_be_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "net.onnx"
    with path.open("wb") as file:
        file.truncate(2**40)
    assert refusal(path) == "net holds more than 2047 MiB: not an ONNX file"


def test_too_many_bytes_outside_the_arrays_are_refused_unread(tmp_path: Path) -> None:
    made = small()
    made.doc_string = "n" * (65 * 2**20)
    path = saved(tmp_path, made)
    del made
    with little_memory(2**20):
        assert refusal(path) == "net holds more than 64 MiB beside its arrays"


@pytest.mark.parametrize("small_file", [2**24, 0], ids=["small", "large"])
def test_too_many_small_parts_are_refused_before_they_fill_the_memory(
    small_file: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(model_file, "_SMALL_FILE", small_file)
    monkeypatch.setattr(model_file, "_MOST_PARTS", 1_000)
    path = tmp_path / "net.onnx"
    # An empty opset, in two bytes.
    path.write_bytes(b"\x42\x00" * 1_001)
    assert refusal(path) == "net holds more than 1,000 names and numbers: not an ONNX model"


def of_two_gigabytes(folder: Path) -> Path:
    """Write a model whose weights are in a file of 2.5 GiB without any content on the disk."""
    rows, columns = 2**15, 5 * 2**12
    weight = TensorProto(name="w", data_type=TensorProto.FLOAT, dims=(rows, columns))
    made = model([make_node("MatMul", ["x", "w"], ["y"])], {"x": (1, rows)}, ["y"], [kept_in("weights", weight)])
    with (folder / "weights").open("wb") as file:
        file.truncate(rows * columns * 4)
    return saved(folder, made)


def test_weights_of_more_than_two_gigabytes_are_not_read(tmp_path: Path) -> None:
    path = of_two_gigabytes(tmp_path)
    with little_memory(2**27):
        graph = Loader(tmp_path / "cache", TableFramework()).load(source_of(path))
    assert graph.weight_bytes > 2**31
    assert graph.layers[0].outputs[0].shape == (1, 5 * 2**12)


def test_large_arrays_in_branches_stay_on_disk(tmp_path: Path) -> None:
    values = numpy.arange(LARGE, dtype=numpy.float32)
    result = make_tensor_value_info("r", TensorProto.FLOAT, None)
    inside = make_graph([make_node("Add", ["x", "w"], ["r"])], "inside", [], [result], [from_array(values, "w")])
    nodes = [make_node("If", ["c"], ["y"], then_branch=inside, else_branch=inside)]
    made = model(nodes, {"x": (LARGE,)}, ["y"], [make_tensor("c", TensorProto.BOOL, (), [True])])
    path = saved(tmp_path, made)
    with little_memory(2**20):
        assert len(read_onnx(path, "net")) < 2_000
    (layer,) = loaded(tmp_path, made).layers
    assert [weight.shape for weight in layer.weights] == [(LARGE,)]
