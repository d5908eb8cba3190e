"""The screen of fleets, from the events of a fleet run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.fleet.events import (
    HostState,
)
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.fleet.boxes import (
    AllFleetsScreen,
    CancelFleetScreen,
    FleetSettings,
    HostsFileScreen,
    StartFleetScreen,
)
from dlbricks_tui.tui.fleet.fleets import Fleets
from dlbricks_tui.tui.fleet.panels import FleetModelsPanel, HostsPanel, RankingPanel
from dlbricks_tui.tui.fleet.screen import FleetScreen
from tests.fleet.sample_fleet import changed, progress, sample_fleet, tell
from tests.tui.application import MEDIUM, NARROW, WIDE, app_on, press, running, screen_text, showing
from tests.tui.results import source_called
from tests.tui.snapshots import check_all


@pytest.fixture
def fleet(new: DataFolder) -> FleetFolder:
    """A fleet run in progress, which this process drives."""
    return sample_fleet(new)


@asynccontextmanager
async def fleet_screen(data: DataFolder, size: tuple[int, int] = MEDIUM) -> AsyncIterator[Pilot[None]]:
    """Run the application with the fleet screen alone, as if a model were open."""
    async with showing(data, lambda session: FleetScreen(session, (source_called("squeezenet1.1"),)), size) as pilot:
        await settled(pilot)
        yield pilot


async def settled(pilot: Pilot[None]) -> None:
    """Wait until the screen has read the fleet run."""
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()
    await pilot.app.workers.wait_for_complete()
    await pilot.pause()


async def test_the_question_the_answer_and_the_hosts_stand_on_the_screen(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new, WIDE) as pilot:
        text = screen_text(pilot)
        assert "Which host is fastest for resnet50_v1, squeezenet1.1?" in text
        assert "The fastest host so far differs: m8g for 1 model, c7i for 1 model; 1 of 2 orders settled." in text
        assert "measuring" in text and "45/60" in text and "42 s" in text
        assert "it has dlbricks 0.1.0, and 0.2.0 is needed" in text
        assert "~31.00" in text and "$1.21" in text


async def test_the_ranking_follows_the_selected_model(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new, WIDE) as pilot:
        assert "Ranking for resnet50_v1" in screen_text(pilot)
        await press(pilot, "2", "j")
        assert "Ranking for squeezenet1.1" in screen_text(pilot)
        assert "9.000" in screen_text(pilot)


async def test_what_happens_on_the_hosts_appears(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new, WIDE) as pilot:
        tell(fleet, progress("c7i", 60), changed("c7i", HostState.DONE), changed("m8g", HostState.LOST, "it went away"))
        screen = pilot.app.screen
        assert isinstance(screen, FleetScreen)
        screen._look()
        await settled(pilot)
        rows = {row.name: row for row in screen.query_one(HostsPanel).found}
        assert (rows["c7i"].state, rows["c7i"].bricks) == (HostState.DONE, 60)
        assert (rows["m8g"].state, rows["m8g"].message) == (HostState.LOST, "it went away")


async def test_keys_pause_all_hosts_and_cancel_after_a_question(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new) as pilot:
        await press(pilot, "p")
        await settled(pilot)
        assert fleet.pause_file.exists()
        await press(pilot, "p")
        await settled(pilot)
        assert not fleet.pause_file.exists()
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, CancelFleetScreen)


async def test_the_selected_host_is_paused_and_ended(
    new: DataFolder, fleet: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, str]] = []
    monkeypatch.setattr(FleetFolder, "pause_host", lambda _, host: asked.append(("pause", host)))
    monkeypatch.setattr(FleetFolder, "cancel_host", lambda _, host: asked.append(("cancel", host)))
    async with fleet_screen(new) as pilot:
        await press(pilot, "1", "j", "P", "X")
        await settled(pilot)
        assert asked == [("pause", "m8g"), ("cancel", "m8g")]


async def test_a_new_fleet_run_asks_for_hosts_and_settings_and_starts(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], Path, FleetSettings]] = []

    def start(self: Fleets, sources: object, hosts_file: Path, settings: FleetSettings) -> FleetFolder:
        assert isinstance(sources, tuple)
        started.append(([it.name for it in sources], hosts_file, settings))
        return FleetFolders(new.fleets).create(("squeezenet1.1",))

    monkeypatch.setattr(Fleets, "start", start)
    (tmp_path / "h.toml").write_text("")
    async with fleet_screen(new) as pilot:
        assert "There is no fleet run yet." in screen_text(pilot)
        await press(pilot, "n")
        assert isinstance(pilot.app.screen, HostsFileScreen)
        await press(pilot, f'"{tmp_path / "h.toml"}"', "enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, StartFleetScreen)
        await press(pilot, "l", "enter")
        await settled(pilot)
    ((names, path, settings),) = started
    assert (names, path, settings.question.value) == (["squeezenet1.1"], tmp_path / "h.toml", "everything")


async def test_a_broken_hosts_file_is_refused_in_one_message(new: DataFolder, tmp_path: Path) -> None:
    (tmp_path / "h.toml").write_text("[[host]]\nnme = 1\n")
    async with fleet_screen(new) as pilot:
        await press(pilot, "n", f'"{tmp_path / "h.toml"}"', "enter")
        await settled(pilot)
        await press(pilot, "enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, ErrorScreen)
        assert "this host has no name" in screen_text(pilot)


async def test_keys_lead_through_the_panels_to_all_fleet_runs_and_back(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new) as pilot:
        screen = pilot.app.screen
        for pressed, panel in (("tab", FleetModelsPanel), ("shift+tab", HostsPanel), ("3", RankingPanel)):
            await press(pilot, pressed)
            assert screen.query_one(panel).has_class("-current")
        await press(pilot, "R")
        assert isinstance(pilot.app.screen, AllFleetsScreen)
        await press(pilot, "enter")
        assert pilot.app.screen is screen
        await press(pilot, "escape")
        assert pilot.app.screen is not screen


async def test_the_screen_fits_80_columns(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new, NARROW) as pilot:
        assert "c7i" in screen_text(pilot) and "45/60" in screen_text(pilot)
        await press(pilot, "2")
        assert pilot.app.screen.query_one(FleetModelsPanel).has_class("-current")
        assert "m8g" in screen_text(pilot)


async def test_the_screen_matches_its_snapshot(new: DataFolder, fleet: FleetFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "F")
        await settled(pilot)
        await check_all(pilot, "fleet")
