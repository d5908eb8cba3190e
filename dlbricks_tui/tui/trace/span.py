"""The panel of the selected span, counter or level."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import BLANK, Line, Span, fact, fact_lines, line
from dlbricks_tui.traces.trace import TrackKind
from dlbricks_tui.tui.trace import actions
from dlbricks_tui.tui.trace.timeline import NO_LAYER
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.wording.numbers import in_ms, percent
from dlbricks_tui.wording.timeline import span_time
from dlbricks_tui.wording.trace_levels import beside_brick, inference_of, overhead_of, share_of_inference

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dlbricks_tui.traces.layer_times import LayerTime
    from dlbricks_tui.traces.trace import Counter, LevelTrace, TracedLayer
    from dlbricks_tui.traces.trace import Span as TracedSpan
    from dlbricks_tui.tui.trace.rows import Row, TimelineState
    from dlbricks_tui.tui.trace.work import OpenTrace

_KEY_DIGITS = 12
_NOTHING = (line(Span("Select a span in the timeline", "muted")), line(Span("to see its details here.", "muted")))
_KINDS = {
    TrackKind.INFERENCES: "an inference",
    TrackKind.LAYERS: "a layer",
    TrackKind.ADDED: "an operator that the runtime added",
    TrackKind.PRIMITIVES: "a primitive of oneDNN",
    TrackKind.THREAD: "of a thread",
}


class SpanPanel(Panel):
    """Everything that is known of the selected span, or of the selected level."""

    scope = actions.SPAN
    TITLE = "Span"
    REACHED_BY = "trace.go_to_span"
    ABOUT = (
        "The selected span: its time and its share of the inference. A layer also has the median of its times in the "
        "model, at the layer level, and the stored time of its brick alone. On the row of a level: what the level adds "
        "to the one below, and what to know about it. {span.copy} copies the key of the brick."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="span")
        self._opened: OpenTrace | None = None
        self._row = 0
        self._list.show_placeholder(*_NOTHING)

    def show(self, opened: OpenTrace | None, row: int) -> None:
        self._opened, self._row = opened, row
        self._list.cursor = 0
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(None if self._opened is None else self._opened.state.brick_key(self._row), NO_LAYER)

    def _lines(self, width: int) -> Iterator[Line]:
        if self._opened is None or self._row >= len(self._opened.state.rows):
            yield from _NOTHING
            return
        state = self._opened.state
        row, number = state.rows[self._row], state.selected(self._row)
        span = state.selected_span(self._row)
        if span is not None:
            yield from _span_lines(span, row, state.layers, self._opened.times)
        elif row.track is not None and row.track.counter is not None:
            yield from _counter_lines(row.track.counter, number)
        else:
            yield from level_lines(state, row.level.content)


def _span_lines(
    span: TracedSpan, row: Row, layers: Mapping[int, TracedLayer], times: Mapping[int, LayerTime]
) -> Iterator[Line]:
    level = row.level.content
    yield line(Span(span.name, "strong"))
    if row.track is not None and row.track.kind is not None:
        yield line(Span(f"{_KINDS[row.track.kind]}, {level.level.value} level", "muted"))
    share = share_of_inference(span, level)
    of_it = f", {share} of its inference" if share and row.track and row.track.kind is not TrackKind.INFERENCES else ""
    yield fact("took", span_time(span.duration_ns), Span(of_it, "muted"))
    if span.inference is not None:
        began = span.start_ns - row.level.start_of(span.inference)
        yield fact("began", f"{span_time(began)} after the start of inference {span.inference + 1:,}")
    else:
        yield fact("began", f"{span_time(span.start_ns)} after the start of the first inference")
    layer = None if span.layer is None else layers.get(span.layer)
    if layer is not None:
        yield from _layer_lines(layer, times.get(layer.index), level)
    if span.details:
        yield BLANK
        yield from fact_lines(span.details)


def _layer_lines(layer: TracedLayer, time: LayerTime | None, level: LevelTrace) -> Iterator[Line]:
    yield fact("layer", f"{layer.name}", Span(f", {layer.kind}", "muted"))
    if time is not None:
        yield fact("in model", in_ms(time.in_model_ms), Span(" (median at the layer level)", "muted"))
    alone = "not measured in this way" if layer.brick_ms is None else in_ms(layer.brick_ms)
    yield fact("brick time", alone, Span(" (stored, alone)" if layer.brick_ms is not None else "", "muted"))
    if time is not None and layer.brick_ms is not None:
        yield fact("difference", beside_brick(layer, time.in_model_ms))
    yield fact("brick", layer.brick[:_KEY_DIGITS])
    yield fact("context", layer.context)


def _counter_lines(counter: Counter, number: int | None) -> Iterator[Line]:
    unit = f" {counter.unit}" if counter.unit else ""
    yield line(Span(counter.name, "strong"))
    if number is None:
        yield line(Span("It was never read.", "muted"))
        return
    yield fact("reading", f"{number + 1:,} of {len(counter.values):,}")
    yield fact("value", f"{counter.values[number]:,g}{unit}")
    if number:
        yield fact("since last", f"{counter.values[number] - counter.values[number - 1]:+,g}{unit}")
    yield fact("read", f"{span_time(counter.times_ns[number])} after the start of the first inference")
    yield fact("range", f"{min(counter.values):,g} to {max(counter.values):,g}{unit}")


def level_lines(state: TimelineState, level: LevelTrace) -> Iterator[Line]:
    """Yield what a level takes and adds, what to know about it, and the levels that are missing."""
    yield line(Span(f"{level.level.value} level", "strong"))
    whole_ms = inference_of(level)
    if whole_ms is not None:
        inferences = f" (median of {len(level.inference_ms):,})"
        yield fact("inference", in_ms(whole_ms), Span(inferences, "muted"))
        least, most = min(level.inference_ms), max(level.inference_ms)
        spread = f", {percent((most - least) / whole_ms, 1)} of it" if whole_ms > 0 else ""
        yield fact("range", f"{in_ms(least)} to {in_ms(most)}", Span(spread, "muted"))
    overhead = overhead_of(level)
    yield fact("adds", overhead or "nothing is below it to compare with")
    if level.totals:
        yield from fact_lines(level.totals)
    for note in level.notes:
        yield line(Span("! ", "warn"), Span(note))
    for missing in state.trace.missing:
        yield line(Span("! ", "warn"), Span(f"no {missing.level.value} level: {missing.reason}"))
