"""Scenarios that the screen measures; a small script stands for the process that measures."""

import re
from dataclasses import replace
from typing import cast

import pytest

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.api import scenarios
from dlbricks_tui.api.followed_jobs import LoadJob
from dlbricks_tui.api.scenarios import ScenarioSettings
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, Waiting
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
from dlbricks_tui.settings.loads import KIND
from dlbricks_tui.tui.messages import NewResults
from dlbricks_tui.tui.scenario import CancelLoadScreen, ScenarioScreen
from tests.tui.application import (
    NARROW,
    WIDE,
    WRITTEN,
    AppWithoutWorkbench,
    eventually,
    press,
    screen_text,
    settled,
    told,
)
from tests.tui.processes import Process, all_seen, failed
from tests.tui.results import store_run
from tests.tui.snapshots import check_layout
from tests.tui.test_run_screens import shows
from tests.tui.test_scenario_screen import MODEL, choose, scenario_screen, screen_of, store_load_test

pytestmark = pytest.mark.usefixtures("predicted_once")
READY = LoadReady(service_ms=15.5, passing_ms=0.12, wake_up_ms=0.9, logs="/data/scenarios/ab")
FIRST = LoadTestStarted(number=1, rate=30.0, batch_size=1, queries=662, seconds_left=40.0)
SECOND = LoadTestStarted(number=2, rate=45.0, batch_size=1, queries=662, seconds_left=20.0)
PASSED = LoadTestDone(number=1, rate=30.0, batch_size=1, passed=True, percentile_ms=41.5, per_second=29.8)
FAILED = LoadTestDone(number=2, rate=45.0, batch_size=1, passed=False, percentile_ms=97.0, per_second=44.0)


@pytest.fixture
def timed(new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> DataFolder:
    """A data folder with a model that was timed end to end, by a runtime that counts as one of this host."""
    store_run(new, [MODEL])

    def order(asked: scenarios._Scenarios, execution: Execution, prediction: PredictedLoad) -> ScenarioOrder:
        rate = prediction.per_second.value
        return ScenarioOrder(source=asked._source, execution=execution, scenario=asked._scenario, first_rate=rate)

    monkeypatch.setattr(scenarios._Scenarios, "_order", order)
    return new


def progress(number: int, latencies_ms: list[float], seconds: float = 5.0) -> LoadProgress:
    return LoadProgress(number=number, queries=len(latencies_ms), seconds=seconds, latencies_ms=tuple(latencies_ms))


async def test_a_measurement_is_drawn_live_and_its_result_stands_beside_the_prediction_of_before(
    timed: DataFolder, process: Process
) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ScenarioScreen)
        (rate,) = re.findall(r"~([\d.]+) requests/s", screen_text(pilot))
        await pilot.press("m")
        await shows(pilot, "loading the model")
        await eventually(pilot, process.has_begun)
        # The search begins at the predicted rate.
        assert process.order(ScenarioOrder).first_rate == pytest.approx(float(rate), rel=1e-3)
        process.write(READY, FIRST, progress(1, [16.0] * 150 + [180.0, 190.0]))
        await shows(pilot, "test 1: 30.00/s, 152 of 662 requests, 1.32 % over 1")
        await shows(pilot, "p99 180.000 ms")
        shown = screen_text(pilot)
        assert re.search(r"about 1\d s left", shown) and "p50 16.000 ms" in shown and "p99 180.000 ms" in shown
        # The test in progress is a point of the curve.
        assert "? now" in shown
        check_layout(pilot.app)
        process.write(PASSED, SECOND, progress(2, [170.0] * 10, 1.0))
        await shows(pilot, "o test 1: 30.00/s, p99 41.500 ms")
        assert "10 of 662 requests, 100.00 % over 1" in screen_text(pilot) and "o passed" in screen_text(pilot)
        process.write(FAILED)
        await shows(pilot, "x test 2: 45.00/s, p99 97.000 ms")
        assert "x failed" in screen_text(pilot)
        test = store_load_test(timed, bound_ms=process.order(ScenarioOrder).scenario.bound_ms)
        process.write(LoadDone(uuid=test.uuid, warnings=("the clock jumped by 2 s",)))
        process.end()
        await shows(pilot, "passed (LoadGen: valid), 700 requests")
        shown = screen_text(pilot)
        for words in ("predicted  ", "measured  ", "difference", "! the clock jumped by 2 s", "1 Load", "Load tests 1"):
            assert words in shown
        assert "in progress" not in shown
        # The tests of the search stay on the curve.
        await shows(pilot, "o passed")
        assert "x failed" in screen_text(pilot)

        await choose(pilot, KIND, "h", "h")
        before = None if screen._found is None else screen._found.answer.prediction
        assert before is not None
        await pilot.press("m")
        await eventually(pilot, lambda: process.has_begun(2))
        # A single stream is a sample of service times: the next prediction may know it.
        test = store_load_test(
            timed, uuid="7" * 32, kind="single", percentile=90.0, bound_ms=None, rate=None, sought=False
        )
        process.write(LoadDone(uuid=test.uuid), number=2)
        process.end(number=2)
        await shows(pilot, "Load tests 2")
        await shows(pilot, "difference")
        assert screen._found is not None and screen._found.answer.prediction is not before
        assert screen._prediction_of(test) is before


async def test_a_measurement_is_paused_continued_and_cancelled_and_keeps_its_settings(
    timed: DataFolder, process: Process
) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ScenarioScreen)
        # There is nothing to cancel yet.
        await press(pilot, "x", "p")
        assert screen.is_current
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
        await eventually(pilot, lambda: "? now" not in screen_text(pilot))
        assert "o passed" in screen_text(pilot)
        await pilot.press("p")
        await eventually(pilot, lambda: process.has_begun(2))
        # It goes on at the rate that passed.
        assert process.order(ScenarioOrder, 2).first_rate == 30.0
        process.write(Waiting(holder="run r1 of a colleague"), number=2)
        await shows(pilot, "waits for run r1 of a colleague")
        process.write(READY, SECOND, FAILED, number=2)
        await shows(pilot, "x failed")
        assert "o passed" in screen_text(pilot)
        await pilot.press("p")
        await shows(pilot, "paused")
        await pilot.press("x", "y")
        await eventually(pilot, lambda: "The measurement is cancelled; stored tests of it: 0." in told(pilot))
        assert "paused" not in screen_text(pilot)

        pilot.app.clear_notifications()
        await pilot.press("m")
        await eventually(pilot, lambda: process.has_begun(3))
        for key in ("2", "g", "j", "l", "r", "m"):
            await pilot.press(key)
        await eventually(pilot, lambda: len(told(pilot)) == 3)
        assert set(told(pilot)) == {"The scenario is being measured: x cancels it."}
        assert screen._settings == ScenarioSettings(runtimes=screen._settings.runtimes)
        # New results wait for its end.
        screen.post_message(NewResults())
        await eventually(pilot, lambda: screen._is_outdated)
        process.write(READY, FIRST, PASSED, SECOND, progress(2, [20.0] * 8), number=3)
        await shows(pilot, "8 of 662 requests")
        store_load_test(timed, bound_ms=process.order(ScenarioOrder, 3).scenario.bound_ms, rate=30.0, sought=False)
        process.write(LoadTestsKept(tests=1), number=3)
        await pilot.press("x", "y")
        await eventually(pilot, lambda: process.has_ended(3))
        # The test that had ended before is listed.
        await eventually(pilot, lambda: "The measurement is cancelled; stored tests of it: 1." in told(pilot))
        await shows(pilot, "Load tests 1")
        assert "30.00/s, p99 within" in screen_text(pilot) and "server: the highest rate" in screen_text(pilot)
        assert screen.is_current and not screen._is_outdated


async def test_a_measurement_survives_its_screen_and_the_program_and_is_shown_again(
    timed: DataFolder, process: Process
) -> None:
    async with scenario_screen(timed, NARROW) as pilot:
        await pilot.press("m")
        await eventually(pilot, process.has_begun)
        process.write(READY, FIRST)
        await pilot.press("escape")
        await eventually(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await eventually(pilot, lambda: any("goes on in the background" in each for each in told(pilot)))
    assert not process.has_ended()
    # A screen does not come to rest while it follows a measurement.
    process.write(PASSED, SECOND)
    session = WorkbenchSession(timed)
    async with AppWithoutWorkbench(session, WRITTEN).run_test(size=WIDE) as pilot:
        pilot.app.push_screen(screen_of(session))
        await shows(pilot, "45.00/s")
        assert isinstance(screen := pilot.app.screen, ScenarioScreen)
        assert screen.job is not None and screen.job.ended == [PASSED]
        await pilot.press("x", "y")
        await eventually(pilot, lambda: all_seen(timed))
        await settled(pilot)
        await pilot.press("m")
        await eventually(pilot, lambda: process.has_begun(2))
    process.write(READY, failed("the worker was lost: killed by signal 9"), number=2)
    process.end(1, number=2)
    # A failure that nobody followed is told later.
    async with scenario_screen(timed, WIDE) as pilot:
        await shows(pilot, "The measurement failed: the worker was lost: killed by signal 9")


async def test_a_measurement_that_fails_is_one_line_and_can_be_repeated(timed: DataFolder, process: Process) -> None:
    async with scenario_screen(timed, NARROW) as pilot:
        screen = pilot.app.screen
        assert isinstance(screen, ScenarioScreen) and screen._found is not None
        found, ordered = screen._found, replace(screen._found.answer, order=None)
        screen._found = found._replace(answer=ordered)
        await press(pilot, "m")
        assert told(pilot) == ["The scenario cannot be measured here: it was looked up for another system or runtime."]
        screen._found = found
        lost = failed("the worker was lost: killed by signal 9")
        failures: tuple[tuple[Event | bytes, int, str], ...] = (
            (lost, 1, "the worker was lost: killed by signal 9"),
            (b"", 3, "the process ended with status 3"),
            (b"", 0, "the process ended without a result"),
        )
        for number, (written, status, reason) in enumerate(failures, start=1):
            process.write(READY, FIRST, written, number=number)
            process.end(status, number)
            await press(pilot, "m")
            assert f" The measurement failed: {reason}\n" in screen_text(pilot)
            assert isinstance(pilot.app.screen, ScenarioScreen)
            assert "pause" not in screen_text(pilot)
            assert process.has_begun(number)


def test_the_progress_of_a_test_starts_anew_with_each_test(new: DataFolder) -> None:
    found = LoadJob(cast("ScenarioOrder", None), new)
    for message in (READY, FIRST, progress(1, [3.0, 1.0]), progress(1, [2.0])):
        found.take(message)
    assert list(found.latencies_ms) == [3.0, 1.0, 2.0] and found.ordered_ms == [1.0, 2.0, 3.0]
    found.take(PASSED)
    assert not found.latencies_ms and found.test is None
    found.take(SECOND)
    found.take(progress(2, [5.0], 30.0))
    assert found.ordered_ms == [5.0] and found.seconds == 30.0
