"""Input shapes that are given once and known from then on."""

from collections.abc import Mapping
from pathlib import Path

import pytest
from onnx.helper import make_node

from dlbricks_tui.models.errors import MissingShapeError
from dlbricks_tui.models.graph import Level, Shape
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.shape_memory import SHAPES_FILE, ShapeMemory
from tests.models.onnx_models import model, saved
from tests.models.table_framework import TableFramework


def open_model(folder: Path, name: str = "net") -> ModelSource:
    """A model that does not say how large its input is."""
    return source_of(saved(folder, model([make_node("Relu", ["x"], ["y"])], {"x": [None, None]}, ["y"]), name))


def load(data: Path, source: ModelSource, given: Mapping[str, Shape] | None = None) -> tuple[Shape | None, list[str]]:
    """The shape of its input, and the models whose shapes were remembered."""
    told: list[str] = []
    memory = ShapeMemory(data, lambda source, shapes: told.append(f"{source.name} {dict(shapes)}"))
    loader = Loader(data / "cache", TableFramework(), memory=memory)
    graph = loader.load(source, Level.WRITTEN, given)
    # Told once, however often it is read.
    loader.load(source, Level.WRITTEN, given)
    return graph.inputs[0].type.shape, told


def test_a_shape_that_was_given_is_known_the_next_time_and_that_is_told(tmp_path: Path) -> None:
    source = open_model(tmp_path)
    with pytest.raises(MissingShapeError) as missing:
        load(tmp_path, source)
    assert missing.value.examples == {"x": (1, 128)}
    assert load(tmp_path, source, {"x": (2, 8)}) == ((2, 8), [])
    assert load(tmp_path, source) == ((2, 8), ["net {'x': (2, 8)}"])
    assert load(tmp_path, source, {"x": (3, 9)}) == ((3, 9), [])
    assert load(tmp_path, source) == ((3, 9), ["net {'x': (3, 9)}"])


def test_a_model_is_known_by_its_content_and_not_by_its_name(tmp_path: Path) -> None:
    load(tmp_path, open_model(tmp_path), {"x": (2, 8)})
    assert load(tmp_path, open_model(tmp_path, "copy"))[0] == (2, 8)
    other = source_of(saved(tmp_path, model([make_node("Tanh", ["x"], ["y"])], {"x": [None, None]}, ["y"])))
    with pytest.raises(MissingShapeError):
        load(tmp_path, other)


def test_a_shape_that_the_file_says_is_not_replaced_by_a_remembered_one(tmp_path: Path) -> None:
    source = source_of(saved(tmp_path, model([make_node("Relu", ["x"], ["y"])], {"x": [1, 8]}, ["y"])))
    load(tmp_path, source, {"x": (4, 8)})
    assert load(tmp_path, source) == ((1, 8), [])


@pytest.mark.parametrize("text", ["", "[]", '{"a": 1}', '{"a": {"x": "many"}}', '{"a": {"x": [0]}}', "[" * 100_000])
def test_a_damaged_memory_remembers_nothing_and_learns_anew(text: str, tmp_path: Path) -> None:
    source = open_model(tmp_path)
    (tmp_path / SHAPES_FILE).write_text(text)
    with pytest.raises(MissingShapeError):
        load(tmp_path, source)
    load(tmp_path, source, {"x": (2, 8)})
    assert load(tmp_path, source)[0] == (2, 8)
