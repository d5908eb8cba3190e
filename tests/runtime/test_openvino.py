"""In OpenVINO, layers execute in their carriers what they execute in their models: the same kernels and layouts."""

import errno
import gzip
import json
import os
import tempfile
from base64 import b64encode
from collections import Counter, defaultdict
from collections.abc import Iterable
from dataclasses import replace
from pathlib import Path
from types import SimpleNamespace
from typing import NoReturn

import pytest

from dlbricks_tui.bricks.carriers import carrier_of
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import file_program, model_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import Layer, LayerGraph, Level, Shape
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerRefusedError
from dlbricks_tui.runtime.inside import openvino_models
from dlbricks_tui.runtime.inside.backend import RefusalError
from dlbricks_tui.runtime.inside.openvino_models import (
    ModelText,
    compiled,
    executed_nodes,
    load_openvino,
    model_in_file,
    refuse_missing_precision,
)
from dlbricks_tui.runtime.inside.values import THREADS_VARIABLE
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.runtime import PRECISION_VARIABLE, Runtime
from dlbricks_tui.runtime.traits import OPENVINO, Format
from dlbricks_tui.runtime.variant import InstructionSet, Kernels, Precision
from tests.models.onnx_models import saved, small
from tests.runtime.onnx_cases import CASES, network

pytestmark = pytest.mark.openvino

SECONDS = 120.0
# OpenVINO runs these without copying where it can, and then does not count them.
PASSING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Split", "Concatenation", "StridedSlice")


# A sample at a batch size, and one as its file says.
MODELS = {"squeezenet1.1": 2, "tabular_network": None}


def source(name: str, folder: Path) -> ModelSource:
    return next(it for it in Library(SAMPLE_MODELS, folder, Format.ONNX).sources() if it.name == name)


@pytest.fixture(params=MODELS)
def graph(request: pytest.FixtureRequest, openvino_loader: Loader, tmp_path: Path) -> LayerGraph:
    """Return the fused layers of a model."""
    name: str = request.param
    return openvino_loader.load(source(name, tmp_path), Level.FUSED, batch_size=MODELS[name])


def stored_forms(layer: Layer) -> list[str]:
    """Return what the model executes for a layer: kinds, kernels and layouts."""
    found = dict(layer.operators[0].params).get("compiled", ())
    assert isinstance(found, tuple)
    return sorted(map(str, found))


def form(kind: str, kernel: str, read: list[str], layout: str, dtype: str) -> str:
    return f"{kind} {kernel} {' '.join(read)} -> {layout} {dtype}"


def executed_forms(worker: Worker, graph: LayerGraph) -> dict[int, list[str]]:
    """Return what OpenVINO executes for each layer of a network, except conversions of layouts."""
    network, owners = whole_network(graph)
    nodes = json.loads(worker.ask(protocol.Fuse(network), SECONDS).symbol)
    found: dict[int, list[str]] = defaultdict(list)
    for it in nodes:
        read = ["plain" if place is None else nodes[place]["layout"] for place in it["reads"]]
        if it["numbers"]:
            made = form(it["kind"], it["kernel"], read, it["layout"], it["dtype"])
            found[owners[it["numbers"][0]]].append(made)
    return {layer: sorted(forms) for layer, forms in found.items()}


def test_a_carrier_executes_the_kernels_and_layouts_of_its_model(graph: LayerGraph, openvino_worker: Worker) -> None:
    """OpenVINO compiles a model without its repeated modules to the same nodes, so its layers are those bricks."""
    carrier = carrier_of(graph)
    assert carrier is not None
    layers = [layer for layer in carrier.graph.layers if layer.op != "openvino.Reorder"]
    expected = {layer.index: stored_forms(layer) for layer in layers}
    assert executed_forms(openvino_worker, carrier.graph) == expected
    bricks, carried = ({brick_of(it, (layer.index,)).key for layer in it.layers} for it in (graph, carrier.graph))
    assert bricks == carried


def test_the_profiler_times_all_executed_nodes_of_a_carrier(graph: LayerGraph, openvino_worker: Worker) -> None:
    carrier = carrier_of(graph)
    assert carrier is not None
    network, owners = whole_network(carrier.graph)
    openvino_worker.ask(protocol.Load("carrier", protocol.Program(network)), SECONDS)
    profile = openvino_worker.ask(protocol.Profile("carrier", 1, 2), SECONDS)
    counted = Counter(owners[node] for node in profile.nodes if node in owners)
    for layer in carrier.graph.layers:
        assert counted[layer.index] >= sum(not it.startswith(PASSING) for it in stored_forms(layer)), layer.name
    assert all(duration > 0 for row in profile.durations_ns for duration in row)
    strangers = [node for node in profile.nodes if node not in owners]
    assert len(strangers) <= 2 * (not carrier.is_whole), "conversions where the carrier begins and ends"


def test_the_fused_layers_are_the_nodes_that_an_end_to_end_run_of_the_file_executes(
    graph: LayerGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv(THREADS_VARIABLE, "1")
    network = file_program(graph, source(graph.name, tmp_path).path).network
    core = load_openvino().Core()
    model = model_in_file(core, network.file, {name: it.shape for name, it in network.inputs.items()})
    nodes = executed_nodes(compiled(core, model, protocol.Reason.UNBUILDABLE), ())
    read = [["plain" if place is None else nodes[place].layout for place in it.reads] for it in nodes]
    forms = [form(it.kind, it.kernel, read[place], it.layout, it.dtype) for place, it in enumerate(nodes)]
    expected = [it for layer in graph.layers for it in stored_forms(layer)]
    # Layers that only pass on memory run where their target is not known.
    assert _working(forms) == _working(expected)


def _working(forms: Iterable[str]) -> Counter[str]:
    return Counter(it for it in forms if not it.startswith(PASSING))


# A worker with the real OpenVINO.


def test_the_openvino_worker_describes_itself(openvino_worker: Worker) -> None:
    described = openvino_worker.ask(protocol.Describe(), SECONDS)
    assert described.framework == OPENVINO.framework
    assert described.version.count(".") == 2, "the number of the build is no part of it"


def test_at_level_fused_the_layers_are_those_that_openvino_executes_in_single_precision(
    openvino_loader: Loader, tmp_path: Path
) -> None:
    source = source_of(saved(tmp_path, small()))
    fused = openvino_loader.load(source, Level.FUSED)
    assert any(layer.op == "conv+relu" for layer in fused.layers)
    assert {node for layer in fused.layers for node in layer.nodes} == set(
        range(len(openvino_loader.load(source).layers))
    )
    assert [it.name for it in fused.inputs] == ["x"]
    # By itself it would compute in bfloat16 where the processor can.
    assert all(form.endswith((" f32", " i32")) for layer in fused.layers for form in stored_forms(layer))


def test_equal_layers_with_equal_weights_are_not_merged(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    """OpenVINO runs layers that compute the same only once, so synthetic weights have to differ."""
    made = network(
        """(float[1,4,8,8] x) => (y) <float[4,4,3,3] w1, float[4,4,3,3] w2> {
            a = Conv (x, w1) b = Conv (x, w2) y = Concat <axis = 1> (a, b)
        }"""
    )
    fused = openvino_loader.load(source_of(saved(tmp_path, made)), Level.FUSED)
    convolutions = [layer for layer in fused.layers if layer.op == "conv"]
    assert [len(stored_forms(layer)) for layer in convolutions] == [1, 1]


def test_a_quantised_model_runs_in_integers(openvino_loader: Loader, tmp_path: Path) -> None:
    """Zero points other than 0 would lead to kernels of single precision."""
    fused = openvino_loader.load(source_of(saved(tmp_path, CASES["quantised pairs"]())), Level.FUSED)
    (convolution,) = [layer for layer in fused.layers if layer.kind is Kind.CONVOLUTION]
    assert any("_I8" in form or "_i8" in form for form in stored_forms(convolution)[:1])


def test_a_model_file_runs_with_open_axes_at_the_chosen_size(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, network("(float[batch,4] x) => (y) <float[4,3] w> { y = MatMul (x, w) }"))
    graph = openvino_loader.load(source_of(path), given={"x": (5, 4)})
    program = file_program(graph, path)
    recorded = openvino_worker.ask(protocol.Record(program.network), SECONDS)
    assert [it and it.shape for it in recorded.outputs] == [(5, 3)]
    openvino_worker.ask(protocol.Load("file", program), SECONDS)
    with pytest.raises(WorkerRefusedError, match="no numbers"):
        openvino_worker.ask(protocol.Profile("file", 1, 1), SECONDS)


def test_a_gzipped_file_runs(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    path = saved(tmp_path, small())
    graph = openvino_loader.load(source_of(path))
    path.write_bytes(gzip.compress(path.read_bytes()))
    loaded = openvino_worker.ask(protocol.Load("file", file_program(graph, path)), SECONDS)
    assert loaded.first_run_seconds > 0.0


def test_a_layer_that_only_passes_on_its_input_runs_alone(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    """OpenVINO removes it, and the name of the input with it."""
    made = network("(float[1,4] x) => (y) { d = Dropout (x) y = Relu (d) }")
    graph = openvino_loader.load(source_of(saved(tmp_path, made)))
    openvino_worker.ask(protocol.Load("dropout", sequence_program(graph, (0,))), SECONDS)
    assert len(openvino_worker.ask(protocol.Sample(("dropout",), 1, 2), SECONDS).durations_ns[0]) == 2


def test_contradicting_shapes_are_refused_and_make_up_no_others(openvino_loader: Loader, tmp_path: Path) -> None:
    """With open axes, OpenVINO would add arrays of different sizes and report the size of unset memory."""
    source = source_of(saved(tmp_path, network("(float[a] x, float[b] z) => (y) { s = Add (x, z) y = Relu (s) }")))
    given: dict[str, Shape] = {"x": (3,), "z": (5,)}
    written = openvino_loader.load(source, Level.WRITTEN, given)
    assert all(layer.unmeasurable for layer in written.layers)
    with pytest.raises(FusionRefusedError, match="its shapes are unknown"):
        openvino_loader.load(source, Level.FUSED, given)


def test_the_producer_of_a_program_feeds_it(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    before = network("(float[1,3,16,16] x) => (y) { y = Relu (x) }")
    program, first = (
        model_program(openvino_loader.load(source_of(saved(tmp_path, made)))) for made in (small(), before)
    )
    openvino_worker.ask(protocol.Load("fed", replace(program, producer=first.network)), SECONDS)
    two = replace(first.network, inputs={**first.network.inputs, "data1": first.network.inputs["data0"]})
    with pytest.raises(WorkerRefusedError, match="2 inputs are fed 1 arrays"):
        openvino_worker.ask(protocol.Load("fed", replace(program, network=two, producer=first.network)), SECONDS)


def test_operators_never_run_side_by_side(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    program = replace(model_program(openvino_loader.load(source_of(saved(tmp_path, small())))), side_by_side=True)
    with pytest.raises(WorkerRefusedError, match="one after another"):
        openvino_worker.ask(protocol.Load("model", program), SECONDS)


def test_an_invalid_model_is_refused_in_one_line(openvino_worker: Worker) -> None:
    with pytest.raises(WorkerRefusedError) as refused:
        openvino_worker.ask(protocol.Load("broken", protocol.Program(protocol.Network("", {}, {}))), SECONDS)
    assert "\n" not in str(refused.value)
    assert str(refused.value)
    openvino_worker.ask(protocol.Describe(), SECONDS)


def test_an_operator_that_openvino_lacks_is_named(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    source = source_of(saved(tmp_path, network("(float[3,3] x) => (y) { y = Det (x) }", 13)))
    with pytest.raises(WorkerRefusedError, match="OpenVINO lacks Det"):
        openvino_worker.ask(protocol.Load("model", model_program(openvino_loader.load(source))), SECONDS)
    with pytest.raises(FusionRefusedError, match="Det"):
        openvino_loader.load(source, Level.FUSED)


def test_infinite_results_are_refused(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    made = network("(float[4] x) => (y) { a = Exp (x) b = Exp (a) c = Exp (b) y = Exp (c) }")
    program = model_program(openvino_loader.load(source_of(saved(tmp_path, made))))
    with pytest.raises(WorkerRefusedError) as refused:
        openvino_worker.ask(protocol.Load("model", program), SECONDS)
    assert refused.value.reason is protocol.Reason.NOT_FINITE


def test_a_full_folder_for_temporary_files_is_named(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    def full(values: object, number: int) -> NoReturn:
        raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))

    monkeypatch.setattr(openvino_models, "_weight", full)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    text = ModelText(b64encode(small().SerializeToString()).decode())
    weights = {"weight": protocol.ArrayType((1,), "float32")}
    with pytest.raises(RefusalError, match=f"cannot be written to {tmp_path}: No space left on device$") as refused:
        text.read(None, {}, weights, protocol.Reason.UNBUILDABLE)
    assert refused.value.refused.reason is protocol.Reason.NO_ROOM


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
        worker.ask(protocol.Describe(), SECONDS)


# Models of the sorts that real files are made of, read, cut and run by the real OpenVINO at both levels.

# An operator of each model that OpenVINO cannot read.
LACKED = {"saved in blocks": "com.microsoft.nchwc.Conv", "texts": "ai.onnx.ml.LabelEncoder"}
# A model that only runs as a whole: its layers pass on a sequence.
WHOLE_ONLY = "sequences"
# A model whose file has functions, which OpenVINO does not know. Its layers are those of the functions.
OF_FUNCTIONS = "function"
USUAL = ("LSTM in both directions", "quantised pairs", "If by data", OF_FUNCTIONS, "NonZero", "opset 7")


@pytest.mark.parametrize("case", USUAL)
def test_a_model_its_file_and_each_of_its_written_bricks_run(
    case: str, openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[case]())
    for level in Level:
        graph = openvino_loader.load(source_of(path), level)
        assert [layer.op for layer in graph.layers if layer.unmeasurable] == []
        openvino_worker.ask(protocol.Load("model", model_program(graph)), SECONDS)
        (times,) = openvino_worker.ask(protocol.Profile("model", 1, 1), SECONDS).durations_ns
        assert level is Level.WRITTEN or times
        if case != OF_FUNCTIONS:
            openvino_worker.ask(protocol.Load("file", file_program(graph, path)), SECONDS)
        for occurrence in decompose(graph).occurrences if level is Level.WRITTEN else ():
            program = sequence_program(graph, occurrence.sequence.layers)
            assert program.prelude is None, "OpenVINO would fuse a copy of the input with the layer"
            openvino_worker.ask(protocol.Load("brick", program), SECONDS)
            (durations, _) = openvino_worker.ask(protocol.Sample(("brick", "model"), 1, 3), SECONDS).durations_ns
            assert len(durations) == 3


@pytest.mark.parametrize(("case", "operator"), LACKED.items())
def test_a_model_that_openvino_cannot_read_names_an_operator_in_one_line(
    case: str, operator: str, openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[case]())
    graph = openvino_loader.load(source_of(path))
    with pytest.raises(FusionRefusedError) as refused:
        openvino_loader.load(source_of(path), Level.FUSED)
    with pytest.raises(WorkerRefusedError) as not_run:
        openvino_worker.ask(protocol.Load("model", model_program(graph)), SECONDS)
    for message in (refused.value, not_run.value, *filter(None, (layer.unmeasurable for layer in graph.layers))):
        assert operator in str(message)
        assert "\n" not in str(message)


def test_a_model_whose_layers_pass_on_a_sequence_runs_as_a_whole(
    openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path
) -> None:
    path = saved(tmp_path, CASES[WHOLE_ONLY]())
    with pytest.raises(FusionRefusedError, match="reads a sequence or a map"):
        openvino_loader.load(source_of(path), Level.FUSED)
    openvino_worker.ask(protocol.Load("file", file_program(openvino_loader.load(source_of(path)), path)), SECONDS)


def test_a_file_with_functions_names_them(openvino_worker: Worker, openvino_loader: Loader, tmp_path: Path) -> None:
    path = saved(tmp_path, CASES[OF_FUNCTIONS]())
    with pytest.raises(WorkerRefusedError, match=r"OpenVINO lacks mine\.Twice"):
        openvino_worker.ask(protocol.Load("file", file_program(openvino_loader.load(source_of(path)), path)), SECONDS)
