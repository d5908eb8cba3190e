"""Open axes of ONNX inputs, as exporters name them."""

from pathlib import Path

import pytest
from onnx import ModelProto
from onnx.helper import make_node

from dlbricks_tui.models.errors import MissingShapeError
from dlbricks_tui.models.graph import Shape
from dlbricks_tui.models.input_shapes import MOST_AXES, ShapeMemory
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from tests.models.onnx_models import loaded, model, saved
from tests.models.table_framework import TableFramework

DeclaredAxes = tuple[int | str, ...]
# As optimum exports a decoder with its cache.
DECODER = {
    "input_ids": ("batch_size", "sequence_length"),
    "past.0": ("batch_size", 4, "past_sequence_length", 32),
    "past.1": ("batch_size", 4, "past_sequence_length", 32),
    "attention_mask": ("batch_size", "past_sequence_length + sequence_length"),
}


def with_inputs(inputs: dict[str, DeclaredAxes]) -> ModelProto:
    """Return a model that passes each input on."""
    nodes = [make_node("Relu", [name], [f"{name}_out"]) for name in inputs]
    return model(nodes, inputs, [f"{name}_out" for name in inputs])


def shapes(folder: Path, inputs: dict[str, DeclaredAxes], given: dict[str, Shape] | None = None) -> list[Shape | None]:
    graph = loaded(folder, with_inputs(inputs), given)
    return [it.type.shape for it in graph.inputs]


def examples(folder: Path, inputs: dict[str, DeclaredAxes]) -> dict[str, Shape]:
    with pytest.raises(MissingShapeError) as refusal:
        loaded(folder, with_inputs(inputs))
    return refusal.value.examples


def test_an_axis_named_batch_is_one_image_at_any_place(tmp_path: Path) -> None:
    assert shapes(tmp_path, {"state": (2, "batch", 128), "x": (8, "Batch_Size")}) == [(2, 1, 128), (8, 1)]


def test_a_given_batch_applies_to_every_axis_of_its_name(tmp_path: Path) -> None:
    inputs: dict[str, DeclaredAxes] = {"x": ("batch", "length"), "state": (2, "batch", 128)}
    assert shapes(tmp_path, inputs, {"x": (4, 7)}) == [(4, 7), (2, 4, 128)]


def test_a_given_batch_counts_for_shapes_of_a_manifest_and_remembered_ones_too(tmp_path: Path) -> None:
    inputs: dict[str, DeclaredAxes] = {"state": (2, "batch", "width"), "x": ("batch", 7)}
    path = saved(tmp_path, with_inputs(inputs))
    loader = Loader(tmp_path / "cache", TableFramework(), memory=ShapeMemory(tmp_path))
    of_manifest = ModelSource("net", path, inputs={"state": (2, 1, 128), "x": (1, 7)})
    graph = loader.load(of_manifest, given={"x": (4, 7)})
    assert [it.type.shape for it in graph.inputs] == [(2, 4, 128), (4, 7)]
    loader.load(source_of(path), given={"state": (2, 1, 64)})
    graph = loader.load(source_of(path), given={"x": (4, 7)})
    assert [it.type.shape for it in graph.inputs] == [(2, 4, 64), (4, 7)]


def test_an_axis_may_be_the_sum_of_others_and_of_numbers(tmp_path: Path) -> None:
    given = {"input_ids": (1, 3), "past.0": (1, 4, 64, 32)}
    assert shapes(tmp_path, DECODER, given)[-1] == (1, 67)
    inputs: dict[str, DeclaredAxes] = {"x": (1, "n"), "y": (1, "n + 1")}
    assert shapes(tmp_path, inputs, {"x": (1, 5)}) == [(1, 5), (1, 6)]


def test_a_sum_with_an_unknown_term_stays_open(tmp_path: Path) -> None:
    huge = f"{'9' * 5000} + 1"
    for name in ("n + other", "n + ", "n - 1", huge):
        assert examples(tmp_path, {"y": (1, name)}).keys() == {"y"}


def test_the_error_asks_only_for_shapes_that_do_not_follow_from_others(tmp_path: Path) -> None:
    assert examples(tmp_path, DECODER) == {"input_ids": (1, 128), "past.0": (1, 4, 128, 32)}
    loaded(tmp_path, with_inputs(DECODER), examples(tmp_path, DECODER))


def test_an_example_follows_the_names_of_axes(tmp_path: Path) -> None:
    assert examples(tmp_path, {"x": ("batch", 3, "height", "width")}) == {"x": (1, 3, 224, 224)}
    assert examples(tmp_path, {"x": (12, "batch", "seq_len", "width")}) == {"x": (12, 1, 128, 224)}


def test_the_error_for_too_many_open_axes_has_an_example(tmp_path: Path) -> None:
    assert len(examples(tmp_path, {"x": ("n",) * (MOST_AXES + 1)})["x"]) == MOST_AXES
