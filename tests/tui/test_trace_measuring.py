"""Traces that the screen makes; a small script stands for the process that traces."""

import pytest
from textual.pilot import Pilot

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.api import traces as answers
from dlbricks_tui.api.traces import TraceOptions
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.traces.trace import (
    LevelDone,
    LevelStarted,
    RoundStarted,
    TraceDone,
    TraceError,
    TraceLevel,
    TraceOrder,
)
from dlbricks_tui.tui.trace import CancelTraceScreen, StartTraceScreen, TraceScreen
from tests.tui.application import NARROW, WIDE, eventually, press, screen_text, showing, told
from tests.tui.processes import Process, all_seen, failed
from tests.tui.test_run_screens import shows
from tests.tui.test_trace_screen import screen_of
from tests.tui.traces import ID, MODEL, store_trace

pytestmark = pytest.mark.usefixtures("orders")
STARTED = LevelStarted(level=TraceLevel.MODEL)
MODEL_DONE = LevelDone(level=TraceLevel.MODEL, inference_ms=8.1, overhead_ms=None)
LAYER = LevelStarted(level=TraceLevel.LAYER)
PRIMITIVE, THREAD = LevelStarted(level=TraceLevel.PRIMITIVE), LevelStarted(level=TraceLevel.THREAD)
LAYER_DONE = LevelDone(level=TraceLevel.LAYER, inference_ms=8.5, overhead_ms=0.4)
NO_PRIMITIVE = LevelDone(
    level=TraceLevel.PRIMITIVE, inference_ms=None, overhead_ms=None, missing="MXNet does not tell primitives here"
)


@pytest.fixture
def orders(monkeypatch: pytest.MonkeyPatch) -> list[TraceOptions]:
    """The options of all traces that were ordered; a runtime of this host takes each."""
    asked: list[TraceOptions] = []

    def order(options: TraceOptions, source: ModelSource, data: DataFolder) -> TraceOrder:
        asked.append(options)
        runtime = Registry(data.path).find(options.runtime or "")
        execution = Execution(runtime, Level.FUSED, options.batch)
        return TraceOrder(source=source, execution=execution, levels=options.levels, inferences=options.inferences)

    monkeypatch.setattr(answers, "trace_order", order)
    return asked


async def begin(pilot: Pilot[None]) -> None:
    """Start a trace with the usual settings."""
    await press(pilot, "m")
    assert isinstance(pilot.app.screen, StartTraceScreen)
    await pilot.press("enter")


async def test_levels_are_traced_one_by_one_while_others_are_looked_at_and_failures_are_one_line(
    new: DataFolder, process: Process, monkeypatch: pytest.MonkeyPatch
) -> None:
    async with showing(new, screen_of, WIDE) as pilot:
        await begin(pilot)
        await shows(pilot, "reading the model, then model, layer, primitive, thread")
        process.write(Waiting(holder="run r1 of a colleague"))
        await shows(pilot, "waits for run r1 of a colleague")
        process.write(STARTED)
        await shows(pilot, "model level starts, then layer, primitive, thread")
        process.write(LAYER, PRIMITIVE, NO_PRIMITIVE)
        await shows(pilot, "no primitive, then thread")
        process.write(THREAD, RoundStarted(number=2, rounds=3))
        await shows(pilot, "no primitive, round 2 of 3 at all levels")
        process.write(MODEL_DONE, LAYER_DONE)
        await shows(pilot, "no primitive, model 8.100 ms, layer 8.500 ms (+0.4000 ms), then thread")
        store_trace(new)
        process.write(TraceDone(id=ID))
        process.end()
        # The trace is opened at its end.
        await shows(pilot, "Layer level: ")
        await shows(pilot, "▸*  2026-11-27 07:15")
        assert "round 2" not in screen_text(pilot)

        # Levels that do not fit into memory together end one by one. Stored traces can be looked at meanwhile.
        await begin(pilot)
        process.write(STARTED, RoundStarted(number=1, rounds=1), number=2)
        await shows(pilot, "model level is traced, then layer, primitive, thread")
        process.write(MODEL_DONE, LAYER, number=2)
        await shows(pilot, "model 8.100 ms, layer level starts, then primitive, thread")
        await pilot.press("s")
        await shows(pilot, "brick time  0.8100 ms")
        assert "layer level starts" in screen_text(pilot)
        await pilot.press("m")
        await eventually(pilot, lambda: told(pilot) == ["The model is being traced: x cancels it."])

        await pilot.press("escape")
        await eventually(pilot, lambda: len(pilot.app.screen_stack) == 1)
        await eventually(pilot, lambda: any("The trace goes on in the background" in it for it in told(pilot)))
    assert not process.has_ended(2)
    process.write(LAYER_DONE, TraceDone(id=ID), number=2)
    process.end(number=2)
    # A trace survives its screen.
    async with showing(new, screen_of, NARROW) as pilot:
        await shows(pilot, "Layer level: ")
        await eventually(pilot, lambda: all_seen(new))
        failures: tuple[tuple[Event | bytes, int, str], ...] = (
            (failed("the worker was lost: killed by signal 9"), 1, "the worker was lost: killed by"),
            (b"", 0, "the process ended without a trace"),
        )
        for number, (written, status, reason) in enumerate(failures, start=3):
            process.write(STARTED, written, number=number)
            process.end(status, number)
            await press(pilot, "m", "enter")
            assert f" the model was not traced: {reason}" in screen_text(pilot)
            assert isinstance(pilot.app.screen, TraceScreen) and process.has_begun(number)

        def refuse(*_: object) -> None:
            raise TraceError("no runtime runs this model; `dlbricks runtimes` lists them")

        monkeypatch.setattr(answers, "trace_order", refuse)
        await press(pilot, "m", "enter")
        assert isinstance(pilot.app.screen, TraceScreen)
        assert "no runtime runs this model; `dlbricks runtimes` lists them" in screen_text(pilot)


async def test_the_order_has_the_settings_of_the_box_and_cancelling_asks_first(
    new: DataFolder, process: Process, orders: list[TraceOptions]
) -> None:
    async with showing(new, screen_of, NARROW) as pilot:
        # There is nothing to cancel yet.
        await press(pilot, "x")
        assert isinstance(pilot.app.screen, TraceScreen)
        await press(pilot, "m", "G", "equals_sign", '"1,2"', "enter")
        assert "Give a whole number from 1 to 1,000" in screen_text(pilot)
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, TraceScreen) and not orders

        await press(pilot, "m", "j", "equals_sign", '"3"', "enter", "j", "l", "j", "l", "l", "h", "j", "equals_sign")
        await press(pilot, "ctrl+u", '"7"', "enter")
        assert isinstance(pilot.app.screen, StartTraceScreen)
        await pilot.press("enter")
        await eventually(pilot, process.has_begun)
        (options,) = orders
        assert (options.threads, options.batch, options.inferences) == (3, 1, 7)
        assert options.levels == (TraceLevel.MODEL, TraceLevel.LAYER, TraceLevel.PRIMITIVE)
        order = process.order(TraceOrder)
        assert order.inferences == 7 and order.source.name == MODEL

        process.write(STARTED)
        await shows(pilot, "model level starts")
        await pilot.press("x")
        await eventually(pilot, lambda: isinstance(pilot.app.screen, CancelTraceScreen))
        await pilot.press("escape")
        assert not process.has_ended()
        await pilot.press("x", "y")
        await eventually(pilot, process.has_ended)
        await eventually(pilot, lambda: "The trace is cancelled; stored traces are kept." in told(pilot))
        await press(pilot)
        assert isinstance(pilot.app.screen, TraceScreen)
        assert "level starts" not in screen_text(pilot) and "not traced" not in screen_text(pilot)
        # The next box begins with the settings of the last trace.
        await press(pilot, "m")
        assert "primitive" in screen_text(pilot) and " 7 " in screen_text(pilot)
