"""The screen of how much load the open model can serve."""

import re
from dataclasses import replace
from typing import Any

import pytest
from textual.pilot import Pilot

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.api import scenarios
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.scenarios import ScenarioSettings
from dlbricks_tui.api.session import Asked, WorkbenchSession
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.models.graph import Level
from dlbricks_tui.scenarios.scenario import (
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    PredictedLoad,
    ScenarioOrder,
)
from dlbricks_tui.settings.loads import BOUND, FULL, PERCENTILE, RATE
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from dlbricks_tui.tui.dialogs.notices import WritingScreen
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.scenario import SCENARIO_ROWS, CancelLoadScreen, LoadTestsPanel, ScenarioScreen, SettingsPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.store.samples import load_test
from tests.tui.application import (
    MEASURED_ONLY,
    NARROW,
    WIDE,
    WRITTEN,
    AppWithoutWorkbench,
    app_on,
    row_of,
    running,
    showing,
)
from tests.tui.driving import eventually, find, press, screen_text, settled, shows, shows_no_more, told
from tests.tui.processes import Process, all_seen, failed
from tests.tui.results import RUNTIME, graph_of, source_called, store_run
from tests.tui.snapshots import check_all, check_layout, resize
from tests.tui.stored_results import HERE

MODEL = "squeezenet1.1"
OPEN = (*find(MODEL), "enter", "L")


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


def screen_of(session: WorkbenchSession) -> ScenarioScreen:
    spec = ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting)
    return ScenarioScreen(session, lambda: Asked(spec, WRITTEN, Config()))


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
        await press(pilot, *find("no such model"), "L", on=WorkbenchScreen)
        await press(pilot, "escape", *OPEN)
        await check_all(pilot, "scenario")
        await resize(pilot, NARROW)
        assert re.search(r"⠒ predicted p99   ─ bound 1\d\d ms\s+┃?\s*┃?\s*│ highest rate ~[\d.]+", screen_text(pilot))
        await press(pilot, "3", shows="Requests by ms")
        await press(pilot, "escape", on=WorkbenchScreen)
        await press(pilot, "1", *find("alexnet"), *OPEN[4:], on=ScenarioScreen)
        assert "there is no default bound" in screen_text(pilot)
        await choose(pilot, BOUND, "equals_sign", '"50"', "enter", "1")
        assert "dlbricks run alexnet" in screen_text(pilot)


@pytest.mark.usefixtures("predicted_once")
async def test_the_prediction_follows_settings_and_a_wrong_one_is_one_line(timed: DataFolder) -> None:
    async with showing(timed, screen_of, WIDE) as pilot:
        usual = screen_text(pilot)
        assert re.search(rf"{MODEL}: ~[\d.]+ requests/s \([\d.]+ to [\d.]+\) with p99 within 1\d\d ms", usual)
        assert re.search(r"bound +1\d\d ms", usual) and "Before you believe the prediction" in usual
        assert pilot.app.screen.query_one(SettingsPanel).rows.row_count == len(SCENARIO_ROWS)
        await choose(pilot, BOUND, "equals_sign")
        assert isinstance(pilot.app.screen, WritingScreen)
        assert "in milliseconds" in screen_text(pilot)
        await press(pilot, '"much"', "enter", shows="Give a number above 0 and up to 1,000,000")
        await press(pilot, "ctrl+u", '"123"', "enter", on=ScenarioScreen)
        assert "with p99 within 123 ms" in screen_text(pilot)
        shown = await choose(pilot, RATE, "enter", '"5"', "enter")
        assert re.search(r"p99 ~[\d.]+ ms \([\d.]+ to [\d.]+\) at 5\.000/s, within 123 ms", shown)
        shown = await choose(pilot, PERCENTILE, "equals_sign", "ctrl+u", '"90"', "enter")
        assert re.search(r"p90 ~[\d.]+ ms \([\d.]+ to [\d.]+\) at 5\.000/s, within 123 ms", shown)
        assert re.search(r"p90 ~[\d.]+ ms .* at 5\.000/s", await choose(pilot, PERCENTILE, "l", "h"))
        await choose(pilot, RATE, "enter", "ctrl+u", "enter")
        shown = await choose(pilot, BOUND, "equals_sign", "ctrl+u", '"0.5"', "enter")
        assert "bound 0.5 ms: a request that never waits takes" in shown
        assert "─ bound 0.5 ms" in shown and "predicted p90" in shown and "│ highest rate" not in shown
        # A setting with few values has the next one instead.
        assert "as long as MLPerf asks" in await choose(pilot, FULL, "enter")
        await press(pilot, "1")


@pytest.mark.usefixtures("predicted_once")
async def test_stored_load_tests_are_listed_and_shown_beside_the_prediction_of_their_scenario(
    timed: DataFolder,
) -> None:
    test = store_load_test(timed, bound_ms=70.0, rate=38.04)
    store_load_test(timed, bound_ms=70.0, rate=99.0, valid=False)
    store_load_test(timed, kind="single", percentile=90.0, bound_ms=None, rate=None, sought=False, valid=False)
    (timed.scenarios / test.uuid).mkdir(parents=True)
    async with showing(timed, screen_of, WIDE) as pilot:
        assert re.search(rf"{MODEL}: ~[\d.]+ requests/s", screen_text(pilot))
        await press(pilot, "4")
        panel = pilot.app.screen.query_one(LoadTestsPanel)
        assert len(panel.found) == 3
        await press(pilot, *find("server"))
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


READY = LoadReady(service_ms=15.5, passing_ms=0.12, wake_up_ms=0.9, logs="/data/scenarios/ab")
FIRST = LoadTestStarted(number=1, rate=30.0, batch_size=1, queries=662, seconds_left=40.0)
SECOND = LoadTestStarted(number=2, rate=45.0, batch_size=1, queries=662, seconds_left=20.0)
PASSED = LoadTestDone(number=1, rate=30.0, batch_size=1, passed=True, percentile_ms=41.5, per_second=29.8)
FAILED = LoadTestDone(number=2, rate=45.0, batch_size=1, passed=False, percentile_ms=97.0, per_second=44.0)


@pytest.fixture
def ordered(new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    """A data folder with a model that was timed end to end, by a runtime that counts as one of this host."""
    store_run(new, [MODEL])

    def order(asked: scenarios._Scenarios, execution: Execution, prediction: PredictedLoad) -> ScenarioOrder:
        rate = prediction.per_second.value
        return ScenarioOrder(source=asked._source, execution=execution, scenario=asked._scenario, first_rate=rate)

    monkeypatch.setattr(scenarios._Scenarios, "_order", order)
    return new


def progress(number: int, latencies_ms: list[float], seconds: float = 5.0) -> LoadProgress:
    return LoadProgress(number=number, queries=len(latencies_ms), seconds=seconds, latencies_ms=tuple(latencies_ms))


@pytest.mark.usefixtures("predicted_once")
async def test_a_measurement_is_drawn_live_and_its_result_stands_beside_the_prediction_of_before(
    ordered: DataFolder, process: Process
) -> None:
    async with showing(ordered, screen_of, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ScenarioScreen)
        (rate,) = re.findall(r"~([\d.]+) requests/s", screen_text(pilot))
        before = screen._found and screen._found.answer.prediction
        await pilot.press("m")
        await shows(pilot, "loading the model")
        await eventually(pilot, process.has_begun)
        # The search begins at the predicted rate.
        order = process.order(ScenarioOrder)
        assert order.first_rate == pytest.approx(float(rate), rel=1e-3)
        process.write(READY, FIRST, progress(1, [16.0] * 150 + [180.0, 190.0]))
        await shows(pilot, "test 1: 30.00/s, 152 of 662 requests, 1.32 % over 1")
        await shows(pilot, "p99 180.0 ms")
        # The test in progress is a point of the curve.
        assert re.search(r"about 1\d s left", screen_text(pilot)) and "? now" in screen_text(pilot)
        check_layout(pilot.app)
        process.write(PASSED, SECOND, progress(2, [170.0] * 10, 1.0), FAILED)
        await shows(pilot, "x test 2: 45.00/s, p99 97.00 ms")
        assert "o passed" in screen_text(pilot) and "x failed" in screen_text(pilot)
        test = store_load_test(ordered, bound_ms=order.scenario.bound_ms)
        process.write(LoadDone(uuid=test.uuid, warnings=("the clock jumped by 2 s",)))
        process.end()
        await shows(pilot, "passed (LoadGen: valid), 700 requests")
        for words in ("predicted  ", "measured  ", "difference", "! the clock jumped by 2 s", "Load tests 1"):
            await shows(pilot, words)
        # The tests of the search stay on the curve. The next prediction may know the test.
        assert "x failed" in screen_text(pilot) and "in progress" not in screen_text(pilot)
        assert before is not None and screen._prediction_of(test) is before
        # Another one whose settings are taken stays selected.
        older = store_load_test(ordered, bound_ms=70.0, when="2026-11-01T08:00:00+00:00")
        await press(pilot, "r", "4", "j", "enter")
        assert screen._settings.bound_ms == 70.0
        assert screen._tests.selected is not None and screen._tests.selected.uuid == older.uuid


@pytest.mark.usefixtures("predicted_once")
async def test_a_paused_search_goes_on_below_the_lowest_rate_that_failed(ordered: DataFolder, process: Process) -> None:
    async with showing(ordered, screen_of, WIDE) as pilot:
        await pilot.press("m")
        process.write(READY, FIRST, replace(PASSED, passed=False), SECOND)
        await shows(pilot, "of 662 requests")
        await pilot.press("p")
        await eventually(pilot, process.has_ended)
        await pilot.press("p")
        await eventually(pilot, lambda: process.has_begun(2))
        assert process.order(ScenarioOrder, 2).first_rate == PASSED.rate
        await pilot.press("x")


@pytest.mark.usefixtures("predicted_once")
async def test_a_measurement_is_paused_continued_and_cancelled_and_keeps_its_settings(
    ordered: DataFolder, process: Process
) -> None:
    async with showing(ordered, screen_of, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ScenarioScreen)
        # There is nothing to cancel yet.
        await press(pilot, "x", "p", on=ScenarioScreen)
        await pilot.press("m")
        process.write(READY, FIRST, PASSED, SECOND, progress(2, [20.0] * 7))
        await shows(pilot, "7 of 662 requests")
        await pilot.press("x")
        await eventually(pilot, lambda: isinstance(pilot.app.screen, CancelLoadScreen))
        await pilot.press("escape")
        assert not process.has_ended()
        await pilot.press("p")
        await shows(pilot, "paused; others may measure")
        await eventually(pilot, process.has_ended)
        # The test in progress is gone, the one that passed is not.
        await shows_no_more(pilot, "? now")
        assert "o passed" in screen_text(pilot)
        await pilot.press("p")
        await eventually(pilot, lambda: process.has_begun(2))
        # It goes on at the rate that passed.
        assert process.order(ScenarioOrder, 2).first_rate == 30.0
        process.write(Waiting(holder="run r1 of a colleague"), number=2)
        await shows(pilot, "waits for run r1 of a colleague")
        for key in ("2", "g", "j", "l", "r", "m"):
            await pilot.press(key)
        await eventually(pilot, lambda: len(told(pilot)) == 3)
        assert set(told(pilot)) == {"The scenario is being measured: x cancels it."}
        assert screen._settings == ScenarioSettings(runtimes=screen._settings.runtimes)
        # New results wait for its end.
        screen.post_message(NewResults())
        await eventually(pilot, lambda: screen._is_outdated)
        process.write(READY, SECOND, FAILED, number=2)
        await shows(pilot, "x failed")
        store_load_test(ordered, bound_ms=process.order(ScenarioOrder, 2).scenario.bound_ms, rate=30.0, sought=False)
        process.write(LoadTestsKept(tests=1), number=2)
        await pilot.press("x", "y")
        await eventually(pilot, lambda: process.has_ended(2))
        # The test that had ended before is listed.
        await eventually(pilot, lambda: "The measurement is cancelled; stored tests of it: 1." in told(pilot))
        await shows(pilot, "Load tests 1")
        assert "30.00/s, p99 within" in screen_text(pilot) and not screen._is_outdated


@pytest.mark.usefixtures("predicted_once")
async def test_a_measurement_survives_its_screen_and_the_program_and_is_shown_again(
    ordered: DataFolder, process: Process
) -> None:
    async with showing(ordered, screen_of, NARROW) as pilot:
        await pilot.press("m")
        await eventually(pilot, process.has_begun)
        process.write(READY, FIRST)
        await pilot.press("escape")
        await eventually(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await eventually(pilot, lambda: any("goes on in the background" in each for each in told(pilot)))
    assert not process.has_ended()
    # A screen does not come to rest while it follows a measurement.
    process.write(PASSED, SECOND)
    session = WorkbenchSession(ordered)
    async with AppWithoutWorkbench(session, WRITTEN).run_test(size=WIDE) as pilot:
        pilot.app.push_screen(screen_of(session))
        await shows(pilot, "45.00/s")
        assert isinstance(screen := pilot.app.screen, ScenarioScreen)
        assert screen.job is not None and screen.job.ended == [PASSED]
        await pilot.press("x", "y")
        await eventually(pilot, lambda: all_seen(ordered))
        await settled(pilot)
        await pilot.press("m")
        await eventually(pilot, lambda: process.has_begun(2))
    process.write(READY, failed("the worker was lost: killed by signal 9"), number=2)
    process.end(1, number=2)
    # A failure that nobody followed is told later.
    async with showing(ordered, screen_of, WIDE) as pilot:
        await shows(pilot, "The measurement failed: the worker was lost: killed by signal 9")


@pytest.mark.usefixtures("predicted_once")
async def test_a_measurement_that_fails_is_one_line_and_can_be_repeated(ordered: DataFolder, process: Process) -> None:
    async with showing(ordered, screen_of, NARROW) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ScenarioScreen) and screen._found is not None
        found, orderless = screen._found, replace(screen._found.answer, order=None)
        screen._found = found._replace(answer=orderless)
        await press(pilot, "m")
        assert told(pilot) == ["The scenario cannot be measured here: it was looked up for another system or runtime."]
        screen._found = found
        lost = failed("the worker was lost: killed by signal 9")
        failures: tuple[tuple[Event | bytes, int, str], ...] = (
            (lost, 1, "the worker was lost: killed by signal 9"),
            (b"", 0, "the process ended without a result"),
        )
        for number, (written, status, reason) in enumerate(failures, start=1):
            process.write(READY, FIRST, written, number=number)
            process.end(status, number)
            await press(pilot, "m", shows=f" The measurement failed: {reason}\n")
            assert isinstance(pilot.app.screen, ScenarioScreen)
            assert "pause" not in screen_text(pilot)
            assert process.has_begun(number)
