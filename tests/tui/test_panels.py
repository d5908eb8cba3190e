"""The application as a whole: keys lead to panels and answers, the demonstration, and names with control codes."""

import csv
import json
import subprocess
import sys
from collections.abc import AsyncIterator, Callable, Iterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from dlbricks_tui.api.demonstration import Demonstration, open_demonstration
from dlbricks_tui.api.run_watch import Replayed
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.documents import pictures
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.pictures import Plot, Rows, drawn
from dlbricks_tui.documents.results import RESULT_COLUMNS
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.tui import saving
from dlbricks_tui.tui.analysis import LayersPanel
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.corpus import LikenessPanel, UniquenessPanel
from dlbricks_tui.tui.dialogs.commands import HelpScreen
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.dialogs.notices import CopyScreen, ErrorScreen
from dlbricks_tui.tui.fleet import RankingPanel
from dlbricks_tui.tui.keys.scopes import DIALOG
from dlbricks_tui.tui.result_table import FIRST_COLUMNS, ColumnsScreen, HistoryPanel, RecordPanel, ResultsPanel
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.run.screen import BricksPanel, EstimatesPanel, NotesPanel, RunScreen
from dlbricks_tui.tui.trace import TimelinePanel
from dlbricks_tui.tui.variants import VariantsPanel
from dlbricks_tui.tui.widgets.panel import Panel, SearchLine
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.tui.widgets.text import PictureView, TextView
from dlbricks_tui.tui.workbench.estimate import EstimatePanel
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from dlbricks_tui.tui.workbench.tree import DetailsPanel, TreePanel
from dlbricks_tui.wording.commands import repeat_in_commands
from dlbricks_tui.wording.plain_text import TableFormat, TextTable
from tests.cli.test_output import HOSTILE, SPELLED
from tests.documents.test_drawing import BARS, ROOFS
from tests.documents.test_ranking import MIXED
from tests.fleet.sample_fleet import sample_fleet
from tests.runs.live_runs import in_the_middle, put_run
from tests.tui.application import LIBRARY, MEASURED_ONLY, NARROW, SIZES, WIDE, app_on, running, showing
from tests.tui.driving import find, press, screen_text, settled, shows, told
from tests.tui.results import ONE_THREAD, store_run
from tests.tui.snapshots import check_all
from tests.tui.stored_results import RESULTS
from tests.tui.test_analysis_screen import screen_of as analysis_of
from tests.tui.test_fleet_screen import screen_of as fleet_of
from tests.tui.test_trace_screen import screen_of as trace_of_model
from tests.tui.test_variants_screen import screen
from tests.tui.traces import store_trace


def with_focus(pilot: Pilot[None]) -> str:
    (panel,) = [panel for panel in pilot.app.screen.query(Panel) if panel.has_focus_within]
    # A narrow terminal shows this panel only.
    assert [each for each in pilot.app.screen.query(Panel) if each.display] == [panel]
    return panel.reached_by.partition(".go_to_")[2]


async def test_the_panels_of_a_screen_have_keys_and_follow_one_another(stored: DataFolder) -> None:
    panels = ("results", "result", "history")
    async with showing(stored, ResultsScreen, NARROW) as pilot:
        for keys, expected in (
            (("tab", "tab", "tab"), (*panels[1:], panels[0])),
            (("shift+tab", "shift+tab"), panels[:0:-1]),
            (("1", "2", "3"), panels),
        ):
            for key, panel in zip(keys, expected, strict=True):
                await press(pilot, key)
                assert with_focus(pilot) == panel


ASKED = {
    "A": "How fast could resnet18_v1 be, and which change is worth making?",
    "T": "Where does the time of alexnet go, layer by layer?",
}


def answer_of(pilot: Pilot[None]) -> str:
    """Return the line below the question."""
    return screen_text(pilot).splitlines()[1].strip()


NOT_YET = {
    "A": "Nothing was measured yet: m measures it.",
    "T": "Nothing was traced yet: m traces it in about a minute.",
    "R": "Nothing was measured or imported yet: esc m measures a model.",
    "U": "7 models, ",
    "S": "Nothing was measured of it yet: esc m measures.",
    "F": "m starts a fleet run of the marked or open models.",
    "L": "resnet18_v1: nothing was measured of it yet",
}


@pytest.mark.usefixtures("rough_predictions")
async def test_without_results_the_line_below_each_question_says_so_and_names_the_key(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, "escape", "1", *find("resnet18_v1"), "enter")
        for key, told in NOT_YET.items():
            await press(pilot, key)
            assert answer_of(pilot).startswith(told), key
            await press(pilot, "escape")


@pytest.mark.usefixtures("rough_predictions")
async def test_without_an_open_model_the_key_of_an_answer_opens_the_selected_one(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, WorkbenchScreen)
        for key, asked in ASKED.items():
            name = "alexnet" if "alexnet" in asked else "resnet18_v1"
            screen._spec = screen._opened = None
            await press(pilot, "1", *find(name), key, shows=asked)
            assert answer_of(pilot)
            await press(pilot, "escape")
            assert name in screen_text(pilot).splitlines()[0]


# The run does not end before the test.
SPEED = 0.001


@pytest.fixture
def demonstration(monkeypatch: pytest.MonkeyPatch) -> Iterator[Demonstration]:
    def refuse(*_: object, **__: object) -> None:
        raise AssertionError("a process was started")

    monkeypatch.setattr(subprocess.Popen, "__init__", refuse)
    with open_demonstration() as found:
        yield found


async def test_it_says_whose_numbers_it_shows_replays_a_run_and_measures_nothing(demonstration: Demonstration) -> None:
    session = WorkbenchSession(demonstration.data, demonstration.samples)
    app = DlbricksApp(session, replayed=Replayed(demonstration.replayed, SPEED, 30.0))
    async with running(app, (180, 40)) as pilot:
        assert f"All numbers were {demonstration.host.origin}." in screen_text(pilot)
        await press(pilot, "enter", shows=f"demonstration, {demonstration.host.origin}")
        await press(pilot, "S", "4")
        await shows(pilot, "These are findings about the host of this")
        await press(pilot, "escape", "A", shows="No change is worth making")
        await press(pilot, "K", shows="the kernels were not recorded; a demonstration measures nothing")
        await press(pilot, "escape", "escape")
        await shows(pilot, f"replay {SPEED}x")
        await press(pilot, "w", on=RunScreen)
        await shows(pilot, f"replay {SPEED}x")
        await press(pilot, "escape", "m", on=WorkbenchScreen)
        assert told(pilot)[-1] == "A demonstration measures nothing: quit it, and start `dlbricks` itself."


async def test_a_model_is_searched_from_the_box_of_a_demonstration(demonstration: Demonstration) -> None:
    session = WorkbenchSession(demonstration.data, demonstration.samples)
    async with running(DlbricksApp(session, replayed=Replayed(demonstration.replayed, SPEED, 30.0))) as pilot:
        await press(pilot, *find("vgg16"), shows="1 Models 1 of 17")


async def test_messages_fields_and_titles_of_frames_escape_markup_and_control_codes(new: DataFolder) -> None:
    app = app_on(new)
    async with running(app, WIDE) as pilot:
        app.screen.notify(f"[red] {HOSTILE}")
        await settled(pilot)
        assert [(each.message, each.markup) for each in app._notifications] == [(f"[red] {SPELLED}", False)]
        assert all(char.isprintable() for char in screen_text(pilot).replace("\n", ""))
        await press(pilot, "escape", "o")
        app.screen.query_one(Input).value = HOSTILE
        await settled(pilot)
        shown = screen_text(pilot)
        assert r"n\x1b]0;owned" in shown
        assert all(char.isprintable() for char in shown.replace("\n", ""))
        box = Box(f"Shapes of [red]{HOSTILE}", DIALOG)
        assert box._border_title is not None
        assert box._border_title.plain == f"Shapes of [red]{SPELLED}"


def models(pilot: Pilot[None]) -> ModelsPanel:
    return pilot.app.screen.query_one(ModelsPanel)


def shown(pilot: Pilot[None]) -> list[str]:
    return [source.name for source in models(pilot)._list.items]


def under_cursor(pilot: Pilot[None]) -> str:
    source = models(pilot).selected
    assert source is not None
    return source.name


async def test_a_search_is_kept_replaced_and_ended(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        # It selects the first match, unless the selected model matches.
        last = models(pilot)._list.items[-1].name
        await press(pilot, "G", "k")
        assert under_cursor(pilot) == last
        await press(pilot, "slash", '"resnet"')
        assert len(shown(pilot)) > 1 and under_cursor(pilot) == shown(pilot)[0]
        await press(pilot, "enter", "G")
        stays = under_cursor(pilot)
        await press(pilot, "slash", '"net"')
        assert under_cursor(pilot) == stays != shown(pilot)[0]
        await press(pilot, "ctrl+u", '"vgg16"', "enter")
        assert shown(pilot) == ["vgg16"] and isinstance(pilot.app.screen.focused, RowsView)
        assert "esc end search" in screen_text(pilot)
        await press(pilot, "escape")
        assert len(shown(pilot)) == len(LIBRARY) and under_cursor(pilot) == "vgg16"
        assert not models(pilot).search_line.display and "esc end search" not in screen_text(pilot)
        await press(pilot, *find("vgg16"), "slash")
        # The text stays until a letter replaces it.
        assert shown(pilot) == ["vgg16"]
        await press(pilot, "a", "l", "e", "x", "enter")
        assert shown(pilot) == ["alexnet"]
        await press(pilot, "slash", "end", '"nosuch"')
        assert not shown(pilot) and models(pilot).search_line.value == "alexnosuch"


async def test_opening_another_model_ends_searches_and_keeps_the_focus(measured: DataFolder) -> None:
    path = SAMPLE_MODELS / "gluon" / "squeezenet1.1-symbol.json"
    async with running(app_on(measured, MEASURED_ONLY)) as pilot:
        await press(pilot, "enter", "2", *find("conv"), "1", "j", "enter")
        focused = pilot.app.screen.focused
        assert isinstance(focused, RowsView) and focused in models(pilot).query(RowsView)
        assert not pilot.app.screen.query_one("TreePanel SearchLine").display
        # A path ends a search that hides its model.
        await press(pilot, *find("vgg16"), "o", f'"{path}"', "enter")
        assert under_cursor(pilot) == "squeezenet1.1" and len(shown(pilot)) >= len(LIBRARY)
        assert not models(pilot).search_line.display


async def test_escape_ends_the_search_before_it_leaves_the_screen(stored: DataFolder) -> None:
    async with running(app_on(stored, MEASURED_ONLY)) as pilot:
        for opens in ("R", "U", "S", "J"):
            await press(pilot, opens, *find("e"))
            screen = pilot.app.screen
            lines = [line for line in screen.query(SearchLine) if line.has_text]
            assert not isinstance(screen, WorkbenchScreen) and len(lines) == 1
            await press(pilot, "escape")
            assert pilot.app.screen is screen and not lines[0].has_text
            await press(pilot, "escape", on=WorkbenchScreen)
        # It leads from the results of one brick to all results.
        await press(pilot, "R", "b")
        table = pilot.app.screen.query_one(ResultsPanel)
        assert len(table.shown or ()) < RESULTS
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, ResultsScreen) and len(table.shown or ()) == RESULTS


async def test_a_key_that_comes_late_closes_no_other_screen(stored: DataFolder) -> None:
    async with running(app_on(stored, MEASURED_ONLY)) as pilot:
        await press(pilot, "R", "c", on=ColumnsScreen)
        results, box = pilot.app.screen_stack[1:]
        for screen, below in ((box, results), (results, pilot.app.screen_stack[0])):
            for _ in range(2):
                await screen.run_action("close" if screen is box else "leave")
            assert pilot.app.screen is below


async def test_a_column_is_searched_by_its_description_and_moved_among_all(stored: DataFolder) -> None:
    async with showing(stored, ResultsScreen, SIZES[2]) as pilot:
        await press(pilot, "c", *find("the median of"), on=ColumnsScreen)
        assert "[ ] median_ms" in screen_text(pilot) and "[x] name" not in screen_text(pilot)
        await press(pilot, "space", "slash", "ctrl+u", '"nosuch"', shows="No column contains all of these words.")
        await press(pilot, "enter", "space", "J", "slash", "escape", shows=("[x] median_ms", "[x] name"))
        await press(pilot, "enter", on=ResultsScreen)
        assert pilot.app.screen.query_one(ResultsPanel)._list.columns == (*FIRST_COLUMNS, "median_ms")
        await press(pilot, "c", *find("the age of"), *"KKKKK", "enter")
        (heading,) = [line for line in screen_text(pilot).splitlines() if "age↑" in line]
        assert heading.index("age↑") < heading.index("model")


async def test_the_help_can_be_searched(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY), SIZES[0]) as pilot:
        await press(pilot, "escape", "2", "question_mark", "slash", '"critical"', on=HelpScreen)
        help_text = screen_text(pilot)
        assert "In the decomposition" in help_text and "on the critical path" in help_text
        assert "On the workbench" not in help_text and "equal brick or module" not in help_text
        await press(pilot, "ctrl+u", '"nosuch"', shows="No action here contains all of these words.")
        await press(pilot, "escape", shows="The parts of the model")
        assert isinstance(pilot.app.screen.focused, TextView)
        await press(pilot, "q", on=WorkbenchScreen)


class PictureScreen(Screen[None]):
    """A screen with a picture that has so many lines."""

    def __init__(self, height: int) -> None:
        super().__init__()
        self.view = PictureView()
        self.view.styles.height = height

    def compose(self) -> ComposeResult:
        yield self.view


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> list[Plot | Rows]:
    """The pictures that were drawn, in their order."""
    found = []

    def counting(picture: Plot | Rows, width: int, height: int, *, fine: bool) -> tuple[Line, ...]:
        found.append(picture)
        return drawn(picture, width, height, fine=fine)

    monkeypatch.setattr(pictures, "drawn", counting)
    return found


@asynccontextmanager
async def picture_of(data: DataFolder, height: int) -> AsyncIterator[tuple[Pilot[None], PictureView]]:
    async with showing(data, lambda _: PictureScreen(height), NARROW) as pilot:
        yield pilot, pilot.app.screen.query_one(PictureView)


async def test_a_picture_is_drawn_once_until_it_changes(new: DataFolder, drawings: list[Plot | Rows]) -> None:
    async with picture_of(new, 16) as (pilot, view):
        # A hidden one is not drawn.
        view.display = False
        view.show(ROOFS)
        await settled(pilot)
        assert not drawings
        view.display = True
        await settled(pilot)
        assert "100┤" in screen_text(pilot) and ROOFS.says in screen_text(pilot)
        view.show(replace(ROOFS))
        view.refresh()
        await settled(pilot)
        assert drawings == [ROOFS]
        view.show(BARS)
        await settled(pilot)
        assert drawings == [ROOFS, BARS] and BARS.says in screen_text(pilot)
        # A small area shows the sentence alone.
        view.styles.height = 3
        view.show(ROOFS)
        await settled(pilot)
        assert screen_text(pilot).strip() == ROOFS.says and drawings == [ROOFS, BARS]


@pytest.mark.parametrize("setting", ["NO_COLOR", "sixteen colours", "the theme of the terminal"])
async def test_few_colours_give_plain_signs(setting: str, new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    if setting == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    elif setting == "sixteen colours":
        monkeypatch.setenv("TERM", "screen")
        monkeypatch.delenv("COLORTERM")
    async with picture_of(new, 16) as (pilot, view):
        if setting == "the theme of the terminal":
            pilot.app.theme = "terminal"
        view.show(BARS)
        await settled(pilot)
        shown = screen_text(pilot)
        assert "..." in shown and "##" in shown and "█" not in shown


def test_the_program_starts_without_what_only_later_screens_need() -> None:
    late = ["numpy", "tinydb"]
    late += [f"dlbricks_tui.{name}" for name in ("store.database", "store.records", "models.library", "estimate")]
    late += [f"dlbricks_tui.{name}" for name in ("measure.inside", "api.followed_runs", "bricks.regions")]
    assert [name for name in late if find_spec(name) is None] == [], "they are called otherwise"
    code = (
        "import sys, dlbricks_tui.tui.app\n"
        f"loaded = {{*sys.modules}} & {{*{late}}}\n"
        "assert not loaded, loaded\n"
        "import dlbricks_tui.tui.analysis, dlbricks_tui.tui.fleet\n"
        "import dlbricks_tui.tui.scenario, dlbricks_tui.tui.trace, dlbricks_tui.tui.widgets.text\n"
        "assert 'plotext' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


Table = tuple[tuple[str, ...], list[list[str]]]


def table(pilot: Pilot[None], kind: type[Panel]) -> Table:
    """Return the titles and the rows of a copy of a panel on the screen."""
    found = pilot.app.screen.query_one(kind).as_texts()
    rows = [list(row) for row in found.rows]
    assert all(len(row) == len(found.titles) for row in rows)
    return found.titles, rows


def column_of(found: Table, title: str) -> list[str]:
    titles_, rows = found
    return [row[titles_.index(title)] for row in rows]


async def test_copies_of_the_workbench_have_all_models_parts_and_facts(measured: DataFolder) -> None:
    async with running(app_on(measured), NARROW) as pilot:
        await press(pilot, *find("resnet18"), "enter", "1", "slash", "escape")
        await press(pilot, "2", "asterisk")
        heading, rows = models = table(pilot, ModelsPanel)
        assert heading == ("model", "layers", "unique", "task", "runtime", "age", "ms")
        assert sorted(column_of(models, "model")) == sorted(LIBRARY)
        assert [row[-1] for row in rows if row[0] == "resnet18_v1"] != ["-"]
        parts = table(pilot, TreePanel)
        assert len(parts[1]) == pilot.app.screen.query_one(TreePanel).rows.row_count > NARROW[1]
        assert {"part", "output", "times", "ms", "share"} <= set(parts[0]) and all(column_of(parts, "part"))
        assert any("." in cell for cell in column_of(parts, "ms")) and "█" not in str(parts)
        assert any(name.lower().startswith("sequential") for name in column_of(table(pilot, EstimatePanel), "fact"))
        assert len(table(pilot, DetailsPanel)[1]) > 1


def store_two_runs(data: DataFolder) -> None:
    store_run(data, ["squeezenet1.1"])
    store_run(data, ["squeezenet1.1"], runtime=ONE_THREAD, factor=0.75)


@pytest.mark.parametrize(
    ("store", "screen_of", "panel", "titles", "rows"),
    [
        (None, lambda _: screen(MIXED), VariantsPanel, ("runtime", "threads", "batch 1", "8", "16"), 3),
        (store_trace, trace_of_model, TimelinePanel, ("fact", "value"), 11),
        (store_two_runs, analysis_of, LayersPanel, ("layers", "here ms", "best ms", "slower", "fastest"), 66),
        (sample_fleet, fleet_of, RankingPanel, ("host", "latency", "95 % interval", "per second", "price"), 2),
    ],
    ids=["variants", "timeline", "layers", "fleet"],
)
async def test_a_copy_has_the_titles_and_all_rows_of_a_panel(
    store: Callable[[DataFolder], object] | None,
    screen_of: Callable[[WorkbenchSession], Screen[Any]],
    panel: type[Panel],
    titles: tuple[str, ...],
    rows: int,
    new: DataFolder,
) -> None:
    if store is not None:
        store(new)
    async with showing(new, screen_of, NARROW) as pilot:
        found = table(pilot, panel)
    assert found[0] == titles and len(found[1]) == rows and all(row[0] for row in found[1])


async def test_copies_of_a_grid_and_of_a_run_have_all_rows(measured: DataFolder) -> None:
    async with running(app_on(measured, MEASURED_ONLY), NARROW) as pilot:
        await press(pilot, "U")
        unique, alike = table(pilot, UniquenessPanel), table(pilot, LikenessPanel)
        assert sorted(column_of(unique, "model")) == sorted((*LIBRARY, "all together"))
        assert alike[0] == ("model", *column_of(alike, "model"))
        assert all(row[at + 1] == "100.0 %" for at, row in enumerate(alike[1]))
        await press(pilot, "escape")
        put_run(measured, in_the_middle())
        await shows(pilot, "17 of 40 bricks")
        await press(pilot, "w")
        bricks, estimates, notes = (table(pilot, it) for it in (BricksPanel, EstimatesPanel, NotesPanel))
        assert bricks[0] == ("brick", "state", "runs", "ms", "±", "reason")
        assert len(bricks[1]) == pilot.app.screen.query_one(BricksPanel).rows.row_count
        assert any(column_of(bricks, "reason")) and {"failed", "measured"} <= {*column_of(bricks, "state")}
        assert {"model", "ms", "parallel", "±", "run"} <= set(estimates[0])
        assert all(":" in when for when in column_of(notes, "fact"))


# The key


async def test_a_key_copies_the_focused_panel_to_the_clipboard_and_a_file(stored: DataFolder) -> None:
    readers: dict[str, Callable[[str], list[Any]]] = {"md": _markdown_rows, "csv": _csv_rows, "json": json.loads}
    async with showing(stored, ResultsScreen, NARROW) as pilot:
        # Not all columns fit, and not all rows.
        titles = tuple("when, UTC" if name == "when" else RESULT_COLUMNS[name].title for name in FIRST_COLUMNS)
        heading, rows = table(pilot, ResultsPanel)
        assert (heading, len(rows)) == (titles, RESULTS) and len(screen_text(pilot).splitlines()) < RESULTS
        assert table(pilot, HistoryPanel)[0] == ("when, UTC", "ms", "change")
        assert "trimmed mean" in column_of(table(pilot, RecordPanel), "fact")
        await press(pilot, *find("kind=convolution"), "Y", "escape")
        assert isinstance(pilot.app.screen, ResultsScreen) and pilot.app.clipboard == ""
        assert not stored.pictures.exists()
        for steps, (ending, read) in zip(("", "j", "j"), readers.items(), strict=True):
            # The last choice is the default of the next copy.
            await press(pilot, "1", "Y", *steps, on=CopyScreen, shows="Copy: Results")
            await press(pilot, "enter")
            file = stored.path / f"copied.{ending}"
            assert pilot.app.clipboard == file.read_text()
            assert told(pilot)[-1].startswith("Copied: 12 rows as ") and str(file) in told(pilot)[-1]
            assert len(read(file.read_text())) == 12
            # The same key again copies, too.
            file.unlink()
            await press(pilot, "3", "Y", "Y")
            assert file.exists() and told(pilot)[-1].startswith("Copied: 2 rows as ")
        await press(pilot, "1", "Y", "j", "enter")
        (panel,) = stored.pictures.iterdir()
        assert str(panel) in told(pilot)[-1] and panel.read_text().startswith("<svg")
        assert "Results" in panel.read_text() and "quit" not in panel.read_text()
        panel.unlink()
        await press(pilot, "Y", "j", "enter")
        (whole,) = stored.pictures.iterdir()
        assert "Results" in whole.read_text() and "quit" in whole.read_text()


async def test_a_copy_too_long_for_terminals_is_only_in_the_file(
    stored: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr(saving, "_MOST_IN_CLIPBOARD", 1000)
    async with showing(stored, ResultsScreen) as pilot:
        await press(pilot, "Y")
        await check_all(pilot, "copy")
        await press(pilot, "enter")
        assert pilot.app.clipboard == "" and (stored.path / "copied.md").stat().st_size > 1000
        assert told(pilot)[-1].startswith(f"The copy is in {stored.path / 'copied.md'}: {RESULTS} rows as Markdown.")
        # Nothing is lost silently.
        (stored.path / "copied.md").unlink()
        (stored.path / "copied.md").mkdir()
        await press(pilot, "Y", "enter")
        assert (tmp_path / "dlbricks-copied.md").stat().st_size > 1000
        assert str(tmp_path / "dlbricks-copied.md") in told(pilot)[-1]
        (tmp_path / "dlbricks-copied.md").unlink()
        (tmp_path / "dlbricks-copied.md").mkdir()
        await press(pilot, "Y", "enter", on=ErrorScreen, shows="cannot be written")


def test_copied_commands_work_on_the_folder_of_the_session(new: DataFolder) -> None:
    repeat_in_commands(["--data-dir", "/a b"], ["llm"])
    try:
        whole = "dlbricks --data-dir '/a b' llm gemma-3-1b"
        assert saving.copy_text("dlbricks llm gemma-3-1b", new).text == whole
        table = TextTable(("command",), [["dlbricks llm gemma-3-1b"]])
        assert json.loads(saving.copy_table(table, TableFormat.JSON, "JSON", new).text or "") == [{"command": whole}]
        # As do those that screens show, in as many lines as they need.
        (shown,) = laid_out([Sentence("dlbricks llm gemma-3-1b")], 60)
        assert "".join(it.text for it in shown) == whole
    finally:
        repeat_in_commands((), ())


def _markdown_rows(text: str) -> list[str]:
    return text.splitlines()[2:]


def _csv_rows(text: str) -> list[list[str]]:
    return list(csv.reader(text.splitlines()))[1:]
