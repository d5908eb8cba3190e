"""The graph that ONNX Runtime executes, with the shape of each tensor, asked from the real ONNX Runtime."""

import json
from collections import Counter
from pathlib import Path
from typing import Any

import pytest
from onnx import ModelProto, TensorProto
from onnx.helper import make_graph, make_node, make_tensor, make_tensor_value_info

from dlbricks_tui.bricks.programs import file_program, sequence_program
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import Layer, LayerGraph, Level
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.inside.ort_backend import OnnxRuntime
from dlbricks_tui.runtime.inside.ort_session import options
from tests.models.onnx_models import LIGHT, branch, floats, integers, model, saved

NETWORKS = [SAMPLE_MODELS / "onnx" / "mobilenetv2_int8.onnx", LIGHT / "light_squeezenet.onnx"]


@pytest.fixture
def backend(ort: Any) -> OnnxRuntime:
    return OnnxRuntime(ort)


def executed(ort: Any, graph: LayerGraph, file: Path, folder: Path) -> Counter[str]:
    """Return the operators that ONNX Runtime's profiler shows while the file runs as in an end-to-end measurement."""
    settings = options(ort, optimised=True)
    settings.enable_profiling = True
    settings.profile_file_prefix = str(folder / "profile")
    session = ort.InferenceSession(str(file), settings, providers=["CPUExecutionProvider"])
    bound = OnnxRuntime(ort).bind(file_program(graph, file).network)
    session.run_with_ort_values(None, dict(zip((it.name for it in graph.inputs), bound.inputs, strict=True)))
    events: list[Any] = json.loads(Path(session.end_profiling()).read_bytes())
    return Counter(it["args"]["op_name"] for it in events if it["name"].endswith("_kernel_time"))


def operators(graph: LayerGraph) -> Counter[str]:
    return Counter(layer.operators[0].native.op.rpartition(".")[2] for layer in graph.layers)


@pytest.mark.parametrize("path", NETWORKS, ids=lambda path: path.stem)
def test_the_fused_layers_are_the_nodes_that_an_end_to_end_run_of_the_file_executes(
    path: Path, ort: Any, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(path), Level.FUSED)
    assert operators(graph) == executed(ort, graph, path, tmp_path)
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None] == []


def sized_by_data() -> ModelProto:
    """Return a model with a tensor whose length is a count of data, and one whose length is the size of an axis."""
    nodes = [
        make_node("NonZero", ["x"], ["places"], name="count"),
        make_node("Shape", ["places"], ["sizes"], name="sizes"),
        make_node("ConstantOfShape", ["sizes"], ["filled"], name="fill"),
        make_node("Relu", ["filled"], ["y"], name="after"),
        make_node("Shape", ["x"], ["target"], name="target"),
        make_node("Expand", ["x", "target"], ["z"], name="expand"),
    ]
    return model(nodes, {"x": ("rows", 4)}, ["y", "z"])


def named(graph: LayerGraph, name: str) -> Layer:
    return next(layer for layer in graph.layers if layer.name == name)


@pytest.mark.parametrize("level", list(Level))
def test_shapes_that_depend_on_data_are_those_of_one_run_and_marked(
    level: Level, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, sized_by_data())), level, {"x": (2, 4)})
    assert all(layer.unmeasurable is None for layer in graph.layers)
    assert named(graph, "after").outputs[0].shape == (2, 8)
    assert {layer.name for layer in graph.layers if layer.is_recorded} == {"count", "fill", "after"}
    assert named(graph, "expand").outputs[0].shape == (2, 4)


def test_a_brick_that_begins_behind_a_computed_size_gets_the_numbers_of_the_model(
    backend: OnnxRuntime, ort_loader: Loader, tmp_path: Path
) -> None:
    graph = ort_loader.load(source_of(saved(tmp_path, sized_by_data())), Level.FUSED, {"x": (2, 4)})
    layer = named(graph, "fill")
    bound = backend.bind(sequence_program(graph, (layer.index,)).network)
    bound.run()
    assert [tuple(it.shape()) for it in bound.outputs][-1] == layer.outputs[0].shape
    assert dict(layer.operators[0].params)["computed0"] == (2, 8)


def test_open_axes_stay_open_while_onnx_runtime_optimises(ort_loader: Loader, tmp_path: Path) -> None:
    nodes = [
        make_node("Shape", ["x"], ["shape"]),
        make_node("Gather", ["shape", "first"], ["rows"]),
        make_node("Concat", ["rows", "one"], ["times"], axis=0),
        make_node("Tile", ["x", "times"], ["y"]),
    ]
    weights = [integers("first", (0,)), integers("one", (1,))]
    for size, count in (("rows", 4), (3, 1)):
        path = saved(tmp_path, model(nodes, {"x": (size, 4)}, ["y"], weights), f"net_{size}")
        graph = ort_loader.load(source_of(path), Level.FUSED, {"x": (3, 4)})
        assert len(graph.layers) == count
        assert graph.layers[-1].outputs[0].shape == (9, 4)


def numbers_input(made: ModelProto) -> ModelProto:
    made.graph.input[0].type.tensor_type.elem_type = TensorProto.INT64
    return made


def test_inputs_of_zeros_are_tried_where_others_are_out_of_range(ort_loader: Loader, tmp_path: Path) -> None:
    table = make_tensor("table", TensorProto.INT64, (1,), [3])
    nodes = [make_node("Gather", ["table", "x"], ["size"]), make_node("ConstantOfShape", ["size"], ["y"])]
    made = numbers_input(model(nodes, {"x": (2,)}, ["y"], [table]))
    graph = ort_loader.load(source_of(saved(tmp_path, made)))
    assert graph.layers[-1].outputs[0].shape == (3, 3)


@pytest.mark.parametrize("level", list(Level))
def test_a_model_that_runs_on_no_synthetic_inputs_names_the_operator(
    level: Level, ort_loader: Loader, tmp_path: Path
) -> None:
    nodes = [
        make_node("Add", ["x", "seven"], ["target"]),
        make_node("Reshape", ["x", "target"], ["y"], name="impossible"),
    ]
    made = numbers_input(model(nodes, {"x": (2,)}, ["y"], [integers("seven", (7,))]))
    graph = ort_loader.load(source_of(saved(tmp_path, made)), level)
    reason = named(graph, "impossible").unmeasurable
    assert reason is not None
    assert "does not run on synthetic inputs" in reason
    assert "Reshape" in reason
    assert "\n" not in reason


def test_the_weights_of_a_branch_that_does_not_run_are_left_out_of_the_recorded_run(
    ort_loader: Loader, tmp_path: Path
) -> None:
    result = make_tensor_value_info("out", TensorProto.FLOAT, None)
    yes, no = (
        make_graph([make_node("MatMul", ["x", weight], ["out"], name=weight)], weight, [], [result])
        for weight in ("wide", "narrow")
    )
    nodes = [
        make_node("Reshape", ["rate", "any"], ["rates"]),
        make_node("Gather", ["rates", "first"], ["chosen"]),
        make_node("Equal", ["chosen", "sixteen"], ["is_sixteen"]),
        branch("is_sixteen", yes, no, "y"),
    ]
    first = make_tensor("first", TensorProto.INT64, (), [0])
    sixteen = make_tensor("sixteen", TensorProto.INT64, (), [16])
    weights = [floats("wide", (128, 256)), floats("narrow", (128, 128)), integers("any", (-1,)), first, sixteen]
    made = numbers_input(model(nodes, {"rate": (), "x": ("rows", 128)}, ["y"], weights))
    graph = ort_loader.load(source_of(saved(tmp_path, made)), Level.FUSED, {"x": (2, 128)}, {"rate": (16,)})
    assert (2, 256) in [output.shape for layer in graph.layers for output in layer.outputs]
    assert [layer.name for layer in graph.layers if layer.unmeasurable is not None] == []
