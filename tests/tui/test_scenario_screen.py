"""The screen of how much load the open model can serve."""

import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace

import pytest
from textual.pilot import Pilot

from dlbricks_tui.answers import scope
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.packed_latencies import pack_latencies
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.tui import estimator as judging
from dlbricks_tui.tui.dialogs.writing import WritingScreen
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.scenario.form import SettingsPanel
from dlbricks_tui.tui.scenario.load_tests import LoadTestsPanel
from dlbricks_tui.tui.scenario.screen import ScenarioScreen
from dlbricks_tui.tui.scenario.settings import ScenarioSetting, ScenarioSettings
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.store.samples import load_test, system
from tests.tui import results
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
    showing,
)
from tests.tui.results import RUNTIME, graph_of, source_called, store_run
from tests.tui.snapshots import check_all
from tests.tui.stored_results import HERE

MODEL = "squeezenet1.1"
OPEN = ("slash", f'"{MODEL}"', "enter", "enter", "L")
# The rows of the settings.
ROWS = list(ScenarioSetting)


@pytest.fixture(autouse=True)
def _rough_unless_a_snapshot_shows_it(request: pytest.FixtureRequest) -> None:
    if "snapshot" not in request.node.name:
        request.getfixturevalue("rough_predictions")


@pytest.fixture
def timed(new: DataFolder) -> DataFolder:
    """A data folder with a model that was timed end to end."""
    store_run(new, [MODEL])
    return new


@pytest.fixture
def one_host(monkeypatch: pytest.MonkeyPatch) -> None:
    for module in (results, judging, scope):
        monkeypatch.setattr(module, "fingerprint", lambda: system(HERE))


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
    spec = ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting)
    async with showing(data, lambda session: ScenarioScreen(session, spec, WRITTEN, Config()), size) as pilot:
        yield pilot


def to(setting: ScenarioSetting) -> list[str]:
    """Return the keys that lead from the opened screen to a setting."""
    return ["2", "g", *["j"] * ROWS.index(setting)]


async def test_the_screen_matches_its_snapshot(one_host: None, timed: DataFolder) -> None:
    latencies_ns = [16_000_000 + number % 41 * 400_000 for number in range(690)] + [90_000_000] * 10
    store_load_test(timed, HERE, bound_ms=63.0, latencies=pack_latencies(latencies_ns))
    async with running(app_on(timed)) as pilot:
        await press(pilot, *OPEN)
        await check_all(pilot, "scenario")


async def test_the_predicted_curve_the_bound_and_the_highest_rate_are_there_from_the_start(timed: DataFolder) -> None:
    async with running(app_on(timed), NARROW) as pilot:
        await press(pilot, *OPEN)
        shown = screen_text(pilot)
        assert re.search(rf"{MODEL}: ~[\d.]+ requests/s \([\d.]+ to [\d.]+\) with p99 within 1\d\d ms", shown)
        assert re.search(r"⠒ predicted p99   ─ bound 1\d\d ms\s+┃?\s*┃?\s*│ highest rate ~[\d.]+", shown)
        assert "ms by requests per second" in shown and f"How much load can {MODEL} serve?" in shown
        said = " ".join(shown.replace("┃", " ").split())
        assert re.search(r"p99 is ~[\d.]+ ms at [\d.]+/s and ~[\d.]+ ms at the highest rate, ~[\d.]+/s\.", said)
        await press(pilot, "3")
        shown = screen_text(pilot)
        for words in ("predicted   ", "highest rate", "p99.9", "Before you believe the prediction"):
            assert words in shown
        await press(pilot, "escape")
        assert isinstance(pilot.app.screen, WorkbenchScreen)


@pytest.mark.mxnet
async def test_the_prediction_follows_each_setting(timed: DataFolder) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        await press(pilot, *to(ScenarioSetting.PERCENTILE), "l")
        assert "with p99.9 within" in screen_text(pilot)
        await press(pilot, *to(ScenarioSetting.KIND), "h", "h")
        assert "single stream: p99.9" in screen_text(pilot)
        await press(pilot, *to(ScenarioSetting.PERCENTILE), "l")
        shown = screen_text(pilot)
        assert "single stream: p90" in shown
        # The percentiles are drawn, as there are no rates.
        assert re.search(r"p50 +p90 +p99 +p99\.9", shown) and "ms by percentile   ~ predicted" in shown
        assert re.search(r"predicted: p50 ~[\d.]+ ms, p99 ~[\d.]+ ms", shown)
        await press(pilot, *to(ScenarioSetting.KIND), "l")
        assert "multi stream" in screen_text(pilot)
        # Batches were not measured.
        await press(pilot, "l", "l")
        shown = screen_text(pilot)
        assert f"{MODEL} has no results at batch sizes 2, 4, 8" in shown and "--batch 2,4,8" in shown
        await press(pilot, *to(ScenarioSetting.BATCHES), "l")
        shown = screen_text(pilot)
        assert re.search(r"~[\d.]+ samples/s \([\d.]+ to [\d.]+\) at batch size 1", shown)
        assert "Samples per second" in shown and re.search(r"batch 1: ~[\d.]+ samples per second\.", shown)


async def test_a_value_of_ones_own_is_written_and_a_wrong_one_is_refused_with_one_line(timed: DataFolder) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        await press(pilot, *to(ScenarioSetting.BOUND), "e")
        assert isinstance(pilot.app.screen, WritingScreen)
        await press(pilot, '"much"', "enter")
        assert "Write a number above 0 and up to 1,000,000 ms, such as 12.5" in screen_text(pilot)
        await press(pilot, *["backspace"] * 4, '"123"', "enter")
        assert isinstance(pilot.app.screen, ScenarioScreen)
        assert "with p99 within 123 ms" in screen_text(pilot)
        await press(pilot, *to(ScenarioSetting.RATE), "enter", '"5"', "enter")
        assert re.search(r"p99 ~[\d.]+ ms \([\d.]+ to [\d.]+\) at 5\.000/s, within 123 ms", screen_text(pilot))
        # A setting with few values has the next one instead.
        await press(pilot, *to(ScenarioSetting.LENGTH), "enter")
        assert "as long as MLPerf asks" in screen_text(pilot)


async def test_an_impossible_bound_is_one_line_beside_the_curve(timed: DataFolder) -> None:
    async with scenario_screen(timed, NARROW) as pilot:
        await press(pilot, *to(ScenarioSetting.BOUND), "e", '"0.5"', "enter", "1")
        shown = screen_text(pilot)
        assert "bound 0.5 ms: a request that never waits takes" in shown
        assert "─ bound 0.5 ms" in shown and "predicted p99" in shown and "│ highest rate" not in shown


async def test_a_contradiction_is_one_line_and_the_next_change_corrects_it(timed: DataFolder) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        await press(pilot, *to(ScenarioSetting.KIND), "h", "h", *to(ScenarioSetting.BATCHES), "l", "l")
        assert "batch 2: a single stream has one request at a time" in screen_text(pilot)
        await press(pilot, "h")
        assert "a single stream has one request" not in screen_text(pilot)


async def test_a_model_without_results_says_what_to_do(new: DataFolder) -> None:
    async with running(app_on(new, MEASURED_ONLY), NARROW) as pilot:
        # Nothing is open and nothing selected: no model has this name.
        await press(pilot, "escape", "slash", '"no such model"', "enter", "L")
        assert not isinstance(pilot.app.screen, ScenarioScreen)
        await press(pilot, "escape")
        await press(pilot, *OPEN)
        assert isinstance(pilot.app.screen, ScenarioScreen)
        assert "there is no usual bound" in screen_text(pilot)
        await press(pilot, *to(ScenarioSetting.BOUND), "e", '"50"', "enter", "1")
        assert f"dlbricks run {MODEL}" in screen_text(pilot)


async def test_a_valid_search_is_the_answer_and_the_prediction_stands_behind_it(timed: DataFolder) -> None:
    store_load_test(timed, bound_ms=70.0, rate=38.04)
    store_load_test(timed, bound_ms=70.0, rate=99.0, valid=False)
    async with scenario_screen(timed, WIDE) as pilot:
        assert re.search(rf"{MODEL}: ~[\d.]+ requests/s", screen_text(pilot))
        await press(pilot, *to(ScenarioSetting.BOUND), "e", '"70"', "enter")
        answer = rf"{MODEL}: 38.04 requests/s with p99 within 70 ms, measured \d+ .* ago; predicted ~[\d.]+/s \("
        assert re.search(answer, screen_text(pilot))


async def test_stored_load_tests_are_listed_and_shown_beside_the_prediction_of_their_scenario(
    timed: DataFolder,
) -> None:
    test = store_load_test(timed, bound_ms=70.0)
    store_load_test(timed, kind="single", percentile=90.0, bound_ms=None, rate=None, sought=False, valid=False)
    (timed.scenarios / test.uuid).mkdir(parents=True)
    async with scenario_screen(timed, WIDE) as pilot:
        await press(pilot, "4")
        panel = pilot.app.screen.query_one(LoadTestsPanel)
        assert len(panel.found) == 2
        await press(pilot, "slash", '"server VALID"', "enter")
        shown = screen_text(pilot)
        assert "LoadGen: VALID, 700 requests" in shown
        assert "enter in the load tests predicts this scenario" in shown and "difference" not in shown
        await press(pilot, "enter")
        shown = screen_text(pilot)
        assert "with p99 within 70 ms" in shown and "difference" in shown and "o passed" in shown
        await press(pilot, "3", "y")
        assert timed.copied.read_text() == str(timed.scenarios / test.uuid)


async def test_the_histogram_of_a_load_test_is_readable_in_a_narrow_terminal(timed: DataFolder) -> None:
    store_load_test(timed, bound_ms=11.0, valid=False, reasons=("Performance constraints not satisfied",))
    async with scenario_screen(timed, NARROW) as pilot:
        await press(pilot, "3")
        shown = screen_text(pilot)
        said = " ".join(shown.replace("┃", " ").split())
        assert re.search(r"700 requests: median [\d.]+ ms, p99 [\d.]+ ms, \d+ above the bound of 11 ms", said)
        assert "Requests by ms" in shown and "│ bound 11 ms" in shown and "█" in shown


def test_each_setting_steps_through_its_values_and_comes_back() -> None:
    for setting in ROWS:
        settings, seen = ScenarioSettings(("mxnet", "onnxruntime")), set[str]()
        for _ in range(60):
            settings = setting.stepped(settings, 1)
            if setting.shown(settings) in seen:
                break
            seen.add(setting.shown(settings))
        assert len(seen) > 1 or setting is ScenarioSetting.RATE
        forth = setting.stepped(settings, 1)
        assert setting.stepped(forth, -1) == settings


@pytest.mark.parametrize("setting", [it for it in ROWS if it.written is not None])
@pytest.mark.parametrize("text", ["nan", "-1", "0", "inf", "1e99", "much", "1,,2"])
def test_no_setting_takes_a_text_that_is_no_value(setting: ScenarioSetting, text: str) -> None:
    from dlbricks_tui.tui.dialogs.writing import WritingError

    assert setting.written is not None
    with pytest.raises(WritingError, match=r"^Write "):
        setting.written.read(text)


def test_values_are_written_as_they_are_read() -> None:
    settings = replace(ScenarioSettings(), bound_ms=12.5, percentile=99.9, rate=25.0, batch_sizes=(1, 4), threads=2)
    for setting in ROWS:
        if setting.written is not None:
            written = setting.written.read(setting.as_written(settings))
            assert written == getattr(settings, setting.field)
    assert ScenarioSetting.BOUND.as_written(ScenarioSettings()) == ""


async def test_a_setting_with_the_usual_bound_shows_its_value(timed: DataFolder) -> None:
    async with scenario_screen(timed, WIDE) as pilot:
        assert re.search(r"bound +1\d\d ms", screen_text(pilot))
        assert pilot.app.screen.query_one(SettingsPanel).rows.row_count == len(ROWS)
