"""Paths are chosen from what there is on the disk: walked to, entered, and taken."""

import json
import stat
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from threading import Event
from typing import Any

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.model_reading import ModelReader, compare_models
from dlbricks_tui.api.new_runs import RunSettings
from dlbricks_tui.api.open_models import AskedShape, ModelSpec
from dlbricks_tui.api.scenarios import ScenarioSettings
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.api.suites import EXPORT
from dlbricks_tui.api.traces import TraceSettings
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import JobFolders, RunFolder
from dlbricks_tui.models.errors import FusionRefusedError, MissingShapeError, ModelError, WrongRuntimeError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import source_of
from dlbricks_tui.runs.request import InputShape, read_request
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import MXNET, Format
from dlbricks_tui.runtime.variant import ANY_VARIANT, Precision
from dlbricks_tui.settings.loads import RATE
from dlbricks_tui.settings.setting import ValueRefusedError
from dlbricks_tui.share.suite_files import key_path, open_suite, read_key
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.dialogs.paths import (
    ANY_FILE,
    OfferedPaths,
    OpenPathScreen,
    PathScreen,
    completions,
)
from dlbricks_tui.tui.language import LanguageSettings, LanguageSettingsPanel
from dlbricks_tui.tui.result_table import ImportScreen
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.run.boxes import RUN_ROWS, JobScreen
from dlbricks_tui.tui.scenario import SCENARIO_ROWS
from dlbricks_tui.tui.trace import TRACE_ROWS
from dlbricks_tui.tui.widgets.form import FormRow, FormRows
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.widgets.rows import CURSOR_SIGN
from dlbricks_tui.tui.workbench.boxes import ExportSuiteScreen, InputShapesScreen, ScoresScreen, SuiteWrittenScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from sample_models.builders.symbol_writer import SymbolWriter
from tests.documents.outlines import sample
from tests.jobs.carrying import stands_for_processes
from tests.models.onnx_models import saved, small, with_everything
from tests.runs.live_runs import in_the_middle, put_run
from tests.runs.runs import ROOT
from tests.share.trio import Trio
from tests.tui.application import MEASURED_ONLY, SIZES, app_on, running, showing
from tests.tui.driving import PATIENCE_SECONDS, eventually, find, press, screen_text, settled, shows, told, words
from tests.tui.results import source_called
from tests.tui.test_runs import OPEN_ALEXNET


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The current folder: two folders, and files in them and beside them."""
    here = tmp_path / "here"
    for name in ("deep/deeper", "empty"):
        (here / name).mkdir(parents=True)
    (here / "deep" / "mine.json").write_text("milk")
    (here / "deep" / "yours.json").write_text("bread")
    (here / "notes.txt").touch()
    monkeypatch.chdir(here)
    return here


def typed(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one(Field).value


def offered(pilot: Pilot[None]) -> tuple[str, ...]:
    return pilot.app.screen.query_one(OfferedPaths).items


def under_cursor(pilot: Pilot[None]) -> list[str]:
    """The row with the cursor, as it is on the screen."""
    rows = pilot.app.screen.query_one(OfferedPaths)
    drawn = [rows.render_line(y).text.rstrip() for y in range(rows.size.height)]
    return [text.removeprefix(CURSOR_SIGN) for text in drawn if text.startswith(CURSOR_SIGN)]


async def test_a_path_is_typed_completed_or_chosen_from_a_list(stored: DataFolder, folder: Path) -> None:
    async with showing(stored, ResultsScreen, SIZES[0]) as pilot:
        await press(pilot, "i", on=ImportScreen)
        assert offered(pilot) == ("deep/", "empty/", "notes.txt")
        assert "deep/" in screen_text(pilot) and "notes.txt" in screen_text(pilot) and under_cursor(pilot) == []
        await press(pilot, "enter", shows="Type a path first.")
        await press(pilot, "up")
        assert under_cursor(pilot) == []
        await pilot.click(OfferedPaths, offset=(3, 2))
        await press(pilot)
        assert under_cursor(pilot) == ["notes.txt"]
        await press(pilot, '"zzz"', shows="No file or folder here begins like this.")
        await press(pilot, "down", "up", "tab")
        assert typed(pilot) == "zzz" and under_cursor(pilot) == []
        # Tab completes the typed path or takes the chosen name.
        await press(pilot, "ctrl+u", '"d"', "tab")
        assert typed(pilot) == "deep/"
        await press(pilot, "down", "down", "down", "tab")
        assert typed(pilot) == "deep/yours.json" and isinstance(pilot.app.screen, PathScreen)
        # Moving up from the first name restores the typed path.
        await press(pilot, "ctrl+u", '"deep/mi"', "down")
        assert under_cursor(pilot) == ["mine.json"]
        await press(pilot, "up", "enter")
        assert under_cursor(pilot) == [] and "There is no deep/mi" in screen_text(pilot)
        await press(pilot, "down", '"n"')
        assert typed(pilot) == "deep/min" and under_cursor(pilot) == [] and "There is no" not in screen_text(pilot)
        # The cursor reaches a file through folders.
        await press(pilot, "ctrl+u", "down")
        assert under_cursor(pilot) == ["deep/"]
        await press(pilot, "enter")
        assert typed(pilot) == "deep/" and under_cursor(pilot) == []
        assert offered(pilot) == ("deep/deeper/", "deep/mine.json", "deep/yours.json")
        await press(pilot, "down", "ctrl+n")
        assert under_cursor(pilot) == ["mine.json"]
        await press(pilot, "down", "down", "ctrl+p")
        assert under_cursor(pilot) == ["mine.json"]
        await press(pilot, "enter", on=ErrorScreen)
        assert "mine.json" in screen_text(pilot) and "nothing was imported" in screen_text(pilot)


UNUSABLE = (
    (300 * "x", "cannot be used: File name too long"),
    (f"deep/{300 * 'x'}/net.onnx", "cannot be used: File name too long"),
    ("~nobody-of-this-name/net.onnx", "cannot be used: Could not determine home directory"),
    ("loop/net.onnx", "There is no loop/net.onnx"),
    ("a\x00b", "There is no a\\x00b"),
)


async def test_a_path_that_no_file_can_have_is_one_line(measured: DataFolder, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "deep" / "my-net-symbol.json").write_text("{}")
    async with running(app_on(measured, MEASURED_ONLY), SIZES[0]) as pilot:
        await press(pilot, "o")
        screen = pilot.app.screen
        assert isinstance(screen, PathScreen)
        for text, said in UNUSABLE:
            # Pasted at once, as by a terminal.
            screen.query_one(Field).value = text
            await press(pilot, "enter")
            shown = " ".join(screen_text(pilot).split())
            assert pilot.app.screen is screen
            assert all(word in shown for word in said.split())
        # A folder of models is entered by the cursor, and opened by its path.
        await press(pilot, "ctrl+u", "down", "enter", on=OpenPathScreen)
        assert offered(pilot) == ("deep/deeper/", "deep/my-net-symbol.json")
        await press(pilot, "enter", on=WorkbenchScreen)
        assert "1 Models 8" in screen_text(pilot) and "my-net" in screen_text(pilot)


def test_folders_and_files_are_offered_of_the_wanted_endings_and_none_that_are_hidden(folder: Path) -> None:
    (folder / ".hidden").mkdir()
    for name in ("net-symbol.json", "net-symbol.json.gz", "net.onnx", "net-0000.params"):
        (folder / name).touch()
    assert completions("") == ("deep/", "empty/", "net-symbol.json", "net-symbol.json.gz", "net.onnx")
    assert completions("net.") == ("net.onnx",) and completions("deep/") == ("deep/deeper/",)
    assert completions(f"{folder}/ne") == tuple(f"{folder}/{name}" for name in completions("ne"))


def test_a_link_in_a_circle_hides_no_other_name(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    assert completions("", ANY_FILE) == ("deep/", "empty/", "loop", "notes.txt")
    assert completions("~nobody-of-this-name/x") == completions(f"{300 * 'x'}/") == completions("a\x00/b") == ()


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
        await press(pilot, "o", f'"{model_of("x", tmp_path)}"', "enter", on=InputShapesScreen)
        assert "does not say the shape of: x" in screen_text(pilot).replace("\n", " ")
        await press(pilot, '"1"', "comma", '"x"', "enter", shows="x: write its shape like 1,3,224,224")
        await press(pilot, "escape", on=WorkbenchScreen)
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
    measured: DataFolder, tmp_path: Path, opened_with: list[ModelSpec], asked_for: list[RunFolder]
) -> None:
    path, memory = model_of(["data"], tmp_path), ShapeMemory(measured.path)
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, "o", f'"{path}"', "enter", '"1,8"', "enter", on=WorkbenchScreen)
        assert [wish.shapes for wish in opened_with] == [{"data": (1, 8)}]
        assert "dlbricks  data" in screen_text(pilot) and "18 bricks" in screen_text(pilot)
        await press(pilot, "i")
        assert values(pilot) == ["1,8"]
        await press(pilot, "escape", "m", "enter")
        (request,) = [read_request(folder.request_file) for folder in asked_for]
        assert list(request.inputs) == [InputShape("data", (1, 8))]
        memory.remember(source_of(path), {"data": (1, 8)})
        await press(pilot, "1", "i", "ctrl+r")
        assert not memory.recall_shapes(source_of(path))
        assert isinstance(pilot.app.screen, InputShapesScreen) and values(pilot) == [""], "it is asked for again"
        # Those of a model that says its shapes are changed.
        await press(pilot, "escape", "1", *find("resnet18"), "i")
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
            await press(pilot, "enter", on=InputShapesScreen)
            await press(pilot, "escape", on=WorkbenchScreen)
        monkeypatch.setattr(ModelReader, "inputs", lambda reader, wish: found)
        await press(pilot, "i")
        assert values(pilot) == ["1,8", "16000", ""]
        assert "sr  the value of a single number" in screen_text(pilot)
        await press(pilot, "tab", "end", '"x"', "enter", shows="sr: write its value, a number, or nothing")
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
        lambda registry, forms, asked=ANY_VARIANT: (
            gone if Format.MXNET in forms and gone.can_have(asked) else usual(registry, forms, asked)
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


_TWO = ("mxnet", "openvino")
FORMS: dict[str, tuple[tuple[FormRow, ...], Any]] = {
    "run": (RUN_ROWS, RunSettings(registered=_TWO, runtime=("mxnet",))),
    "scenario": (SCENARIO_ROWS, ScenarioSettings(runtimes=_TWO)),
    "trace": (TRACE_ROWS, TraceSettings(registered=_TWO, runtime="mxnet")),
    "language": (LanguageSettingsPanel.ROWS, LanguageSettings(registered=_TWO)),
}
ROWS = [pytest.param(row, form, id=f"{name}-{row.name}") for name, (rows, form) in FORMS.items() for row in rows]
NUMBERS = [it for it in ROWS if it.values[0].setting.kind.is_number]  # type: ignore[union-attr]


@pytest.mark.parametrize(("row", "form"), ROWS)
def test_each_setting_steps_through_its_values_and_comes_back(row: FormRow, form: Any) -> None:
    seen = [row.shown(form)]
    stepped = row.stepped(form, 1)
    while row.shown(stepped) not in seen and len(seen) < 100:
        seen.append(row.shown(stepped))
        assert row.stepped(row.stepped(stepped, 1), -1) == stepped
        stepped = row.stepped(stepped, 1)
    assert row.shown(stepped) in seen
    # There is no usual rate beside the highest.
    assert len(seen) > 1 or row.setting is RATE


def test_a_long_value_moves_the_meanings_of_all_rows() -> None:
    rows = FormRows(RUN_ROWS, RunSettings(registered=_TWO, runtime=("mxnet", "onnxruntime", "openvino")), print)
    lines = [rows.row(index, 100) for index in range(len(RUN_ROWS))]
    assert len({width_of(line[:2]) for line in lines}) == 1


@pytest.mark.parametrize(("row", "form"), NUMBERS)
@pytest.mark.parametrize("text", ["nan", "-1", "0", "inf", "1e99", "much", "1,,2"])
def test_no_setting_takes_a_text_that_is_no_value(row: FormRow, form: Any, text: str) -> None:
    with pytest.raises(ValueRefusedError, match=r"^give "):
        row.written(form, text)


@pytest.mark.parametrize(("row", "form"), NUMBERS)
def test_a_value_is_written_as_it_is_read(row: FormRow, form: Any) -> None:
    stepped = row.stepped(form, 1)
    assert row.written(form, row.as_written(stepped)) == stepped
    usual = row.written(stepped, "")
    assert getattr(usual, row.field) == (row.nothing if row.usual else row.setting.default)


# The process of an export, with a framework of the owner that is a table instead of MXNet.
EXPORTS = """
import sys
from contextlib import nullcontext
from dlbricks_tui.api import suites as exporting
from dlbricks_tui.runtime.variant import Precision
from tests.models.table_framework import TableFramework
class TableOfTheOwner(TableFramework):
    precision = Precision.F32
exporting.WorkerFramework = lambda *_: nullcontext(TableOfTheOwner())
exporting.export_in_process(*sys.argv[1:])
"""
# A process that says how far it is, and waits until it is ended.
WAITS = """
import signal, sys
from dlbricks_tui.api.suites import EXPORT
from dlbricks_tui.jobs.process import work_in_process
from dlbricks_tui.share.exporting import BricksChecked
def work(job):
    job.tell(BricksChecked(7, 20, 12.0))
    with job.signals.waiting():
        signal.pause()
sys.exit(work_in_process(EXPORT, *sys.argv[1:], work))
"""


@pytest.mark.mxnet
async def test_the_open_model_or_marked_ones_are_exported_and_the_key_stays_here(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    file = tmp_path / "suite.dlbricks"
    stands_for_processes(monkeypatch, "-c", EXPORTS)
    monkeypatch.setenv("PYTHONPATH", str(ROOT))
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", *OPEN_ALEXNET, "e", f'"{file}"', "enter")
        await eventually(pilot, lambda: isinstance(pilot.app.screen, SuiteWrittenScreen))
        await settled(pilot)
        shown = words(pilot)

        # Marked models are exported as they are cut.
        stands_for_processes(monkeypatch, "-c", WAITS)
        await press(pilot, "escape", "1", "slash", "escape", "g", "j", "space", "space", "plus")
        await pilot.press("e")
        await press(pilot, f'"{tmp_path}/two.dlbricks"')
        await pilot.press("enter")
        await shows(pilot, "7 of 20 bricks checked, about 12 s left")
        assert isinstance(pilot.app.screen, JobScreen)
        # It goes on without its box, which the same key opens again.
        await pilot.press("escape", "e")
        await shows(pilot, "7 of 20 bricks checked")
        await pilot.press("x")
        await shows(pilot, "cancelled: it was cancelled")
        await pilot.press("escape")
        await eventually(pilot, lambda: told(pilot)[-1:] == ["The export is cancelled; nothing was written."])
        # The next one can begin.
        await press(pilot, "e", on=ExportSuiteScreen)
    _, job = JobFolders(new.jobs).folders()
    assert len(EXPORT.request_of(job).sources) == 2
    assert stat.S_IMODE(job.path.stat().st_mode) == 0o700
    manifest = open_suite(file).manifest
    (key_file,) = (new.path / "suites").iterdir()
    key = read_key(key_path(new, manifest.suite))
    assert key_file == key_path(new, manifest.suite) and stat.S_IMODE(key_file.stat().st_mode) == 0o600
    assert key.models == ("alexnet",) and len(key.meanings) + len(key.decoys) == len(manifest.bricks)
    assert f"{len(key.meanings)} bricks of yours among {len(key.decoys)} of 3 decoys" in shown
    assert "dlbricks suite run suite.dlbricks -o results.json" in shown and "results.json here: R i" in shown


async def test_an_export_needs_a_model_a_new_file_and_no_run_that_measures(new: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "old.dlbricks").touch()
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", *find("nosuch"), "e", "1", "escape")
        assert told(pilot) == ["Mark the models to export with space, or open one."]
        await press(pilot, *OPEN_ALEXNET, "e", f'"{tmp_path}/old.dlbricks"', "enter")
        assert "exists already: name a new file" in words(pilot)
        await press(pilot, "ctrl+u", '"/no/such/folder/x.dlbricks"', "enter")
        assert "No such folder: /no/such/folder" in words(pilot)
        await press(pilot, "escape")
        put_run(new, in_the_middle())
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "e")
        assert isinstance(pilot.app.screen, WorkbenchScreen) and told(pilot)[-1].startswith("A run measures now")
    assert not (new.path / "suites").exists()


async def test_results_of_a_suite_are_imported_like_any_file_unless_they_are_damaged_or_have_no_key(
    new: DataFolder, tmp_path: Path
) -> None:
    (tmp_path / "trio").mkdir()
    trio = Trio(tmp_path / "trio")
    trio.export()
    trio.run()
    async with showing(trio.owner.data, ResultsScreen) as pilot:
        await press(pilot, "i", f'"{trio.results}"', "enter")
        reading, first = told(pilot)
        assert reading == "Reading results.json."
        measurements = trio.owner.contents().measurements
        bricks = len({it.brick for it in measurements})
        assert first.startswith(f"{bricks} new bricks of yours, 0 known; 0 failed there, 0 not measured. ")
        assert f"esc S lists the systems: select {measurements[0].system}" in first
        await press(pilot, "i", f'"{trio.results}"', "enter")
        assert told(pilot)[-1].startswith(f"0 new bricks of yours, {bricks} known; ")
    changed = tmp_path / "changed.json"
    changed.write_text(trio.results.read_text().replace('"minimum_ms": ', '"minimum_ms": 9', 1))
    async with showing(new, ResultsScreen) as pilot:
        for path, why in ((trio.results, "there is no key"), (changed, "it was damaged or changed")):
            await press(pilot, "i", f'"{path}"', "enter")
            assert isinstance(pilot.app.screen, ErrorScreen) and why in words(pilot)
            await press(pilot, "escape")
    assert not new.store.exists()


async def test_a_key_opens_the_scores(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "P", on=ScoresScreen)
        shown = screen_text(pilot)
        assert "resnet18_v1" in shown and "1 predicted from the results of other models" in shown
        await press(pilot, "escape")
        assert not isinstance(pilot.app.screen, ScoresScreen)
