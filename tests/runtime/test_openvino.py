"""A worker with the real OpenVINO."""

import gzip
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace

import pytest
from onnx import TensorProto
from onnx.helper import make_node

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerRefusedError
from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.openvino_models import refuse_missing_precision
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import (
    Describe,
    Load,
    Network,
    NullCalls,
    Profile,
    Program,
    Reason,
    Record,
    Sample,
)
from dlbricks_tui.runtime.runtime import PRECISION_VARIABLE, Runtime
from dlbricks_tui.runtime.traits import OPENVINO
from dlbricks_tui.runtime.variant import InstructionSet, Kernels, Precision
from tests.models.onnx_models import floats, model, saved, small
from tests.models.table_framework import TableFramework
from tests.runtime.onnx_cases import CASES
from tests.runtime.test_openvino_contexts import stored_forms
from tests.runtime.workers import framework_of

pytestmark = pytest.mark.openvino

SECONDS = 120.0


def test_the_openvino_worker_describes_itself(openvino_worker: Worker) -> None:
    described = openvino_worker.ask(Describe(), SECONDS)
    assert described.framework == OPENVINO.framework
    assert described.version.count(".") == 2, "the number of the build is no part of it"


def test_an_almost_empty_call_takes_time(openvino_worker: Worker) -> None:
    (durations,) = openvino_worker.ask(NullCalls(5), SECONDS).durations_ns
    assert min(durations) > 0


def test_a_model_and_each_written_layer_run(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    graph = openvino_loader.load(source_of(saved(tmp_path, small())))
    assert graph.traits is OPENVINO
    assert openvino_worker.ask(Load("model", model_program(graph)), SECONDS).outputs == ((1, 10),)
    for occurrence in decompose(graph).occurrences:
        program = sequence_program(graph, occurrence.sequence.layers)
        assert program.prelude is None, "OpenVINO would fuse a copy of the input with the layer"
        openvino_worker.ask(Load("brick", program), SECONDS)
    (durations, _) = openvino_worker.ask(Sample(("brick", "model"), 1, 3), SECONDS).durations_ns
    assert len(durations) == 3


def test_at_level_fused_the_layers_are_those_that_openvino_executes(openvino_loader: Loader, tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, small()))
    fused = openvino_loader.load(source, Level.FUSED)
    assert any(layer.op == "conv+relu" for layer in fused.layers)
    assert {node for layer in fused.layers for node in layer.nodes} == set(
        range(len(openvino_loader.load(source).layers))
    )
    assert [it.name for it in fused.inputs] == ["x"]


def test_a_fused_model_in_the_cache_needs_no_openvino(
    openvino_runtime: Runtime, openvino_worker: Worker, tmp_path: Path
) -> None:
    source = source_of(saved(tmp_path, small()))
    framework = framework_of(openvino_runtime, openvino_worker)
    first = Loader(tmp_path / "cache", TableFramework(), framework).load(source, Level.FUSED)
    nobody = WorkerFramework(replace(openvino_runtime, python="/nowhere"), tmp_path / "log")
    assert Loader(tmp_path / "cache", TableFramework(), nobody).load(source, Level.FUSED) == first


def test_equal_layers_with_equal_weights_are_not_merged(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    """OpenVINO runs layers that compute the same only once, so synthetic weights have to differ."""
    nodes = [
        make_node("Conv", ["x", "w1"], ["a"]),
        make_node("Conv", ["x", "w2"], ["b"]),
        make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    made = model(nodes, {"x": (1, 4, 8, 8)}, ["y"], [floats("w1", (4, 4, 3, 3)), floats("w2", (4, 4, 3, 3))])
    fused = openvino_loader.load(source_of(saved(tmp_path, made)), Level.FUSED)
    convolutions = [layer for layer in fused.layers if layer.op == "conv"]
    assert [len(stored_forms(layer)) for layer in convolutions] == [1, 1]


def test_openvino_computes_in_single_precision(openvino_loader: Loader, tmp_path: Path) -> None:
    """By itself it would compute in bfloat16 where the processor can."""
    fused = openvino_loader.load(source_of(saved(tmp_path, small())), Level.FUSED)
    assert all(form.endswith((" f32", " i32")) for layer in fused.layers for form in stored_forms(layer))


def test_a_quantised_model_runs_in_integers(openvino_loader: Loader, tmp_path: Path) -> None:
    """Zero points other than 0 would lead to kernels of single precision."""
    fused = openvino_loader.load(source_of(saved(tmp_path, CASES["quantised pairs"]())), Level.FUSED)
    (convolution,) = [layer for layer in fused.layers if layer.kind is Kind.CONVOLUTION]
    assert any("_I8" in form or "_i8" in form for form in stored_forms(convolution)[:1])


@pytest.mark.soak
def test_a_quantised_sample_runs_in_integers(openvino_loader: Loader) -> None:
    fused = openvino_loader.load(source_of(SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx"), Level.FUSED)
    convolutions = [layer for layer in fused.layers if layer.kind is Kind.CONVOLUTION]
    assert len(convolutions) > 50
    assert all("_I8" in form or "_i8" in form for layer in convolutions for form in stored_forms(layer)[:1])


def test_a_model_file_runs_with_open_axes_at_the_chosen_size(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    made = model([make_node("MatMul", ["x", "w"], ["y"])], {"x": ("batch", 4)}, ["y"], [floats("w", (4, 3))])
    path = saved(tmp_path, made)
    graph = openvino_loader.load(source_of(path), given={"x": (5, 4)})
    assert openvino_worker.ask(Load("file", file_program(graph, path)), SECONDS).outputs == ((5, 3),)
    with pytest.raises(WorkerRefusedError, match="no numbers"):
        openvino_worker.ask(Profile("file", 1, 1), SECONDS)


def test_a_gzipped_file_runs(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    graph = openvino_loader.load(source_of(path))
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert openvino_worker.ask(Load("file", file_program(graph, path)), SECONDS).outputs == ((1, 10),)


def test_a_layer_that_only_passes_on_its_input_runs_alone(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    """OpenVINO removes it, and the name of the input with it."""
    made = model([make_node("Dropout", ["x"], ["d"]), make_node("Relu", ["d"], ["y"])], {"x": (1, 4)}, ["y"])
    graph = openvino_loader.load(source_of(saved(tmp_path, made)))
    openvino_worker.ask(Load("dropout", sequence_program(graph, (0,))), SECONDS)
    assert len(openvino_worker.ask(Sample(("dropout",), 1, 2), SECONDS).durations_ns[0]) == 2


def test_shapes_that_inference_leaves_open_are_those_of_one_run(openvino_loader: Loader, tmp_path: Path) -> None:
    nodes = [
        make_node("NonZero", ["x"], ["places"]),
        make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT),
        make_node("Relu", ["numbers"], ["y"]),
    ]
    source = source_of(saved(tmp_path, model(nodes, {"x": (2, 3)}, ["y"])))
    for level in Level:
        graph = openvino_loader.load(source, level)
        assert graph.layers[-1].outputs[0].shape == (2, 6), "every number of the synthetic input is positive"
        assert all(layer.unmeasurable is None for layer in graph.layers)


def test_contradicting_shapes_are_refused_and_make_up_no_others(openvino_loader: Loader, tmp_path: Path) -> None:
    """With open axes, OpenVINO would add arrays of different sizes and report the size of unset memory."""
    nodes = [make_node("Add", ["x", "z"], ["s"]), make_node("Relu", ["s"], ["y"])]
    source = source_of(saved(tmp_path, model(nodes, {"x": ("a",), "z": ("b",)}, ["y"])))
    given: dict[str, Shape] = {"x": (3,), "z": (5,)}
    written = openvino_loader.load(source, Level.WRITTEN, given)
    assert all(layer.unmeasurable for layer in written.layers)
    with pytest.raises(FusionRefusedError, match="its shapes are unknown"):
        openvino_loader.load(source, Level.FUSED, given)


def test_a_network_that_fails_on_all_data_is_not_recorded(openvino_worker: Worker) -> None:
    network = Network("", {}, {})
    with pytest.raises(WorkerRefusedError):
        openvino_worker.ask(Record(network), SECONDS)


def test_the_producer_of_a_program_feeds_it(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    program = model_program(openvino_loader.load(source_of(saved(tmp_path, small()))))
    first = model_program(
        openvino_loader.load(
            source_of(saved(tmp_path, model([make_node("Relu", ["x"], ["y"])], {"x": (1, 3, 16, 16)}, ["y"])))
        )
    )
    openvino_worker.ask(Load("fed", replace(program, producer=first.network)), SECONDS)
    two = replace(first.network, inputs={**first.network.inputs, "data1": first.network.inputs["data0"]})
    with pytest.raises(WorkerRefusedError, match="2 inputs are fed 1 arrays"):
        openvino_worker.ask(Load("fed", replace(program, network=two, producer=first.network)), SECONDS)


def test_operators_never_run_side_by_side(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    program = replace(model_program(openvino_loader.load(source_of(saved(tmp_path, small())))), side_by_side=True)
    with pytest.raises(WorkerRefusedError, match="one after another"):
        openvino_worker.ask(Load("model", program), SECONDS)


@pytest.mark.parametrize("text", ["no base64!", "AAAA", ""])
def test_an_invalid_model_is_refused_in_one_line(text: str, openvino_worker: Worker) -> None:
    with pytest.raises(WorkerRefusedError) as refused:
        openvino_worker.ask(Load("broken", Program(Network(text, {}, {}))), SECONDS)
    assert "\n" not in str(refused.value)
    assert str(refused.value)
    openvino_worker.ask(Describe(), SECONDS)


def test_an_operator_that_openvino_lacks_is_named(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    made = model([make_node("Det", ["x"], ["y"])], {"x": (3, 3)}, ["y"], opset=13)
    source = source_of(saved(tmp_path, made))
    with pytest.raises(WorkerRefusedError, match="OpenVINO lacks Det"):
        openvino_worker.ask(Load("model", model_program(openvino_loader.load(source))), SECONDS)
    with pytest.raises(FusionRefusedError, match="Det"):
        openvino_loader.load(source, Level.FUSED)


def test_infinite_results_are_refused(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    made = model(
        [
            make_node("Exp", ["x"], ["a"]),
            make_node("Exp", ["a"], ["b"]),
            make_node("Exp", ["b"], ["c"]),
            make_node("Exp", ["c"], ["y"]),
        ],
        {"x": (4,)},
        ["y"],
    )
    with pytest.raises(WorkerRefusedError) as refused:
        openvino_worker.ask(
            Load("model", model_program(openvino_loader.load(source_of(saved(tmp_path, made))))), SECONDS
        )
    assert refused.value.reason is Reason.NOT_FINITE


def test_row_numbers_lie_in_their_table(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    made = model([make_node("Gather", ["w", "words"], ["y"])], {"words": (1, 200)}, ["y"], [floats("w", (5_000, 4))])
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    graph = openvino_loader.load(source_of(saved(tmp_path, made)))
    assert openvino_worker.ask(Load("rows", model_program(graph)), SECONDS).outputs == ((1, 200, 4),)


def test_a_precision_that_the_processor_lacks_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(PRECISION_VARIABLE, Precision.BF16.value)
    core = SimpleNamespace(get_property=lambda device, name: ["FP32", "INT8"])
    with pytest.raises(RefusalError, match="no bf16 arithmetic on this processor"):
        refuse_missing_precision(core)
    monkeypatch.setenv(PRECISION_VARIABLE, Precision.F32.value)
    refuse_missing_precision(core)


def test_a_precision_that_limited_kernels_lack_is_refused(openvino_runtime: Runtime, tmp_path: Path) -> None:
    """OpenVINO lists bf16 and then compiles nothing."""
    limited = openvino_runtime.with_precision(Precision.BF16).with_kernels(Kernels(InstructionSet.AVX2))
    with (
        Worker(limited, tmp_path / "log") as worker,
        pytest.raises(FrameworkMissingError, match="arithmetic with avx2 kernels"),
    ):
        worker.ask(Describe(), SECONDS)
