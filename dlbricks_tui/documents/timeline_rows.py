"""The rows of a timeline, the part of it in view, and the selected span."""

from dataclasses import dataclass
from functools import cached_property
from operator import attrgetter

from dlbricks_tui.documents.trace import SpanTimes, TimeWindow
from dlbricks_tui.traces.trace import Counter, LevelTrace, Trace, TraceLevel, TraceSpan, Track, TrackKind, layer_times

# The track that a closed level shows.
_MAIN = {
    TraceLevel.MODEL: TrackKind.INFERENCES,
    TraceLevel.LAYER: TrackKind.LAYERS,
    TraceLevel.PRIMITIVE: TrackKind.PRIMITIVES,
    TraceLevel.THREAD: TrackKind.THREAD,
}
# Threads have many tracks, so their level is closed at first.
_CLOSED_AT_FIRST = frozenset({TraceLevel.THREAD})
_ZOOM = 2


class TimedTrack:
    """A track or a counter, with the times of its spans or readings."""

    def __init__(self, content: Track | Counter) -> None:
        self.name = content.name
        # A counter has no kind and no spans.
        self.kind: TrackKind | None = None
        self.spans: tuple[TraceSpan, ...] = ()
        self.counter: Counter | None = None
        if isinstance(content, Track):
            self.kind, self.spans = content.kind, content.spans
            self.times = SpanTimes([it.start_ns for it in self.spans], [it.duration_ns for it in self.spans])
        else:
            self.counter, self.times = content, SpanTimes.of_counter(content)

    @property
    def is_added(self) -> bool:
        """True for operators that the runtime added."""
        return self.kind is TrackKind.ADDED


class TimedLevel:
    """A level with its tracks, and the start of each of its inferences."""

    def __init__(self, level: LevelTrace) -> None:
        self.content, self.level = level, level.level
        self.tracks = (*map(TimedTrack, level.tracks), *map(TimedTrack, level.counters))
        whole = next((it for it in level.tracks if it.kind is TrackKind.INFERENCES), None)
        spans = () if whole is None else whole.spans
        self.inferences = {it.inference: it for it in spans if it.inference is not None}
        main = (it for it in self.tracks if it.kind is _MAIN[level.level])
        self.main = next(main, next(iter(self.tracks), None))

    def start_of(self, inference: int) -> int:
        """Return when an inference starts; a level with fewer inferences has its last one instead."""
        found = self.inferences.get(inference)
        if found is not None:
            return found.start_ns
        return max((it.start_ns for it in self.inferences.values()), default=0)

    @cached_property
    def extent_ns(self) -> tuple[int, int]:
        """The start of the first span and the end of the last one."""
        filled = [it.times for it in self.tracks if it.times.starts]
        return min((it.starts[0] for it in filled), default=0), max((it.ends[-1] for it in filled), default=1)


@dataclass(frozen=True, slots=True, eq=False)
class TraceRow:
    """A level, or one of its tracks or counters."""

    level: TimedLevel
    # None for the level itself.
    track: TimedTrack | None = None

    @property
    def shown(self) -> TimedTrack | None:
        """The track whose spans it shows."""
        return self.level.main if self.track is None else self.track


class TimelineState:
    """The open levels of a trace, the inference and the times in view, and the selected span.

    All levels are aligned at the start of one inference, the *anchor*: they were measured apart, and take different
    times. Times in view count from there.
    """

    def __init__(self, trace: Trace) -> None:
        self.trace = trace
        self.levels = tuple(map(TimedLevel, trace.levels))
        self.layers = {layer.index: layer for layer in trace.layers}
        self.times = {it.layer.index: it for it in layer_times(trace)}
        self.slowest = max(self.times.values(), key=attrgetter("in_model_ms"), default=None)
        self._open = {it.level for it in self.levels if it.level not in _CLOSED_AT_FIRST}
        self._rows = {it: (TraceRow(it), *(TraceRow(it, track) for track in it.tracks)) for it in self.levels}
        self.anchor = 0
        # None: as much as the anchor takes.
        self._window: TimeWindow | None = None
        self._shows_everything = False
        # The time that the user looks at, from the start of the anchor, and the span that a key has selected.
        self._focus_ns = 0
        self._selection: tuple[TraceRow, int] | None = None

    # Rows

    @property
    def rows(self) -> tuple[TraceRow, ...]:
        """The levels, and the tracks and counters of those that are open."""
        shown = [self._rows[it] if it.level in self._open else self._rows[it][:1] for it in self.levels]
        return tuple(row for rows in shown for row in rows)

    def is_open(self, row: TraceRow) -> bool:
        return row.level.level in self._open

    def open(self, index: int, *, is_open: bool = True) -> int:
        """Open the level of a row, or close it, and return the row of the level."""
        level = self.rows[index].level
        (self._open.add if is_open else self._open.discard)(level.level)
        return self.rows.index(self._rows[level][0])

    def first_row(self) -> int:
        """Return the row to begin with: the layers, else the inferences."""
        for wanted in ((TraceLevel.LAYER, TrackKind.LAYERS), (TraceLevel.MODEL, TrackKind.INFERENCES)):
            for place, row in enumerate(self.rows):
                if row.track is not None and (row.level.level, row.track.kind) == wanted:
                    return place
        return 0

    # The times in view

    def window(self, width: int) -> TimeWindow:
        """Return the times in view, from the start of the anchor."""
        if self._window is not None:
            return self._window
        # The longest time that the anchor takes at any level; None if no level has it.
        found = [it.inferences[self.anchor].duration_ns for it in self.levels if self.anchor in it.inferences]
        took_ns = None if self._shows_everything else max(found, default=None)
        return TimeWindow.fitting(*(self.extent_ns if took_ns is None else (0, took_ns)), width)

    @property
    def extent_ns(self) -> tuple[int, int]:
        """The start and the end of everything, from the start of the anchor."""
        extents = [(it.extent_ns, it.start_of(self.anchor)) for it in self.levels]
        starts, ends = [start - zero for (start, _), zero in extents], [end - zero for (_, end), zero in extents]
        return min(starts, default=0), max(ends, default=1)

    @property
    def inferences(self) -> int:
        """The number of inferences of the level that has most."""
        return max((len(it.inferences) for it in self.levels), default=0)

    def zoom(self, index: int, step: int, width: int) -> None:
        """Show half as many times, or twice as many for `step` -1, around the selected span or the middle."""
        window = self.window(width)
        found = self._times_of(index)
        center = window.time(width // 2) if found is None else sum(found) // 2
        if not 0 <= window.cell(center) < width:
            center = window.time(width // 2)
        start, end = self.extent_ns
        most = TimeWindow.fitting(start, end, width).cell_ns
        cell_ns = window.cell_ns // _ZOOM if step > 0 else min(window.cell_ns * _ZOOM, max(most, window.cell_ns))
        self._show(window.zoomed(cell_ns, center), width)

    def pan(self, share: float, width: int) -> None:
        """Show later times by a share of the width, or earlier ones."""
        cells = round(share * width) or (1 if share > 0 else -1)
        self._show(self.window(width).moved(cells), width)

    def fit(self, *, everything: bool) -> None:
        """Show everything, or the inference in view."""
        self._window, self._shows_everything = None, everything

    def fit_span(self, index: int, width: int) -> None:
        """Show the selected span as wide as the row."""
        found = self._times_of(index)
        if found is not None:
            self._show(TimeWindow.fitting(*found, width), width)

    def _show(self, window: TimeWindow, width: int) -> None:
        self._window = window.within(*self.extent_ns, width)

    # The selected span

    def selected(self, index: int) -> int | None:
        """Return the number of the selected span of a row: the one that a key has selected, else that at its time."""
        row = self.rows[index]
        if self._selection is not None and self._selection[0] is row:
            return self._selection[1]
        if row.track is None:
            return None
        return row.track.times.at(self._focus_ns + row.level.start_of(self.anchor))

    def selected_span(self, index: int) -> TraceSpan | None:
        """Return the selected span of a row of spans."""
        track, number = self.rows[index].track, self.selected(index)
        return track.spans[number] if track is not None and track.spans and number is not None else None

    def selected_layer(self, index: int) -> int | None:
        """Return the index of the layer of the selected span of a row; None without one."""
        span = self.selected_span(index) if index < len(self.rows) else None
        return None if span is None else span.layer

    def brick_key(self, index: int) -> str | None:
        """Return the key of the brick of the layer of the selected span."""
        layer = self.selected_layer(index)
        return self.layers[layer].brick if layer in self.layers else None

    def step(self, index: int, step: int, width: int) -> None:
        """Select the next span of a row, or the previous one; the inference in view follows."""
        track, number = self.rows[index].track, self.selected(index)
        if track is not None and number is not None:
            self.select(index, min(max(number + step, 0), len(track.times.starts) - 1), width)

    def select(self, index: int, number: int, width: int) -> None:
        """Select a span of a row, and show it."""
        row = self.rows[index]
        if row.track is None:
            return
        inference = row.track.spans[number].inference if row.track.spans else None
        if inference is not None:
            self.anchor = inference
        self._selection = (row, number)
        start, end = self._span_times(row, row.track, number)
        self._focus_ns = (start + end - 1) // 2
        window = self.window(width)
        moved = window.showing(start, end, width)
        if moved != window:
            self._show(moved, width)

    def select_at(self, index: int, cell: int, width: int) -> None:
        """Select the span of a row that a cell shows, or the one nearest to it."""
        row, window = self.rows[index], self.window(width)
        middle = window.time(cell) + window.cell_ns // 2
        number = None if row.track is None else row.track.times.at(middle + row.level.start_of(self.anchor))
        if number is not None:
            self.select(index, number, width)

    def select_slowest(self, index: int, width: int) -> None:
        """Select the longest span of the row in the inference in view."""
        track = self.rows[index].track
        spans = () if track is None else track.spans
        inside = [number for number, it in enumerate(spans) if it.inference == self.anchor] or range(len(spans))
        if inside:
            self.select(index, max(inside, key=lambda number: spans[number].duration_ns), width)

    def select_layer(self, layer: int, width: int) -> int | None:
        """Select a layer in the inference in view; return its row, or None if no level has it."""
        for level in self.levels:
            for row in self._rows[level]:
                spans = row.track.spans if row.track is not None and row.track.kind is TrackKind.LAYERS else ()
                found = [number for number, it in enumerate(spans) if it.layer == layer]
                if found:
                    self._open.add(level.level)
                    index = self.rows.index(row)
                    here = (number for number in found if spans[number].inference == self.anchor)
                    self.select(index, next(here, found[0]), width)
                    return index
        return None

    def go_to_inference(self, index: int, step: int, width: int) -> None:
        """Show the next inference, or the previous one, from the same time on."""
        span = self.selected_span(index)
        self.anchor = min(max(self.anchor + step, 0), max(0, self.inferences - 1))
        if self._window is not None:
            # Times count from the start of the anchor.
            self._show(self._window, width)
        track, self._selection = self.rows[index].track, None
        if span is None or span.layer is None or track is None:
            return
        # The same layer: inferences differ in their times.
        alike = (it.inference == self.anchor and it.layer == span.layer and it.name == span.name for it in track.spans)
        found = next((number for number, is_alike in enumerate(alike) if is_alike), None)
        if found is not None:
            self.select(index, found, width)

    def _times_of(self, index: int) -> tuple[int, int] | None:
        row, number = self.rows[index], self.selected(index)
        return None if row.track is None or number is None else self._span_times(row, row.track, number)

    def _span_times(self, row: TraceRow, track: TimedTrack, number: int) -> tuple[int, int]:
        zero = row.level.start_of(self.anchor)
        return track.times.starts[number] - zero, track.times.ends[number] - zero
