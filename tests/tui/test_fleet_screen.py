"""The screen of fleets, from the events of a fleet run."""

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager, closing
from dataclasses import replace
from pathlib import Path

import pytest
from dlbricks_tui.fleet.folder import FleetFolder, FleetFolders
from textual.pilot import Pilot

from dlbricks_tui.fleet.events import (
    FleetStarted,
    HostChanged,
    HostEstimate,
    HostProgress,
    HostState,
    OrderFound,
)
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.events import EventWriter
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.fleet.boxes import CancelFleetScreen, FleetSettings, HostsFileScreen, StartFleetScreen
from dlbricks_tui.tui.fleet.fleets import Fleets
from dlbricks_tui.tui.fleet.panels import FleetModelsPanel, HostsPanel
from dlbricks_tui.tui.fleet.screen import FleetScreen
from tests.tui.application import MEDIUM, NARROW, WIDE, app_on, press, running, screen_text, showing
from tests.tui.results import source_called
from tests.tui.snapshots import check_all

MODELS = ("resnet50_v1", "squeezenet1.1")
RUNTIME = "onnxruntime-1.32.0 threads-1"


def estimate(host: str, model: str, ms: float | None, *, predicted: int = 0, dollars: float | None = None) -> Event:
    return HostEstimate(
        host=host,
        model=model,
        runtime=RUNTIME,
        sequential_ms=ms,
        low_ms=None if ms is None else 0.95 * ms,
        high_ms=None if ms is None else 1.05 * ms,
        measured_layers=40,
        predicted_layers=predicted,
        missing_layers=0,
        per_second=None if ms is None else 1000 / ms,
        dollars_per_million=dollars,
    )


def changed(host: str, state: HostState, message: str = "") -> Event:
    return HostChanged(host=host, state=state.value, message=message, system=f"{host}-id", system_name=host)


def progress(host: str, bricks: int) -> Event:
    return HostProgress(
        host=host, bricks=bricks, of=60, failed=1, seconds_left=42.0, disturbed_rounds=3, disturbed_seconds=1.5
    )


EVENTS = (
    FleetStarted(
        fleet="f", pid=1, models=MODELS, runtimes=(RUNTIME,), level="fused", question="which-host", hosts=("c7i", "m8g")
    ),
    changed("c7i", HostState.MEASURING),
    changed("m8g", HostState.PROBING),
    changed("old", HostState.REFUSED, "it has dlbricks 0.1.0, and 0.2.0 is needed"),
    progress("c7i", 45),
    progress("m8g", 12),
    estimate("c7i", "resnet50_v1", 40.0, dollars=1.98),
    estimate("m8g", "resnet50_v1", 31.0, predicted=12, dollars=1.21),
    estimate("c7i", "squeezenet1.1", 9.0, dollars=0.45),
    estimate("m8g", "squeezenet1.1", None),
    OrderFound(model="resnet50_v1", runtime=RUNTIME, order=(("m8g",), ("c7i",)), settled=True),
    OrderFound(model="squeezenet1.1", runtime=RUNTIME, order=(("c7i",), ("m8g",)), settled=False),
)


def tell(folder: FleetFolder, *events: Event) -> None:
    with closing(EventWriter(folder.events_file)) as writer:
        for event in events:
            writer.tell(event)


@pytest.fixture
def fleet(new: DataFolder) -> FleetFolder:
    """A fleet run in progress, which this process drives."""
    folder = FleetFolders(new.fleets).create(MODELS)
    folder.set_state(replace(folder.state(), state=State.RUNNING))
    tell(folder, *EVENTS)
    return folder


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
        assert "The fastest host differs: m8g for 1 model, c7i for 1 model; 1 of 2 orders settled." in text
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
