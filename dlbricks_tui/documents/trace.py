"""A trace: its levels and layers beside their bricks, single spans, and timelines as lines."""

from __future__ import annotations

from bisect import bisect_left, bisect_right
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate, count, groupby
from statistics import median
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import ELLIPSIS, Span, block, cut, width_of
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Fact, MarkedSentence, Part, Sentence, Table, name_column
from dlbricks_tui.printable import shell_words
from dlbricks_tui.runtime.variant import AskedVariant, stated_variant
from dlbricks_tui.traces.file import StoredTrace
from dlbricks_tui.traces.trace import (
    PLAIN_MS,
    KindTime,
    LayerTime,
    LevelTrace,
    TraceLevel,
    TrackKind,
    by_kind,
    layer_times,
    shown_inference_ms,
    slowest_first,
    together,
)
from dlbricks_tui.wording.answers import execution_words, options_of, runtime_words
from dlbricks_tui.wording.numbers import (
    counted,
    in_ms,
    milliseconds,
    minute_of,
    or_dash,
    percent,
    signed_ms,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.traces.trace import Counter, MissingLevel, Trace, TracedLayer, TraceSpan

_BEGINS, _BODY = "▌", "─"
_SELECTED_BEGINS, _SELECTED_BODY = "█", "═"
# A selected span of one cell, or without cells of its own.
_SELECTED_CELL = "●"
# Cells of several spans or of a narrow one, by the share that they cover.
_SHADES = "░▒▓█"
# The fewest cells of a shortened name: fewer tell nothing.
_LEAST_NAME = 4
_TICK = "|"
_UNITS = (("s", 1_000_000_000), ("ms", 1_000_000), ("µs", 1_000), ("ns", 1))


@dataclass(frozen=True, slots=True)
class TimeWindow:
    """The part of the time axis in view: its start, and the length of a cell in whole nanoseconds."""

    start_ns: int
    cell_ns: int = 1

    @classmethod
    def fitting(cls, start_ns: int, end_ns: int, width: int) -> TimeWindow:
        """Return the narrowest window of `width` cells that shows all from the start to the end."""
        return cls(start_ns, max(1, -(-(end_ns - start_ns) // max(1, width))))

    def time(self, cell: int) -> int:
        """Return the time at which a cell begins."""
        return self.start_ns + cell * self.cell_ns

    def cell(self, time_ns: int) -> int:
        """Return the cell of a time."""
        return (time_ns - self.start_ns) // self.cell_ns

    def moved(self, cells: int) -> TimeWindow:
        """Return the window that many cells later."""
        return replace(self, start_ns=self.time(cells))

    def later(self, time_ns: int) -> TimeWindow:
        """Return the window at that much later times."""
        return replace(self, start_ns=self.start_ns + time_ns)

    def zoomed(self, cell_ns: int, time_ns: int) -> TimeWindow:
        """Return the window with other cells; a time stays in its cell."""
        cell_ns = max(1, cell_ns)
        return TimeWindow(time_ns - self.cell(time_ns) * cell_ns, cell_ns)

    def showing(self, start_ns: int, end_ns: int, width: int) -> TimeWindow:
        """Return the window moved so that a span is in view: all of it if it fits, else its start."""
        first, last = self.cell(start_ns), self.cell(max(start_ns, end_ns - 1))
        if first < 0 or last - first >= width:
            return self if 0 <= first < width else self.moved(first)
        return self if last < width else self.moved(last - width + 1)

    def within(self, start_ns: int, end_ns: int, width: int) -> TimeWindow:
        """Return the window moved so that some of a trace from the start to the end is in view."""
        half = width // 2
        first, last = start_ns - half * self.cell_ns, end_ns - half * self.cell_ns
        return replace(self, start_ns=min(max(self.start_ns, first), max(first, last)))


class CellRun(NamedTuple):
    """Neighbouring cells of a row that show the same: nothing, one span, or spans too narrow for cells of their own."""

    cells: int
    # The first of the spans, and their number; 0 for nothing.
    first: int = 0
    spans: int = 0
    # The covered share of a cell with narrow spans; None for a span with cells of its own.
    share: float | None = None
    # False if the span has begun before the window.
    begins: bool = True


class SpanTimes:
    """The starts and ends of spans in their order, for look-ups in a time that hardly grows with their number."""

    def __init__(self, starts_ns: Sequence[int], durations_ns: Sequence[int]) -> None:
        self.starts = starts_ns
        # Spans without a duration are drawn, too. Ends that do not decrease can be searched.
        shown = [start + max(1, it) for start, it in zip(starts_ns, durations_ns, strict=True)]
        self.ends = list(accumulate(shown, max))
        lengths = (max(0, end - start) for start, end in zip(starts_ns, self.ends, strict=True))
        self._covered = list(accumulate(lengths, initial=0))

    @classmethod
    def of_counter(cls, counter: Counter) -> SpanTimes:
        """Return the times of the readings; each counts until the next one."""
        times = counter.times_ns
        return cls(times, [later - time for time, later in zip(times, [*times[1:], *times[-1:]], strict=True)])

    def at(self, time_ns: int) -> int | None:
        """Return the span at a time, or the nearest one; None without spans."""
        if not self.starts:
            return None
        before = max(0, bisect_right(self.starts, time_ns) - 1)
        after = min(before + 1, len(self.starts) - 1)
        is_nearer = self.starts[after] - time_ns < time_ns - self.ends[before] + 1
        return after if self.ends[before] <= time_ns and is_nearer else before

    def runs(self, window: TimeWindow, width: int) -> Iterator[CellRun]:
        """Yield what the cells of a row show, from left to right.

        A span has a part in one of them if it is narrower than a cell, or if at least a cell's time of it is in view.
        """
        cells = [self._cell(window.time(cell), window.cell_ns) for cell in range(width)]
        for shown, alike in groupby(cells):
            length = len(list(alike))
            if shown.share is not None:
                # Each cell has narrow spans of its own, or a part of the same one.
                yield from [shown] * length
            else:
                begins = not shown.spans or self.starts[shown.first] >= window.start_ns
                yield shown._replace(cells=length, begins=begins)

    def _cell(self, begin: int, cell_ns: int) -> CellRun:
        end = begin + cell_ns
        first, beyond = bisect_right(self.ends, begin), bisect_left(self.starts, end)
        if first >= beyond:
            return CellRun(1)
        if beyond - first <= 2:
            wide = [index for index in range(first, beyond) if self.ends[index] - self.starts[index] >= cell_ns]
            if len(wide) == beyond - first:
                # The cell belongs to the span that covers most of it.
                parts = [min(end, self.ends[index]) - max(begin, self.starts[index]) for index in wide]
                return CellRun(1, wide[parts.index(max(parts))], 1)
        covered = self._covered[beyond] - self._covered[first]
        covered -= max(0, begin - self.starts[first]) + max(0, self.ends[beyond - 1] - end)
        return CellRun(1, first, beyond - first, min(1.0, max(0.0, covered / cell_ns)))


# Neighbouring spans differ.
USUAL: tuple[str, str] = ("accent", "text")
_SELECTED = "match"


def span_row(
    runs: Iterator[CellRun], name: Callable[[int], str], selected: int | None = None, styles: tuple[str, str] = USUAL
) -> Iterator[Span]:
    """Yield a row of spans with the names that have room; spans with cells of their own have one of two styles."""
    shown = list(runs)
    has_cells = any(run.spans and run.share is None and run.first == selected for run in shown)
    for run in shown:
        is_selected = selected is not None and run.first <= selected < run.first + run.spans
        if not run.spans:
            yield Span(" " * run.cells)
        elif run.share is None and is_selected and run.cells == 1:
            # A full block would look like narrow spans that cover the cell.
            yield Span(_SELECTED_CELL, _SELECTED)
        elif run.share is None:
            begin, body = (_SELECTED_BEGINS, _SELECTED_BODY) if is_selected else (_BEGINS, _BODY)
            room = run.cells - 1
            label = cut(name(run.first), room)
            label = "" if room < _LEAST_NAME and label.endswith(ELLIPSIS) else label
            # A blank keeps the name apart from the rest.
            rest = room - width_of([Span(label)])
            label += f" {body * (rest - 1)}" if rest and label else body * rest
            style = _SELECTED if is_selected else styles[run.first % 2]
            yield Span((begin if run.begins else body) + label, style)
        elif is_selected and not has_cells:
            yield Span(_SELECTED_CELL, _SELECTED)
        else:
            shade = _SHADES[min(int(run.share * len(_SHADES)), len(_SHADES) - 1)]
            yield Span(shade, "bar")


def counter_row(
    counter: Counter, times: SpanTimes, window: TimeWindow, width: int, selected: int | None = None
) -> Iterator[Span]:
    """Yield the readings of a counter as heights between the least and the greatest value in view."""
    before = bisect_right(times.starts, window.start_ns) - 1
    values = counter.values[max(0, before) : bisect_left(times.starts, window.time(width))]
    least, most = min(values, default=0.0), max(values, default=0.0)
    span = most - least or 1.0
    cells = []
    for cell in range(width):
        # The last reading in a cell counts; a reading counts until the next one.
        place = bisect_left(times.starts, window.time(cell + 1)) - 1
        if place < 0 or (place == len(times.starts) - 1 and times.ends[place] <= window.time(cell)):
            cells.append(Span(" "))
        else:
            height = (counter.values[place] - least) / span
            cells.append(Span(block(height), _SELECTED if place == selected else USUAL[0]))
    for style, alike in groupby(cells, lambda it: it.style):
        yield Span("".join(it.text for it in alike), style)


def axis(window: TimeWindow, width: int) -> tuple[str, str]:
    """Return the unit of the axis above a timeline, and its cells with as many labelled times as have room."""
    ends = window.start_ns, window.time(width)
    unit, unit_ns = next((it for it in _UNITS if max(map(abs, ends)) >= it[1]), _UNITS[-1])
    steps = (digit * 10**power for power in count() for digit in (1, 2, 5))
    longest = ((it, max(len(_label(end, unit_ns, it)) for end in ends)) for it in steps)
    step_ns = next(it for it, cells in longest if it >= window.cell_ns * (2 + cells))
    cells = [" "] * width
    first = -(-window.start_ns // step_ns) * step_ns
    for time_ns in range(first, window.time(width), step_ns):
        text, place = f"{_TICK}{_label(time_ns, unit_ns, step_ns)}", window.cell(time_ns)
        if place + len(text) <= width:
            cells[place : place + len(text)] = text
    return unit, "".join(cells)


def _label(time_ns: int, unit_ns: int, step_ns: int) -> str:
    """Return a time in a unit, with the decimals that tell steps apart."""
    decimals = next(it for it in range(10) if step_ns * 10**it >= unit_ns)
    return f"{time_ns / unit_ns:.{decimals}f}"


def span_time(time_ns: float) -> str:
    """Return a time with four digits in the unit that suits it: `870 ns`, `12.34 µs`, `3.412 ms`, `1.500 s`."""
    unit, unit_ns = next((it for it in _UNITS if abs(time_ns) >= it[1]), _UNITS[-1])
    value = time_ns / unit_ns
    if unit == "ns":
        return f"{value:.0f} {unit}"
    decimals = next((it for it, limit in enumerate((1000, 100, 10)) if abs(value) >= limit), 3)
    return f"{value:.{decimals}f} {unit}"


_MOST_LAYERS = 12
# Enough to name a trace or a brick.
_KEY_DIGITS = 12
_INSTRUMENTS = {
    TraceLevel.MODEL: "by its clock",
    TraceLevel.LAYER: "by the profiler",
    TraceLevel.PRIMITIVE: "by the output of oneDNN",
    TraceLevel.THREAD: "by the counters of threads",
}
_KINDS = {
    TrackKind.INFERENCES: "an inference",
    TrackKind.LAYERS: "a layer",
    TrackKind.ADDED: "an operator that the runtime added",
    TrackKind.PRIMITIVES: "a primitive of oneDNN",
    TrackKind.THREAD: "of a thread",
}


def stored_columns(shown: str | None = None) -> tuple[Column[StoredTrace], ...]:
    """Return the columns of stored traces; with the id of the trace that a panel shows, those of one model."""
    in_panel = shown is not None
    mark: Column[StoredTrace] = Column("", lambda it: "*" if it.header.id == shown else "", style="mark")
    return (
        mark if in_panel else name_column("model", lambda it: it.header.model),
        Column("trace", lambda it: it.header.id[:_KEY_DIGITS], is_optional=in_panel),
        Column("when (UTC)", lambda it: minute_of(it.header.when)),
        name_column(
            "runtime",
            lambda it: runtime_words(it.header.runtime),
            lambda it: "strong" if it.header.id == shown else "text",
        ),
        Column("layers", lambda it: it.header.graph_level.value, is_optional=in_panel),
        Column("batch", lambda it: f"{it.header.batch_size}"),
        Column("size", lambda it: f"{it.size_bytes / 1000:,.0f} kB", is_optional=in_panel),
    )


def trace_words(trace: Trace) -> str:
    """Return how a model was traced: `ONNX Runtime 1.20, 1 thread, fused layers, batch 1, trace 20261127-071`."""
    how = execution_words(trace.runtime, trace.graph_level)
    return f"{how}, batch {trace.batch_size}, trace {trace.id[:_KEY_DIGITS]}"


def trace_parts(trace: Trace, named: str = "", runtime: str = "") -> Iterator[Part]:
    """Yield the levels of a trace, the kinds of layers, and the slowest layers.

    Commands name the model and the runtime as the user did, if that is known.
    """
    times, whole_ms = slowest_first(layer_times(trace)), shown_inference_ms(trace)
    yield Sentence(trace.model)
    yield Sentence(trace_words(trace))
    yield BLANK_LINE
    yield Table(_LEVEL_COLUMNS, trace.levels)
    for missing in trace.missing:
        yield Sentence(missing_words(missing))
    # What holds for several levels is told once.
    levels: dict[str, list[str]] = {}
    for level in trace.levels:
        for told in _remarks(level):
            levels.setdefault(told, []).append(level.level.value)
    for told, those in levels.items():
        yield Sentence(f"{', '.join(those)} {'level' if len(those) == 1 else 'levels'}: {told}")
    if not times:
        return
    everything = together("all layers", times)
    yield BLANK_LINE
    yield _kinds(times, everything, whole_ms)
    if not everything.compared:
        how = f"`{_measuring(trace, named, runtime)}` measures them"
        yield Sentence(f"no brick is stored under the same conditions: {how}")
    else:
        lacking = everything.layers - everything.compared
        left_out = f"; {counted(lacking, 'layer')} without a stored brick left out" if lacking else ""
        told = "IN MODEL includes what the profiler adds to each layer; BRICKS are their stored latencies"
        yield Sentence(f"{told}{left_out}")
    yield BLANK_LINE
    yield _slowest(times[:_MOST_LAYERS], whole_ms)
    if len(times) > _MOST_LAYERS:
        yield Sentence(f"and {counted(len(times) - _MOST_LAYERS, 'faster layer')}, which --json lists")


def _measuring(trace: Trace, named: str, runtime: str) -> str:
    """Return the command that measures the bricks of a model in the execution of its trace."""
    # Loaded here: a trace whose bricks are stored needs no command.
    from dlbricks_tui.bricks.decomposition import Cutting

    batch = {"batch": trace.batch_size if trace.batch_size > 1 else None}
    variant = AskedVariant(**stated_variant(trace.runtime).parts | batch)
    words = options_of(runtime or trace.runtime.partition("-")[0], variant, trace.graph_level, Cutting())
    return shell_words(["dlbricks", "run", named or trace.model, *words])


_LEVEL_COLUMNS: tuple[Column[LevelTrace], ...] = (
    name_column("level", lambda it: it.level.value),
    Column("inference", lambda it: or_dash(in_ms, inference_of(it))),
    Column("overhead", lambda it: overhead_of(it) or "-"),
    Column("spans", lambda it: f"{sum(len(track.spans) for track in it.tracks):,}"),
)


def _remarks(level: LevelTrace) -> Iterator[str]:
    """Yield what to know about a level."""
    totals = []
    for name, value in level.totals:
        if name == PLAIN_MS and isinstance(value, float):
            totals.append(f"{in_ms(value)} per inference without the profiler")
        elif type(value) is int:
            totals.append(f"{name} {value:,}")
        else:
            totals.append(f"{name} {milliseconds(value, precise=True) if isinstance(value, float) else value}")
    yield from [", ".join(totals)] if totals else []
    yield from level.notes


def missing_words(missing: MissingLevel) -> str:
    """Return why a level is missing."""
    return f"{missing.level.value} level: not traced: {missing.reason}"


def _kinds(times: Sequence[LayerTime], everything: KindTime, whole_ms: float | None) -> Table[KindTime]:
    """Return where the time of an inference goes: the layers of each kind, all of them, and the rest."""
    rest_ms = 0.0 if whole_ms is None else whole_ms - everything.in_model_ms
    rest = [KindTime("outside of layers", 0, rest_ms, 0, 0.0, 0.0)] if rest_ms > 0 else []
    columns: tuple[Column[KindTime], ...] = (
        name_column("kind of layer", lambda it: it.kind),
        Column("layers", lambda it: f"{it.layers:,}" if it.layers else "-"),
        Column("in model", lambda it: in_ms(it.in_model_ms)),
        Column("share", lambda it: _share(it.in_model_ms, whole_ms)),
        Column("bricks", lambda it: in_ms(it.brick_ms) if it.compared else "-"),
        Column("difference", lambda it: _difference(it.compared_in_model_ms, it.brick_ms if it.compared else None)),
    )
    return Table(columns, [*by_kind(times), everything, *rest])


def _slowest(times: Sequence[LayerTime], whole_ms: float | None) -> Table[LayerTime]:
    columns: tuple[Column[LayerTime], ...] = (
        name_column("slowest layers", lambda it: it.layer.name),
        name_column("kind", lambda it: it.layer.kind),
        Column("in model", lambda it: in_ms(it.in_model_ms)),
        Column("share", lambda it: _share(it.in_model_ms, whole_ms)),
        Column("brick", lambda it: or_dash(in_ms, it.layer.brick_ms)),
        Column("difference", lambda it: _difference(it.in_model_ms, it.layer.brick_ms)),
    )
    return Table(columns, times)


def _share(some_ms: float, whole_ms: float | None) -> str:
    return percent(some_ms / whole_ms, 1) if whole_ms else "-"


def _difference(in_model_ms: float, brick_ms: float | None) -> str:
    return signed_percent(in_model_ms / brick_ms - 1) if brick_ms else "-"


def inference_of(level: LevelTrace) -> float | None:
    """Return the median inference of a level in milliseconds."""
    return median(level.inference_ms) if level.inference_ms else None


def overhead_of(level: LevelTrace) -> str:
    """Return what a level adds to the one below: `+0.2000 ms (+6.2 %)`; nothing for the lowest level."""
    whole_ms = inference_of(level)
    if level.overhead_ms is None or whole_ms is None:
        return ""
    below_ms = whole_ms - level.overhead_ms
    share = f" ({signed_percent(level.overhead_ms / below_ms)})" if below_ms > 0 else ""
    return f"{signed_ms(level.overhead_ms)}{share}"


def level_answer(level: LevelTrace, slowest: LayerTime | None = None) -> str:
    """Return what a level says, with the slowest layer of the trace at the layer level.

    `3.410 ms per inference, +0.2000 ms (+6.2 %) added by the profiler; slowest layer conv0, 12.0 %`
    """
    whole_ms, overhead = inference_of(level), overhead_of(level)
    if whole_ms is None:
        return "no inference was timed"
    adds = f"{overhead} added" if (level.overhead_ms or 0.0) > 0 else "no time added"
    told = f"{in_ms(whole_ms)} per inference" + (f", {adds} {_INSTRUMENTS[level.level]}" if overhead else "")
    if slowest is None or level.level is not TraceLevel.LAYER or whole_ms <= 0:
        return told
    return f"{told}; slowest layer {slowest.layer.name}, {percent(slowest.in_model_ms / whole_ms, 1)}"


def level_parts(level: LevelTrace, missing: Sequence[MissingLevel]) -> Iterator[Part]:
    """Yield what a level takes and adds, what to know about it, and the levels that are missing."""
    yield Sentence(f"{level.level.value} level", "strong")
    whole_ms, overhead = inference_of(level), overhead_of(level)
    if whole_ms is not None:
        yield Fact("inference", in_ms(whole_ms), f" (median of {len(level.inference_ms):,})")
        least, most = min(level.inference_ms), max(level.inference_ms)
        spread = f", {percent((most - least) / whole_ms, 1)} of it" if whole_ms > 0 else ""
        yield Fact("range", f"{in_ms(least)} to {in_ms(most)}", spread)
    adds = f"{overhead} {_INSTRUMENTS[level.level]}" if overhead else "nothing is below it to compare with"
    yield Fact("adds", adds)
    for told in (*_remarks(level), *map(missing_words, missing)):
        yield MarkedSentence("!", "warn", told)


def span_parts(
    span: TraceSpan, kind: TrackKind, level: LevelTrace, layer: TracedLayer | None, time: LayerTime | None
) -> Iterator[Part]:
    """Yield everything that is known of a span in a track of this kind, and of its layer."""
    yield Sentence(span.name, "strong")
    yield Sentence(f"{_KINDS[kind]}, {level.level.value} level", "muted")
    whole, share = _inference_of(span, level), share_of_inference(span, level)
    of_it = f", {share} of its inference" if share and kind is not TrackKind.INFERENCES else ""
    yield Fact("took", span_time(span.duration_ns), of_it)
    if whole is None:
        yield Fact("began", f"{span_time(span.start_ns)} after the start of the first inference")
    else:
        number = (span.inference or 0) + 1
        yield Fact("began", f"{span_time(span.start_ns - whole.start_ns)} after the start of inference {number:,}")
    if layer is not None:
        yield Fact("layer", layer.name, f", {layer.kind}")
        if time is not None:
            yield Fact("in model", in_ms(time.in_model_ms), " (median at the layer level)")
        if layer.brick_ms is None:
            yield Fact("brick time", "not measured in this way")
        else:
            yield Fact("brick time", in_ms(layer.brick_ms), " (stored)")
        if difference := None if time is None else beside_brick(time):
            yield Fact("difference", difference)
        yield Fact("brick", layer.brick[:_KEY_DIGITS])
        yield Fact("context", layer.context)
    if span.details:
        yield BLANK_LINE
    words: Mapping[object, str] = {None: "unknown", True: "yes", False: "no"}
    for name, value in span.details:
        yield Fact(name.replace("_", " "), words[value] if value is None or isinstance(value, bool) else str(value))


def counter_parts(counter: Counter, number: int | None) -> Iterator[Part]:
    """Yield a reading of a counter by its number, and the range of all."""
    unit = f" {counter.unit}" if counter.unit else ""
    yield Sentence(counter.name, "strong")
    if number is None:
        yield Sentence("It was never read.", "muted")
        return
    value = counter.values[number]
    yield Fact("reading", f"{number + 1:,} of {len(counter.values):,}")
    yield Fact("value", f"{value:,g}{unit}")
    if number:
        yield Fact("since last", f"{value - counter.values[number - 1]:+,g}{unit}")
    yield Fact("read", f"{span_time(counter.times_ns[number])} after the start of the first inference")
    yield Fact("range", f"{min(counter.values):,g} to {max(counter.values):,g}{unit}")


def span_words(span: TraceSpan, level: LevelTrace, time: LayerTime | None) -> str:
    """Return a span in one line: `945.0 µs, 14.8 % of the inference, brick 0.8100 ms (+16.7 %)`."""
    words = [span_time(span.duration_ns)]
    if share := share_of_inference(span, level):
        words.append(f"{share} of the inference")
    if time is not None and time.layer.brick_ms is not None:
        difference = _difference(time.in_model_ms, time.layer.brick_ms)
        words.append(f"brick {in_ms(time.layer.brick_ms)} ({difference})")
    return ", ".join(words)


def beside_brick(time: LayerTime) -> str:
    """Return the difference of a layer in the model to its brick: `+0.01200 ms, +3.0 %`; nothing without one."""
    if time.difference_ms is None:
        return ""
    share = f", {_difference(time.in_model_ms, time.layer.brick_ms)}" if time.layer.brick_ms else ""
    return f"{signed_ms(time.difference_ms)}{share}"


def share_of_inference(span: TraceSpan, level: LevelTrace) -> str:
    """Return the share of a span in its own inference: `12.0 %`; nothing if it belongs to none."""
    whole = _inference_of(span, level)
    return percent(span.duration_ns / whole.duration_ns, 1) if whole is not None and whole.duration_ns else ""


def _inference_of(span: TraceSpan, level: LevelTrace) -> TraceSpan | None:
    """Return the inference that a span belongs to."""
    if span.inference is None:
        return None
    whole = (it.spans for it in level.tracks if it.kind is TrackKind.INFERENCES)
    return next((it for spans in whole for it in spans if it.inference == span.inference), None)
