"""The screen of fleets, from the events of a fleet run."""

from dataclasses import replace
from pathlib import Path
from unittest.mock import Mock

import pytest

from dlbricks_tui.api.fleets import FleetJob, FleetOptions, FleetSettings, start_fleet
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.config.config import Config, Given
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders
from dlbricks_tui.fleet.request import FleetHostState, FleetRequest, HostEntry
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State, store_request
from dlbricks_tui.settings.measuring import TARGET_INTERVAL, TIME_BUDGET, Question
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.fleet import (
    CancelFleetScreen,
    FleetScreen,
    HostsFileScreen,
    HostsPanel,
    RankingPanel,
    StartFleetScreen,
)
from dlbricks_tui.tui.run.boxes import AllJobsScreen
from tests.fleet.sample_fleet import RUN, changed, estimate, measuring, sample_fleet, tell
from tests.runs.runs import Site
from tests.tui.application import MEASURED_ONLY, MEDIUM, NARROW, WIDE, app_on, running, showing
from tests.tui.driving import press, screen_text, settled, told
from tests.tui.results import source_called, store_run
from tests.tui.snapshots import check_all, resize

GIVEN = {RUNTIME: "openvino", THREADS: 8, TARGET_INTERVAL: 0.05, TIME_BUDGET: 600.0}
CONFIG = Config({**Config().given, **{setting.config: Given(value) for setting, value in GIVEN.items()}})


@pytest.fixture
def fleet(new: DataFolder) -> FleetFolder:
    """A fleet run in progress, which this process drives."""
    return sample_fleet(new)


def screen_of(session: WorkbenchSession) -> FleetScreen:
    """The fleet screen as if a model were open, with a runtime and threads in the config."""
    return FleetScreen(session, (source_called("squeezenet1.1"),), lambda: CONFIG)


async def test_a_fleet_run_is_followed_and_its_rankings_are_sorted(new: DataFolder, fleet: FleetFolder) -> None:
    async with showing(new, screen_of, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, FleetScreen)
        text = screen_text(pilot)
        assert "Which host is fastest for resnet50_v1, squeezenet1.1?" in text
        assert "The fastest host so far differs: m8g for 1 model, c7i for 1 model; the order" in text
        assert "; the order of hosts is sure for 1 of 2 models." in text
        assert "measuring" in text and "45 of 60" in text and "42 s" in text
        assert "it has dlbricks 0.1.0, and 0.2.0 is needed" in text
        assert "~31.00" in text and "$1.21" in text
        await press(pilot, "y")
        assert not new.copied.exists() and "This host reports nothing." in told(pilot)
        await press(pilot, "G", "y")
        assert new.copied.read_text() == "it has dlbricks 0.1.0, and 0.2.0 is needed"

        # The ranking follows the selected model.
        assert "Ranking for resnet50_v1" in text
        await press(pilot, "2", "j", shows=("Ranking for squeezenet1.1", "9.000"))
        await press(pilot, "k")
        tell(fleet, estimate("t4g", "resnet50_v1", 60.0, dollars=0.89))
        tell(
            fleet,
            measuring("c7i", 60, state=FleetHostState.DONE),
            changed("m8g", FleetHostState.LOST, "it went away"),
        )
        screen.look()
        await settled(pilot)
        rows = {row.host: row for row in screen.query_one(HostsPanel).found}
        assert (rows["c7i"].state, rows["c7i"].bricks) == (FleetHostState.DONE, 60)
        assert (rows["m8g"].state, rows["m8g"].message) == (FleetHostState.LOST, "it went away")
        ranking = screen.query_one(RankingPanel)
        await press(pilot, "3")
        # By latency, or by cost.
        by_latency, by_cost = ["m8g", "c7i", "t4g"], ["t4g", "m8g", "c7i"]
        for expected in (by_latency, by_cost, by_latency):
            assert [it.host for it in ranking.found] == expected
            await press(pilot, "s")


async def test_keys_lead_through_the_panels_and_pause_add_and_cancel_hosts(
    new: DataFolder, fleet: FleetFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[tuple[str, ...]] = []
    monkeypatch.setattr(FleetFolder, "command_host", lambda _, host, what: asked.append((what, host)))
    # The process of this fleet run is that of the tests.
    monkeypatch.setattr(FleetFolder, "cancel", lambda it: asked.append(("cancel",)))
    request = FleetRequest(run=Site(tmp_path / "site").request(), hosts=(HostEntry(name="c7i"), HostEntry(name="m8g")))
    store_request(fleet.request_file, request)
    file = tmp_path / "more.toml"
    file.write_text('[[host]]\nname = "t4g"\n')
    async with showing(new, screen_of, NARROW) as pilot:
        screen = pilot.app.screen
        assert "c7i" in screen_text(pilot) and "45 of 60" in screen_text(pilot)
        await press(pilot, "1", "j", "P", "X")
        assert asked == [("pause", "m8g"), ("cancel", "m8g")]

        await press(pilot, "p")
        assert fleet.pause_file.exists()
        await press(pilot, "p")
        assert not fleet.pause_file.exists()

        await press(pilot, "o", on=HostsFileScreen)
        await press(pilot, f'"{file}"', "enter")
        assert [it.name for it in fleet.added_hosts()] == ["t4g"]
        await press(pilot, "o", f'"{file}"', "enter", on=ErrorScreen, shows="has a host t4g already")
        await press(pilot, "escape")

        # All hosts are cancelled after a question.
        await press(pilot, "x", on=CancelFleetScreen)
        await press(pilot, "escape")
        assert len(asked) == 2
        await press(pilot, "x", "y")
        assert asked[2:] == [("cancel",)] and screen.is_current

        await press(pilot, "J", on=AllJobsScreen)
        await press(pilot, "enter")
        assert screen.is_current
        await press(pilot, "escape")
        assert not screen.is_current


async def test_a_fleet_run_that_has_ended_is_resumed_on_its_screen_or_from_the_list_unless_it_is_complete(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    run, resumed = Site(tmp_path / "site").request(), list[str]()
    folder = sample_fleet(new, State.INTERRUPTED)
    store_request(folder.request_file, FleetRequest(run=run, scheduler="tls://10.0.0.1:8786"))
    async with showing(new, screen_of) as pilot:
        # Orders that were never settled stay open.
        assert "The fastest host so far differs" in screen_text(pilot)
        with monkeypatch.context() as patch:
            patch.setattr("dlbricks_tui.api.jobs.start_apart", lambda folder, _: resumed.append(folder.run))
            await press(pilot, "p")
            assert resumed == [RUN]
            await press(pilot, "J", "p")
            assert resumed == [RUN, RUN] and isinstance(pilot.app.screen, FleetScreen)
        store_request(folder.request_file, FleetRequest(run=run, hosts=(HostEntry(name="c7i"),)))
        folder.set_state(replace(folder.state(), state=State.FINISHED))
        tell(folder, measuring("c7i", 60, failed=0, state=FleetHostState.DONE))
        before = folder.state()
        await press(pilot, "J", "p", on=ErrorScreen, shows="there is nothing to resume")
    assert folder.state() == before


async def test_a_new_fleet_run_asks_for_hosts_and_settings_and_starts(
    new: DataFolder, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    started: list[tuple[list[str], Path, FleetSettings]] = []

    def start(sources: object, hosts_file: Path, settings: FleetSettings, data: DataFolder) -> FleetJob:
        assert isinstance(sources, tuple)
        started.append(([it.name for it in sources], hosts_file, settings))
        return FleetJob(FleetFolders(new.fleets).create(("squeezenet1.1",)), data)

    file = tmp_path / "h.toml"
    file.write_text("[[host]]\nnme = 1\n")
    async with showing(new, screen_of) as pilot:
        assert "There is no fleet run yet." in screen_text(pilot)
        await press(pilot, "m", on=HostsFileScreen)
        await press(pilot, f'"{file}"', "enter", "enter", on=ErrorScreen)
        assert "[[host]] lacks name" in screen_text(pilot)
        monkeypatch.setattr("dlbricks_tui.tui.fleet.start_fleet", start)
        await press(pilot, "escape", "m", f'"{file}"', "enter", on=StartFleetScreen)
        await press(pilot, "j", "j", "j", "h", "k", "k", "k", "l", "enter")
    ((names, path, settings),) = started
    assert (names, path) == (["squeezenet1.1"], file)
    # It begins with the runtime and threads of the config.
    assert (settings.question, settings.runtime, settings.threads) == (Question.EVERYTHING, "openvino", 4)
    assert (settings.target_interval, settings.time_budget_seconds) == (0.05, 600.0)


def test_a_new_fleet_run_measures_until_the_target_and_within_the_budget_of_its_settings(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[FleetOptions] = []
    monkeypatch.setattr("dlbricks_tui.api.fleets.fleet_request", lambda options, *_: asked.append(options))
    monkeypatch.setattr("dlbricks_tui.api.fleets.FleetJob", Mock())
    start_fleet((), Path("h.toml"), FleetSettings(target_interval=0.05, time_budget_seconds=600.0), new)
    (measuring,) = [it.measuring for it in asked]
    assert (measuring.target_interval, measuring.time_budget_seconds) == (0.05, 600.0)


async def test_the_screen_matches_its_snapshot_and_the_workbench_shows_what_hosts_have_measured(
    new: DataFolder, fleet: FleetFolder
) -> None:
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        # From the list of all jobs, as any other job.
        await press(pilot, "escape", "J", shows="fleet run of resnet50_v1, squeezenet1.1")
        await press(pilot, "enter", on=FleetScreen)
        await press(pilot, "escape", "F")
        await check_all(pilot, "fleet")
        store_run(new, ["resnet18_v1"])
        await press(pilot, "escape")
        await resize(pilot, MEDIUM)
        assert "14.56" in screen_text(pilot)
