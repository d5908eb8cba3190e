"""Timelines in cells: nothing in view is lost, whatever the zoom."""

from bisect import bisect_left
from itertools import accumulate
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.documents.trace import CellRun, SpanTimes, TimeWindow, axis, counter_row, span_row, span_time
from dlbricks_tui.traces.trace import Counter

GAPS = st.lists(st.tuples(st.integers(0, 40), st.integers(0, 60)), max_size=40)
WINDOWS = st.builds(TimeWindow, st.integers(-50, 1500), st.integers(1, 80))
WIDTHS = st.integers(1, 60)


def spans_of(gaps: list[tuple[int, int]]) -> list[tuple[int, int]]:
    """Return the starts and durations of spans that do not overlap, from the gap before each and its duration."""
    ends = accumulate(gap + duration for gap, duration in gaps)
    return [(end - duration, duration) for end, (_, duration) in zip(ends, gaps, strict=True)]


def times_of(spans: list[tuple[int, int]]) -> SpanTimes:
    return SpanTimes([start for start, _ in spans], [duration for _, duration in spans])


def drawn(times: SpanTimes, window: TimeWindow, width: int, selected: int | None = None) -> str:
    return "".join(it.text for it in span_row(times.runs(window, width), lambda number: f"span {number}", selected))


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


def test_wide_spans_have_their_names_and_narrow_ones_are_shaded_by_their_share() -> None:
    times = times_of([(0, 120), (120, 40), (200, 3), (204, 2), (210, 8), (230, 10), (260, 5)])
    assert drawn(times, TimeWindow(0, 10), 30) == "▌span 0 ────▌───    ▓█ ▌  ▓   "


def test_the_selected_span_differs_in_shape() -> None:
    times = times_of([(0, 120), (120, 40), (200, 3), (204, 2)])
    assert drawn(times, TimeWindow(0, 10), 22, selected=0) == "█span 0 ════▌───    ▓ "
    # It has no cell of its own.
    assert drawn(times, TimeWindow(0, 10), 22, selected=3) == "▌span 0 ────▌───    ● "
    # A block would look like narrow spans.
    assert drawn(times_of([(0, 10), (10, 10)]), TimeWindow(0, 10), 2, selected=0) == "●▌"
    styles = [it.style for it in span_row(times.runs(TimeWindow(0, 10), 22), str, 1)]
    assert styles == ["accent", "match", "text", "bar", "text"]
    styles = [it.style for it in span_row(times.runs(TimeWindow(0, 10), 16), str, styles=("warn", "warn"))]
    assert styles == ["warn", "warn"]


def test_a_selected_span_has_a_sign_in_shared_cells_only_if_it_has_no_cells_of_its_own() -> None:
    times = times_of([(0, 22), (22, 4), (26, 14), (40, 4)])
    assert drawn(times, TimeWindow(0, 10), 6, selected=0) == "█═█▌▒ "
    assert drawn(times_of([(0, 5), (5, 12), (17, 3)]), TimeWindow(0, 10), 3, selected=1) == "●● "


def test_a_span_that_began_before_the_view_has_its_name_at_the_left_end() -> None:
    assert drawn(times_of([(0, 1000)]), TimeWindow(500, 10), 12) == "─span 0 ────"


def test_a_row_looks_at_few_of_many_spans() -> None:
    class Counted(list[int]):
        reads = 0

        def __getitem__(self, place: Any) -> Any:
            Counted.reads += 1
            return super().__getitem__(place)

    times = SpanTimes(Counted(range(0, 1_000_000, 10)), [8] * 100_000)
    times.ends = Counted(times.ends)
    Counted.reads = 0
    assert drawn(times, TimeWindow(0, 10_000), 100) == "█" * 100
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
    assert drawn(SpanTimes([], []), TimeWindow(0, 1), 4) == "    "


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


def test_the_axis_has_a_unit_that_suits_its_times() -> None:
    assert axis(TimeWindow(0, 50_000), 60) == ("ms", "|0.0      |0.5      |1.0      |1.5      |2.0      |2.5      ")
    assert axis(TimeWindow(0, 2_000), 60).unit == "µs"
    assert axis(TimeWindow(0, 1), 40).unit == "ns"
    assert axis(TimeWindow(0, 10**8), 40).unit == "s"


def test_times_have_four_digits_and_a_unit() -> None:
    assert [span_time(it) for it in (0, 870, 12_340, 3_412_000, 1_500_000_000, 123_456, -2_500)] == [
        "0 ns",
        "870 ns",
        "12.34 µs",
        "3.412 ms",
        "1.500 s",
        "123.5 µs",
        "-2.500 µs",
    ]


def test_a_counter_is_drawn_by_its_height_from_its_first_reading_to_its_last() -> None:
    counter = Counter(name="faults", unit="faults", times_ns=(20, 40, 60, 80), values=(0.0, 10.0, 70.0, 35.0))
    times = SpanTimes.of_counter(counter)
    text = "".join(it.text for it in counter_row(counter, times, TimeWindow(0, 10), 12))
    assert text == "  ▁▁▂▂██▅   "
    # Heights are those in view, and a reading from before it still counts.
    text = "".join(it.text for it in counter_row(counter, times, TimeWindow(30, 10), 3))
    assert text == "▁██"
    styles = [it.style for it in counter_row(counter, times, TimeWindow(0, 10), 12, 2)]
    assert styles == ["text", "accent", "match", "accent", "text"]


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
