"""Input shapes that are given once and remembered."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.models.errors import MissingShapeError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.input_shapes import SHAPES_FILE, ShapeMemory
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from tests.models.onnx_models import model, of_a_detector, saved
from tests.models.table_framework import TableFramework


def open_model(folder: Path, name: str = "net") -> ModelSource:
    """Return a model that does not declare the size of its input."""
    return source_of(saved(folder, model([make_node("Relu", ["x"], ["y"])], {"x": [None, None]}, ["y"]), name))


def load(data: Path, source: ModelSource, given: Mapping[str, Shape] | None = None) -> tuple[Shape | None, list[str]]:
    """Return the shape of its input, and the models whose shapes were remembered."""
    told: list[str] = []
    memory = ShapeMemory(data, lambda source, shapes: told.append(f"{source.name} {dict(shapes)}"))
    loader = Loader(data / "cache", TableFramework(), memory=memory)
    graph = loader.load(source, Level.WRITTEN, given)
    # It is reported once, however often it is read.
    loader.load(source, Level.WRITTEN, given)
    return graph.inputs[0].type.shape, told


def test_a_given_shape_is_remembered_and_its_use_is_reported(tmp_path: Path) -> None:
    source = open_model(tmp_path)
    with pytest.raises(MissingShapeError) as missing:
        load(tmp_path, source)
    assert missing.value.examples == {"x": (1, 128)}
    assert load(tmp_path, source, {"x": (2, 8)}) == ((2, 8), [])
    assert load(tmp_path, source) == ((2, 8), ["net {'x': (2, 8)}"])
    assert load(tmp_path, source, {"x": (3, 9)}) == ((3, 9), [])
    assert load(tmp_path, source) == ((3, 9), ["net {'x': (3, 9)}"])


def test_given_shapes_are_remembered_by_content_and_not_by_name(tmp_path: Path) -> None:
    load(tmp_path, open_model(tmp_path), {"x": (2, 8)})
    assert load(tmp_path, open_model(tmp_path, "copy"))[0] == (2, 8)
    other = source_of(saved(tmp_path, model([make_node("Tanh", ["x"], ["y"])], {"x": [None, None]}, ["y"])))
    with pytest.raises(MissingShapeError):
        load(tmp_path, other)


def test_a_remembered_shape_never_replaces_one_in_the_file(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, model([make_node("Relu", ["x"], ["y"])], {"x": [1, 8]}, ["y"])))
    load(tmp_path, source, {"x": (4, 8)})
    assert load(tmp_path, source) == ((1, 8), [])


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"x": "many"}}', '{"a": {"x": [0]}}', "[" * 100_000])
def test_a_damaged_file_of_shapes_is_replaced(text: str, tmp_path: Path) -> None:
    source = open_model(tmp_path)
    (tmp_path / SHAPES_FILE).write_text(text)
    with pytest.raises(MissingShapeError):
        load(tmp_path, source)
    load(tmp_path, source, {"x": (2, 8)})
    assert load(tmp_path, source)[0] == (2, 8)


def test_given_shapes_and_values_are_forgotten_for_one_model(tmp_path: Path) -> None:
    source, other = open_model(tmp_path), source_of(saved(tmp_path, of_a_detector(), "other"))
    memory = ShapeMemory(tmp_path)
    memory.remember(source, {"x": (2, 8)}, {"x": (1,)})
    memory.remember(other, {"input": (1, 512)})
    assert memory.forget(source) and not memory.forget(source)
    assert not memory.recall_shapes(source) and not memory.recall_values(source)
    assert memory.recall_shapes(other) == {"input": (1, 512)}


def test_the_shape_of_a_single_number_is_remembered(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, of_a_detector()))
    ShapeMemory(tmp_path).remember(source, {"sr": ()})
    assert ShapeMemory(tmp_path).recall(source, ("sr",)) == {"sr": ()}
