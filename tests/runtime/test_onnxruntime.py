"""A worker with the real ONNX Runtime."""

import gzip
import platform
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy
import onnx
import pytest
from onnx import ModelProto, TensorProto, numpy_helper
from onnx.helper import make_node
from packaging.version import Version

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.models import onnx_file
from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import (
    NULL_PROGRAM,
    ArrayType,
    Load,
    Network,
    Profile,
    Quantise,
    Reason,
    Record,
    Sample,
)
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from tests.models.onnx_models import NEWEST_OPSET, ORT_VERSION, of_a_detector, saved, small
from tests.models.table_framework import TableFramework
from tests.runtime.engines import framework_of
from tests.runtime.onnx_cases import CASES, network

SECONDS = 120.0
Remembering = tuple[Loader, ShapeMemory]


@pytest.fixture
def remembering(ort_runtime: Runtime, ort_worker: Worker, tmp_path: Path) -> Remembering:
    """Return a loader that remembers given shapes, and its memory."""
    memory = ShapeMemory(tmp_path)
    framework = framework_of(ort_runtime, ort_worker)
    return Loader(tmp_path / "cache", TableFramework(), framework, memory), memory


DETECTOR_RUNS_WITH = {"input": (1, 256), "state": (2, 1, 128)}
WRONG = {"input": (1, 128), "state": (2, 128, 128)}


def test_shapes_are_suggested_that_the_model_runs_with(remembering: Remembering, tmp_path: Path) -> None:
    loader, memory = remembering
    source = source_of(saved(tmp_path, of_a_detector()))
    with pytest.raises(MissingShapeError, match=r"does not say the shape of: input \(\?, \?\), state") as refusal:
        loader.load(source)
    assert refusal.value.tried and refusal.value.examples == DETECTOR_RUNS_WITH
    graph = loader.load(source, given={**refusal.value.examples, "sr": ()})
    assert [layer.unmeasurable for layer in graph.layers if layer.unmeasurable] == []
    assert memory.recall_shapes(source) == {**DETECTOR_RUNS_WITH, "sr": ()}


def test_shapes_that_the_model_does_not_run_with_are_refused_and_not_remembered(
    remembering: Remembering, tmp_path: Path
) -> None:
    loader, memory = remembering
    source = source_of(saved(tmp_path, of_a_detector()))
    with pytest.raises(MissingShapeError, match=r"^net does not run with input=1,128 state=2,128,128: ") as refusal:
        loader.load(source, given=WRONG)
    assert refusal.value.examples == DETECTOR_RUNS_WITH
    assert not memory.recall_shapes(source)


def test_remembered_shapes_that_do_not_work_are_forgotten(remembering: Remembering, tmp_path: Path) -> None:
    loader, memory = remembering
    source = source_of(saved(tmp_path, of_a_detector()))
    memory.remember(source, WRONG)
    with pytest.raises(MissingShapeError, match=r"state=2,128,128, given before, is forgotten, as the model does not"):
        loader.load(source)
    assert not memory.recall_shapes(source)


def test_shapes_are_kept_where_no_others_are_known_to_work(remembering: Remembering, tmp_path: Path) -> None:
    loader, memory = remembering
    # No tensor of another type than its weight has a product with it.
    broken = network("(float[?,?] x) => (y) <int64[2] w = {1, 2}> { y = MatMul (x, w) }")
    source = source_of(saved(tmp_path, broken))
    with pytest.raises(MissingShapeError, match=r"\(it runs with none of the shapes that were tried\)$"):
        loader.load(source)
    loader.load(source, given={"x": (1, 2)})
    assert memory.recall_shapes(source) == {"x": (1, 2)}


def test_a_model_runs_to_tell_shapes_without_the_large_arrays_in_its_nodes(
    remembering: Remembering, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(onnx_file, "_SMALL_FILE", 0)
    made = network("(float[?,?] x) => (y) { found = NonZero (x) c = Cast <to = 1> (found) y = MatMul (c, big) }")
    value = numpy_helper.from_array(numpy.ones((128, 1000), numpy.float32))
    made.graph.node.insert(0, make_node("Constant", [], ["big"], value=value))
    source, (loader, _) = source_of(saved(tmp_path, made)), remembering
    with pytest.raises(MissingShapeError, match=r"does not say the shape of: x") as refusal:
        loader.load(source)
    graph = loader.load(source, given=refusal.value.examples)
    assert refusal.value.tried and [layer.outputs[0].shape for layer in graph.layers] == [(2, 128)] * 2 + [(2, 1000)]


def test_an_almost_empty_call_takes_time(ort_worker: Worker) -> None:
    (durations,) = ort_worker.ask(Sample((NULL_PROGRAM,), 1, 5), SECONDS).durations_ns
    assert len(durations) == 5
    assert min(durations) > 0


@pytest.mark.parametrize(("level", "opset"), [(Level.WRITTEN, 9), (Level.FUSED, NEWEST_OPSET)])
def test_a_model_and_each_of_its_layers_run_at_either_level(
    level: Level, opset: int, ort_worker: Worker, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, small(opset))), level)
    assert graph.traits is ONNX_RUNTIME
    ort_worker.ask(Load("model", model_program(graph)), SECONDS)
    for occurrence in decompose(graph).occurrences:
        layers = occurrence.sequence.layers
        program = sequence_program(graph, layers)
        ort_worker.ask(Load("brick", program), SECONDS)
        recorded = ort_worker.ask(Record(program.network), SECONDS).outputs[-1]
        layer = graph.layers[layers[-1]]
        shape = layer.outputs[0].shape
        assert shape is not None and recorded is not None
        # Of memory that a layer only passes on, just the shape is put out.
        assert recorded.shape == ((len(shape),) if layer.op == "reshape" else shape)
    (durations, _) = ort_worker.ask(Sample(("brick", "model"), 1, 3), SECONDS).durations_ns
    assert len(durations) == 3


def test_a_fused_model_in_the_cache_needs_no_onnx_runtime(
    ort_runtime: Runtime, ort_worker: Worker, tmp_path: Path
) -> None:
    source = source_of(saved(tmp_path, small()))
    loader = Loader(tmp_path / "cache", TableFramework(), framework_of(ort_runtime, ort_worker))
    first = loader.load(source, Level.FUSED)
    nobody = WorkerFramework(replace(ort_runtime, python="/nowhere"), tmp_path / "log")
    assert Loader(tmp_path / "cache", TableFramework(), nobody).load(source, Level.FUSED) == first


def test_without_onnx_runtime_written_layers_are_available(tmp_path: Path) -> None:
    loader = Loader(tmp_path / "cache", TableFramework())
    source = source_of(saved(tmp_path, small()))
    assert len(loader.load(source).layers) == 5
    with pytest.raises(ModelError, match="fusing an ONNX model needs ONNX Runtime: pip install onnxruntime"):
        loader.load(source, Level.FUSED)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="other processors have other blocks")
def test_at_level_fused_convolutions_work_on_blocks_of_channels(ort_loader: Loader, tmp_path: Path) -> None:
    made = network(
        """(float[1,3,16,16] x) => (y) <float[32,3,3,3] w1, float[32,32,1,1] w2> {
            c = Conv <pads = [1, 1, 1, 1]> (x, w1) r = Relu (c) d = Conv (r, w2) y = Flatten (d)
        }"""
    )
    graph = ort_loader.load(source_of(saved(tmp_path, made)), Level.FUSED)
    ops = [layer.op.rpartition("onnx.com.microsoft.")[2] for layer in graph.layers]
    assert ops == ["nchwc.Conv", "nchwc.Conv", "nchwc.ReorderOutput", "flatten"]
    assert [layer.kind for layer in graph.layers[:2]] == [Kind.CONVOLUTION] * 2


def test_a_model_runs_its_operators_side_by_side(ort_runtime: Runtime, ort_loader: Loader, tmp_path: Path) -> None:
    runtime = replace(ort_runtime, settings=Settings(2)).side_by_side(2)
    program = model_program(ort_loader.load(source_of(saved(tmp_path, small())), Level.FUSED))
    with Worker(runtime, tmp_path / "log") as started:
        program = replace(program, side_by_side=True)
        started.ask(Load("model", program), SECONDS)
        assert len(started.ask(Sample(("model",), 1, 3), SECONDS).durations_ns[0]) == 3
    assert "ORT_INTER_OP_THREADS=2" in runtime.identity


def test_an_invalid_model_is_refused_in_one_line(ort_worker: Worker, ort_loader: Loader, tmp_path: Path) -> None:
    program = model_program(ort_loader.load(source_of(saved(tmp_path, small()))))
    broken = type(program.network)("AAAA", {}, {})
    with pytest.raises(WorkerRefusedError) as refused:
        ort_worker.ask(Load("broken", type(program)(broken)), SECONDS)
    assert refused.value.reason is Reason.UNBUILDABLE
    assert "\n" not in str(refused.value)


# They read sequences, which only a whole model makes.
READ_SEQUENCES = {"onnx.SequenceAt", "onnx.SequenceInsert", "onnx.ConcatFromSequence"}


@pytest.mark.parametrize("level", list(Level))
@pytest.mark.parametrize("case", CASES)
def test_a_model_its_file_and_each_of_its_bricks_run(
    case: str, level: Level, ort_worker: Worker, ort_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[case]())
    graph = ort_loader.load(source_of(path), level)
    assert {layer.op for layer in graph.layers if layer.unmeasurable} <= READ_SEQUENCES
    assert [layer.op for layer in graph.layers if layer.kind is Kind.OTHER] == []
    ort_worker.ask(Load("file", file_program(graph, path)), SECONDS)
    ort_worker.ask(Load("model", model_program(graph)), SECONDS)
    (times,) = ort_worker.ask(Profile("model", 1, 1), SECONDS).durations_ns
    assert len(times) >= len(graph.layers)
    for occurrence in decompose(graph).occurrences:
        layers = occurrence.sequence.layers
        if not any(graph.layers[index].unmeasurable for index in layers):
            ort_worker.ask(Load("brick", sequence_program(graph, layers)), SECONDS)


def operators(graph: LayerGraph) -> list[str]:
    return [layer.op for layer in graph.layers]


@pytest.mark.parametrize("level", list(Level))
def test_the_branch_that_runs_on_synthetic_inputs_takes_the_place_of_an_if_by_data(
    level: Level, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, CASES["If by data"]())), level)
    # The condition compares the largest input, which is near one, with a hundred. Its layers stay.
    assert operators(graph) == ["reduce_max", "onnx.Greater", "onnx.MatMul", "relu"]


def test_a_model_that_fails_without_a_value_advises_to_give_one(
    ort_worker: Worker, ort_loader: Loader, tmp_path: Path
) -> None:
    for size, numbers in ((1, "NUMBER"), (2, "NUMBER,NUMBER")):
        made = network(f"(float[2,2,3] x, int64[{size}] columns) => (y) {{ r = Reshape (x, columns) y = Relu (r) }}")
        source = source_of(saved(tmp_path, made))
        for level in Level:
            reasons = {layer.unmeasurable or "" for layer in ort_loader.load(source, level).layers}
            advice = f"if columns must have a certain value, give it: --value columns={numbers}"
            assert any(it.endswith(advice) for it in reasons), reasons
    source = source_of(
        saved(tmp_path, network("(float[3,4] x, int64[1] columns) => (y) { r = Reshape (x, columns) y = Relu (r) }"))
    )
    graph = ort_loader.load(source, Level.FUSED, values={"columns": (12,)})
    assert [layer.unmeasurable for layer in graph.layers] == [None, None]
    (recorded,) = ort_worker.ask(Record(file_program(graph, source.path).network), SECONDS).outputs
    assert recorded is not None and recorded.shape == (12,)


@pytest.mark.parametrize("level", list(Level))
def test_the_given_trips_of_a_loop_are_part_of_its_brick(level: Level, ort_loader: Loader, tmp_path: Path) -> None:
    body = "in (int64 i, bool c, float[2,2] s) => (bool d, float[2,2] t) { d = Identity (c) t = Relu (s) }"
    made = network(f"(float[2,2] x, int64 trips) => (y) {{ y = Loop <body = {body}> (trips, , x) }}")
    source = source_of(saved(tmp_path, made))
    keys = {whole_model(ort_loader.load(source, level, values={"trips": (trips,)})).key for trips in (1, 2, 1)}
    assert len(keys) == 2


def test_a_number_that_the_model_names_leaves_the_keys_of_its_bricks(ort_loader: Loader, tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, of_a_detector()))
    graph = ort_loader.load(source, Level.FUSED, DETECTOR_RUNS_WITH)
    operators = [operator for layer in graph.layers for operator in layer.operators]
    assert "onnx.Equal" in {it.op for it in operators}
    assert not any(name.startswith("computed") for it in operators for name, _ in it.params)


def test_a_model_that_is_entirely_constant_has_nothing_to_run(ort_loader: Loader, tmp_path: Path) -> None:
    made = network("(float[4,4] x) => (y) <float[4,4] w> { y = Add (w, w) }")
    with pytest.raises(ModelError, match="net computes nothing that depends on its inputs"):
        ort_loader.load(source_of(saved(tmp_path, made)), Level.FUSED)


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


def op_types(made: ModelProto) -> Counter[str]:
    return Counter(node.op_type for node in made.graph.node)


def test_a_convolutional_network_is_quantised_statically(worker: Worker, tmp_path: Path) -> None:
    found = quantised(worker, saved(tmp_path, small()), IMAGE)
    assert op_types(found)["QuantizeLinear"] >= 2
    assert "DynamicQuantizeLinear" not in op_types(found)
    stored = {it.name: it.data_type for it in found.graph.initializer}
    assert {TensorProto.INT8} == {it for name, it in stored.items() if name in ("w_quantized", "v_quantized")}
    assert stored["x_zero_point"] == TensorProto.UINT8


def test_matrix_products_are_quantised_dynamically_only_where_the_runtime_has_kernels_for_it(
    worker: Worker, tmp_path: Path
) -> None:
    made = network(
        """(float[batch,16] x) => (y) <float[16,32] v, float[32,16] w> {
            a = MatMul (x, v) r = Relu (a) y = MatMul (r, w)
        }"""
    )
    file, inputs = saved(tmp_path, made), {"x": ArrayType((1, 16), "float32")}
    assert op_types(quantised(worker, file, inputs))["MatMulInteger"] == 2
    found = quantised(worker, file, inputs, dynamically=False)
    assert "MatMulInteger" not in op_types(found)
    assert op_types(found)["QuantizeLinear"] >= 2
    assert found.graph.input[0].type.tensor_type.shape.dim[0].dim_param == "batch", "the axis stays open"


def test_weights_without_stored_values_get_some_of_both_signs(worker: Worker, tmp_path: Path) -> None:
    made = network(
        """(float[1,3,16,16] x) => (y) <int64[4] sizes = {8, 3, 3, 3}> {
            w = ConstantOfShape <value = float[1] {0.25}> (sizes)
            y = Conv <pads = [1, 1, 1, 1]> (x, w)
        }"""
    )
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
    assert op_types(quantised(worker, file, IMAGE))["QuantizeLinear"] >= 2


def test_a_model_without_weights_is_refused(worker: Worker, tmp_path: Path) -> None:
    file = saved(tmp_path, network("(float[1,16] x) => (y) <int64[2] s = {4, 4}> { y = Reshape (x, s) }"))
    with pytest.raises(WorkerRefusedError, match="none of its layers has weights that can be quantised"):
        quantised(worker, file, {"x": ArrayType((1, 16), "float32")})


def test_a_model_that_does_not_run_is_refused_in_one_line(worker: Worker, tmp_path: Path) -> None:
    with pytest.raises(WorkerRefusedError) as refused:
        quantised(worker, saved(tmp_path, small()), {"x": ArrayType((1, 5, 16, 16), "float32")})
    assert "\n" not in str(refused.value)
