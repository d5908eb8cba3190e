"""Panels are reached by the keys in their titles, and by the keys for the next and the previous panel."""

import pytest
from textual.pilot import Pilot

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.widgets.panel import Panel
from tests.tui.application import SIZES, app_on, press, running

# The key that opens each screen, and its panels in their order.
SCREENS = {
    "results": ("6", ("result-table", "result", "history")),
    "corpus": ("7", ("uniqueness", "kinds", "likeness", "granularities")),
    "systems": ("8", ("systems", "system", "machines", "doctor")),
}


def with_focus(pilot: Pilot[None]) -> str | None:
    (panel,) = [panel.id for panel in pilot.app.screen.query(Panel) if panel.has_focus_within]
    # A narrow terminal shows this panel only.
    assert [each.id for each in pilot.app.screen.query(Panel) if each.display] == [panel]
    return panel


@pytest.mark.parametrize("name", SCREENS)
async def test_each_panel_has_a_key(name: str, stored: DataFolder) -> None:
    opens, panels = SCREENS[name]
    async with running(app_on(stored), SIZES[0]) as pilot:
        await press(pilot, opens)
        keys = dict(enumerate(panels, start=1))
        for number in (*keys, *reversed(keys)):
            await press(pilot, str(number))
            assert with_focus(pilot) == keys[number]


@pytest.mark.parametrize("name", SCREENS)
async def test_tab_visits_the_panels_in_both_directions(name: str, stored: DataFolder) -> None:
    opens, panels = SCREENS[name]
    async with running(app_on(stored), SIZES[0]) as pilot:
        await press(pilot, opens)
        for expected in (*panels[1:], panels[0]):
            await press(pilot, "tab")
            assert with_focus(pilot) == expected
        for expected in reversed(panels):
            await press(pilot, "shift+tab")
            assert with_focus(pilot) == expected
