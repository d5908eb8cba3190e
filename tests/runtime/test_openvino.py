"""A worker with the real OpenVINO."""

import gzip
import json
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from onnx import TensorProto
from onnx.helper import make_node

from dlbricks_tui.bricks.carriers import carrier_of
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import CarrierProgram, carrier_program, file_program, model_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Layer, Level, Shape
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.errors import WorkerRefusedError
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import (
    Describe,
    Fuse,
    Load,
    Network,
    NullCalls,
    Profile,
    Program,
    Reason,
    Record,
    Sample,
)
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import OPENVINO
from tests.models.onnx_models import LIGHT, floats, model, saved, small
from tests.models.table_framework import TableFramework

pytestmark = pytest.mark.openvino

SECONDS = 120.0
RUNTIME = Runtime("openvino", sys.executable, OPENVINO.framework, "", "", Settings(1))
WORDS: Shape = (1, 16)
MODELS: dict[Path, dict[str, Shape]] = {
    LIGHT / "light_squeezenet.onnx": {},
    LIGHT / "light_shufflenet.onnx": {},
    LIGHT / "light_inception_v1.onnx": {},
    SAMPLE_MODELS / "onnx" / "minilm.onnx": dict.fromkeys(("input_ids", "attention_mask", "token_type_ids"), WORDS),
}

# OpenVINO runs these without copying where it can, and then does not count them.
PASSING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Split", "Concatenation", "StridedSlice")


@pytest.fixture(scope="module")
def worker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Worker]:
    with Worker(RUNTIME, tmp_path_factory.mktemp("log") / "worker.log") as started:
        yield started


@pytest.fixture(scope="module")
def loader(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Loader]:
    folder = tmp_path_factory.mktemp("loading")
    with WorkerFramework(RUNTIME, folder / "log") as framework:
        yield Loader(folder / "cache", TableFramework(), framework)


def test_the_openvino_worker_describes_itself(worker: Worker) -> None:
    described = worker.ask(Describe(), SECONDS)
    assert described.framework == OPENVINO.framework
    assert described.version.count(".") == 2, "the number of the build is no part of it"


def test_an_almost_empty_call_takes_time(worker: Worker) -> None:
    (durations,) = worker.ask(NullCalls(5), SECONDS).durations_ns
    assert min(durations) > 0


@pytest.mark.parametrize("opset", [7, 9, 13, 20])
def test_a_model_and_each_written_layer_run(opset: int, worker: Worker, loader: Loader, tmp_path: Path) -> None:
    graph = loader.load(source_of(saved(tmp_path, small(opset))))
    assert graph.traits is OPENVINO
    assert worker.ask(Load("model", model_program(graph)), SECONDS).outputs == ((1, 10),)
    for occurrence in decompose(graph).occurrences:
        program = sequence_program(graph, occurrence.sequence.layers)
        assert program.prelude is None, "OpenVINO would fuse a copy of the input with the layer"
        worker.ask(Load("brick", program), SECONDS)
    (durations, _) = worker.ask(Sample(("brick", "model"), 1, 3), SECONDS).durations_ns
    assert len(durations) == 3


def test_at_level_fused_the_layers_are_those_that_openvino_executes(loader: Loader, tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, small()))
    fused = loader.load(source, Level.FUSED)
    assert any(layer.op == "conv+relu" for layer in fused.layers)
    assert {node for layer in fused.layers for node in layer.nodes} == set(range(len(loader.load(source).layers)))
    assert [it.name for it in fused.inputs] == ["x"]


def test_a_fused_model_in_the_cache_needs_no_openvino(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, small()))
    with WorkerFramework(RUNTIME, tmp_path / "log") as framework:
        first = Loader(tmp_path / "cache", TableFramework(), framework).load(source, Level.FUSED)
    nobody = WorkerFramework(replace(RUNTIME, python="/nowhere"), tmp_path / "log")
    assert Loader(tmp_path / "cache", TableFramework(), nobody).load(source, Level.FUSED) == first


def compiled(layer: Layer) -> list[str]:
    """Return what the layer's model executes for it: kinds, kernels and layouts."""
    found = dict(layer.operators[0].params).get("compiled", ())
    assert isinstance(found, tuple)
    return sorted(map(str, found))


def executed(worker: Worker, program: CarrierProgram) -> dict[int, list[str]]:
    """Return what OpenVINO executes for each layer of a network, except conversions of layouts."""
    network = program.program.network
    shapes = {name: found.shape for name, found in network.weights.items()}
    dtypes = {name: found.dtype for name, found in network.weights.items()}
    nodes = json.loads(worker.ask(Fuse(network.symbol, shapes, dtypes), SECONDS).symbol)
    found: dict[int, list[str]] = defaultdict(list)
    for it in nodes:
        read = ["plain" if place is None else nodes[place]["layout"] for place in it["reads"]]
        if it["numbers"]:
            form = f"{it['kind']} {it['kernel']} {' '.join(read)} -> {it['layout']} {it['dtype']}"
            found[program.owners[it["numbers"][0]]].append(form)
    return {layer: sorted(forms) for layer, forms in found.items()}


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
def test_a_carrier_executes_the_kernels_and_layouts_of_its_model(path: Path, worker: Worker, loader: Loader) -> None:
    """OpenVINO compiles a model without its repeated modules to the same nodes, so its layers are those bricks."""
    graph = loader.load(source_of(path), Level.FUSED, MODELS[path])
    carrier = carrier_of(graph)
    assert carrier is not None
    program = carrier_program(carrier.graph)
    layers = [layer for layer in carrier.graph.layers if layer.op != "openvino.Reorder"]
    assert executed(worker, program) == {layer.index: compiled(layer) for layer in layers}
    bricks, carried = ({brick_of(it, (layer.index,)).key for layer in it.layers} for it in (graph, carrier.graph))
    assert bricks == carried


@pytest.mark.parametrize("path", MODELS, ids=[path.stem for path in MODELS])
def test_the_profiler_times_all_executed_nodes_of_a_carrier(path: Path, worker: Worker, loader: Loader) -> None:
    graph = loader.load(source_of(path), Level.FUSED, MODELS[path])
    carrier = carrier_of(graph)
    assert carrier is not None
    program = carrier_program(carrier.graph)
    worker.ask(Load("carrier", program.program), SECONDS)
    profile = worker.ask(Profile("carrier", 1, 2), SECONDS)
    counted = Counter(program.owners[node] for node in profile.nodes if node in program.owners)
    for layer in carrier.graph.layers:
        assert counted[layer.index] >= sum(not form.startswith(PASSING) for form in compiled(layer)), layer.name
    assert all(duration > 0 for row in profile.durations_ns for duration in row)
    strangers = [node for node in profile.nodes if node not in program.owners]
    assert len(strangers) <= 2 * (not carrier.is_whole), "conversions where the carrier begins and ends"


def test_equal_layers_with_equal_weights_are_not_merged(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    """OpenVINO runs layers that compute the same only once, so synthetic weights have to differ."""
    nodes = [
        make_node("Conv", ["x", "w1"], ["a"]),
        make_node("Conv", ["x", "w2"], ["b"]),
        make_node("Concat", ["a", "b"], ["y"], axis=1),
    ]
    made = model(nodes, {"x": (1, 4, 8, 8)}, ["y"], [floats("w1", (4, 4, 3, 3)), floats("w2", (4, 4, 3, 3))])
    fused = loader.load(source_of(saved(tmp_path, made)), Level.FUSED)
    convolutions = [layer for layer in fused.layers if layer.op == "conv"]
    assert [len(compiled(layer)) for layer in convolutions] == [1, 1]


def test_openvino_computes_in_single_precision(loader: Loader, tmp_path: Path) -> None:
    """By itself it would compute in bfloat16 where the processor can."""
    fused = loader.load(source_of(saved(tmp_path, small())), Level.FUSED)
    assert all(form.endswith((" f32", " i32")) for layer in fused.layers for form in compiled(layer))


def test_a_quantised_model_runs_in_integers(loader: Loader) -> None:
    """Zero points other than 0 would lead to kernels of single precision."""
    fused = loader.load(source_of(SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx"), Level.FUSED)
    convolutions = [layer for layer in fused.layers if layer.kind is Kind.CONVOLUTION]
    assert len(convolutions) > 50
    assert all("_I8" in form or "_i8" in form for layer in convolutions for form in compiled(layer)[:1])


def test_a_model_file_runs_with_open_axes_at_the_chosen_size(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    made = model([make_node("MatMul", ["x", "w"], ["y"])], {"x": ("batch", 4)}, ["y"], [floats("w", (4, 3))])
    path = saved(tmp_path, made)
    graph = loader.load(source_of(path), given={"x": (5, 4)})
    assert worker.ask(Load("file", file_program(graph, path)), SECONDS).outputs == ((5, 3),)
    with pytest.raises(WorkerRefusedError, match="no numbers"):
        worker.ask(Profile("file", 1, 1), SECONDS)


def test_a_gzipped_file_runs(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    graph = loader.load(source_of(path))
    path.write_bytes(gzip.compress(path.read_bytes()))
    assert worker.ask(Load("file", file_program(graph, path)), SECONDS).outputs == ((1, 10),)


def test_a_layer_that_only_passes_on_its_input_runs_alone(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    """OpenVINO removes it, and the name of the input with it."""
    made = model([make_node("Dropout", ["x"], ["d"]), make_node("Relu", ["d"], ["y"])], {"x": (1, 4)}, ["y"])
    graph = loader.load(source_of(saved(tmp_path, made)))
    worker.ask(Load("dropout", sequence_program(graph, (0,))), SECONDS)
    assert len(worker.ask(Sample(("dropout",), 1, 2), SECONDS).durations_ns[0]) == 2


def test_shapes_that_inference_leaves_open_are_those_of_one_run(loader: Loader, tmp_path: Path) -> None:
    nodes = [
        make_node("NonZero", ["x"], ["places"]),
        make_node("Cast", ["places"], ["numbers"], to=TensorProto.FLOAT),
        make_node("Relu", ["numbers"], ["y"]),
    ]
    source = source_of(saved(tmp_path, model(nodes, {"x": (2, 3)}, ["y"])))
    for level in Level:
        graph = loader.load(source, level)
        assert graph.layers[-1].outputs[0].shape == (2, 6), "every number of the synthetic input is positive"
        assert all(layer.unmeasurable is None for layer in graph.layers)


def test_contradicting_shapes_are_refused_and_make_up_no_others(loader: Loader, tmp_path: Path) -> None:
    """With open axes, OpenVINO would add arrays of different sizes and report the size of unset memory."""
    nodes = [make_node("Add", ["x", "z"], ["s"]), make_node("Relu", ["s"], ["y"])]
    source = source_of(saved(tmp_path, model(nodes, {"x": ("a",), "z": ("b",)}, ["y"])))
    given: dict[str, Shape] = {"x": (3,), "z": (5,)}
    written = loader.load(source, Level.WRITTEN, given)
    assert all(layer.unmeasurable for layer in written.layers)
    with pytest.raises(FusionRefusedError, match="unknown"):
        loader.load(source, Level.FUSED, given)


def test_a_network_that_fails_on_all_data_is_not_recorded(worker: Worker) -> None:
    network = Network("", {}, {})
    with pytest.raises(WorkerRefusedError):
        worker.ask(Record(network), SECONDS)


def test_the_producer_of_a_program_feeds_it(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    program = model_program(loader.load(source_of(saved(tmp_path, small()))))
    first = model_program(
        loader.load(source_of(saved(tmp_path, model([make_node("Relu", ["x"], ["y"])], {"x": (1, 3, 16, 16)}, ["y"]))))
    )
    worker.ask(Load("fed", replace(program, producer=first.network)), SECONDS)
    two = replace(first.network, inputs={**first.network.inputs, "data1": first.network.inputs["data0"]})
    with pytest.raises(WorkerRefusedError, match="2 inputs are fed 1 arrays"):
        worker.ask(Load("fed", replace(program, network=two, producer=first.network)), SECONDS)


def test_operators_never_run_side_by_side(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    program = replace(model_program(loader.load(source_of(saved(tmp_path, small())))), side_by_side=True)
    with pytest.raises(WorkerRefusedError, match="one after another"):
        worker.ask(Load("model", program), SECONDS)


@pytest.mark.parametrize("text", ["no base64!", "AAAA", ""])
def test_an_invalid_model_is_refused_in_one_line(text: str, worker: Worker) -> None:
    with pytest.raises(WorkerRefusedError) as refused:
        worker.ask(Load("broken", Program(Network(text, {}, {}))), SECONDS)
    assert "\n" not in str(refused.value)
    assert str(refused.value)
    worker.ask(Describe(), SECONDS)


def test_an_operator_that_openvino_lacks_is_named(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    made = model([make_node("Det", ["x"], ["y"])], {"x": (3, 3)}, ["y"], opset=13)
    source = source_of(saved(tmp_path, made))
    with pytest.raises(WorkerRefusedError, match=r"No conversion rule.*Det"):
        worker.ask(Load("model", model_program(loader.load(source))), SECONDS)
    with pytest.raises(FusionRefusedError, match="Det"):
        loader.load(source, Level.FUSED)


def test_infinite_results_are_refused(worker: Worker, loader: Loader, tmp_path: Path) -> None:
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
        worker.ask(Load("model", model_program(loader.load(source_of(saved(tmp_path, made))))), SECONDS)
    assert refused.value.reason is Reason.NOT_FINITE


def test_row_numbers_lie_in_their_table(worker: Worker, loader: Loader, tmp_path: Path) -> None:
    made = model([make_node("Gather", ["w", "words"], ["y"])], {"words": (1, 200)}, ["y"], [floats("w", (5_000, 4))])
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    graph = loader.load(source_of(saved(tmp_path, made)))
    assert worker.ask(Load("rows", model_program(graph)), SECONDS).outputs == ((1, 200, 4),)
