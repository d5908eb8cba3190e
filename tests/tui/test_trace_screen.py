"""The screen of the traces of the open model, and the rows of its timeline."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.pilot import Pilot

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.api import traces as answers
from dlbricks_tui.api.open_models import ModelSpec
from dlbricks_tui.api.session import Asked, WorkbenchSession
from dlbricks_tui.api.traces import TraceOptions
from dlbricks_tui.config.config import Config
from dlbricks_tui.documents.timeline_rows import TimelineState
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Waiting
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.traces.trace import LevelDone, LevelStarted, RoundStarted, Trace, TraceDone, TraceLevel, TraceOrder
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.trace import CancelTraceScreen, StartTraceScreen, TimelinePanel, TraceScreen, TracesPanel
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from dlbricks_tui.tui.workbench.tree import TreePanel
from tests.traces.sample_traces import traces
from tests.tui.application import NARROW, WIDE, WRITTEN, app_on, running, showing
from tests.tui.driving import eventually, find, press, screen_text, shows, told, words
from tests.tui.processes import Process, failed
from tests.tui.results import graph_of, source_called
from tests.tui.snapshots import check_all, check_layout, resize
from tests.tui.traces import ID, MODEL, store_trace, trace_of, with_threads

OPEN = ("escape", *find(MODEL), "enter")
SHOW = (*OPEN, "T")


@pytest.fixture
def traced(new: DataFolder) -> DataFolder:
    """A data folder with a trace of a model."""
    store_trace(new)
    return new


def screen_of(session: WorkbenchSession) -> TraceScreen:
    """The trace screen as if the model had been opened."""
    spec = ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting)
    return TraceScreen(session, lambda: Asked(spec, WRITTEN, Config()))


def timeline(pilot: Pilot[None]) -> TimelinePanel:
    assert isinstance(pilot.app.screen, TraceScreen)
    return pilot.app.screen.query_one(TimelinePanel)


def selected(pilot: Pilot[None]) -> tuple[str, int | None]:
    """Return the name and the inference of the selected span."""
    panel = timeline(pilot)
    span = None if panel.state is None else panel.state.selected_span(panel.row)
    assert span is not None
    return span.name, span.inference


def row_with(pilot: Pilot[None], words: str) -> str:
    return next(it for it in screen_text(pilot).split("\n") if words in it)


async def test_a_trace_is_shown_beside_the_open_model_and_leads_to_its_decomposition_and_back(new: DataFolder) -> None:
    names = [layer.name for layer in graph_of(MODEL).layers]
    async with running(app_on(new)) as pilot:
        workbench = pilot.app.screen
        await press(pilot, "escape", *find("nosuch"), "T")
        workbench = pilot.app.screen
        assert isinstance(workbench, WorkbenchScreen)
        assert told(pilot) == ["Open a model to see where its time goes."]
        await press(pilot, "slash", "ctrl+u", "escape", *SHOW[1:])
        shown = screen_text(pilot)
        assert f"Where does the time of {MODEL} go, layer by layer?" in shown
        assert "Nothing was traced yet: m traces it" in shown
        # No key does anything to a trace that is not there.
        await press(pilot, *"lhnwfFzybex", "enter", "plus", "minus", "greater_than_sign", on=TraceScreen)
        await press(pilot, "escape")
        assert workbench.is_current

        store_trace(new, with_threads(trace_of()))
        await press(pilot, "T", "w")
        await check_all(pilot, "trace")
        await resize(pilot, WIDE)
        await press(pilot, "l", "l", "l", "b")
        assert workbench.is_current
        tree = workbench.query_one(TreePanel)
        assert tree.selected_layer == 3 and workbench.focused is tree.rows
        # The tree's layer is where the timeline starts.
        await press(pilot, "j", "T")
        assert selected(pilot) == (names[tree.selected_layer or 0], 0)

        # A trace of other layers does not have the selected one, nor has the tree one of its layers.
        trace = trace_of()
        store_trace(new, replace(trace, layers=tuple(replace(it, name=f"fused {it.index}") for it in trace.layers)))
        await press(pilot, "escape", "T")
        assert told(pilot)[-1].startswith("The trace has no layer ")
        await press(pilot, "w", "b")
        assert told(pilot)[-1] == ("The decomposition has no layer fused 0: the trace is of another runtime or file.")
        assert workbench.is_current


async def test_keys_and_clicks_move_through_levels_spans_and_time(traced: DataFolder) -> None:
    names = [layer.name for layer in graph_of(MODEL).layers]
    async with showing(traced, screen_of, WIDE) as pilot:
        await press(pilot, "w")
        assert selected(pilot) == (names[0], 0)
        fitted = row_with(pilot, "inference 1/3")
        assert "ms |0" in fitted
        await press(pilot, "l", "right")
        assert selected(pilot) == (names[2], 0)
        await press(pilot, "h")
        assert selected(pilot) == (names[1], 0)
        await press(pilot, "n")
        assert selected(pilot) == (names[1], 1)
        assert "inference 2/3" in screen_text(pilot)
        await press(pilot, "N", "h", "h")
        assert selected(pilot) == (names[0], 0)

        await press(pilot, "plus", "plus")
        zoomed = row_with(pilot, "inference 1/3")
        assert zoomed != fitted
        await press(pilot, "greater_than_sign")
        assert row_with(pilot, "inference 1/3") != zoomed
        await press(pilot, "less_than_sign")
        assert row_with(pilot, "inference 1/3") == zoomed
        await press(pilot, "f")
        assert row_with(pilot, "inference 1/3") == fitted
        await press(pilot, "F")
        everything = row_with(pilot, "inference 1/3")
        assert everything != fitted
        await press(pilot, "z")
        assert row_with(pilot, "inference 1/3") not in (fitted, everything)
        await press(pilot, "minus", "f")
        assert row_with(pilot, "inference 1/3") == fitted

        panel = timeline(pilot)
        await pilot.click(panel.rows, offset=(panel.rows.size.width * 3 // 4, panel.row))
        await press(pilot)
        assert panel.selected_layer is not None and panel.selected_layer > 10

        assert screen_text(pilot).count("layers ") >= 2
        await press(pilot, "enter")
        # The cursor is on the level, which now shows its layers itself.
        assert "▸" in row_with(pilot, "+ layer") and "▌" in row_with(pilot, "+ layer")
        await press(pilot, "right")
        row = row_with(pilot, "- layer")
        assert "per inference" in row and "slowest layer" in row
        await press(pilot, "left", shows="+ layer")
        await press(pilot, "enter", shows="- layer")


async def test_the_head_and_the_span_panel_tell_what_is_selected_without_colours_too(
    traced: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    layer = trace_of().layers[0]
    async with showing(traced, screen_of, NARROW) as pilot:
        await press(pilot, "j", "b")
        assert told(pilot) == ["Select a span of a layer to see it in the decomposition."]
        assert isinstance(pilot.app.screen, TraceScreen)
        await press(pilot, "k", "w")
        # The selected span, others with cells of their own, and narrow ones.
        assert re.search("█conv0….*▌.*███", row_with(pilot, "▸    layers"))
        head = re.sub(r"\s+", " ", screen_text(pilot).partition("━")[0])
        added = r"\+[\d.]+ ms \(\+5\.0 %\) added by the profiler; slowest layer squeezenet1\.1_conv0_fwd, [\d.]+ %"
        assert re.match(
            rf" Where does the time of {MODEL} go, layer by layer\? Layer level: [\d.]+ ms per inference, {added}", head
        )
        assert re.search(r"squeezenet1\.1_conv0_fwd 945\.0 µs, [\d.]+ % of the inference", head)
        await press(pilot, "2")
        shown = screen_text(pilot)
        assert layer.name in shown and "difference  +0.1350 ms, +16.7 %" in shown
        await press(pilot, "y")
        assert traced.copied.read_text() == layer.brick
        await press(pilot, "1", "g", shows=" Model level: ")


async def test_primitives_and_counters_are_shown_in_panels_that_fit_and_written_for_other_programs(
    new: DataFolder, tmp_path: Path
) -> None:
    chrome, perfetto = tmp_path / "trace.json", tmp_path / "trace.pftrace"
    store_trace(new, with_threads(trace_of()))
    async with showing(new, screen_of, WIDE) as pilot:
        await press(pilot, *["j"] * 6, "s")
        shown = screen_text(pilot)
        assert "a primitive of oneDNN, primitive level" in shown and "jit:avx2" in shown and "aBcd8b" in shown
        await press(pilot, "G", "l", "G", "l")
        shown = screen_text(pilot)
        assert "page faults (faults)" in shown and "2 of 3" in shown and "+10 faults" in shown
        await press(pilot, "y")
        assert told(pilot)[-1].startswith("Only a span of a layer has a brick")
        await press(pilot, "g", shows="(median of 3)")

        await press(pilot, "e", f'"{tmp_path}"', "enter")
        assert "is a folder" in words(pilot)
        await press(pilot, '"/trace.json"', "enter", "e", f'"{perfetto}"', "enter")
        assert {f"The trace is in {chrome}", f"The trace is in {perfetto}"} <= set(told(pilot))
        assert any(it["name"] == "inference 1" for it in json.loads(chrome.read_bytes())["traceEvents"])
        assert b"inference 1" in perfetto.read_bytes()
        # A file that is there is replaced only when confirmed.
        await press(pilot, "e", f'"{chrome}"', "enter", on=PathScreen, shows="press enter again")
        await press(pilot, "enter", on=TraceScreen)

        await resize(pilot, NARROW)
        await press(pilot, "G", "l")
        for panel in ("1", "2", "3"):
            await press(pilot, panel)
            check_layout(pilot.app)


async def test_stored_traces_of_the_model_are_listed_opened_and_missed_where_they_are_deleted(
    traced: DataFolder,
) -> None:
    earlier = trace_of(id="20261126-1", when="2026-11-26T07:15:00.000000+00:00", runtime="openvino-2026.4 threads-2")
    store_trace(traced, earlier)
    store_trace(traced, trace_of(id="other", model="alexnet"))
    (traced.traces / "torn.json.gz").write_bytes(b"torn")
    async with showing(traced, screen_of, WIDE) as pilot:
        panel = pilot.app.screen.query_one(TracesPanel)
        assert [it.header.id for it in panel.found] == [ID, "20261126-1"]
        shown = screen_text(pilot)
        assert "3 Traces 2" in shown and "1 cannot be read" in shown and "▸*  " in shown
        await press(pilot, "3", "j", "y")
        assert traced.copied.read_text() == "20261126-1"
        await press(pilot, "enter")
        state = timeline(pilot).state
        assert state is not None and state.trace == earlier
        assert pilot.app.screen.focused is timeline(pilot).rows
        assert re.search(r"\*  .*2026-11-26 07:15", screen_text(pilot))
        for file in traced.traces.iterdir():
            file.unlink()
        await press(pilot, "3", "k", "enter", on=TraceScreen, shows="cannot read ")
        await press(pilot, "r", "3", shows="No trace of this model is stored.")


WIDTH = 100


def state_of(trace: Trace | None = None) -> TimelineState:
    return TimelineState(trace or trace_of())


def names(state: TimelineState) -> list[str]:
    return [it.level.level.value if it.track is None else it.track.name for it in state.rows]


def test_each_level_has_its_tracks_below_it_and_threads_are_closed_at_first() -> None:
    state = state_of(with_threads(trace_of()))
    assert names(state) == [
        *("model", "inferences"),
        *("layer", "inferences", "layers", "added"),
        *("primitive", "inferences", "layers", "added", "primitives"),
        "thread",
    ]
    assert state.open(11) == 11
    assert names(state)[12:] == ["inferences", "layers", "added", "primitives", "thread 0", "thread 1", "page faults"]


def test_steps_go_from_span_to_span_and_into_the_next_inference() -> None:
    state = state_of()
    row, count = state.first_row(), len(state.layers)
    seen = []
    state.select_layer(0, WIDTH)
    for _ in range(count + 2):
        span = state.selected_span(row)
        assert span is not None
        seen.append((span.inference, span.layer))
        state.step(row, 1, WIDTH)
    assert seen == [*((0, layer) for layer in range(count)), (1, 0), (1, 1)]
    assert state.anchor == 1
    for _ in range(count + 5):
        state.step(row, -1, WIDTH)
    span = state.selected_span(row)
    assert span is not None and (span.inference, span.layer) == (0, 0) and state.anchor == 0


def test_a_layer_is_found_in_a_closed_level_and_an_unknown_one_is_not() -> None:
    state = state_of()
    state.open(2, is_open=False)
    row = state.select_layer(5, WIDTH)
    assert row == state.first_row() and state.selected_layer(row) == 5
    assert state.select_layer(9999, WIDTH) is None


def test_zooming_in_and_out_keeps_the_selected_span_in_view() -> None:
    state = state_of()
    row = state.first_row()
    state.select_layer(30, WIDTH)
    widths = []
    for _ in range(12):
        state.zoom(row, 1, WIDTH)
        window, span = state.window(WIDTH), state.selected_span(row)
        assert span is not None
        middle = span.start_ns + span.duration_ns // 2
        assert 0 <= window.cell(middle) < WIDTH
        widths.append(window.cell_ns)
    assert widths == sorted(widths, reverse=True) and widths[-1] < widths[0] // 500
    for _ in range(40):
        state.zoom(row, -1, WIDTH)
    start, end = state.extent_ns
    window = state.window(WIDTH)
    assert window.cell_ns * WIDTH >= end - start > window.cell_ns * WIDTH // 4


def test_the_next_inference_stays_in_view_where_no_span_is_selected() -> None:
    state = state_of()
    state.zoom(0, -1, 1)
    state.pan(0.5, 1)
    state.go_to_inference(0, 1, 1)
    start, end = state.extent_ns
    assert state.anchor == 1 and start <= state.window(1).start_ns <= end


KEYS: tuple[Callable[[TimelineState, int, int], object], ...] = (
    lambda state, row, _: state.open(row),
    lambda state, row, _: state.open(row, is_open=False),
    lambda state, row, width: state.step(row, 1, width),
    lambda state, row, width: state.step(row, -1, width),
    lambda state, row, width: state.zoom(row, 1, width),
    lambda state, row, width: state.zoom(row, -1, width),
    lambda state, _, width: state.pan(0.5, width),
    lambda state, _, width: state.pan(-0.5, width),
    lambda state, row, width: state.go_to_inference(row, 1, width),
    lambda state, row, width: state.select_slowest(row, width),
    lambda state, row, width: state.fit_span(row, width),
    lambda state, *_: state.fit(everything=True),
    lambda state, row, width: state.select_at(row, width // 2, width),
)


@given(traces(), st.lists(st.tuples(st.sampled_from(KEYS), st.integers(0, 30)), max_size=12), st.integers(1, 120))
def test_any_keys_on_any_trace_keep_some_of_it_in_view(
    trace: Trace, steps: list[tuple[Callable[[TimelineState, int, int], object], int]], width: int
) -> None:
    state = TimelineState(trace)
    for press_key, place in steps:
        if not state.rows:
            return
        press_key(state, place % len(state.rows), width)
        start, end = state.extent_ns
        window = state.window(width)
        assert window.cell(start) < width and window.cell(end) >= 0
        for index in range(len(state.rows)):
            state.selected_span(index)


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
    await press(pilot, "m", on=StartTraceScreen)
    await pilot.press("enter")


def test_the_box_begins_with_the_runtime_in_view_and_its_threads(new: DataFolder) -> None:
    seen = Registry(new.path).find("onnxruntime").with_threads(1)
    choices = replace(WRITTEN, runtime=seen.identity)
    found = answers.first_settings(new, source_called(MODEL), choices, Config())
    assert (found.runtime, found.threads) == (seen.name, 1)


@pytest.mark.usefixtures("orders")
async def test_levels_are_traced_one_by_one_and_the_trace_is_opened_at_its_end(
    new: DataFolder, process: Process
) -> None:
    async with showing(new, screen_of, WIDE) as pilot:
        await begin(pilot)
        await shows(pilot, "reading the model, then model, layer, primitive, thread")
        process.write(Waiting(holder="run r1 of a colleague"))
        await shows(pilot, "waits for run r1 of a colleague")
        process.write(STARTED)
        await shows(pilot, "model level starts, then layer, primitive, thread")
        process.write(LAYER, PRIMITIVE, NO_PRIMITIVE, THREAD, RoundStarted(number=2, rounds=3))
        await shows(pilot, "no primitive, round 2 of 3 at all levels")
        process.write(MODEL_DONE, LAYER_DONE)
        await shows(pilot, "no primitive, model 8.100 ms, layer 8.500 ms (+0.4000 ms), then thread")
        store_trace(new)
        process.write(TraceDone(id=ID))
        process.end()
        await shows(pilot, "Layer level: ")
        await shows(pilot, "▸*  2026-11-27 07:15")
        assert "round 2" not in screen_text(pilot)
        process.write(STARTED, failed("the worker was lost"), number=2)
        process.end(1, 2)
        await press(pilot, "m", "enter", shows=" the model was not traced: the worker was lost")


async def test_the_order_has_the_settings_of_the_box_and_cancelling_asks_first(
    new: DataFolder, process: Process, orders: list[TraceOptions]
) -> None:
    async with showing(new, screen_of, NARROW) as pilot:
        # There is nothing to cancel yet.
        await press(pilot, "x", on=TraceScreen)
        await press(pilot, "m", "G", "equals_sign", '"1,2"', "enter", shows="Give a whole number from 1 to 1,000")
        await press(pilot, "escape", "escape")
        assert isinstance(pilot.app.screen, TraceScreen) and not orders

        await press(pilot, "m", "j", "equals_sign", '"3"', "enter", "j", "l", "j", "l", "l", "h", "j", "equals_sign")
        await press(pilot, "ctrl+u", '"7"', "enter", on=StartTraceScreen)
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
        await press(pilot, on=TraceScreen)
        assert "level starts" not in screen_text(pilot) and "not traced" not in screen_text(pilot)
        # The next box begins with the settings of the last trace.
        await press(pilot, "m", shows=("primitive", " 7 "))
