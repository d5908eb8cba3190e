"""In OpenVINO, layers execute in their carriers what they execute in their models: the same kernels and layouts."""

import json
from collections import Counter, defaultdict
from collections.abc import Iterable
from pathlib import Path
from typing import NamedTuple

import pytest

from dlbricks_tui.bricks.carriers import carrier_of
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import CarrierProgram, carrier_program, file_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import Layer, LayerGraph, Level
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.inside.openvino_graph import executed_nodes
from dlbricks_tui.runtime.inside.openvino_models import compiled, load_openvino, model_in_file
from dlbricks_tui.runtime.inside.values import THREADS_VARIABLE
from dlbricks_tui.runtime.process import Worker
from dlbricks_tui.runtime.protocol import Fuse, Load, Profile, Reason
from dlbricks_tui.runtime.traits import Format
from tests.models.onnx_models import LIGHT

pytestmark = pytest.mark.openvino

SECONDS = 120.0
# OpenVINO runs these without copying where it can, and then does not count them.
PASSING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Split", "Concatenation", "StridedSlice")


class Case(NamedTuple):
    """A model at a batch size; None stands for that of its file."""

    model: str
    batch_size: int | None = None


# Light networks of the onnx package, small and large samples, and networks at a batch size.
QUICK = [Case("squeezenet1.1", 2), Case("tabular_network")]
LONG = [
    *map(Case, sorted(path.stem for path in LIGHT.glob("light_*.onnx"))),
    *map(Case, ("crnn", "gpt2_step", "minilm", "mobilenetv2_int8", "silero_vad", "yolov8n")),
    *(Case(model, 8) for model in ("minilm", "mobilenetv2_int8", "resnet18_v1", "yolov8n")),
]
CASES = [*QUICK, *(pytest.param(case, marks=pytest.mark.soak) for case in LONG)]
# Files that OpenVINO executes in another way than their layers, and why.
OTHER_FILES = {
    **dict.fromkeys(("light_inception_v1", "light_inception_v2"), "all weights are equal, so equal layers run once"),
    "mobilenetv2_int8": "its zero points are not zero, so its last layer is fused in another way",
    "silero_vad": "OpenVINO does not run its `If`, whose branches differ in rank",
}


def source(name: str, folder: Path) -> ModelSource:
    if name.startswith("light_"):
        return source_of(LIGHT / f"{name}.onnx")
    return next(it for it in Library(SAMPLE_MODELS, folder, Format.ONNX).sources() if it.name == name)


@pytest.fixture
def graph(request: pytest.FixtureRequest, openvino_loader: Loader, tmp_path: Path) -> LayerGraph:
    """Return the fused layers of a case."""
    case: Case = request.param
    return openvino_loader.load(source(case.model, tmp_path), Level.FUSED, batch_size=case.batch_size)


def stored_forms(layer: Layer) -> list[str]:
    """Return what the model executes for a layer: kinds, kernels and layouts."""
    found = dict(layer.operators[0].params).get("compiled", ())
    assert isinstance(found, tuple)
    return sorted(map(str, found))


def form(kind: str, kernel: str, read: list[str], layout: str, dtype: str) -> str:
    return f"{kind} {kernel} {' '.join(read)} -> {layout} {dtype}"


def executed_forms(worker: Worker, program: CarrierProgram) -> dict[int, list[str]]:
    """Return what OpenVINO executes for each layer of a network, except conversions of layouts."""
    network = program.program.network
    shapes = {name: found.shape for name, found in network.weights.items()}
    dtypes = {name: found.dtype for name, found in network.weights.items()}
    nodes = json.loads(worker.ask(Fuse(network.symbol, shapes, dtypes), SECONDS).symbol)
    found: dict[int, list[str]] = defaultdict(list)
    for it in nodes:
        read = ["plain" if place is None else nodes[place]["layout"] for place in it["reads"]]
        if it["numbers"]:
            made = form(it["kind"], it["kernel"], read, it["layout"], it["dtype"])
            found[program.owners[it["numbers"][0]]].append(made)
    return {layer: sorted(forms) for layer, forms in found.items()}


@pytest.mark.parametrize("graph", CASES, indirect=True, ids=str)
def test_a_carrier_executes_the_kernels_and_layouts_of_its_model(graph: LayerGraph, openvino_worker: Worker) -> None:
    """OpenVINO compiles a model without its repeated modules to the same nodes, so its layers are those bricks."""
    carrier = carrier_of(graph)
    assert carrier is not None
    layers = [layer for layer in carrier.graph.layers if layer.op != "openvino.Reorder"]
    expected = {layer.index: stored_forms(layer) for layer in layers}
    assert executed_forms(openvino_worker, carrier_program(carrier.graph)) == expected
    bricks, carried = ({brick_of(it, (layer.index,)).key for layer in it.layers} for it in (graph, carrier.graph))
    assert bricks == carried


@pytest.mark.parametrize("graph", CASES, indirect=True, ids=str)
def test_the_profiler_times_all_executed_nodes_of_a_carrier(graph: LayerGraph, openvino_worker: Worker) -> None:
    carrier = carrier_of(graph)
    assert carrier is not None
    program = carrier_program(carrier.graph)
    openvino_worker.ask(Load("carrier", program.program), SECONDS)
    profile = openvino_worker.ask(Profile("carrier", 1, 2), SECONDS)
    counted = Counter(program.owners[node] for node in profile.nodes if node in program.owners)
    for layer in carrier.graph.layers:
        assert counted[layer.index] >= sum(not it.startswith(PASSING) for it in stored_forms(layer)), layer.name
    assert all(duration > 0 for row in profile.durations_ns for duration in row)
    strangers = [node for node in profile.nodes if node not in program.owners]
    assert len(strangers) <= 2 * (not carrier.is_whole), "conversions where the carrier begins and ends"


@pytest.mark.parametrize("graph", CASES, indirect=True, ids=str)
def test_the_fused_layers_are_the_nodes_that_an_end_to_end_run_of_the_file_executes(
    graph: LayerGraph, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if graph.name in OTHER_FILES:
        pytest.skip(OTHER_FILES[graph.name])
    monkeypatch.setenv(THREADS_VARIABLE, "1")
    network = file_program(graph, source(graph.name, tmp_path).path).network
    core = load_openvino().Core()
    model = model_in_file(core, network.file, {name: it.shape for name, it in network.inputs.items()})
    nodes = executed_nodes(compiled(core, model, Reason.UNBUILDABLE), ())
    read = [["plain" if place is None else nodes[place].layout for place in it.reads] for it in nodes]
    forms = [form(it.kind, it.kernel, read[place], it.layout, it.dtype) for place, it in enumerate(nodes)]
    expected = [it for layer in graph.layers for it in stored_forms(layer)]
    # Layers that only pass on memory run where their target is not known.
    assert _working(forms) == _working(expected)


def _working(forms: Iterable[str]) -> Counter[str]:
    return Counter(it for it in forms if not it.startswith(PASSING))
