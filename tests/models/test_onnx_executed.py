"""The graph that a framework executes, with the shape of each tensor: asked from ONNX Runtime, or told as a list."""

import json
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import file_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.errors import FusionRefusedError
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph, Level, NativeNode
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.models.onnx_layers import executed_graph
from dlbricks_tui.models.onnx_operators import text_of
from dlbricks_tui.models.onnx_writer import OnnxSheet
from dlbricks_tui.runtime.inside.ort_backend import OnnxRuntime
from dlbricks_tui.runtime.inside.ort_session import options
from tests.models.onnx_models import LIGHT, integers, loaded, saved, small, written

NETWORKS = [SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx", LIGHT / "light_squeezenet.onnx"]


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_the_fused_layers_are_the_nodes_that_an_end_to_end_run_of_the_file_executes(
    path: Path, ort: Any, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(path), Level.FUSED)
    settings = options(ort, optimised=True)
    settings.enable_profiling = True
    settings.profile_file_prefix = str(tmp_path / "profile")
    session = ort.InferenceSession(str(path), settings, providers=["CPUExecutionProvider"])
    bound = OnnxRuntime(ort).bind(file_program(graph, path).network)
    session.run_with_ort_values(None, dict(zip((it.name for it in graph.inputs), bound.inputs, strict=True)))
    events: list[Any] = json.loads(Path(session.end_profiling()).read_bytes())
    executed = Counter(it["args"]["op_name"] for it in events if it["name"].endswith("_kernel_time"))
    assert Counter(layer.operators[0].native.op.rpartition(".")[2] for layer in graph.layers) == executed
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None] == []
    written, fused = (
        {node for layer in it.layers for node in layer.nodes} for it in (ort_loader.load(source_of(path)), graph)
    )
    assert written <= fused


def sized_by_data() -> ModelProto:
    """Return a model with a tensor whose length is a count of data, and one whose length is the size of an axis."""
    return written(
        """test (float[rows,4] x) => (y, z) {
            [count] places = NonZero (x)
            [sizes] sizes = Shape (places)
            [fill] filled = ConstantOfShape (sizes)
            [after] y = Relu (filled)
            [target] target = Shape (x)
            [expand] z = Expand (x, target)
        }"""
    )


def named(graph: LayerGraph, name: str) -> Layer:
    return next(layer for layer in graph.layers if layer.name == name)


@pytest.mark.parametrize("level", list(Level))
def test_shapes_that_depend_on_data_are_those_of_one_run_and_marked(
    level: Level, ort: Any, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, sized_by_data())), level, {"x": (2, 4)})
    assert all(layer.unmeasurable is None for layer in graph.layers)
    assert named(graph, "after").outputs[0].shape == (2, 8)
    assert {layer.name for layer in graph.layers if layer.is_recorded} == {"count", "fill", "after"}
    assert named(graph, "expand").outputs[0].shape == (2, 4)
    # A brick that begins behind a computed size gets the numbers of the model.
    layer = named(graph, "fill")
    bound = OnnxRuntime(ort).bind(sequence_program(graph, (layer.index,)).network)
    bound.run()
    assert [tuple(it.shape()) for it in bound.outputs][-1] == layer.outputs[0].shape
    assert dict(layer.operators[0].params)["computed0"] == (2, 8)


@pytest.mark.parametrize(("size", "count"), [("rows", 4), (3, 1)])
def test_open_axes_stay_open_while_onnx_runtime_optimises(
    size: str | int, count: int, ort_loader: Loader, tmp_path: Path
) -> None:
    made = written(
        f"""test (float[{size},4] x) => (y) <int64[1] first = {{0}}, int64[1] one = {{1}}> {{
            shape = Shape (x)
            rows = Gather (shape, first)
            times = Concat <axis = 0> (rows, one)
            y = Tile (x, times)
        }}"""
    )
    graph = ort_loader.load(source_of(saved(tmp_path, made)), Level.FUSED, {"x": (3, 4)})
    assert len(graph.layers) == count
    assert graph.layers[-1].outputs[0].shape == (9, 4)


@pytest.mark.parametrize("level", list(Level))
def test_inputs_of_zeros_are_tried_and_a_model_that_runs_on_none_names_the_operator(
    level: Level, ort_loader: Loader, tmp_path: Path
) -> None:
    # Others than zeros are out of range.
    texts = (
        "zeros (int64[2] x) => (y) <int64[1] table = {3}> { size = Gather (table, x)  y = ConstantOfShape (size) }",
        "none (int64[2] x) => (y) <int64[1] seven = {7}> { to = Add (x, seven)  [impossible] y = Reshape (x, to) }",
    )
    zeros, none = (ort_loader.load(source_of(saved(tmp_path, written(text))), level) for text in texts)
    assert zeros.layers[-1].outputs[0].shape == (3, 3)
    reason = named(none, "impossible").unmeasurable
    assert reason is not None
    assert "does not run on synthetic inputs" in reason
    assert "Reshape" in reason
    assert "\n" not in reason


def test_a_layer_that_passes_on_a_stored_array_is_written() -> None:
    # As it is where ONNX Runtime does not optimise.
    stored = ((f"stored{place}", text_of(integers("", (1 - place,)))) for place in (0, 1))
    kept = (("node", text_of(make_node("Squeeze", ["stored", "stored"], ["y"]))), *stored)
    sheet = OnnxSheet()
    squeeze = sheet.operator(NativeNode("Squeeze", kept), "", ())
    assert sheet.in_passing((squeeze, 0)) == [(squeeze, 0)]


def test_the_weights_of_a_branch_that_does_not_run_are_left_out_of_the_recorded_run(
    ort_loader: Loader, tmp_path: Path
) -> None:
    inside = "{0}_branch = {1} () => (float[] {1}_out) {{ {1}_out = MatMul (x, {1}) }}"
    made = written(
        f"""test (int64 rate, float[rows,128] x) => (y)
        <float[128,256] wide = {{0.5}}, float[128,128] narrow = {{0.5}}, int64[1] any = {{-1}}, int64 first = {{0}},
         int64 sixteen = {{16}}> {{
            rates = Reshape (rate, any)
            chosen = Gather (rates, first)
            is_sixteen = Equal (chosen, sixteen)
            y = If <{inside.format("else", "narrow")}, {inside.format("then", "wide")}> (is_sixteen)
        }}"""
    )
    graph = ort_loader.load(source_of(saved(tmp_path, made)), Level.FUSED, {"x": (2, 128)}, {"rate": (16,)})
    assert (2, 256) in [output.shape for layer in graph.layers for output in layer.outputs]
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None] == []


# Fused layers from a list of executed nodes.

PLAIN, CHANNELS_LAST = "abcd", "acdb"


def node(
    kind: str, layers: Sequence[int], *reads: int | None, layout: str = CHANNELS_LAST, leaves: bool = False
) -> dict[str, Any]:
    """Return an executed node; `layers` are written layers."""
    facts = {"kernel": "jit", "layout": layout, "dtype": "f32", "reads": reads, "leaves": leaves}
    return {"kind": kind, **facts, "layers": layers}


def fused(model: LayerGraph, executed: Sequence[dict[str, Any]]) -> LayerGraph:
    _, owners = whole_network(model)
    numbers = {layer: number for number, layer in owners.items()}
    document = [{**it, "numbers": [numbers[layer] for layer in it["layers"]]} for it in executed]
    return executed_graph(model, owners, json.dumps(document))


SMALL = (
    node("Reorder", (), None),
    node("Convolution", (0, 1), 0),
    node("Reduce", (2,), 1),
    node("Reorder", (), 2, layout=PLAIN),
    node("Reshape", (3,), 3, layout="ab"),
    node("FullyConnected", (4,), 4, layout="ab", leaves=True),
)


def test_written_layers_behind_one_executed_node_are_one_layer(tmp_path: Path) -> None:
    model = loaded(tmp_path, small())
    found = fused(model, SMALL)
    ops = " ".join(layer.op for layer in found.layers)
    assert ops == "openvino.Reorder conv+relu global_mean_pool openvino.Reorder reshape linear"
    assert [layer.name for layer in found.layers][:4] == ["x as acdb", "conv1", "pool", "pool as abcd"]
    assert [layer.nodes for layer in found.layers if layer.nodes] == [(0, 1), (2,), (3,), (4,)]
    assert [layer.feeds for layer in found.layers] == [(Feed(None, 0),), *[(Feed(before, 0),) for before in range(5)]]
    assert (found.level, found.heads, found.inputs) == (Level.FUSED, (Feed(5, 0),), model.inputs)
    assert found.weight_bytes == model.weight_bytes
    # Layers of other kernels or layouts are other bricks.
    other_layout = [node("Reorder", (), None, layout="aBcd16b"), *SMALL[1:]]
    other_kernel = [SMALL[0], {**SMALL[1], "kernel": "ref"}, *SMALL[2:]]
    assert len({brick_of(fused(model, it), (1,)).key for it in (SMALL, SMALL, other_layout, other_kernel)}) == 3


def test_layers_that_an_executed_node_computes_in_turns_stay_one_layer(tmp_path: Path) -> None:
    """A group that reads its own result through another layer would be a cycle."""
    made = written("turns (float[1,4] x) => (y) { a = Relu (x)  b = Sqrt (a)  y = Add (a, b) }")
    found = fused(loaded(tmp_path, made), [node("Eltwise", (0, 2), None, leaves=True), node("Eltwise", (1,), 0)])
    assert [layer.nodes for layer in found.layers] == [(0, 1, 2)]


def test_a_conversion_serves_only_its_readers(tmp_path: Path) -> None:
    weight, nodes = "float[4,3,1,1] w = {0.5}", "[conv] c = Conv (x, w)  r = Relu (c)  s = Sqrt (c)"
    model = loaded(tmp_path, written(f"test (float[1,3,8,8] x) => (r, s, c) <{weight}> {{ {nodes} }}"))
    executed = [
        node("Convolution", (0,), None),
        node("Reorder", (), 0, layout=PLAIN, leaves=True),
        node("Eltwise", (1,), 1, layout=PLAIN, leaves=True),
        node("Eltwise", (2,), 0, leaves=True),
    ]
    found = fused(model, executed)
    conversion, conv = (named(found, name).index for name in ("conv as abcd", "conv"))
    relu, root = (next(layer for layer in found.layers if layer.op == op) for op in ("relu", "sqrt"))
    assert (relu.feeds, root.feeds) == ((Feed(conversion, 0),), (Feed(conv, 0),))
    assert found.heads == (Feed(relu.index, 0), Feed(root.index, 0), Feed(conversion, 0))


# The first node reads the second.
AHEAD = json.dumps([{**node("Reorder", (), 1), "numbers": ()}])


@pytest.mark.parametrize("text", ["", "{", "[1]", '[{"kind": "Relu"}]', AHEAD, '{"a": 1}'])
def test_a_damaged_answer_is_refused_in_one_line(text: str, tmp_path: Path) -> None:
    model = loaded(tmp_path, small())
    with pytest.raises(FusionRefusedError, match="list of executed nodes is damaged"):
        executed_graph(model, whole_network(model)[1], text)
