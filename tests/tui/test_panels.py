"""Panels are reached by the keys in their titles, and by the keys for the next and the previous panel."""

from collections.abc import Callable
from typing import Any

import pytest
from textual.pilot import Pilot
from textual.screen import Screen

from dlbricks_tui.config.config import Config
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.analysis import work
from dlbricks_tui.tui.analysis.screen import AnalysisScreen
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.scenario.screen import ScenarioScreen
from dlbricks_tui.tui.session import Session
from dlbricks_tui.tui.trace.screen import TraceScreen
from dlbricks_tui.tui.widgets.panel import Panel
from tests.tui.application import MEASURED_ONLY, SIZES, WRITTEN, app_on, press, running, showing
from tests.tui.results import source_called

# The key that opens each screen, and its panels in their order.
SCREENS = {
    "results": ("R", ("result-table", "result", "history")),
    "corpus": ("U", ("uniqueness", "kinds", "likeness", "granularities")),
    "systems": ("S", ("systems", "system", "machines", "doctor")),
}
SPEC = ModelSpec(source_called("squeezenet1.1"), WRITTEN.level, WRITTEN.cutting)
# The screens of the open model, and their panels.
OF_A_MODEL: dict[str, tuple[Callable[[Session], Screen[Any]], tuple[str, ...]]] = {
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

    monkeypatch.setattr(work, "analyse", refuse)
    screen_of, panels = OF_A_MODEL[name]
    async with showing(new, screen_of, SIZES[0]) as pilot:
        await visit(pilot, panels)
