"""Traces and their timelines."""

from bisect import bisect_left
from collections.abc import Iterable
from dataclasses import fields, replace
from itertools import accumulate
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import Span, width_of
from dlbricks_tui.documents.parts import Sentence, Table
from dlbricks_tui.documents.trace import (
    CellRun,
    SpanTimes,
    TimeWindow,
    axis,
    beside_brick,
    counter_parts,
    counter_row,
    level_answer,
    level_parts,
    overhead_of,
    share_of_inference,
    span_parts,
    span_row,
    span_time,
    span_words,
    stored_columns,
    trace_parts,
)
from dlbricks_tui.traces.file import StoredTrace
from dlbricks_tui.traces.trace import Counter, LayerTime, TraceHeader, TrackKind, layer_times, slowest_first
from tests.documents.snapshots import check
from tests.traces.sample_traces import sample_trace


def test_stored_traces_of_one_model_have_a_mark_in_place_of_the_model() -> None:
    trace = sample_trace()
    header = TraceHeader(**{it.name: getattr(trace, it.name) for it in fields(TraceHeader)})
    stored = [StoredTrace(header, Path("x"), 21_400)]
    columns = {"of all": stored_columns(), "shown": stored_columns(header.id), "not shown": stored_columns("")}
    for name, width in (("traces", 120), ("traces-narrow", 40)):
        check(name, {title: [Table(each, stored)] for title, each in columns.items()}, width)


def test_a_trace_its_levels_spans_and_counters_are_told_whole() -> None:
    trace = sample_trace()
    (faults,), (model, level, primitive), (conv, pool, _) = trace.levels[2].counters, trace.levels, trace.layers
    (first, second), unread = primitive.tracks[1].spans, Counter(name="c", unit="", times_ns=(), values=())
    span, added = level.tracks[1].spans[3], level.tracks[2].spans[0]
    busy = tuple(replace(it, notes=("the host is busy",), totals=()) for it in trace.levels)
    many = tuple(replace(conv, index=index, name=f"conv{index}") for index in range(14))
    spans = tuple(replace(level.tracks[1].spans[0], layer=index) for index in range(14))
    of_many = replace(level, tracks=(level.tracks[0], replace(level.tracks[1], spans=spans)))
    unstored = tuple(replace(it, brick_ms=None) for it in trace.layers)
    faster, slowest = replace(level, inference_ms=(0.98,), overhead_ms=-0.02), slowest_first(layer_times(trace))[0]
    untimed = replace(level, inference_ms=())
    beside = [beside_brick(LayerTime(of, ms)) for of, ms in ((conv, 0.612), (conv, 0.6), (conv, 0.57), (pool, 0.6))]
    check(
        "trace",
        {
            "the trace": trace_parts(trace),
            "what holds for several levels": trace_parts(replace(trace, levels=busy)),
            "many layers": trace_parts(replace(trace, layers=many, levels=(of_many,))),
            "without stored bricks": trace_parts(replace(trace, layers=unstored, batch_size=4)),
            **{f"{it.level.value} level": level_parts(it, trace.missing) for it in trace.levels},
            "answers": [level_answer(model), *(level_answer(it, slowest) for it in (level, primitive, untimed))],
            "overheads": [overhead_of(it) for it in (level, faster, untimed)],
            "a layer": span_parts(span, TrackKind.LAYERS, level, conv, layer_times(trace)[0]),
            "a layer in words": span_words(span, level, layer_times(trace)[0]),
            "layers beside their bricks": beside,
            "a layer without a brick": span_parts(span, TrackKind.LAYERS, level, pool, None),
            "an added operator": span_parts(added, TrackKind.ADDED, level, None, None),
            "an inference": span_parts(level.tracks[0].spans[0], TrackKind.INFERENCES, level, None, None),
            "shares of an inference": [share_of_inference(it, level) for it in (span, added, second)],
            "without an inference": span_parts(second, TrackKind.PRIMITIVES, primitive, None, None),
            "with details of other types": span_parts(first, TrackKind.PRIMITIVES, primitive, None, None),
            "a level with a range": level_parts(replace(level, inference_ms=(1.2, 1.1, 1.3)), ()),
            "a counter": counter_parts(faults, 1),
            "its first reading": counter_parts(faults, 0),
            "a counter that was never read": counter_parts(unread, None),
        },
    )


def test_the_command_that_measures_bricks_names_model_and_runtime_as_the_user_did() -> None:
    trace = sample_trace()
    unstored = replace(trace, layers=tuple(replace(it, brick_ms=None) for it in trace.layers))
    told = [it.text for it in trace_parts(unstored, "my nets/a.onnx", "mine") if isinstance(it, Sentence)]
    assert any("`dlbricks run 'my nets/a.onnx' --runtime mine --" in it for it in told)


GAPS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=40)
WINDOWS = st.builds(TimeWindow, st.integers(-50, 1500), st.integers(1, 80))
WIDTHS = st.integers(1, 60)


def spans_of(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the starts and durations of spans that do not overlap, from the gap before each and its duration."""
    ends = accumulate(gap + duration for gap, duration in gaps)
    return [(end - duration, duration) for end, (_, duration) in zip(ends, gaps, strict=True)]


def times_of(spans: list[tuple[int, int]]) -> SpanTimes:
    return SpanTimes([start for start, _ in spans], [duration for _, duration in spans])


def in_view(times: SpanTimes, begin: int, end: int) -> set[int]:
    spans = enumerate(zip(times.starts, times.ends, strict=True))
    return {number for number, (start, stop) in spans if start < end and begin < stop}


def shown_in(runs: list[CellRun]) -> set[int]:
    return {number for run in runs for number in range(run.first, run.first + run.spans)}


@given(GAPS, WINDOWS, WIDTHS, st.text(max_size=30), st.integers(0, 40))
def test_a_row_shows_every_span_in_view_and_no_other_in_the_cells_that_it_overlaps(
    gaps: list[tuple[int, int]], window: TimeWindow, width: int, name: str, selected: int
) -> None:
    times = times_of(spans_of(gaps))
    runs = list(times.runs(window, width))
    assert sum(run.cells for run in runs) == width
    begin, end = window.start_ns, window.time(width)
    seen = in_view(times, begin, end)
    assert shown_in(runs) <= seen
    # Less than a cell's time of a wide span may be in view at an end of the row.
    for number in seen - shown_in(runs):
        assert times.ends[number] - times.starts[number] >= window.cell_ns
        assert min(end, times.ends[number]) - max(begin, times.starts[number]) < window.cell_ns
    cell = 0
    for run in runs:
        for place in range(cell, cell + run.cells):
            begin, end = window.time(place), window.time(place + 1)
            here = in_view(times, begin, end)
            if run.share is None:
                assert not here if not run.spans else run.first in here
            else:
                assert run.cells == 1 and here == set(range(run.first, run.first + run.spans))
                parts = (min(end, times.ends[it]) - max(begin, times.starts[it]) for it in here)
                assert run.share == pytest.approx(min(1.0, sum(parts) / window.cell_ns), abs=len(here) / window.cell_ns)
        if run.share is None and run.spans:
            assert times.ends[run.first] - times.starts[run.first] >= window.cell_ns
            assert run.begins == (times.starts[run.first] >= window.start_ns)
        cell += run.cells
    # A row is as wide as its cells, whatever the names.
    row = tuple(span_row(iter(runs), lambda _: name, selected))
    assert width_of(row) == width and all(it.text.isprintable() for it in row)


def test_rows_of_spans_and_counters_differ_in_shape_and_style() -> None:
    times = times_of([(0, 120), (120, 40), (200, 3), (204, 2), (210, 8), (230, 10), (260, 5)])
    equal, shared = times_of([(0, 10), (10, 10)]), times_of([(0, 22), (22, 4), (26, 14), (40, 4)])
    three, long = times_of([(0, 5), (5, 12), (17, 3)]), times_of([(0, 1000)])
    rows = {
        "names and shades": (times, 0, 30, None),
        "a selected span": (times, 0, 22, 0),
        "a selected one without a cell of its own": (times, 0, 22, 3),
        # A block would look like narrow spans.
        "a selected one in a cell": (equal, 0, 2, 0),
        # A sign in shared cells is needed only where it has no cells of its own.
        "a selected one that shares a cell": (shared, 0, 6, 0),
        "a selected one in two shared cells": (three, 0, 3, 1),
        "a span that began before the view": (long, 500, 12, None),
        "no span": (SpanTimes([], []), 0, 4, None),
    }
    counter = Counter(name="faults", unit="faults", times_ns=(20, 40, 60, 80), values=(0.0, 10.0, 70.0, 35.0))
    # Heights are those in view, and a reading from before it still counts.
    readings = {"a counter": (0, 12, None), "from a later time": (30, 3, None), "a selected reading": (0, 12, 2)}
    found = SpanTimes.of_counter(counter)
    check(
        "trace-rows",
        {
            **{
                name: styled(span_row(of.runs(TimeWindow(start, 10), width), lambda it: f"span {it}", selected))
                for name, (of, start, width, selected) in rows.items()
            },
            "in other styles": styled(span_row(times.runs(TimeWindow(0, 10), 16), str, styles=("warn", "warn"))),
            **{
                name: styled(counter_row(counter, found, TimeWindow(start, 10), width, selected))
                for name, (start, width, selected) in readings.items()
            },
        },
    )


def styled(row: Iterable[Span]) -> str:
    """The text of a row, and the styles of its pieces."""
    spans = list(row)
    return f"[{''.join(it.text for it in spans)}] {' '.join(it.style for it in spans)}"


def test_a_row_looks_at_few_of_many_spans() -> None:
    class Counted(list[int]):
        reads = 0

        def __getitem__(self, place: Any) -> Any:
            Counted.reads += 1
            return super().__getitem__(place)

    times = SpanTimes(Counted(range(0, 1_000_000, 10)), [8] * 100_000)
    times.ends = Counted(times.ends)
    Counted.reads = 0
    assert styled(span_row(times.runs(TimeWindow(0, 10_000), 100), str)).startswith(f"[{'█' * 100}]")
    assert 0 < Counted.reads < 100 * 50


@given(GAPS.filter(bool), st.integers(-20, 4500))
def test_the_span_at_a_time_is_the_one_that_contains_it_or_the_nearest(
    gaps: list[tuple[int, int]], time_ns: int
) -> None:
    spans = [(start, max(1, duration)) for start, duration in spans_of([(gap + 1, it) for gap, it in gaps])]
    times = times_of(spans)
    found = times.at(time_ns)
    assert found is not None

    def distance(number: int) -> int:
        start, duration = spans[number]
        return max(start - time_ns, time_ns - (start + duration - 1), 0)

    assert distance(found) == min(map(distance, range(len(spans))))


def test_no_span_is_nearest_where_there_is_none() -> None:
    assert SpanTimes([], []).at(5) is None


@given(WINDOWS, st.integers(1, 200), st.integers(-2000, 4000))
def test_zooming_keeps_a_time_in_its_cell(window: TimeWindow, cell_ns: int, time_ns: int) -> None:
    zoomed = window.zoomed(cell_ns, time_ns)
    assert zoomed.cell_ns == cell_ns and zoomed.cell(time_ns) == window.cell(time_ns)


@given(WINDOWS, WIDTHS, st.integers(-2000, 4000), st.integers(1, 3000))
def test_showing_a_span_brings_all_of_it_into_view_or_its_start(
    window: TimeWindow, width: int, start: int, duration: int
) -> None:
    moved = window.showing(start, start + duration, width)
    assert moved.cell_ns == window.cell_ns
    assert 0 <= moved.cell(start) < width
    fits = window.cell(start + duration - 1) - window.cell(start) < width
    assert not fits or moved.cell(start + duration - 1) < width
    # What is in view already stays where it is.
    assert moved.showing(start, start + duration, width) == moved


@given(st.integers(-2000, 4000), st.integers(1, 5000), WIDTHS)
def test_fitting_shows_everything_in_the_smallest_cells(start: int, duration: int, width: int) -> None:
    window = TimeWindow.fitting(start, start + duration, width)
    assert window.cell(start) == 0 and window.cell(start + duration - 1) < width
    assert window.cell_ns == 1 or (window.cell_ns - 1) * width < duration


@given(WINDOWS, WIDTHS, st.integers(0, 5000))
def test_some_of_a_trace_stays_in_view(window: TimeWindow, width: int, duration: int) -> None:
    kept = window.within(0, duration, width)
    assert kept.cell(0) < width and kept.cell(duration) >= 0
    assert kept.within(0, duration, width) == kept


@given(st.integers(-(10**10), 10**12), st.integers(1, 10**9), st.integers(1, 200))
def test_each_label_of_the_axis_stands_at_its_time(start: int, cell_ns: int, width: int) -> None:
    window = TimeWindow(start, cell_ns)
    unit, cells = axis(window, width)
    unit_ns = {"s": 10**9, "ms": 10**6, "µs": 1000, "ns": 1}[unit]
    assert len(cells) == width
    for place, sign in enumerate(cells):
        if sign == "|":
            time_ns = round(float(cells[place + 1 :].split()[0].split("|")[0]) * unit_ns)
            # Numbers of ten digits and more are rounded where they are written.
            assert abs(window.cell(time_ns) - place) <= (1 if abs(time_ns) > 10**11 else 0)
    assert "|" in cells or width < 40


def test_times_have_a_unit_that_suits_them_and_four_digits() -> None:
    assert axis(TimeWindow(0, 50_000), 60) == ("ms", "|0.0      |0.5      |1.0      |1.5      |2.0      |2.5      ")
    units = [axis(TimeWindow(0, cell_ns), width)[0] for cell_ns, width in ((2_000, 60), (1, 40), (10**8, 40))]
    assert units == ["µs", "ns", "s"]
    times = (0, 870, 12_340, 3_412_000, 1_500_000_000, 123_456, -2_500)
    told = "0 ns, 870 ns, 12.34 µs, 3.412 ms, 1.500 s, 123.5 µs, -2.500 µs"
    assert ", ".join(map(span_time, times)) == told


@given(st.lists(st.tuples(st.integers(0, 500), st.floats(-1e6, 1e6)), max_size=20), WINDOWS, WIDTHS)
def test_a_counter_has_the_width_of_its_row(readings: list[tuple[int, float]], window: TimeWindow, width: int) -> None:
    ordered = sorted(readings)
    counter = Counter(
        name="c", unit="", times_ns=tuple(it for it, _ in ordered), values=tuple(value for _, value in ordered)
    )
    found = list(counter_row(counter, SpanTimes.of_counter(counter), window, width))
    assert sum(len(it.text) for it in found) == width
    read = bisect_left(counter.times_ns, window.time(width))
    assert read or all(not it.text.strip() for it in found)
