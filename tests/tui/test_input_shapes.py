"""Models are opened, and some ask for the shapes of their inputs."""

import json
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.model_reading import MOST_KEPT, ModelReader, compare_models
from dlbricks_tui.api.open_models import AskedShape, ModelSpec
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.models.errors import FusionRefusedError, MissingShapeError, ModelError, WrongRuntimeError
from dlbricks_tui.models.frameworks import Frameworks
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import InputShape, read_request
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.workbench.boxes import InputShapesScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from sample_models.builders.symbol_writer import SymbolWriter
from tests.documents.outlines import sample
from tests.models.onnx_models import saved, small, with_everything
from tests.models.table_framework import TableFramework
from tests.tui.application import (
    LIBRARY,
    MEASURED_ONLY,
    PATIENCE_SECONDS,
    app_on,
    eventually,
    press,
    running,
    screen_text,
    settled,
)
from tests.tui.results import source_called


def model_of(inputs: Sequence[str], folder: Path) -> Path:
    """Write a model that adds up its inputs, without their shapes."""
    nodes: list[dict[str, object]] = [{"op": "null", "name": name, "inputs": []} for name in inputs]
    attributes = {"num_args": str(len(inputs))}
    added = [[number, 0, 0] for number in range(len(inputs))]
    nodes.append({"op": "add_n", "name": "sum", "attrs": attributes, "inputs": added})
    path = folder / f"{''.join(inputs)}-symbol.json"
    document = {"nodes": nodes, "arg_nodes": list(range(len(inputs))), "heads": [[len(inputs), 0, 0]]}
    path.write_text(json.dumps(document))
    return path


@pytest.fixture
def opened_with(monkeypatch: pytest.MonkeyPatch) -> list[ModelSpec]:
    """Record the specs with given shapes; a sample is opened instead, as the framework would take long."""
    specs: list[ModelSpec] = []
    alexnet, open_as_it_is, decompose_as_it_is = sample("alexnet"), ModelReader.open, ModelReader.decompose_model

    def open_(reader: ModelReader, wish: ModelSpec) -> Decomposition:
        if not wish.shapes:
            return open_as_it_is(reader, wish)
        specs.append(wish)
        return alexnet.decomposition

    def decompose_(reader: ModelReader, wish: ModelSpec) -> Decomposition:
        return alexnet.decomposition if wish.shapes else decompose_as_it_is(reader, wish)

    monkeypatch.setattr(ModelReader, "open", open_)
    monkeypatch.setattr(ModelReader, "decompose_model", decompose_)
    return specs


def values(pilot: Pilot[None]) -> list[str]:
    return [field.value for field in pilot.app.screen.query(Field)]


async def test_a_model_that_lacks_shapes_asks_for_them_in_fields(
    measured: DataFolder, tmp_path: Path, opened_with: list[ModelSpec]
) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, "o", f'"{model_of("x", tmp_path)}"', "enter")
        assert isinstance(pilot.app.screen, InputShapesScreen)
        assert "does not say the shape of: x" in screen_text(pilot).replace("\n", " ")
        await press(pilot, '"1"', "comma", '"x"', "enter")
        assert "x: write its shape like 1,3,224,224" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        # An invalid shape is pointed out, and no shape is applied.
        await press(pilot, "o", f'"{model_of("xy", tmp_path)}"', "enter", '"1,8"', "tab", '"many"', "up", "enter")
        assert "y: write its shape like 1,3,224,224" in screen_text(pilot) and not opened_with
        await press(pilot, *["backspace"] * 4)
        assert values(pilot) == ["1,8", ""] and "y: write" not in screen_text(pilot)
        # The fields are visited both ways round.
        await press(pilot, "escape", "o", f'"{model_of("xyz", tmp_path)}"', "enter")
        await press(pilot, '"1"', "tab", '"2"', "down", '"3"')
        assert values(pilot) == ["1", "2", "3"]
        await press(pilot, "down", '"1"', "shift+tab", '"3"', "up", '"2"')
        assert values(pilot) == ["11", "22", "33"]
        await press(pilot, "enter")
        assert [wish.shapes for wish in opened_with] == [{"x": (11,), "y": (22,), "z": (33,)}]


async def test_given_shapes_are_used_to_open_and_to_run_the_model_until_they_are_reset(
    measured: DataFolder, tmp_path: Path, opened_with: list[ModelSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunFolder] = []
    monkeypatch.setattr("dlbricks_tui.api.jobs.start_apart", lambda folder, _: started.append(folder))
    path, memory = model_of(["data"], tmp_path), ShapeMemory(measured.path)
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, "o", f'"{path}"', "enter", '"1,8"', "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert [wish.shapes for wish in opened_with] == [{"data": (1, 8)}]
        assert "dlbricks  data" in screen_text(pilot) and "18 bricks" in screen_text(pilot)
        await press(pilot, "i")
        assert values(pilot) == ["1,8"]
        await press(pilot, "escape", "m", "enter")
        (request,) = [read_request(folder.request_file) for folder in started]
        assert list(request.inputs) == [InputShape("data", (1, 8))]
        memory.remember(source_of(path), {"data": (1, 8)})
        await press(pilot, "1", "i", "ctrl+r")
        assert not memory.recall_shapes(source_of(path))
        assert isinstance(pilot.app.screen, InputShapesScreen) and values(pilot) == [""], "it is asked for again"
        # Those of a model that says its shapes are changed.
        await press(pilot, "escape", "1", "slash", '"resnet18"', "enter", "i")
        assert values(pilot) == ["1,3,224,224"]
        await press(pilot, "home", "delete", '"8"', "enter")
        assert opened_with[-1].shapes == {"data": (8, 3, 224, 224)}


async def test_a_model_that_cannot_be_fused_can_be_given_shapes(
    measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    read = ModelReader.inputs

    def refused(reader: ModelReader, wish: ModelSpec) -> Decomposition:
        raise FusionRefusedError("open: it cannot be fused")

    path = model_of(["x"], tmp_path)
    may_be_read = Event()

    def slowly(reader: ModelReader, wish: ModelSpec) -> dict[str, AskedShape]:
        assert may_be_read.wait(PATIENCE_SECONDS)
        return read(reader, wish)

    with monkeypatch.context() as patched:
        patched.setattr(ModelReader, "decompose_model", refused)
        patched.setattr(ModelReader, "inputs", slowly)
        app = app_on(measured)
        async with running(app) as pilot:
            await press(pilot, "o", f'"{path}"', "enter")
            assert "it cannot be fused" in screen_text(pilot).replace("\n", " ")
            assert "Press f for layers as written." in screen_text(pilot) and "--" not in screen_text(pilot)
            theme = pilot.app.theme
            # The inputs are still being read: the keys run nothing.
            for key in ("i", "comma", "t", "enter", "1", "space"):
                await pilot.press(key)
            await eventually(pilot, lambda: not app._keys._busy and "Reading the inputs" in screen_text(pilot))
            assert isinstance(pilot.app.screen, InputShapesScreen)
            may_be_read.set()
            await settled(pilot)
            assert values(pilot) == [""] and pilot.app.theme == theme
            await press(pilot, '"1,8"')
            assert values(pilot) == ["1,8"]


async def test_given_shapes_are_remembered_after_a_restart(
    measured: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = model_of(["data"], tmp_path)
    ShapeMemory(measured.path).remember(source_of(path), {"data": (1, 8)})
    framework = TableFramework()
    monkeypatch.setattr(
        Frameworks, "loader", lambda found: Loader(measured.cache, framework, memory=ShapeMemory(measured.path))
    )
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{path}"', "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await press(pilot, "i")
        assert values(pilot) == ["1,8"]


async def test_the_fields_follow_what_is_known_of_the_inputs(
    measured: DataFolder, tmp_path: Path, opened_with: list[ModelSpec], monkeypatch: pytest.MonkeyPatch
) -> None:
    def unreadable(reader: ModelReader, wish: ModelSpec) -> dict[str, AskedShape]:
        raise ModelError("open: the file is damaged")

    def lacking(reader: ModelReader, wish: ModelSpec) -> Decomposition:
        raise MissingShapeError("net does not say the shape of: x", {"x": (2, 1, 128)}, tried=True)

    found = {"x": AskedShape((1, 8), (1, 8)), "sr": AskedShape((), (), (16_000,)), "n": AskedShape((), ())}
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, "o", f'"{model_of("xy", tmp_path)}"', "enter", "escape", "1")
        with monkeypatch.context() as patch:
            patch.setattr(ModelReader, "inputs", unreadable)
            await press(pilot, "i")
            assert isinstance(pilot.app.screen, InputShapesScreen) and not values(pilot)
            assert "the file is damaged" in screen_text(pilot) and "Reading the inputs" not in screen_text(pilot)
            await press(pilot, "enter")
            assert isinstance(pilot.app.screen, InputShapesScreen)
            await press(pilot, "escape")
            assert isinstance(pilot.app.screen, WorkbenchScreen)
        monkeypatch.setattr(ModelReader, "inputs", lambda reader, wish: found)
        await press(pilot, "i")
        assert values(pilot) == ["1,8", "16000", ""]
        assert "sr  the value of a single number" in screen_text(pilot)
        await press(pilot, "tab", "end", '"x"', "enter")
        assert "sr: write its value, a number, or nothing" in screen_text(pilot)
        await press(pilot, *["backspace"] * 6, '"8000"', "enter")
        assert [wish.shapes for wish in opened_with] == [{"x": (1, 8), "sr": (), "n": ()}]
        assert [wish.values for wish in opened_with] == [{"sr": (8_000,)}]
        # Shapes that the model runs with are offered.
        monkeypatch.setattr(ModelReader, "decompose_model", lacking)
        await press(pilot, "o", f'"{model_of("x", tmp_path)}"', "enter")
        assert values(pilot) == ["2,1,128"]


def wish(name: str, granularity: int = 1, level: Level = Level.WRITTEN) -> ModelSpec:
    return ModelSpec(source_called(name), level, Cutting(granularity))


@pytest.fixture
def reader(tmp_path: Path) -> ModelReader:
    return ModelReader(DataFolder(tmp_path), SAMPLE_MODELS)


def test_a_model_is_read_once_for_all_cuttings(reader: ModelReader) -> None:
    first, second = reader.open(wish("resnet18_v1")), reader.open(wish("resnet18_v1", 4))
    assert second.graph is first.graph
    assert len(second.occurrences) < len(first.occurrences)


def test_the_last_few_models_are_kept_in_memory(reader: ModelReader) -> None:
    names = LIBRARY[: MOST_KEPT + 1]
    graphs = [reader.open(wish(name)).graph for name in names]
    assert reader.open(wish(names[-1])).graph is graphs[-1]
    assert reader.open(wish(names[0])).graph is not graphs[0]


def test_reading_from_the_cache_starts_no_framework(reader: ModelReader, tmp_path: Path) -> None:
    seen = reader.decompose_cached(wish("resnet18_v1"))
    assert seen is not None and len(seen.graph.layers) == 68
    assert reader.decompose_cached(wish("resnet18_v1", level=Level.FUSED)) is None
    assert not (tmp_path / "log").exists()


def test_a_quantised_copy_is_opened_beside_the_model_where_a_runtime_has_the_precision(
    reader: ModelReader, tmp_path: Path
) -> None:
    usual = ModelSpec(source_of(saved(tmp_path, small())), Level.FUSED, Cutting(1))
    copied = replace(usual, precision=Precision.INT8)
    assert not reader.open(usual).graph.is_quantised
    assert reader.open(copied).graph.is_quantised
    assert reader.decompose_cached(copied) is not None
    with pytest.raises(WrongRuntimeError, match="no runtime here computes MXNet models in int8: choose another prec"):
        reader.open(replace(wish("resnet18_v1"), precision=Precision.INT8))


def test_models_that_cannot_be_read_are_left_out_of_the_corpus(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    gone = Runtime("gone", "/nowhere/python", MXNET.framework, "1.9.1", "3.11.0")
    usual = Registry.preferred_for
    monkeypatch.setattr(
        Registry,
        "preferred_for",
        lambda registry, forms, precision=None: (
            gone if Format.MXNET in forms and gone.computes_in(precision) else usual(registry, forms, precision)
        ),
    )
    writer = SymbolWriter()
    (tmp_path / "gone-symbol.json").write_bytes(writer.render(writer.op("exp", writer.input("data", (1, 8)))))
    damaged, whole = (saved(tmp_path, with_everything(), name) for name in ("damaged", "whole"))
    (tmp_path / "big").write_bytes(bytes(16))
    made = with_everything()
    made.graph.node[4].attribute[0].t.data_type = 99
    damaged.write_bytes(made.SerializeToString())

    specs = [
        ModelSpec(source_of(path), Level.WRITTEN, Cutting(1))
        for path in (tmp_path / "gone-symbol.json", damaged, whole)
    ]
    session = WorkbenchSession(DataFolder(tmp_path / "data"))
    # A busy host also gets comparisons of the models read so far.
    *_, compared = compare_models(session.reader, specs, lambda: True, read_all=True)
    assert [model.name for model in compared.corpus.models] == ["whole"]
    gone_line, damaged_line = compared.refused
    assert gone_line.startswith("gone: cannot start /nowhere/python")
    assert "'filled' is damaged" in damaged_line
    assert session.reader.decompose_cached(specs[1]) is None
