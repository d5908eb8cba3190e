import json
import re
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.model_reading import ModelReader, Refusal
from dlbricks_tui.api.open_models import Choices, ModelSpec
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.documents.run import UnderWay
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.models.frameworks import Frameworks
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.settings.variant import THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import OLDEST_FIRST
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.dialogs.commands import HelpScreen, PaletteScreen
from dlbricks_tui.tui.dialogs.notices import ErrorScreen, WelcomeScreen
from dlbricks_tui.tui.dialogs.paths import OpenPathScreen
from dlbricks_tui.tui.language import LanguageScreen
from dlbricks_tui.tui.widgets import screens
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.workbench.estimate import EstimatePanel, EstimateRows, LayerStop, problem_note
from dlbricks_tui.tui.workbench.model_columns import ModelOrder
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import FIRST_SAMPLE, WorkbenchScreen
from dlbricks_tui.tui.workbench.tree import DetailsPanel, TreePanel
from dlbricks_tui.wording import numbers
from tests.models.table_framework import TableFramework
from tests.store.samples import measurement
from tests.tui.application import (
    LIBRARY,
    MEASURED_ONLY,
    MEDIUM,
    NARROW,
    NOW,
    WIDE,
    WRITTEN,
    app_on,
    running,
    small_library,
)
from tests.tui.driving import eventually, find, press, screen_text, settled, told
from tests.tui.snapshots import resize

RESNET = (*find("resnet18"), "enter")
WELCOME = ("Welcome to dlbricks", "measure squeezenet1.1")


def panels_of(pilot: Pilot[None]) -> dict[str, Panel]:
    return {panel.reached_by.removeprefix("workbench.go_to_"): panel for panel in pilot.app.screen.query(Panel)}


def panel_with_focus(pilot: Pilot[None]) -> str | None:
    return next((name for name, panel in panels_of(pilot).items() if panel.has_focus_within), None)


def marked(pilot: Pilot[None]) -> list[str]:
    return [source.name for source in pilot.app.screen.query_one(ModelsPanel).marked]


def again_on(data: DataFolder, choices: Choices = WRITTEN, model: Path | None = None) -> DlbricksApp:
    """Return the application as it is started once more on a data folder with its small library."""
    return DlbricksApp(WorkbenchSession(data, data.path / "samples"), choices, model=model)


@pytest.fixture
def own(tmp_path: Path, measured: DataFolder, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A model outside of the library, as quick as one of it, with results: a table stands in for MXNet."""
    file = tmp_path / "mine" / "my-net-symbol.json"
    file.parent.mkdir()
    file.write_bytes((SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json").read_bytes())

    begin = Frameworks.__init__

    def begin_with_table(found: Frameworks, *args: Any, **options: Any) -> None:
        begin(found, *args, **options)
        found.loader = Loader(measured.cache, TableFramework(found._workers[Format.MXNET].identity))

    monkeypatch.setattr(Frameworks, "__init__", begin_with_table)
    return file


# The models


async def test_models_are_listed_searched_and_marked_for_a_run(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        shown, models = screen_text(pilot), pilot.app.screen.query_one(ModelsPanel)
        assert all(name in shown for name in LIBRARY) and "Welcome" not in shown
        assert "No model is open." in shown and "enter in the list of models opens one." in shown
        assert panel_with_focus(pilot) == "models"
        # A heading between them is passed.
        await press(pilot, "space", "j", "space", "space")
        assert len(marked(pilot)) == 2 and "2 marked" in screen_text(pilot)
        await press(pilot, "slash", '"res 18"', shows="1 Models 1 of 7")
        await press(pilot, "enter")
        assert panel_with_focus(pilot) == "models"
        await press(pilot, "slash", "escape", shows="1 Models 7")
        # Task and path are searched as well.
        await press(pilot, "slash", '"image gluon/vgg"')
        assert models.selected is not None and models.selected.name == "vgg16"
        await press(pilot, "ctrl+u", '"res"', "enter", "a")
        assert set(marked(pilot)) >= {"resnet18_v1", "resnet50_v1"}
        await press(pilot, "a")
        assert set(marked(pilot)).isdisjoint({"resnet18_v1", "resnet50_v1"})
        await press(pilot, "escape", "a", "a")
        assert marked(pilot) == []
        await press(pilot, *find("vgg"), "space", *find("resnet18"), "space", shows="2 marked, 1 hidden")
        await press(pilot, "m", shows="The search hides 1 of 2 marked models.")
        await press(pilot, "enter", shows="Run resnet18_v1 ")
        await press(pilot, "escape", "m", "a", shows="Run resnet18_v1, vgg16 ")


async def test_ages_of_results_are_told_anew_while_a_screen_stays_open(
    measured: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(screens, "SECONDS_BETWEEN_AGES", 0.05)
    async with running(app_on(measured), WIDE) as pilot:
        await press(pilot, *find("resnet18"), "enter", shows="measured 6 h ago")
        monkeypatch.setattr(numbers, "now", lambda: NOW + 86_400.0)
        await eventually(pilot, lambda: screen_text(pilot).count("measured 30 h ago") == 2)
        assert re.search(r"resnet18_v1 .* 30 h ", screen_text(pilot))
        await press(pilot, "A", shows="measured 30 h ago")
        monkeypatch.setattr(numbers, "now", lambda: NOW + 3 * 86_400.0)
        await eventually(pilot, lambda: "measured 3 d ago" in screen_text(pilot))


async def test_a_restart_lists_the_estimates_without_reading_models_until_results_change(
    measured: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    measured.cache.mkdir(exist_ok=True)
    damaged = measured.cache / "latencies.json"
    damaged.write_text('{"state": 3, "known": [')
    async with running(app_on(measured), (112, 24)) as pilot:
        before = [line[:32] for line in screen_text(pilot).splitlines()]
        assert any("14.56" in line for line in before)

    def refuse(reader: ModelReader, wish: ModelSpec) -> None:
        raise AssertionError(f"{wish.source.name} was read")

    with monkeypatch.context() as patch:
        patch.setattr(ModelReader, "decompose_cached", refuse)
        async with running(again_on(measured), (112, 24)) as pilot:
            assert [line[:32] for line in screen_text(pilot).splitlines()] == before
    with ResultsDatabase(measured.store) as store:
        store.delete(store.select(order=OLDEST_FIRST).values("id"))
        store.add(measurement())
    async with running(again_on(measured), (112, 24)) as pilot:
        assert not any(figure in screen_text(pilot) for figure in ("14.56", "14.24"))


async def test_the_list_follows_results_that_are_deleted_and_restored(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY), (112, 24)) as pilot:
        await press(pilot, "R", "a", "d", "y", "escape", on=WorkbenchScreen)
        assert "14.56" not in screen_text(pilot) and "Nothing was measured here yet" in screen_text(pilot)
        await press(pilot, "R", "u", "escape", on=WorkbenchScreen, shows="14.56")


async def test_a_long_list_moves_by_lines_pages_and_ends(new: DataFolder) -> None:
    async with running(DlbricksApp(WorkbenchSession(new), MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "escape")
        models = pilot.app.screen.query_one(ModelsPanel)
        await press(pilot, *["j"] * 6, "l", "g")
        cursor = []
        for key in ("j", "down", "k", "ctrl+d", "up", "ctrl+u", "G", "g", "pagedown", "pageup", "end", "home"):
            await press(pilot, key)
            cursor.append(models.rows.cursor)
        # It skips headings of families.
        stops = [at for at in range(models.rows.row_count) if models.rows.can_select(at)]
        first, last, page = stops[0], stops[-1], models.rows.size.height - 1

        def after(index: int) -> int:
            return next(at for at in stops if at >= index)

        below = after(stops[1] + page)
        above = stops[stops.index(below) - 1]
        before = max(at for at in stops if at <= above - page)
        assert len(stops) < models.rows.row_count and cursor[:6] == [stops[1], stops[2], stops[1], below, above, before]
        assert cursor[6:] == [last, first, after(first + page), first, last, first]


# The open model


@pytest.mark.usefixtures("library_without_latencies")
async def test_the_opened_model_shows_its_estimate_which_follows_the_settings(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        tree, rows = pilot.app.screen.query_one(TreePanel), pilot.app.screen.query_one(EstimateRows)
        await press(pilot, "2", "s")
        assert "No latency" in told(pilot)[-1]
        await press(pilot, "1", *RESNET)
        shown = screen_text(pilot)
        assert "resnet18_v1  14.56 ms measured" in shown
        assert "14.56 ms: MXNet, 2 threads" in shown and "14.24 ms" in shown
        assert panel_with_focus(pilot) == "models"
        await press(pilot, "4", "j", "k")
        slowest = rows.here
        assert isinstance(slowest, LayerStop)
        await press(pilot, "j")
        assert "Slowest layers" in screen_text(pilot) and rows.here not in (None, slowest)
        await press(pilot, "enter")
        assert tree.rows.has_focus and rows.here == LayerStop(tree.selected_layer or 0)
        await press(pilot, "4", "k", "l")
        assert tree.selected_layer == slowest.layer
        await press(pilot, "1", "2", "s")
        assert "2 Decomposition 68 of 68, by time" in screen_text(pilot) and tree.selected_layer == slowest.layer
        await press(pilot, "s")
        assert "by time" not in screen_text(pilot) and tree.selected_layer == slowest.layer
        await press(pilot, "equals_sign", shows="▸runtime")
        await press(pilot, "j", "j", "j", "l", shows="resnet18_v1  29.11 ms measured")
        await press(pilot, "plus", shows="bricks of up to 2 layers")


async def test_a_narrow_terminal_shows_one_panel_and_the_opened_model(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        panels = list(panels_of(pilot))
        await press(pilot, "4", "slash", '"vgg"')
        assert "1 Models 1 of 7" in screen_text(pilot), "a panel without a search searches the models"
        await press(pilot, "escape", "4")
        assert panel_with_focus(pilot) == "estimate" and "Models" not in screen_text(pilot)
        await press(pilot, "j", "1")
        assert panel_with_focus(pilot) == "models" and "Estimate" not in screen_text(pilot)
        await press(pilot, "4")
        await press(pilot, "1", *RESNET)
        head, shown = screen_text(pilot).splitlines()[0], screen_text(pilot)
        assert panel_with_focus(pilot) == "estimate" and "14.56 ms: MXNet" in shown and "1 Models" not in shown
        # The headline leaves out figures that do not fit whole.
        assert head.split("  ")[-1].strip() == "written" and "14.56 ms measured" in head and "batch" not in head
        await press(pilot, "2")
        assert panel_with_focus(pilot) == "tree" and "28 bricks" in screen_text(pilot)
        await press(pilot, "equals_sign")
        assert panel_with_focus(pilot) == "estimate" and "▸runtime" in screen_text(pilot)
        seen = []
        for _ in panels:
            await press(pilot, "tab")
            seen.append(panel_with_focus(pilot))
        assert seen == [panels[(panels.index("estimate") + 1 + at) % len(panels)] for at in range(len(panels))]
        await press(pilot, "1", "shift+tab")
        assert panel_with_focus(pilot) == panels[-1]
        await press(pilot, "Z", "1")
        assert any("one panel at a time" in message for message in told(pilot))
        await resize(pilot, MEDIUM)
        assert "1 Models" in screen_text(pilot) and "4 Estimate" in screen_text(pilot)
        await resize(pilot, NARROW)
        assert panel_with_focus(pilot) == "models"


async def test_the_answer_stays_in_view_until_the_user_goes_further(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, *RESNET, "4", "full_stop", shows="14.56 ms: MXNet, 2 threads, batch 1,")
        rows = pilot.app.screen.query_one(EstimateRows)
        first = rows.cursor
        assert not rows.has_cursor and rows.here is None
        await press(pilot, "j")
        assert rows.has_cursor and rows.cursor == first
        # The cursor is in view.
        assert rows.scroll_offset.y <= rows.cursor < rows.scroll_offset.y + rows.size.height
        await press(pilot, "k", "k", shows="14.56 ms: MXNet, 2 threads, batch 1,")
        # Another model begins with its answer, too.
        await press(pilot, "1", *find("squeeze"), "enter", "4", "j", shows="46 % is predicted: 26 of 66 layers")


async def test_the_cursor_stays_on_its_line_while_the_estimate_changes(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, WorkbenchScreen)
        panel = screen.query_one(EstimatePanel)
        await press(pilot, *RESNET, "equals_sign", "j")
        explained = screen._view
        assert explained is not None
        for change in (
            panel.show_waiting,
            lambda: panel.show(problem_note("estimated", "a reason that is as long as several lines " * 4, "")),
            lambda: panel.show_run(UnderWay("a run of it is on its way")),
            panel.show_waiting,
        ):
            change()
            await settled(pilot)
            assert "▸threads" in screen_text(pilot) and panel._list.here is THREADS
        # A line that disappears moves the cursor to no setting.
        panel.show(explained)
        await press(pilot, "G")
        line, before = panel._list.cursor, screen.choices
        assert isinstance(panel._list.here, int)
        panel.show_waiting()
        await press(pilot, "l", "h")
        panel.show(problem_note("estimated", "a text of several lines " * 9, ""))
        await press(pilot, "l", "h", "h")
        assert screen.choices == before
        panel.show(explained)
        await settled(pilot)
        assert panel._list.cursor == line and panel._list.has_cursor
        panel.show_waiting()
        await press(pilot, "g", "j", "j", "l")
        assert screen.choices == replace(before, batch=1)


# Keys


@pytest.mark.usefixtures("library_without_latencies")
async def test_keys_change_the_settings(measured: DataFolder) -> None:
    async with running(app_on(measured), (120, 60)) as pilot:

        async def shows(*keys_and_lines: tuple[str, str]) -> None:
            for keys, line in keys_and_lines:
                await press(pilot, *keys.split())
                assert line in screen_text(pilot), keys

        await shows(
            ("full_stop", "granularity ◂ 1 ▸"),
            ("plus plus", "granularity ◂ 3 ▸"),
            ("minus", "granularity ◂ 2 ▸"),
            ("minus", "granularity ◂ 1 ▸"),
            ("minus", "granularity ◂ 1 ▸"),
            ("f", "level       ◂ fused ▸"),
            ("f", "level       ◂ written ▸"),
            ("equals_sign h", "runtime     ◂ mxnet, 2 threads ▸"),
            ("l j l", "threads     ◂ 2 ▸"),
            ("h j l", "batch       ◂ 1 ▸"),
            ("h j l", "system      ◂ c5.xlarge, 4 cores ▸"),
            ("h j l", "precision   ◂ bf16 ▸"),
            ("h j j j j j l", "order       ◂ paper ▸"),
        )
        assert [it[:42] for it in told(pilot)] == ["The granularity is a whole number from 1 t"]


async def test_the_help_and_the_palette_know_the_keys_of_the_panel(measured: DataFolder) -> None:
    app = app_on(measured)
    async with running(app, (120, 86)) as pilot:
        panels = list(panels_of(pilot))
        await press(pilot, "question_mark", on=HelpScreen)
        shown = screen_text(pilot)
        for words in ("In the list of models", "Mark all models in view", "In every list"):
            assert words in shown
        await press(pilot, "escape", "o", "f1", shows="In this box")
        await press(pilot, "escape", "escape", "full_stop", "colon", '"one layer more"', "enter")
        assert not isinstance(pilot.app.screen, PaletteScreen)
        assert "granularity ◂ 2 ▸" in screen_text(pilot)
        await press(pilot, "ctrl+p", '"view"', "down", "up", "enter")
        assert len(marked(pilot)) == 7
        # Commands are selected in both directions.
        await press(pilot, "colon", '"go panel"', "down", "enter")
        assert panel_with_focus(pilot) == panels[-1]
        await press(pilot, "colon", '"go panel"', "ctrl+n", "ctrl+p", "enter")
        assert panel_with_focus(pilot) == panels[0]
        await press(pilot, "colon", '"go panel"', "down", "down", "up", "up", "enter")
        assert panel_with_focus(pilot) == panels[1]
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running or app._exit


# The look


async def test_the_look_of_the_workbench_is_changed_and_remembered(measured: DataFolder) -> None:
    async with running(app_on(measured), WIDE) as pilot:
        screen = pilot.app.screen
        models, details, tree = (
            screen.query_one(ModelsPanel),
            screen.query_one(DetailsPanel),
            screen.query_one(TreePanel),
        )
        await press(pilot, "s", "s", shows=("1 Models 7, by time", "▾ms"))
        assert isinstance(models, ModelsPanel)
        first = models.found[0]
        await press(pilot, "c", *["j"] * 6, "space", "space", "enter", shows="measured")
        await resize(pilot, MEDIUM)
        width, height = models.outer_size.width, details.outer_size.height
        await press(pilot, "greater_than_sign", "greater_than_sign", "less_than_sign", "right_square_bracket")
        assert models.outer_size.width == width + 4
        assert told(pilot)[-1] == "This panel cannot be resized further that way."
        await press(pilot, "3", "right_square_bracket", "right_square_bracket", "left_square_bracket")
        assert details.outer_size.height > height
        await press(pilot, "4", "right_square_bracket", "right_square_bracket")
        assert details.outer_size.height < height
        assert "order       ◂" not in screen_text(pilot) and ". shows workers, errors, coverage" in screen_text(pilot)
        await press(pilot, "full_stop", shows="order       ◂ branch ▸")
        # The box before a run follows.
        await press(pilot, *RESNET, "m", shows="target interval")
        await press(pilot, "escape", "4")
        before = tree.outer_size.width
        await press(pilot, "2", "Z")
        assert tree.outer_size.width == MEDIUM[0] and "1 Models" not in screen_text(pilot)
        await press(pilot, "1")
        assert "2 Decomposition" not in screen_text(pilot) and "1 Models" in screen_text(pilot)
        await press(pilot, "2", "Z")
        assert tree.outer_size.width == before and "1 Models" in screen_text(pilot)
    async with running(again_on(measured), MEDIUM) as pilot:
        panel = pilot.app.screen.query_one(ModelsPanel)
        assert panel.outer_size.width == width + 4
        assert panel.sorted_by is ModelOrder.TIME and panel.found[0] == first
        assert "measured" in [each.name for each in panel.columns]
        assert "order       ◂ branch ▸" in screen_text(pilot)
        await press(pilot, "full_stop")
        assert "order       ◂" not in screen_text(pilot)
        await press(pilot, *RESNET, shows="14.56 ms: MXNet, 2 threads, batch 1,")
        # Another layout has sizes of its own: a wide list shows names whole, and takes no more than it needs.
        await resize(pilot, WIDE)
        assert panel.outer_size.width == 75


# Files


async def test_a_file_is_opened_by_its_path_and_listed_until_it_is_removed(measured: DataFolder, own: Path) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{own.parent.parent}/mi"', "tab", "tab", on=OpenPathScreen)
        await press(pilot, "enter", shows=("1 Models 8", "dlbricks  my-net"))
        await press(pilot, *RESNET, "o", shows="my-net-symbol.json  opened lately")
        await press(pilot, "down", "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen) and "my-net" in screen_text(pilot).splitlines()[0]
        await press(pilot, "1")
        assert "14.56" in line_of(pilot, "my-net")
    own.write_text("{}")
    async with running(again_on(measured)) as pilot:
        assert "1 Models 8" in screen_text(pilot)
        assert "14.56" not in line_of(pilot, "my-net"), "the file has changed"
        # It was opened lately, so it comes first.
        await press(pilot, "d")
        assert "1 Models 7" in screen_text(pilot) and own.exists() and "my-net was removed" in told(pilot)[-1]
        await press(pilot, "d")
        assert isinstance(pilot.app.screen, ErrorScreen) and "comes with dlbricks" in pilot.app.screen._error


def line_of(pilot: Pilot[None], model: str) -> str:
    """Return the row of a model in the list."""
    (line,) = [line[:32] for line in screen_text(pilot).splitlines()[1:] if f" {model} " in line[:32]]
    return line


async def test_paths_that_hold_no_model_are_refused(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    (tmp_path / "README.md").write_text("# Nets")
    (tmp_path / "broken-symbol.json").write_text("{")
    app = app_on(measured)
    async with running(app) as pilot:
        await press(pilot, "o", "enter", shows="Type a path first.")
        await press(pilot, '"nosuch"', "enter", shows="There is no nosuch")
        await press(pilot, "ctrl+u", f'"{tmp_path}/empty"', "enter", on=ErrorScreen, shows="Error")
        await press(pilot, "y")
        assert app.clipboard == f"{tmp_path}/empty holds no *-symbol.json or *.onnx file, here or below"
        for name in ("README.md", "broken-symbol.json"):
            await press(pilot, "escape", "o", "ctrl+u", f'"{tmp_path}/{name}"', "enter", on=ErrorScreen)
        await press(pilot, "escape", shows=("1 Models 7", "No model is open."))
        # In a folder it is listed.
        await press(pilot, "o", f'"{tmp_path}"', "enter", shows=("1 Models 8", "broken"))
        assert json.loads((measured.path / "model-folders.json").read_text())["folders"] == [str(tmp_path)]
        await press(pilot, *find("broken"), "enter", shows="This model cannot be estimated.")
        assert "This model cannot be shown." in screen_text(pilot)
        await resize(pilot, NARROW)
        await press(pilot, "2")
        # The reason is shown in full.
        shown = screen_text(pilot)
        assert "broken is not JSON: Expecting property name" in shown and "column 2 (char 1)" in shown


async def test_a_path_given_at_the_start_is_opened_or_reported(measured: DataFolder, own: Path, tmp_path: Path) -> None:
    small_library(measured.path / "samples")
    async with running(again_on(measured, model=own)) as pilot:
        assert "1 Models 8" in screen_text(pilot) and "dlbricks  my-net" in screen_text(pilot)
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert [it.path for it in pilot.app.screen.view.recent] == [own]
    (tmp_path / "my-net.onnx").write_text("nothing")
    async with running(again_on(measured, model=tmp_path / "my-net.onnx")) as pilot:
        assert isinstance(pilot.app.screen, ErrorScreen)
        await press(pilot, "escape", shows="1 Models 8")


async def test_a_model_given_at_the_start_is_opened_where_the_list_shows_it(new: DataFolder) -> None:
    named = Library(SAMPLE_MODELS, new.path).find("table1:3")
    async with running(DlbricksApp(WorkbenchSession(new), MEASURED_ONLY, model=named[0]), NARROW) as pilot:
        models = pilot.app.screen.query_one(ModelsPanel)
        assert "dlbricks  Age Estimation VGG-16" in screen_text(pilot) and models.selected == named[0]
        assert panel_with_focus(pilot) == "estimate"
        await press(pilot, "1", shows="- Table 1 of the paper")


# The groups of the list


async def test_groups_are_folded_and_unfolded_and_the_next_start_remembers_which(new: DataFolder) -> None:
    async with running(DlbricksApp(WorkbenchSession(new), MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "escape")
        models = pilot.app.screen.query_one(ModelsPanel)
        assert models.selected is not None and models.selected.name == FIRST_SAMPLE, "one key measures it"
        folded = ("+ Table 1 of the paper 49", "+ Gluon model zoo 32", "+ ONNX samples 5", "+ Language models 40")
        assert all(heading in screen_text(pilot) for heading in ("- Six to try", *folded))
        await press(pilot, "h")
        assert "▸+ Six to try 6" in screen_text(pilot) and FIRST_SAMPLE not in screen_text(pilot)
        await press(pilot, "l", "l")
        assert "- Six to try" in screen_text(pilot) and models.selected.name == FIRST_SAMPLE
        await press(pilot, *["j"] * 7, "enter", shows=("▸- Gluon model zoo", "resnet18_v1"))
        await press(pilot, "enter", "enter")
    async with running(DlbricksApp(WorkbenchSession(new), MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "escape", shows=("- Gluon model zoo", "+ Table 1 of the paper 49"))


async def test_a_search_a_sort_and_marks_reach_models_in_folded_groups(new: DataFolder) -> None:
    async with running(DlbricksApp(WorkbenchSession(new), MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "escape", "a")
        assert len(marked(pilot)) == 92
        await press(pilot, "a", "slash", '"caps"')
        assert "CapsNet" in screen_text(pilot) and "Six to try" not in screen_text(pilot)
        await press(pilot, "enter", "escape", shows=("- Table 1 of the paper", "▸  CapsNet"))
        await press(pilot, "h", "s", shows=("1 Models 92, by name", "2D Face Alignment"))
        await press(pilot, "h", *["s"] * (len(ModelOrder) - 1), shows="+ Table 1 of the paper 49")
        # The last heading stands for models of another screen.
        for opens in ("enter", "l"):
            await press(pilot, "G", "h", opens, on=LanguageScreen)
            await press(pilot, "escape")


# The first start


async def test_the_welcome_box_starts_the_first_run(new: DataFolder, asked_for: list[RunFolder]) -> None:
    async with running(app_on(new), NARROW) as pilot:
        assert all(words in screen_text(pilot) for words in WELCOME)
        await press(pilot, "enter")
        (run,) = [read_request(folder.request_file) for folder in asked_for]
        assert [model.name for model in run.models] == ["squeezenet1.1"] and run.end_to_end
        assert "dlbricks  squeezenet1.1" in screen_text(pilot)
        assert panel_with_focus(pilot) == "estimate"


@pytest.mark.usefixtures("without_mxnet")
async def test_without_mxnet_the_welcome_box_starts_a_run_by_onnx_runtime(
    new: DataFolder, asked_for: list[RunFolder]
) -> None:
    async with running(app_on(new)) as pilot:
        assert all(words in screen_text(pilot) for words in WELCOME)
        await press(pilot, "enter")
        (run,) = [read_request(folder.request_file) for folder in asked_for]
        assert run.runtime.name == "default-onnx"
        assert [model.path.name for model in run.models] == ["squeezenet1.1.onnx"]
        assert "dlbricks  squeezenet1.1" in screen_text(pilot)


async def test_the_sample_is_read_ahead_while_the_welcome_box_is_shown(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def read_model(_: WorkbenchSession, spec: ModelSpec, __: Choices) -> Refusal:
        read.append(spec.source.name)
        return Refusal("not in this test")

    monkeypatch.setattr("dlbricks_tui.tui.workbench.work.read_model", read_model)
    async with running(app_on(new)) as pilot:
        assert "Welcome" in screen_text(pilot) and read == ["squeezenet1.1"]
        # A user who looks for another model at once types its name, and not keys.
        await press(pilot, "slash", '"alexnet"')
        assert "Welcome" not in screen_text(pilot) and "1 Models 1 of 7" in screen_text(pilot)
        assert read == ["squeezenet1.1"] and "not in this test" not in screen_text(pilot)
        assert " Nothing was measured here yet: m measures the selected model." in screen_text(pilot).splitlines()[0]


async def test_the_library_is_read_even_if_the_first_box_is_closed_before_it_is_drawn(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("dlbricks_tui.tui.widgets.screens.SECONDS_TO_DRAW", 0.1)
    # A box that is closed takes with it what waits for its picture.
    monkeypatch.setattr(WelcomeScreen, "_invoke_later", lambda *_: None)
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape")
        await eventually(pilot, lambda: "1 Models 7" in screen_text(pilot))


async def test_an_unmeasured_model_is_predicted_unless_predictions_are_off(new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "enter")
        shown = screen_text(pilot)
        assert "squeezenet1.1  ~" in shown and "ms predicted" in shown
        await press(pilot, "full_stop", "equals_sign", *"jjjjj", "l", shows="Not measured here yet.")
        await press(pilot, "2", "right_parenthesis")
        assert "There is no critical path" in told(pilot)[-1]
