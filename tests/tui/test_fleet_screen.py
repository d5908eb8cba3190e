"""The screen of fleets, from the events of a fleet run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.fleet.events import (
    HostState,
)
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders, write_fleet_request
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.request import FleetRequest, Question
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.fleet import fleets
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
from tests.fleet.sample_fleet import RUN, changed, estimate, progress, sample_fleet, tell
from tests.runs.runs import Site
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


def told(pilot: Pilot[None]) -> list[str]:
    return [note.message for note in pilot.app._notifications]


async def test_the_question_the_answer_and_the_hosts_stand_on_the_screen(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new, WIDE) as pilot:
        text = screen_text(pilot)
        assert "Which host is fastest for resnet50_v1, squeezenet1.1?" in text
        assert "The fastest host so far differs: m8g for 1 model, c7i for 1 model; 1 of 2 orders settled." in text
        assert "measuring" in text and "45 of 60" in text and "42 s" in text
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


async def test_keys_pause_all_hosts_and_cancel_after_a_question(
    new: DataFolder, fleet: FleetFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    cancelled: list[str] = []
    # The process of this fleet run is that of the tests.
    monkeypatch.setattr(FleetFolder, "cancel", lambda it: cancelled.append(it.run))
    async with fleet_screen(new) as pilot:
        await press(pilot, "p")
        await settled(pilot)
        assert fleet.pause_file.exists()
        await press(pilot, "p")
        await settled(pilot)
        assert not fleet.pause_file.exists()
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, CancelFleetScreen)
        await press(pilot, "escape")
        assert not cancelled
        await press(pilot, "x", "y")
        await settled(pilot)
        assert cancelled == [RUN] and isinstance(pilot.app.screen, FleetScreen)


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


async def test_what_a_host_reports_can_be_copied(new: DataFolder, fleet: FleetFolder) -> None:
    async with fleet_screen(new) as pilot:
        await press(pilot, "y")
        assert not new.copied.exists() and "This host reports nothing." in told(pilot)
        await press(pilot, "G", "y")
        assert new.copied.read_text() == "it has dlbricks 0.1.0, and 0.2.0 is needed"


async def test_the_hosts_of_a_model_are_sorted_by_latency_or_by_cost(new: DataFolder, fleet: FleetFolder) -> None:
    tell(fleet, estimate("t4g", "resnet50_v1", 60.0, dollars=0.89))
    async with fleet_screen(new, WIDE) as pilot:
        ranking = pilot.app.screen.query_one(RankingPanel)
        await press(pilot, "3")
        assert [it.host for it in ranking.found] == ["m8g", "c7i", "t4g"]
        await press(pilot, "s")
        assert [it.host for it in ranking.found] == ["t4g", "m8g", "c7i"]
        await press(pilot, "s")
        assert [it.host for it in ranking.found] == ["m8g", "c7i", "t4g"]


async def test_a_fleet_run_that_has_ended_is_resumed_on_its_screen_or_from_the_list_of_all(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    request = FleetRequest(run=Site(tmp_path / "site").request(), scheduler="tls://10.0.0.1:8786")
    write_fleet_request(sample_fleet(new, State.INTERRUPTED).request_file, request)
    resumed: list[str] = []
    monkeypatch.setattr(fleets, "start_detached", lambda folder, _: resumed.append(folder.run))
    async with fleet_screen(new) as pilot:
        await press(pilot, "r")
        await settled(pilot)
        assert resumed == [RUN]
        await press(pilot, "R", "r")
        await settled(pilot)
        assert resumed == [RUN, RUN] and isinstance(pilot.app.screen, FleetScreen)


async def test_a_complete_fleet_run_is_not_resumed(new: DataFolder, tmp_path: Path) -> None:
    folder = sample_fleet(new, State.FINISHED)
    request = FleetRequest(run=Site(tmp_path / "site").request(), hosts=(HostEntry(name="c7i"),))
    write_fleet_request(folder.request_file, request)
    tell(folder, progress("c7i", 60, failed=0), changed("c7i", HostState.DONE))
    before = folder.state()
    async with fleet_screen(new) as pilot:
        await press(pilot, "r")
        await settled(pilot)
        assert isinstance(pilot.app.screen, ErrorScreen) and "there is nothing to resume" in screen_text(pilot)
    assert folder.state() == before


async def test_the_hosts_of_another_file_are_added(new: DataFolder, fleet: FleetFolder, tmp_path: Path) -> None:
    request = FleetRequest(run=Site(tmp_path / "site").request(), hosts=(HostEntry(name="c7i"), HostEntry(name="m8g")))
    write_fleet_request(fleet.request_file, request)
    file = tmp_path / "more.toml"
    file.write_text('[[host]]\nname = "t4g"\n')
    async with fleet_screen(new) as pilot:
        await press(pilot, "plus")
        assert isinstance(pilot.app.screen, HostsFileScreen)
        await press(pilot, f'"{file}"', "enter")
        await settled(pilot)
        assert [it.name for it in fleet.added_hosts()] == ["t4g"]
        await press(pilot, "plus", f'"{file}"', "enter")
        await settled(pilot)
        assert isinstance(pilot.app.screen, ErrorScreen) and "has a host t4g already" in screen_text(pilot)


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
        await press(pilot, "j", "j", "j", "h", "k", "k", "k", "l", "enter")
        await settled(pilot)
    ((names, path, settings),) = started
    assert (names, path) == (["squeezenet1.1"], tmp_path / "h.toml")
    # The value before the usual one is the last.
    assert (settings.question, settings.threads) == (Question.EVERYTHING, 16)


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
        assert "c7i" in screen_text(pilot) and "45 of 60" in screen_text(pilot)
        await press(pilot, "2")
        assert pilot.app.screen.query_one(FleetModelsPanel).has_class("-current")
        assert "m8g" in screen_text(pilot)


async def test_the_screen_matches_its_snapshot(new: DataFolder, fleet: FleetFolder) -> None:
    async with running(app_on(new)) as pilot:
        await press(pilot, "escape", "F")
        await settled(pilot)
        await check_all(pilot, "fleet")
