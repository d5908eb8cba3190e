"""The application as a whole: keys lead to panels and answers, the demonstration, and names with control codes."""

import subprocess
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen
from textual.widgets import Input

from dlbricks_tui.api.demonstration import Demonstration, open_demonstration
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.run_watch import Replayed
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui import analysis as analysing
from dlbricks_tui.tui.analysis import AnalysisScreen
from dlbricks_tui.tui.app import DlbricksApp
from dlbricks_tui.tui.dialogs.dialog import Box
from dlbricks_tui.tui.keys.scopes import DIALOG
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.scenario import ScenarioScreen
from dlbricks_tui.tui.trace import TraceScreen
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.cli.test_output import HOSTILE, SPELLED
from tests.tui.application import (
    MEASURED_ONLY,
    SIZES,
    WIDE,
    WRITTEN,
    app_on,
    press,
    running,
    screen_text,
    settled,
    showing,
)
from tests.tui.results import source_called
from tests.tui.test_run_screens import shows

# The key that opens each screen, and its panels in their order.
SCREENS = {
    "results": ("R", ("result-table", "result", "history")),
    "corpus": ("U", ("uniqueness", "kinds", "likeness", "granularities")),
    "systems": ("S", ("systems", "system", "machines", "doctor")),
}
SPEC = ModelSpec(source_called("squeezenet1.1"), WRITTEN.level, WRITTEN.cutting)
# The screens of the open model, and their panels.
OF_A_MODEL: dict[str, tuple[Callable[[WorkbenchSession], Screen[Any]], tuple[str, ...]]] = {
    "analysis": (
        lambda session: AnalysisScreen(session, SPEC, WRITTEN, Config(), None),
        ("bounds", "what-ifs", "change", "layers"),
    ),
    "scenario": (
        lambda session: ScenarioScreen(session, SPEC, WRITTEN, Config()),
        ("load", "load-settings", "latencies", "load-tests"),
    ),
    "trace": (lambda session: TraceScreen(session, SPEC, WRITTEN, Config()), ("timeline", "span", "traces")),
}


def with_focus(pilot: Pilot[None]) -> str | None:
    (panel,) = [panel.id for panel in pilot.app.screen.query(Panel) if panel.has_focus_within]
    # A narrow terminal shows this panel only.
    assert [each.id for each in pilot.app.screen.query(Panel) if each.display] == [panel]
    return panel


async def visit(pilot: Pilot[None], panels: tuple[str, ...]) -> None:
    """Go through all panels by the keys for the next and the previous one, then by those of their own."""
    for expected in (*panels[1:], panels[0]):
        await press(pilot, "tab")
        assert with_focus(pilot) == expected
    await press(pilot, "shift+tab")
    assert with_focus(pilot) == panels[-1]
    await press(pilot, "shift+tab")
    assert with_focus(pilot) == panels[-2]
    for number, expected in enumerate(panels, start=1):
        await press(pilot, str(number))
        assert with_focus(pilot) == expected


async def test_the_panels_of_a_screen_have_keys_and_follow_one_another(stored: DataFolder) -> None:
    async with running(app_on(stored, MEASURED_ONLY), SIZES[0]) as pilot:
        for opens, panels in SCREENS.values():
            await press(pilot, opens)
            await visit(pilot, panels)
            await press(pilot, "escape")


@pytest.mark.usefixtures("rough_predictions")
@pytest.mark.parametrize("name", OF_A_MODEL)
async def test_the_panels_of_a_screen_about_a_model_have_keys_and_follow_one_another(
    name: str, new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    # The panels are the same whatever the analysis says.
    def refuse(*_: object) -> None:
        raise UserError("nothing was measured")

    monkeypatch.setattr(analysing, "analyse", refuse)
    screen_of, panels = OF_A_MODEL[name]
    async with showing(new, screen_of, SIZES[0]) as pilot:
        await visit(pilot, panels)


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
        await press(pilot, "escape", "1", "slash", '"resnet18_v1"', "enter", "enter")
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
            await press(pilot, "1", "slash", "ctrl+u", f'"{name}"', "enter", key)
            assert asked in screen_text(pilot)
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


def demonstrating(found: Demonstration) -> DlbricksApp:
    return DlbricksApp(WorkbenchSession(found.data, found.samples), replayed=Replayed(found.replayed, SPEED, 30.0))


async def test_it_says_whose_numbers_it_shows_replays_a_run_and_measures_nothing(
    demonstration: Demonstration,
) -> None:
    async with running(demonstrating(demonstration), (180, 40)) as pilot:
        assert f"All numbers were {demonstration.host.origin}." in screen_text(pilot)
        await press(pilot, "enter")
        assert f"demonstration, {demonstration.host.origin}" in screen_text(pilot).splitlines()[0]
        assert "squeezenet1.1" in screen_text(pilot).splitlines()[0]
        await shows(pilot, f"replay {SPEED}x")
        await press(pilot, "w")
        assert isinstance(pilot.app.screen, RunScreen)
        await shows(pilot, f"replay {SPEED}x")
        await press(pilot, "escape", "m", "enter")
        await shows(pilot, "a demonstration measures nothing: quit it, and start `dlbricks` itself")


async def test_it_says_that_the_doctor_is_about_the_live_host_and_that_no_kernels_were_recorded(
    demonstration: Demonstration,
) -> None:
    async with running(demonstrating(demonstration)) as pilot:
        await press(pilot, "enter", "S", "4")
        await shows(pilot, "These are findings about the host of this")
        await press(pilot, "escape", "A")
        await shows(pilot, "No change is worth making")
        await press(pilot, "K")
        await shows(pilot, "the kernels were not recorded; a demonstration measures nothing")


async def test_a_model_is_searched_from_its_box(demonstration: Demonstration) -> None:
    async with running(demonstrating(demonstration)) as pilot:
        await press(pilot, "slash", '"vgg16"')
        assert "1 Models 1 of 17" in screen_text(pilot)


def drawn(app: DlbricksApp) -> str:
    """Return all texts that the terminal gets for the current screen."""
    return "\n".join(strip.text for strip in app.screen._compositor.render_strips())


async def test_messages_fields_and_titles_of_frames_escape_markup_and_control_codes(new: DataFolder) -> None:
    app = app_on(new)
    async with running(app, WIDE) as pilot:
        app.notify(f"[red] {HOSTILE}", markup=False)
        await settled(pilot)
        assert [each.message for each in app._notifications] == [f"[red] {SPELLED}"]
        assert all(char.isprintable() for char in drawn(app).replace("\n", ""))
        await press(pilot, "escape", "o")
        app.screen.query_one(Input).value = HOSTILE
        await settled(pilot)
        shown = drawn(app)
        assert r"n\x1b]0;owned" in shown
        assert all(char.isprintable() for char in shown.replace("\n", ""))
        box = Box(f"Shapes of [red]{HOSTILE}", DIALOG)
        assert box._border_title is not None
        assert box._border_title.plain == f"Shapes of [red]{SPELLED}"
