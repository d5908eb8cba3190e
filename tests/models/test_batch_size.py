from collections.abc import Mapping, Sequence
from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.models.batch_size import forecast_bytes, refuse_too_large_batch
from dlbricks_tui.models.errors import InconsistentModelError, ModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from tests.models.onnx_models import integers, model, saved
from tests.models.symbols import content, small_network
from tests.models.table_framework import TableFramework

Axes = Sequence[int | str]
GIBIBYTE = 1 << 30


def with_inputs(inputs: Mapping[str, Axes]) -> ModelProto:
    """Return a model that passes each input on."""
    nodes = [make_node("Relu", [name], [f"{name}_out"]) for name in inputs]
    return model(nodes, inputs, [f"{name}_out" for name in inputs])


def loaded(
    folder: Path, made: ModelProto, batch_size: int | None, given: Mapping[str, Shape] | None = None
) -> LayerGraph:
    loader = Loader(folder / "cache", TableFramework())
    return loader.load(source_of(saved(folder, made)), Level.WRITTEN, given, batch_size=batch_size)


def shapes(graph: LayerGraph) -> list[Shape | None]:
    return [it.type.shape for it in graph.inputs]


def test_a_batch_size_sets_the_open_first_axis_of_each_input(tmp_path: Path) -> None:
    graph = loaded(tmp_path, with_inputs({"x": ("", 4), "y": ("rows", 1)}), 8)
    assert (shapes(graph), graph.batch_size) == ([(8, 4), (8, 1)], 8)
    assert graph.layers[0].outputs[0].shape == (8, 4)


def test_axes_named_batch_count_at_any_place_and_no_others(tmp_path: Path) -> None:
    inputs: Mapping[str, Axes] = {"boxes": ("boxes", 4), "x": ("batch", 3), "state": (2, "batch", 5), "table": (9, 4)}
    graph = loaded(tmp_path, with_inputs(inputs), 8, {"boxes": (7, 4)})
    assert (shapes(graph), graph.batch_size) == ([(7, 4), (8, 3), (2, 8, 5), (9, 4)], 8)


def test_the_name_of_an_open_first_axis_counts_in_other_places_too(tmp_path: Path) -> None:
    graph = loaded(tmp_path, with_inputs({"x": ("N", 3), "state": (2, "N", 5)}), 4, {"state": (2, 1, 5)})
    assert shapes(graph) == [(4, 3), (2, 4, 5)]


def test_a_length_is_no_batch_and_an_axis_named_n_after_it_is_one(tmp_path: Path) -> None:
    inputs: Mapping[str, Axes] = {"x": ("seq_len", "N", 3), "state": (2, "N", 5)}
    graph = loaded(tmp_path, with_inputs(inputs), 8, {"x": (6, 1, 3)})
    assert (shapes(graph), graph.batch_size) == ([(6, 8, 3), (2, 8, 5)], 8)
    # Points of one image, and no batch.
    with pytest.raises(ModelError, match="fixes the first axis of input 'points' at 1"):
        loaded(tmp_path, with_inputs({"points": (1, "N", 3)}), 8, {"points": (1, 9, 3)})
    with pytest.raises(ModelError, match="has no input with a batch axis: keep the batch size of the file"):
        loaded(tmp_path, with_inputs({"x": ("length", 3)}), 8, {"x": (6, 3)})


def test_a_batch_size_replaces_that_of_given_and_remembered_shapes(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, with_inputs({"x": ("batch", "length")})))
    loader = Loader(tmp_path / "cache", TableFramework(), memory=ShapeMemory(tmp_path))
    assert shapes(loader.load(source, given={"x": (1, 7)}, batch_size=3)) == [(3, 7)]
    assert shapes(loader.load(source, batch_size=5)) == [(5, 7)]
    assert shapes(loader.load(source)) == [(1, 7)]


def test_without_a_batch_size_the_file_decides(tmp_path: Path) -> None:
    assert loaded(tmp_path, with_inputs({"x": (6, 4)}), None).batch_size == 6
    assert loaded(tmp_path, with_inputs({"x": ("batch", 4)}), None).batch_size == 1
    assert loaded(tmp_path, with_inputs({"x": ("batch", 4)}), None, {"x": (2, 4)}).batch_size == 2


def test_a_file_that_fixes_the_batch_is_refused_with_the_input_that_fixes_it(tmp_path: Path) -> None:
    with pytest.raises(ModelError, match="fixes the first axis of input 'x' at 1, so its batch size cannot be 8"):
        loaded(tmp_path, with_inputs({"x": (1, 4)}), 8)
    assert shapes(loaded(tmp_path, with_inputs({"x": (1, 4)}), 1)) == [(1, 4)]
    with pytest.raises(ModelError, match="has no input with a batch axis"):
        loaded(tmp_path, with_inputs({"x": ()}), 8)


def test_a_batch_that_contradicts_the_layers_names_the_batch_that_does_not(tmp_path: Path) -> None:
    nodes = [make_node("Reshape", ["x", "shape"], ["flat"]), make_node("Relu", ["flat"], ["out"])]
    made = model(nodes, {"x": ("batch", 4)}, ["out"], [integers("shape", (1, 4))])
    assert loaded(tmp_path, made, 1).layers
    with pytest.raises(InconsistentModelError, match="can be read at batch size 1: keep that batch size"):
        loaded(tmp_path, made, 8)


def symbol_file(folder: Path) -> ModelSource:
    path = folder / "net-symbol.json"
    path.write_bytes(content(small_network()))
    return ModelSource("net", path, inputs={"data": (1, 3, 8, 8)})


def test_a_batch_size_sets_the_first_axis_of_a_symbol_file(tmp_path: Path) -> None:
    for level in Level:
        graph = Loader(tmp_path / "cache", TableFramework()).load(symbol_file(tmp_path), level, batch_size=4)
        assert (shapes(graph), graph.batch_size) == ([(4, 3, 8, 8)], 4)
        assert all(layer.outputs[0].shape is not None for layer in graph.layers)
        assert graph.layers[0].outputs[0].shape == (4, 8, 8, 8)


def test_a_batch_that_needs_more_memory_is_refused_before_it_is_read(tmp_path: Path) -> None:
    framework = TableFramework()
    loader = Loader(tmp_path / "cache", framework, most_bytes=GIBIBYTE)
    loader.load(symbol_file(tmp_path))
    framework.asked.clear()
    with pytest.raises(ModelError, match=r"net at batch size 1,000,000 needs about [\d.]+ GiB of memory, and 1.0 GiB"):
        loader.load(symbol_file(tmp_path), Level.FUSED, batch_size=1_000_000)
    assert framework.asked == []
    assert loader.load(symbol_file(tmp_path), batch_size=16).batch_size == 16


def test_the_forecast_counts_weights_once_and_tensors_that_exist_at_once(tmp_path: Path) -> None:
    # Two chained layers: the input and two tensors never exist together.
    nodes = [make_node("Relu", ["x"], ["a"]), make_node("Relu", ["a"], ["b"]), make_node("Relu", ["b"], ["out"])]
    graph = loaded(tmp_path, model(nodes, {"x": ("batch", 100)}, ["out"]), 2)
    assert forecast_bytes(graph, 2) == 2 * (2 * 100 * 4)
    assert forecast_bytes(graph, 20) == 10 * forecast_bytes(graph, 2)
    refuse_too_large_batch(graph, 20, forecast_bytes(graph, 20))
    with pytest.raises(ModelError, match="give a smaller --batch"):
        refuse_too_large_batch(graph, 20, forecast_bytes(graph, 20) - 1)
