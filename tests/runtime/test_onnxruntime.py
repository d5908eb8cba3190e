"""A worker with the real ONNX Runtime."""

import platform
from dataclasses import replace
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.programs import model_program, sequence_program
from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Load, NullCalls, Reason, Sample
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from tests.models.onnx_models import NEWEST_OPSET, floats, integers, model, of_a_detector, saved, small
from tests.models.table_framework import TableFramework
from tests.runtime.workers import framework_of

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
    broken = model([make_node("MatMul", ["x", "w"], ["y"])], {"x": (None, None)}, ["y"], [integers("w", (1, 2))])
    source = source_of(saved(tmp_path, broken))
    with pytest.raises(MissingShapeError, match=r"\(it runs with none of the shapes that were tried\)$"):
        loader.load(source)
    loader.load(source, given={"x": (1, 2)})
    assert memory.recall_shapes(source) == {"x": (1, 2)}


def test_an_almost_empty_call_takes_time(ort_worker: Worker) -> None:
    (durations,) = ort_worker.ask(NullCalls(5), SECONDS).durations_ns
    assert len(durations) == 5
    assert min(durations) > 0


@pytest.mark.parametrize(("level", "opset"), [(Level.WRITTEN, 9), (Level.FUSED, NEWEST_OPSET)])
def test_a_model_and_each_of_its_layers_run_at_either_level(
    level: Level, opset: int, ort_worker: Worker, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, small(opset))), level)
    assert graph.traits is ONNX_RUNTIME
    loaded = ort_worker.ask(Load("model", model_program(graph)), SECONDS)
    assert loaded.outputs == ((1, 10),)
    for occurrence in decompose(graph).occurrences:
        layers = occurrence.sequence.layers
        loaded = ort_worker.ask(Load("brick", sequence_program(graph, layers)), SECONDS)
        layer = graph.layers[layers[-1]]
        shape = layer.outputs[0].shape
        assert shape is not None
        # Of memory that a layer only passes on, just the shape is put out.
        assert loaded.outputs[-1] == ((len(shape),) if layer.op == "reshape" else shape)
    (durations, _) = ort_worker.ask(Sample(("brick", "model"), 1, 3), SECONDS).durations_ns
    assert len(durations) == 3


def test_at_level_fused_the_layers_are_those_of_onnx_runtime(ort_loader: Loader, tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, small()))
    written, fused = ort_loader.load(source), ort_loader.load(source, Level.FUSED)
    assert len(fused.layers) < len(written.layers) + 3
    assert all(layer.unmeasurable is None for layer in fused.layers)
    assert {node for layer in fused.layers for node in layer.nodes} == set(range(len(written.layers)))
    assert not any(layer.op == "relu" for layer in fused.layers)
    assert any(layer.op.endswith(("FusedConv", "nchwc.Conv")) for layer in fused.layers)
    assert [it.name for it in fused.inputs] == ["x"]


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
    nodes = [
        make_node("Conv", ["x", "w1"], ["c"], pads=[1, 1, 1, 1]),
        make_node("Relu", ["c"], ["r"]),
        make_node("Conv", ["r", "w2"], ["d"]),
        make_node("Flatten", ["d"], ["y"]),
    ]
    made = model(nodes, {"x": (1, 3, 16, 16)}, ["y"], [floats("w1", (32, 3, 3, 3)), floats("w2", (32, 32, 1, 1))])
    graph = ort_loader.load(source_of(saved(tmp_path, made)), Level.FUSED)
    ops = [layer.op.rpartition("onnx.com.microsoft.")[2] for layer in graph.layers]
    assert ops == ["nchwc.Conv", "nchwc.Conv", "nchwc.ReorderOutput", "flatten"]
    assert [layer.kind for layer in graph.layers[:2]] == [Kind.CONVOLUTION] * 2


def test_a_model_runs_its_operators_side_by_side(ort_runtime: Runtime, ort_loader: Loader, tmp_path: Path) -> None:
    runtime = replace(ort_runtime, settings=Settings(2)).side_by_side(2)
    program = model_program(ort_loader.load(source_of(saved(tmp_path, small())), Level.FUSED))
    with Worker(runtime, tmp_path / "log") as started:
        program = replace(program, side_by_side=True)
        assert started.ask(Load("model", program), SECONDS).outputs == ((1, 10),)
        assert len(started.ask(Sample(("model",), 1, 3), SECONDS).durations_ns[0]) == 3
    assert "ORT_INTER_OP_THREADS=2" in runtime.identity


def test_an_invalid_model_is_refused_in_one_line(ort_worker: Worker, ort_loader: Loader, tmp_path: Path) -> None:
    program = model_program(ort_loader.load(source_of(saved(tmp_path, small()))))
    for symbol in ("no base64!", "AAAA"):
        broken = type(program.network)(symbol, {}, {})
        with pytest.raises(WorkerRefusedError) as refused:
            ort_worker.ask(Load("broken", type(program)(broken)), SECONDS)
        assert refused.value.reason in (Reason.MALFORMED, Reason.UNBUILDABLE)
        assert "\n" not in str(refused.value)
