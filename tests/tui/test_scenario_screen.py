"""The screen of how much load the open model can serve."""

import re
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from textual.pilot import Pilot

from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.scenarios import ScenarioOfModel
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.scenarios import predicting
from dlbricks_tui.settings.loads import BATCHES, BOUND, FULL, KIND, PERCENTILE, RATE
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from dlbricks_tui.tui import scenario as work
from dlbricks_tui.tui.dialogs.notices import WritingScreen
from dlbricks_tui.tui.scenario import SCENARIO_ROWS, LoadTestsPanel, ScenarioScreen, SettingsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.store.samples import load_test
from tests.tui.application import (
    MEASURED_ONLY,
    MEDIUM,
    NARROW,
    WIDE,
    WRITTEN,
    app_on,
    press,
    running,
    screen_text,
    settled,
    showing,
)
from tests.tui.forms import row_of
from tests.tui.results import RUNTIME, graph_of, source_called, store_run
from tests.tui.snapshots import check_all, resize
from tests.tui.stored_results import HERE

MODEL = "squeezenet1.1"
OPEN = ("slash", f'"{MODEL}"', "enter", "enter", "L")
_VIEWS = dict[object, ScenarioOfModel | str]()


@pytest.fixture
def predicted_once(rough_predictions: None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Predict equal settings on equal stores once, from few tests: most tests look at what stands beside them."""
    for name, value in (("_REQUESTS_IN_ALL", 1), ("_REQUESTS_IN_ALL_IN_BATCHES", 1), ("_FEWEST_TESTS", 4)):
        monkeypatch.setattr(predicting, name, value)
    predict: Callable[..., ScenarioOfModel | str] = work.predict_scenario

    def predicted(session: WorkbenchSession, *asked: object) -> ScenarioOfModel | str:
        spec, choices, _, settings = asked
        stored = tuple(sorted((it.name, it.read_bytes()) for it in session.data.store.glob("*") if it.is_file()))
        known = stored, spec, choices, settings
        if known not in _VIEWS:
            _VIEWS[known] = predict(session, *asked)
        return _VIEWS[known]

    monkeypatch.setattr(work, "predict_scenario", predicted)


@pytest.fixture
def timed(new: DataFolder) -> DataFolder:
    """A data folder with a model that was timed end to end."""
    store_run(new, [MODEL])
    return new


def store_load_test(data: DataFolder, host: str | None = None, **fields: object) -> LoadTest:
    """Store a load test of the model on this host."""
    key = end_to_end_keys(graph_of(MODEL))[Level.WRITTEN]
    here = {"model": key, "name": MODEL, "system": host or fingerprint().id, "runtime": RUNTIME.id}
    test = load_test(**{**here, "level": Level.WRITTEN, **fields})
    with ResultsDatabase(data.store) as store:
        store.add(test)
    return test


@asynccontextmanager
async def scenario_screen(data: DataFolder, size: tuple[int, int] = MEDIUM) -> AsyncIterator[Pilot[None]]:
    """Run the application with the screen of scenarios alone, as if the model had been opened."""
    async with showing(data, screen_of, size) as pilot:
        yield pilot


def screen_of(session: WorkbenchSession) -> ScenarioScreen:
    return ScenarioScreen(session, ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting), WRITTEN, Config())


async def choose(pilot: Pilot[None], setting: Setting[Any], *keys: str) -> str:
    """Press keys on a setting; return the text of the screen."""
    pilot.app.screen.query_one(SettingsPanel).rows.move_to(SCENARIO_ROWS.index(row_of(SCENARIO_ROWS, setting)))
    await press(pilot, "2", *keys)
    return screen_text(pilot)


@pytest.mark.usefixtures("rough_predictions")
async def test_the_open_model_has_a_prediction_and_its_load_test_and_another_one_says_what_to_do(
    one_host: None, timed: DataFolder
) -> None:
    latencies_ns = [16_000_000 + number % 41 * 400_000 for number in range(690)] + [90_000_000] * 10
    store_load_test(timed, HERE, bound_ms=63.0, latencies=pack_latencies(latencies_ns))
    async with running(app_on(timed, MEASURED_ONLY)) as pilot:
        # Nothing is open and nothing selected: no model has this name.
        await press(pilot, "slash", '"no such model"', "enter", "L")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await press(pilot, "escape", *OPEN)
        await check_all(pilot, "scenario")
        await resize(pilot, NARROW)
        assert re.search(r"⠒ predicted p99   ─ bound 1\d\d ms\s+┃?\s*┃?\s*│ highest rate ~[\d.]+", screen_text(pilot))
        await press(pilot, "3")
        assert "Requests by ms" in screen_text(pilot)
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        await press(pilot, "1", "slash", "ctrl+u", '"alexnet"', *OPEN[2:])
        assert isinstance(pilot.app.screen, ScenarioScreen)
        assert "there is no default bound" in screen_text(pilot)
        await choose(pilot, BOUND, "equals_sign", '"50"', "enter", "1")
        assert "dlbricks run alexnet" in screen_text(pilot)


@pytest.mark.usefixtures("predicted_once")
async def test_the_prediction_follows_settings_and_a_wrong_one_is_one_line(timed: DataFolder) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        usual = screen_text(pilot)
        assert re.search(rf"{MODEL}: ~[\d.]+ requests/s \([\d.]+ to [\d.]+\) with p99 within 1\d\d ms", usual)
        assert re.search(r"bound +1\d\d ms", usual) and "Before you believe the prediction" in usual
        assert pilot.app.screen.query_one(SettingsPanel).rows.row_count == len(SCENARIO_ROWS)
        await choose(pilot, BOUND, "equals_sign")
        assert isinstance(pilot.app.screen, WritingScreen)
        await press(pilot, '"much"', "enter")
        assert "Give a number above 0 and up to 1,000,000" in screen_text(pilot)
        await press(pilot, "ctrl+u", '"123"', "enter")
        assert isinstance(pilot.app.screen, ScenarioScreen)
        assert "with p99 within 123 ms" in screen_text(pilot)
        shown = await choose(pilot, RATE, "enter", '"5"', "enter")
        assert re.search(r"p99 ~[\d.]+ ms \([\d.]+ to [\d.]+\) at 5\.000/s, within 123 ms", shown)
        shown = await choose(pilot, PERCENTILE, "equals_sign", "ctrl+u", '"90"', "enter")
        assert re.search(r"p90 ~[\d.]+ ms \([\d.]+ to [\d.]+\) at 5\.000/s, within 123 ms", shown)
        await choose(pilot, RATE, "enter", "ctrl+u", "enter")
        shown = await choose(pilot, BOUND, "equals_sign", "ctrl+u", '"0.5"', "enter")
        assert "bound 0.5 ms: a request that never waits takes" in shown
        assert "─ bound 0.5 ms" in shown and "predicted p90" in shown and "│ highest rate" not in shown
        # A setting with few values has the next one instead.
        assert "as long as MLPerf asks" in await choose(pilot, FULL, "enter")
        await press(pilot, "1")


@pytest.mark.usefixtures("predicted_once")
async def test_each_kind_of_scenario_is_predicted(timed: DataFolder) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        await choose(pilot, KIND, "h", "h")
        # Percentiles are drawn, as there are no rates.
        shown = await choose(pilot, BATCHES, "l")
        assert "single stream: p90" in shown and "ms by percentile   ~ predicted" in shown
        assert re.search(r"p50 +p90 +p99 +p99\.9", shown)
        assert "batch 2: a single stream has one request at a time" in (await choose(pilot, BATCHES, "l"))
        await press(pilot, "h")
        assert "a single stream has one request" not in screen_text(pilot)
        assert "multi stream" in await choose(pilot, KIND, "l")
        await press(pilot, "l")
        shown = await choose(pilot, KIND, "l")
        assert re.search(r"~[\d.]+ samples/s \([\d.]+ to [\d.]+\) at batch size 1", shown)
        assert "Samples per second" in shown and re.search(r"batch 1: ~[\d.]+ samples per second\.", shown)


@pytest.mark.usefixtures("predicted_once")
async def test_stored_load_tests_are_listed_and_shown_beside_the_prediction_of_their_scenario(
    timed: DataFolder,
) -> None:
    test = store_load_test(timed, bound_ms=70.0, rate=38.04)
    store_load_test(timed, bound_ms=70.0, rate=99.0, valid=False)
    store_load_test(timed, kind="single", percentile=90.0, bound_ms=None, rate=None, sought=False, valid=False)
    (timed.scenarios / test.uuid).mkdir(parents=True)
    async with scenario_screen(timed, WIDE) as pilot:
        assert re.search(rf"{MODEL}: ~[\d.]+ requests/s", screen_text(pilot))
        await press(pilot, "4")
        panel = pilot.app.screen.query_one(LoadTestsPanel)
        assert len(panel.found) == 3
        await press(pilot, "slash", '"server"', "enter")
        assert len(panel.found) == 2
        panel.rows.move_to([it.valid for it in panel.found].index(True))
        await settled(pilot)
        shown = screen_text(pilot)
        assert "passed (LoadGen: valid), 700 requests" in shown
        assert "enter in the load tests predicts this scenario" in shown and "difference" not in shown
        await press(pilot, "enter")
        shown = screen_text(pilot)
        # The valid search is the answer, and the prediction stands behind it.
        answer = rf"{MODEL}: 38.04 requests/s with p99 within 70 ms, measured \d+ .* ago; predicted ~[\d.]+/s \("
        assert re.search(answer, shown) and "difference" in shown and "o passed" in shown
        await press(pilot, "3", "y")
        assert timed.copied.read_text() == str(timed.scenarios / test.uuid)
