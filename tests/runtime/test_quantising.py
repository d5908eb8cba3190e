"""A worker that quantises model files by ONNX Runtime's tool."""

import gzip
from collections import Counter
from collections.abc import Iterator
from pathlib import Path

import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.helper import make_node, make_tensor
from packaging.version import Version

from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import ArrayType, Network, Quantise
from dlbricks_tui.runtime.runtime import Runtime
from tests.models.onnx_models import ORT_VERSION, floats, integers, model, saved, small

SECONDS = 120.0
IMAGE = {"x": ArrayType((1, 3, 16, 16), "float32")}


@pytest.fixture(scope="module")
def worker(ort_runtime: Runtime, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    """A worker that runs no models: ONNX Runtime's tool opens sessions with threads of their own."""
    with Worker(ort_runtime, tmp_path_factory.mktemp("log") / "worker.log") as started:
        yield started


def quantised(worker: Worker, file: Path, inputs: dict[str, ArrayType], *, dynamically: bool = True) -> ModelProto:
    copy = file.with_name("copy.onnx")
    worker.ask(Quantise(Network("", inputs, {}, file=str(file)), str(copy), dynamically), SECONDS)
    return onnx.load(copy)


def operators(made: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in made.graph.node)


def products() -> ModelProto:
    """Return two matrix products, as in a transformer."""
    nodes = [
        make_node("MatMul", ["x", "v"], ["a"]),
        make_node("Relu", ["a"], ["r"]),
        make_node("MatMul", ["r", "w"], ["y"]),
    ]
    return model(nodes, {"x": ("batch", 16)}, ["y"], [floats("v", (16, 32)), floats("w", (32, 16))])


def test_a_convolutional_network_is_quantised_statically(worker: Worker, tmp_path: Path) -> None:
    found = quantised(worker, saved(tmp_path, small()), IMAGE)
    assert operators(found)["QuantizeLinear"] >= 2
    assert "DynamicQuantizeLinear" not in operators(found)
    stored = {it.name: it.data_type for it in found.graph.initializer}
    assert {TensorProto.INT8} == {it for name, it in stored.items() if name in ("w_quantized", "v_quantized")}
    assert stored["x_zero_point"] == TensorProto.UINT8


def test_matrix_products_are_quantised_dynamically_where_the_runtime_has_kernels_for_it(
    worker: Worker, tmp_path: Path
) -> None:
    file, inputs = saved(tmp_path, products()), {"x": ArrayType((1, 16), "float32")}
    assert operators(quantised(worker, file, inputs))["MatMulInteger"] == 2


def test_matrix_products_are_quantised_statically_elsewhere(worker: Worker, tmp_path: Path) -> None:
    file, inputs = saved(tmp_path, products()), {"x": ArrayType((1, 16), "float32")}
    found = quantised(worker, file, inputs, dynamically=False)
    assert "MatMulInteger" not in operators(found)
    assert operators(found)["QuantizeLinear"] >= 2
    assert found.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch", "the axis stays open"


def test_weights_without_stored_values_get_some_of_both_signs(worker: Worker, tmp_path: Path) -> None:
    value = make_tensor("", TensorProto.FLOAT, (1,), [0.25])
    nodes = [
        make_node("ConstantOfShape", ["sizes"], ["w"], value=value),
        make_node("Conv", ["x", "w"], ["y"], pads=[1, 1, 1, 1]),
    ]
    made = model(nodes, {"x": (1, 3, 16, 16)}, ["y"], [integers("sizes", (8, 3, 3, 3))])
    found = quantised(worker, saved(tmp_path, made), IMAGE)
    (stored,) = [it for it in found.graph.initializer if it.data_type == TensorProto.INT8 and len(it.dims) == 4]
    values = numpy_helper.to_array(stored)
    assert values.min() < 0 < values.max()


@pytest.mark.skipif(Version("1.24") > ORT_VERSION, reason="its tool cannot raise the version of such a file")
def test_weights_that_an_old_file_lists_as_inputs_are_weights(worker: Worker, tmp_path: Path) -> None:
    made = small(9)
    made.ir_version = 3
    made.graph.input.extend(
        onnx.helper.make_tensor_value_info(it.name, it.data_type, it.dims) for it in made.graph.initializer
    )
    found = quantised(worker, saved(tmp_path, made), IMAGE)
    assert [it.name for it in found.graph.input] == ["x"]


def test_a_gzipped_file_is_quantised(worker: Worker, tmp_path: Path) -> None:
    file = saved(tmp_path, small())
    file.write_bytes(gzip.compress(file.read_bytes()))
    assert operators(quantised(worker, file, IMAGE))["QuantizeLinear"] >= 2


def test_a_model_without_weights_is_refused(worker: Worker, tmp_path: Path) -> None:
    file = saved(
        tmp_path, model([make_node("Reshape", ["x", "s"], ["y"])], {"x": (1, 16)}, ["y"], [integers("s", (4, 4))])
    )
    with pytest.raises(WorkerRefusedError, match="none of its layers has weights that can be quantised"):
        quantised(worker, file, {"x": ArrayType((1, 16), "float32")})


def test_a_model_that_does_not_run_is_refused_in_one_line(worker: Worker, tmp_path: Path) -> None:
    with pytest.raises(WorkerRefusedError) as refused:
        quantised(worker, saved(tmp_path, small()), {"x": ArrayType((1, 5, 16, 16), "float32")})
    assert "\n" not in str(refused.value)
