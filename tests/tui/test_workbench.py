import json
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.runs.request import read_request
from dlbricks_tui.runs.run_folder import RunFolder
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.selections import OLDEST_FIRST
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.choices import Choices, Setting
from dlbricks_tui.tui.dialogs.commands import HelpScreen, PaletteScreen
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.dialogs.paths import OpenPathScreen
from dlbricks_tui.tui.model_reader import ModelReader
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.workbench.details import DetailsPanel
from dlbricks_tui.tui.workbench.estimate import EstimatePanel, EstimateRows
from dlbricks_tui.tui.workbench.model_order import ModelOrder
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from dlbricks_tui.tui.workbench.tree import TreePanel
from dlbricks_tui.tui.workbench.under_way import UnderWay
from dlbricks_tui.tui.workbench.work import Refusal
from tests.store.samples import measurement
from tests.tui.application import (
    LIBRARY,
    MEASURED_ONLY,
    WRITTEN,
    app_on,
    press,
    running,
    screen_text,
    settled,
    small_library,
)


def panel_with_focus(pilot: Pilot[None]) -> str | None:
    return next((panel.id for panel in pilot.app.screen.query(Panel) if panel.has_focus_within), None)


def marked(pilot: Pilot[None]) -> list[str]:
    return [source.name for source in pilot.app.screen.query_one(ModelsPanel).marked]


async def test_the_library_is_listed_at_the_start(measured: DataFolder) -> None:
    async with running(app_on(measured), (112, 24)) as pilot:
        shown = screen_text(pilot)
        assert all(name in shown for name in LIBRARY)
        assert "No model is open." in shown and "enter in the list of models opens one." in shown
        assert panel_with_focus(pilot) == "models"


async def test_a_restart_lists_estimates_without_reading_models(
    measured: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with running(app_on(measured), (112, 24)) as pilot:
        before = [line[:32] for line in screen_text(pilot).splitlines()]
        assert any("14.56" in line for line in before)

    def refuse(reader: ModelReader, wish: ModelSpec) -> None:
        raise AssertionError(f"{wish.source.name} was read")

    monkeypatch.setattr(ModelReader, "decompose_cached", refuse)
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (112, 24)) as pilot:
        assert [line[:32] for line in screen_text(pilot).splitlines()] == before


async def test_cached_estimates_are_dropped_when_results_are_stored(measured: DataFolder) -> None:
    async with running(app_on(measured), (112, 24)) as pilot:
        assert "14.56" in screen_text(pilot)
    with ResultsDatabase(measured.store) as store:
        store.delete(store.select(order=OLDEST_FIRST).values("id"))
        store.add(measurement())
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (112, 24)) as pilot:
        assert "14.24" not in screen_text(pilot)


@pytest.mark.mxnet
async def test_cached_estimates_are_dropped_when_the_model_changes(measured: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "mine" / "resnet-50-symbol.json"
    file.parent.mkdir()
    file.write_bytes((SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json").read_bytes())
    async with running(app_on(measured), (112, 24)) as pilot:
        await press(pilot, "o", f'"{file}"', "enter")
        await press(pilot, "1")
        (line,) = [
            line[:32]
            for line in screen_text(pilot).splitlines()
            if "resnet-50 " in line[2:32] and "dlbricks" not in line
        ]
        assert "14.56" in line
    file.write_text("{}")
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (112, 24)) as pilot:
        (line,) = [
            line[:32]
            for line in screen_text(pilot).splitlines()
            if "resnet-50 " in line[2:32] and "dlbricks" not in line
        ]
        assert "14.56" not in line


async def test_a_damaged_cache_of_estimates_is_replaced(measured: DataFolder) -> None:
    (measured.cache).mkdir()
    (measured.cache / "latencies.json").write_text('{"state": 3, "known": [')
    async with running(app_on(measured), (112, 24)) as pilot:
        assert "14.56" in screen_text(pilot)


async def test_a_search_filters_the_models_until_escape_ends_it(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"res 18"')
        assert "1 Models 1 of 7" in screen_text(pilot)
        await press(pilot, "enter")
        assert panel_with_focus(pilot) == "models"
        await press(pilot, "slash", "escape")
        assert "1 Models 7" in screen_text(pilot)


async def test_a_search_finds_models_by_task_and_by_path(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"ic gluon/vgg"')
        found = pilot.app.screen.query_one(ModelsPanel).selected
        assert found is not None and found.name == "vgg16"


async def test_models_can_be_marked_singly_and_all_at_once(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "j", "j", "space", "space")
        assert len(marked(pilot)) == 2 and "2 marked" in screen_text(pilot)
        await press(pilot, "slash", '"res"', "enter", "a")
        assert set(marked(pilot)) >= {"resnet18_v1", "resnet50_v1"}
        await press(pilot, "a")
        assert set(marked(pilot)).isdisjoint({"resnet18_v1", "resnet50_v1"})


async def test_a_run_measures_the_marked_models_in_view_by_default(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"vgg"', "enter", "space", "slash", "ctrl+u", '"resnet18"', "enter", "space")
        assert "2 marked, 1 hidden" in screen_text(pilot)
        await press(pilot, "r")
        assert "The search hides 1 of 2 marked models." in screen_text(pilot)
        await press(pilot, "enter")
        assert "Run resnet18_v1 " in screen_text(pilot)
        await press(pilot, "escape", "r", "a")
        assert "Run resnet18_v1, vgg16 " in screen_text(pilot)


async def test_enter_opens_a_model_and_shows_its_estimate(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        shown = screen_text(pilot)
        assert "resnet18_v1  14.56 ms measured" in shown
        assert "14.56 ms: mxnet, 2 threads" in shown and "14.24 ms" in shown


async def test_a_partly_measured_model_shows_what_is_missing(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "slash", '"squeeze"', "enter", "enter", "4", "j")
        shown = screen_text(pilot)
        assert "26 missing" in shown and "not measured end to end yet" in shown
        assert "26 predicted" in shown


async def test_an_unmeasured_model_says_so(new: DataFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "enter")
        shown = screen_text(pilot)
        assert "resnet18_v1  ~" in shown and "ms predicted" in shown


async def test_nothing_is_predicted_with_predictions_off(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, "escape", "enter")
        assert "Not measured here yet." in screen_text(pilot)


@pytest.mark.parametrize(
    ("keys", "says"),
    [
        (("plus", "plus"), "granularity ◂ 3 ▸"),
        (("plus", "plus", "minus"), "granularity ◂ 2 ▸"),
        (("minus", "full_stop"), "granularity ◂ 1 ▸"),
        (("c",), "cut         ◂ runnable ▸"),
        (("w", "w"), "workers     ◂ 4 ▸"),
        (("W", "W"), "workers     ◂ 1 ▸"),
        (("full_stop", "s", *"jjjjjjjjj", "l"), "order       ◂ paper ▸"),
        (("s", *"jjj", "l"), "system      ◂ c5.xlarge, 4 cores ▸"),
        (("s", *"jj", "l"), "batch       ◂ 1 ▸"),
        (("s", "j", "l"), "threads     ◂ 2 ▸"),
        (("full_stop", "s", *"jjjj", "l"), "precision   ◂ bf16 ▸"),
        (("s", "h"), "runtime     ◂ mxnet, 2 threads ▸"),
    ],
)
async def test_keys_change_the_settings(keys: tuple[str, ...], says: str, measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, *keys)
        assert says in screen_text(pilot)


async def test_enter_on_a_slow_layer_goes_to_it_in_the_decomposition(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter", "4", "j")
        rows = pilot.app.screen.query_one(EstimateRows)
        slowest = rows.slow_layer
        await press(pilot, "j")
        assert "Slowest layers" in screen_text(pilot) and rows.slow_layer not in (None, slowest)
        await press(pilot, "enter")
        tree = pilot.app.screen.query_one(TreePanel)
        assert tree.rows.has_focus and tree.selected_layer == rows.slow_layer
        await press(pilot, "4", "k", "l")
        assert tree.selected_layer == slowest
        await press(pilot, "s")
        assert rows.setting is Setting.RUNTIME and rows.slow_layer is None


async def test_the_estimate_follows_the_settings(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        await press(pilot, "s", "j", "j", "j", "l")
        assert "resnet18_v1  29.11 ms measured" in screen_text(pilot)
        await press(pilot, "W")
        assert " 1 work" in screen_text(pilot)
        await press(pilot, "plus")
        assert "G 2" in screen_text(pilot)


async def test_the_level_can_be_switched(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "full_stop", "f")
        assert "level       ◂ fused ▸" in screen_text(pilot)
        await press(pilot, "f")
        assert "level       ◂ written ▸" in screen_text(pilot)


async def test_panels_are_reached_by_number_and_by_tab(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "4")
        assert panel_with_focus(pilot) == "estimate" and "Models" not in screen_text(pilot)
        await press(pilot, "1")
        assert panel_with_focus(pilot) == "models" and "Estimate" not in screen_text(pilot)
        panels = [panel.id for panel in pilot.app.screen.query(Panel)]
        seen = []
        for _ in panels:
            await press(pilot, "tab")
            seen.append(panel_with_focus(pilot))
        assert seen == [*panels[1:], panels[0]]
        await press(pilot, "shift+tab")
        assert panel_with_focus(pilot) == panels[-1]


async def test_help_lists_the_keys_that_work_here(measured: DataFolder) -> None:
    async with running(app_on(measured), (100, 84)) as pilot:
        await press(pilot, "question_mark")
        assert isinstance(pilot.app.screen, HelpScreen)
        shown = screen_text(pilot)
        assert (
            "In the list of models" in shown and "Mark the model for the next run" in shown and "In every list" in shown
        )
        await press(pilot, "escape", "o", "f1")
        assert "In this box" in screen_text(pilot)


async def test_a_command_is_found_by_its_words_and_run(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "colon", '"one worker more"', "enter")
        assert not isinstance(pilot.app.screen, PaletteScreen)
        assert "workers     ◂ 3 ▸" in screen_text(pilot)
        await press(pilot, "ctrl+p", '"view"', "down", "up", "enter")
        assert len(marked(pilot)) == 7


async def test_commands_are_selected_in_both_directions(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        panels = [panel.id for panel in pilot.app.screen.query(Panel)]
        await press(pilot, "colon", '"go panel"', "down", "enter")
        assert panel_with_focus(pilot) == panels[-1]
        await press(pilot, "colon", '"go panel"', "ctrl+n", "ctrl+p", "enter")
        assert panel_with_focus(pilot) == panels[0]
        await press(pilot, "colon", '"go panel"', "down", "down", "up", "up", "enter")
        assert panel_with_focus(pilot) == panels[1]


async def test_q_quits(measured: DataFolder) -> None:
    app = app_on(measured)
    async with running(app) as pilot:
        await pilot.press("q")
        await pilot.pause()
        assert not app.is_running or app._exit


async def test_a_file_is_opened_by_its_path_with_completion(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    file = tmp_path / "mine" / "my-net-symbol.json"
    file.write_bytes((SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json").read_bytes())
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{tmp_path}/mi"', "tab", "tab")
        assert isinstance(pilot.app.screen, OpenPathScreen)
        await press(pilot, "enter")
        assert "1 Models 8" in screen_text(pilot)
        assert "dlbricks  my-net" in screen_text(pilot)


async def test_a_path_given_at_the_start_is_added_and_opened(measured: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "my-net-symbol.json"
    file.write_bytes((SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json").read_bytes())
    session = Session(measured, small_library(measured.path / "samples"))
    async with running(DlbricksApp(session, WRITTEN, model=file)) as pilot:
        assert "1 Models 8" in screen_text(pilot) and "dlbricks  my-net" in screen_text(pilot)
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert [it.path for it in pilot.app.screen.view.recent] == [file]


async def test_a_path_given_at_the_start_that_is_no_model_is_reported(measured: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "my-net.onnx"
    file.write_text("nothing")
    session = Session(measured, small_library(measured.path / "samples"))
    async with running(DlbricksApp(session, WRITTEN, model=file)) as pilot:
        assert isinstance(pilot.app.screen, ErrorScreen)
        await press(pilot, "escape")
        assert "1 Models 7" in screen_text(pilot)


async def test_a_folder_can_be_added_to_the_library(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "mine").mkdir()
    (tmp_path / "mine" / "my-net-symbol.json").write_text("{}")
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{tmp_path}/mine"', "enter")
        assert "1 Models 8" in screen_text(pilot) and "my-net" in screen_text(pilot)
        assert json.loads((measured.path / "model-folders.json").read_text())["folders"] == [str(tmp_path / "mine")]


async def test_a_wrong_path_is_reported_in_the_box(measured: DataFolder, tmp_path: Path) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", "enter")
        assert "Type a path first." in screen_text(pilot)
        await press(pilot, '"nosuch"', "enter")
        assert "There is no nosuch" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)


async def test_a_folder_without_models_is_an_error(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{tmp_path}/empty"', "enter")
        assert isinstance(pilot.app.screen, ErrorScreen)
        assert "Error" in screen_text(pilot)


async def test_the_text_of_an_error_can_be_copied(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    app = app_on(measured)
    async with running(app) as pilot:
        await press(pilot, "o", f'"{tmp_path}/empty"', "enter", "y")
        assert app.clipboard == f"{tmp_path}/empty holds no *-symbol.json or *.onnx file, here or below"
        await press(pilot, "escape")
        assert isinstance(app.screen, WorkbenchScreen)


@pytest.mark.parametrize(("name", "text"), [("README.md", "# Nets"), ("broken-symbol.json", '{"nodes": 3}')])
async def test_an_invalid_model_file_is_refused_and_not_listed(
    name: str, text: str, measured: DataFolder, tmp_path: Path
) -> None:
    (tmp_path / name).write_text(text)
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{tmp_path}/{name}"', "enter")
        assert isinstance(pilot.app.screen, ErrorScreen)
        await press(pilot, "escape")
        assert "1 Models 7" in screen_text(pilot) and "No model is open." in screen_text(pilot)


async def test_an_invalid_model_in_a_folder_is_reported_in_the_estimate(measured: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "broken-symbol.json").write_text('{"nodes": 3}')
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{tmp_path}"', "enter", "G", "enter")
        assert "This model cannot be estimated." in screen_text(pilot)


async def test_a_model_opened_by_its_path_is_listed_until_it_is_removed(measured: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "my-net-symbol.json"
    file.write_bytes((SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json").read_bytes())
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{file}"', "enter")
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN)) as pilot:
        assert "1 Models 8" in screen_text(pilot) and "my-net" in screen_text(pilot)
        # It was opened lately, so it comes first.
        await press(pilot, "g", "d")
        assert "1 Models 7" in screen_text(pilot) and file.exists()
        assert any("my-net was removed" in note.message for note in pilot.app._notifications)
        await press(pilot, "d")
        assert isinstance(pilot.app.screen, ErrorScreen) and "comes with dlbricks" in pilot.app.screen._text


async def test_a_long_list_moves_by_lines_pages_and_ends(new: DataFolder) -> None:
    from dlbricks_tui.tui.session import Session

    async with running(DlbricksApp(Session(new)), (80, 24)) as pilot:
        await press(pilot, "escape")
        models = pilot.app.screen.query_one(ModelsPanel)
        cursor = []
        for key in ("j", "down", "k", "ctrl+d", "up", "ctrl+u", "G", "g", "pagedown", "pageup", "end", "home"):
            await press(pilot, key)
            cursor.append(models.rows.cursor)
        # It skips headings.
        stops = [at for at in range(models.rows.row_count) if models.rows.can_select(at)]
        first, last, page = stops[0], stops[-1], models.rows.size.height - 1

        def after(index: int) -> int:
            return next(at for at in stops if at >= index)

        below = after(stops[1] + page)
        above = stops[stops.index(below) - 1]
        before = max(at for at in stops if at <= above - page)
        assert first > 0 and cursor[:6] == [stops[1], stops[2], stops[1], below, above, before]
        assert cursor[6:] == [last, first, after(first + page), first, last, first]


async def test_a_narrow_terminal_that_is_widened_shows_all_panels(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        assert "4 Estimate" not in screen_text(pilot)
        await pilot.resize_terminal(120, 40)
        await press(pilot)
        assert "1 Models" in screen_text(pilot) and "4 Estimate" in screen_text(pilot)
        await pilot.resize_terminal(80, 24)
        await press(pilot)
        assert panel_with_focus(pilot) == "models"


async def test_a_narrow_terminal_shows_the_opened_model(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        shown = screen_text(pilot)
        assert panel_with_focus(pilot) == "tree" and "28 bricks" in shown and "1 Models" not in shown
        # The headline leaves out figures that do not fit whole.
        assert shown.splitlines()[0].split("  ")[-1].strip() == "written"
        assert "14.56 ms measured" in shown.splitlines()[0] and "batch" not in shown.splitlines()[0]


async def test_a_wide_terminal_keeps_the_focus_in_the_list_of_models(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        assert panel_with_focus(pilot) == "models"


async def test_the_welcome_box_starts_the_first_run(new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[RunFolder] = []
    monkeypatch.setattr("dlbricks_tui.tui.run.runs.start_detached", lambda folder, _: started.append(folder))
    async with running(app_on(new), (80, 24)) as pilot:
        assert "Welcome to dlbricks" in screen_text(pilot)
        await press(pilot, "enter")
        (run,) = [read_request(folder.request_file) for folder in started]
        assert [model.name for model in run.models] == ["squeezenet1.1"] and run.end_to_end
        assert "dlbricks  squeezenet1.1" in screen_text(pilot)
        assert panel_with_focus(pilot) == "estimate"


async def test_the_sample_is_read_ahead_while_the_welcome_box_is_shown(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    read: list[str] = []

    def read_model(_: Session, spec: ModelSpec, __: Choices) -> Refusal:
        read.append(spec.source.name)
        return Refusal("not in this test")

    monkeypatch.setattr("dlbricks_tui.tui.workbench.work.read_model", read_model)
    async with running(app_on(new)) as pilot:
        assert "Welcome" in screen_text(pilot) and read == ["squeezenet1.1"]
        await press(pilot, "escape")
        assert read == ["squeezenet1.1"] and "not in this test" not in screen_text(pilot)


@pytest.mark.usefixtures("without_mxnet")
async def test_without_mxnet_the_welcome_box_starts_a_run_by_onnx_runtime(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[RunFolder] = []
    monkeypatch.setattr("dlbricks_tui.tui.run.runs.start_detached", lambda folder, _: started.append(folder))
    async with running(DlbricksApp(Session(new, small_library(new.path / "samples")))) as pilot:
        assert "measure squeezenet1.1" in screen_text(pilot)
        await press(pilot, "enter")
        (run,) = [read_request(folder.request_file) for folder in started]
        assert run.runtime.name == "default-onnx"
        assert [model.path.name for model in run.models] == ["squeezenet1.1.onnx"]
        assert "dlbricks  squeezenet1.1" in screen_text(pilot)


async def test_the_welcome_box_can_be_closed(new: DataFolder) -> None:
    async with running(app_on(new), (80, 24)) as pilot:
        await press(pilot, "escape")
        assert "How fast does it run here?" in screen_text(pilot)


async def test_a_user_with_results_is_not_welcomed(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        assert "Welcome" not in screen_text(pilot)


async def test_a_search_in_a_panel_without_one_searches_the_models(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "4", "slash", '"vgg"')
        assert "1 Models 1 of 7" in screen_text(pilot)


async def test_the_cursor_stays_on_its_setting_while_the_panel_is_hidden(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "4", "j", "1", "slash", '"resnet18"', "enter", "enter", "4")
        assert "▸threads     ◂ any number ▸" in screen_text(pilot)


async def test_a_key_leads_to_the_settings_from_any_panel(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "enter", "s")
        assert panel_with_focus(pilot) == "estimate" and "▸runtime" in screen_text(pilot)


async def test_the_cursor_stays_on_its_setting_when_the_text_above_changes(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        panel = pilot.app.screen.query_one(EstimatePanel)
        await press(pilot, "slash", '"resnet18"', "enter", "enter", "s", "j")
        for change in (
            panel.show_waiting,
            lambda: panel.show_problem("a reason that is as long as it has to be to take several lines " * 3),
            lambda: panel.show_run(UnderWay("a run of it is on its way")),
            panel.show_waiting,
        ):
            change()
            await settled(pilot)
            assert "▸threads" in screen_text(pilot) and panel._list.setting is Setting.THREADS


async def test_the_cursor_does_not_move_to_a_setting_when_its_line_disappears(
    measured: DataFolder,
) -> None:
    async with running(app_on(measured)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, WorkbenchScreen)
        panel = screen.query_one(EstimatePanel)
        await press(pilot, "slash", '"resnet18"', "enter", "enter", "4", "G")
        line, before, explained = panel._list.cursor, screen.choices, screen._view
        assert panel._list.setting is None and explained is not None
        panel.show_waiting()
        await press(pilot, "l", "h")
        panel.show_problem("a text of several lines " * 9)
        await press(pilot, "l", "h", "h")
        assert screen.choices == before
        panel.show(explained)
        await settled(pilot)
        assert panel._list.cursor == line and panel._list.has_cursor
        panel.show_waiting()
        await press(pilot, "g", "j", "j", "l")
        assert screen.choices == replace(before, batch=1)


async def test_the_order_and_the_columns_of_the_models_are_remembered(measured: DataFolder) -> None:
    async with running(app_on(measured), (200, 50)) as pilot:
        await press(pilot, "S", "S")
        assert "1 Models 7, by time" in screen_text(pilot) and "▾ms" in screen_text(pilot)
        first = pilot.app.screen.query_one(ModelsPanel).found[0]
        await press(pilot, "C", *["j"] * 6, "space", "space", "enter")
        assert "measured" in screen_text(pilot)
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (200, 50)) as pilot:
        panel = pilot.app.screen.query_one(ModelsPanel)
        assert panel.sorted_by is ModelOrder.TIME and panel.found[0] == first
        assert "measured" in [each.name for each in panel.columns]


async def test_the_size_of_a_panel_is_changed_and_remembered(measured: DataFolder) -> None:
    async with running(app_on(measured), (120, 40)) as pilot:
        screen = pilot.app.screen
        models, details = screen.query_one(ModelsPanel), screen.query_one(DetailsPanel)
        width, height = models.outer_size.width, details.outer_size.height
        await press(pilot, "greater_than_sign", "greater_than_sign", "less_than_sign")
        assert models.outer_size.width == width + 4
        await press(pilot, "3", "right_square_bracket", "right_square_bracket", "left_square_bracket")
        assert details.outer_size.height > height
        await press(pilot, "4", "right_square_bracket", "right_square_bracket")
        assert details.outer_size.height < height
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (120, 40)) as pilot:
        assert pilot.app.screen.query_one(ModelsPanel).outer_size.width == width + 4
        # Another layout has sizes of its own.
        await pilot.resize_terminal(200, 50)
        await settled(pilot)
        assert pilot.app.screen.query_one(ModelsPanel).outer_size.width == 52


async def test_one_key_shows_a_panel_on_the_whole_screen_and_all_of_them_again(measured: DataFolder) -> None:
    async with running(app_on(measured), (120, 40)) as pilot:
        tree = pilot.app.screen.query_one(TreePanel)
        width = tree.outer_size.width
        await press(pilot, "2", "Z")
        assert tree.outer_size.width == 120 and "1 Models" not in screen_text(pilot)
        await press(pilot, "1")
        assert "2 Decomposition" not in screen_text(pilot) and "1 Models" in screen_text(pilot)
        await press(pilot, "2", "Z")
        assert tree.outer_size.width == width and "1 Models" in screen_text(pilot)
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN), (80, 24)) as pilot:
        await press(pilot, "Z")
        assert any("one panel at a time" in note.message for note in pilot.app._notifications)


async def test_layers_are_sorted_by_time_and_shown_as_a_tree_again(measured: DataFolder) -> None:
    async with running(app_on(measured), (120, 40)) as pilot:
        await press(pilot, "2", "S")
        assert any("No latency" in note.message for note in pilot.app._notifications)
        await press(pilot, "1", "slash", '"resnet18"', "enter", "enter", "2", "S")
        tree = pilot.app.screen.query_one(TreePanel)
        slowest = tree.selected_layer
        assert "2 Decomposition 68 of 68, by time" in screen_text(pilot)
        await press(pilot, "4", "j")
        assert slowest == pilot.app.screen.query_one(EstimateRows).slow_layer
        await press(pilot, "2", "S")
        assert "by time" not in screen_text(pilot) and tree.selected_layer == slowest


async def test_a_file_opened_lately_is_offered_when_a_path_is_asked_for(measured: DataFolder, tmp_path: Path) -> None:
    file = tmp_path / "my-net-symbol.json"
    file.write_bytes((SAMPLE_MODELS / "gluon" / "resnet18_v1-symbol.json").read_bytes())
    async with running(app_on(measured)) as pilot:
        await press(pilot, "o", f'"{file}"', "enter", "o")
        assert "my-net-symbol.json  opened lately" in screen_text(pilot)
        await press(pilot, "down", "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen) and "my-net" in screen_text(pilot).splitlines()[0]


async def test_one_key_shows_the_expert_settings_and_the_next_start_remembers_it(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "4")
        assert "order       ◂" not in screen_text(pilot) and ". shows 6 expert settings" in screen_text(pilot)
        await press(pilot, "full_stop")
        assert "order       ◂ branch ▸" in screen_text(pilot)
        # The box before a run follows.
        await press(pilot, "slash", '"alexnet"', "enter", "enter", "r")
        assert "target interval" in screen_text(pilot)
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN)) as pilot:
        assert "order       ◂ branch ▸" in screen_text(pilot)
        await press(pilot, "full_stop")
        assert "order       ◂" not in screen_text(pilot)


async def test_next_steps_follow_the_first_answer_and_stay_hidden_once_they_are(measured: DataFolder) -> None:
    async with running(app_on(measured)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        assert "v  which runtime and batch are best" in screen_text(pilot)
        await press(pilot, "x")
        assert "What next?" not in screen_text(pilot)
    async with running(DlbricksApp(Session(measured, measured.path / "samples"), WRITTEN)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter")
        assert "14.56 ms: mxnet, 2 threads, batch 1," in screen_text(pilot)
        assert "What next?" not in screen_text(pilot)
        await press(pilot, "x")
        assert "What next?" in screen_text(pilot)


async def test_the_answer_stays_in_view_until_the_user_goes_further(measured: DataFolder) -> None:
    async with running(app_on(measured), (80, 24)) as pilot:
        await press(pilot, "slash", '"resnet18"', "enter", "enter", "4")
        assert "14.56 ms: mxnet, 2 threads, batch 1," in screen_text(pilot)
        rows = pilot.app.screen.query_one(EstimateRows)
        first = rows.cursor
        assert not rows.has_cursor and rows.setting is None and rows.slow_layer is None
        await press(pilot, "j")
        assert rows.has_cursor and rows.cursor == first
        # The cursor is in view.
        assert rows.scroll_offset.y <= rows.cursor < rows.scroll_offset.y + rows.size.height
        await press(pilot, "k", "k")
        assert "14.56 ms: mxnet, 2 threads, batch 1," in screen_text(pilot)
