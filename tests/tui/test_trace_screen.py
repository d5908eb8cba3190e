"""The screen of the traces of the open model."""

import json
import re
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.config.config import Config
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.traces.trace import Trace
from dlbricks_tui.tui.dialogs.paths import PathScreen
from dlbricks_tui.tui.open_model import ModelSpec
from dlbricks_tui.tui.trace.panels import TimelinePanel, TracesPanel
from dlbricks_tui.tui.trace.screen import TraceScreen
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from dlbricks_tui.tui.workbench.tree import TreePanel
from tests.tui.application import MEDIUM, NARROW, WIDE, WRITTEN, app_on, press, running, screen_text, showing
from tests.tui.results import graph_of, source_called
from tests.tui.snapshots import check_all, check_layout, resize
from tests.tui.test_suites import words
from tests.tui.traces import ID, MODEL, store_trace, trace_of, with_threads

OPEN = ("escape", "slash", f'"{MODEL}"', "enter", "enter")
SHOW = (*OPEN, "T")


@pytest.fixture
def traced(new: DataFolder) -> DataFolder:
    """A data folder with a trace of a model."""
    store_trace(new)
    return new


@asynccontextmanager
async def trace_screen(data: DataFolder, size: tuple[int, int] = MEDIUM) -> AsyncIterator[Pilot[None]]:
    """Run the application with the trace screen alone, as if the model had been opened."""
    spec = ModelSpec(source_called(MODEL), WRITTEN.level, WRITTEN.cutting)
    async with showing(data, lambda session: TraceScreen(session, spec, WRITTEN, Config()), size) as pilot:
        yield pilot


def timeline(pilot: Pilot[None]) -> TimelinePanel:
    assert isinstance(pilot.app.screen, TraceScreen)
    return pilot.app.screen.query_one(TimelinePanel)


def selected(pilot: Pilot[None]) -> tuple[str, int | None]:
    """Return the name and the inference of the selected span."""
    panel = timeline(pilot)
    span = None if panel.state is None else panel.state.selected_span(panel.row)
    assert span is not None
    return span.name, span.inference


def told(pilot: Pilot[None]) -> list[str]:
    return [note.message for note in pilot.app._notifications]


def row_with(pilot: Pilot[None], words: str) -> str:
    return next(it for it in screen_text(pilot).split("\n") if words in it)


async def test_a_trace_is_shown_beside_the_open_model_and_leads_to_its_decomposition_and_back(new: DataFolder) -> None:
    names = [layer.name for layer in graph_of(MODEL).layers]
    async with running(app_on(new)) as pilot:
        workbench = pilot.app.screen
        await press(pilot, "escape", "slash", '"nosuch"', "enter", "T")
        workbench = pilot.app.screen
        assert isinstance(workbench, WorkbenchScreen)
        assert told(pilot) == ["Open a model to see where its time goes."]
        await press(pilot, "slash", "ctrl+u", "escape", *SHOW[1:])
        shown = screen_text(pilot)
        assert f"Where does the time of {MODEL} go, layer by layer?" in shown
        assert "Nothing was traced yet: m traces it" in shown
        # No key does anything to a trace that is not there.
        await press(pilot, *"lhnwfFzybex", "enter", "plus", "minus", "greater_than_sign")
        assert isinstance(pilot.app.screen, TraceScreen)
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
    async with trace_screen(traced, WIDE) as pilot:
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
        await press(pilot, "left")
        assert "+ layer" in screen_text(pilot)
        await press(pilot, "enter")
        assert "- layer" in screen_text(pilot)


async def test_the_head_and_the_span_panel_tell_what_is_selected_without_colours_too(
    traced: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("NO_COLOR", "1")
    layer = trace_of().layers[0]
    async with trace_screen(traced, NARROW) as pilot:
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
        await press(pilot, "1", "g")
        assert " Model level: " in screen_text(pilot)


async def test_primitives_and_counters_are_shown_in_panels_that_fit_and_written_for_other_programs(
    new: DataFolder, tmp_path: Path
) -> None:
    chrome, perfetto = tmp_path / "trace.json", tmp_path / "trace.pftrace"
    store_trace(new, with_threads(trace_of()))
    async with trace_screen(new, WIDE) as pilot:
        await press(pilot, *["j"] * 6, "s")
        shown = screen_text(pilot)
        assert "a primitive of oneDNN, primitive level" in shown and "jit:avx2" in shown and "aBcd8b" in shown
        await press(pilot, "G", "l", "G", "l")
        shown = screen_text(pilot)
        assert "page faults (faults)" in shown and "2 of 3" in shown and "+10 faults" in shown
        await press(pilot, "y")
        assert told(pilot)[-1].startswith("Only a span of a layer has a brick")
        await press(pilot, "g")
        assert "(median of 3)" in screen_text(pilot)

        await press(pilot, "e", f'"{tmp_path}"', "enter")
        assert "is a folder" in words(pilot)
        await press(pilot, '"/trace.json"', "enter", "e", f'"{perfetto}"', "enter")
        assert {f"The trace is in {chrome}", f"The trace is in {perfetto}"} <= set(told(pilot))
        assert any(it["name"] == "inference 1" for it in json.loads(chrome.read_bytes())["traceEvents"])
        assert b"inference 1" in perfetto.read_bytes()
        # A file that is there is replaced only when confirmed.
        await press(pilot, "e", f'"{chrome}"', "enter")
        assert isinstance(pilot.app.screen, PathScreen) and "press enter again" in screen_text(pilot)
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, TraceScreen)

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
    async with trace_screen(traced, WIDE) as pilot:
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
        await press(pilot, "3", "k", "enter")
        assert "cannot read " in screen_text(pilot) and isinstance(pilot.app.screen, TraceScreen)
        await press(pilot, "r", "3")
        assert "No trace of this model is stored." in screen_text(pilot)


async def test_hostile_names_are_spelled_out(new: DataFolder) -> None:
    trace: Trace = trace_of()
    evil = "\x1b]0;owned\x07 \n" * 3
    layers = tuple(replace(it, name=evil, kind=evil, context=evil) for it in trace.layers)
    levels = tuple(
        replace(
            level,
            notes=(evil,),
            tracks=tuple(
                replace(
                    it, name=evil, spans=tuple(replace(span, name=evil, details=((evil, evil),)) for span in it.spans)
                )
                for it in level.tracks
            ),
        )
        for level in trace.levels
    )
    store_trace(new, replace(trace, layers=layers, levels=levels))
    async with trace_screen(new, WIDE) as pilot:
        await press(pilot, "w", "g")
        assert "\\x1b]0;owned" in screen_text(pilot)
        assert screen_text(pilot).replace("\n", "").isprintable()
