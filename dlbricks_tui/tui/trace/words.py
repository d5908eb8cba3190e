"""The head of the trace screen in words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.trace import level_answer, span_words, trace_words
from dlbricks_tui.wording.ages import minute_of
from dlbricks_tui.wording.numbers import capitalised, in_ms
from dlbricks_tui.wording.tracing import signed_ms

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.traces.messages import LevelDone
    from dlbricks_tui.tui.trace.measuring import Tracing
    from dlbricks_tui.tui.trace.work import OpenTrace


def answer_lines(opened: OpenTrace | None, row: int) -> Iterator[Line]:
    """Yield what the level of a row says; nothing if no trace is open."""
    if opened is not None and row < len(opened.state.rows):
        level = opened.state.rows[row].level.content
        answer = capitalised(f"{level.level.value} level: {level_answer(level, opened.slowest)}")
        yield line(Span(f" {answer}", "strong"))


def selection_line(opened: OpenTrace | None, row: int) -> Line:
    """Return the selected span in one line; a narrow terminal has no room for its panel."""
    if opened is None or row >= len(opened.state.rows):
        return line(Span(" "))
    state = opened.state
    span, level = state.selected_span(row), state.rows[row].level.content
    if span is None:
        return line(Span(f" {trace_words(state.trace)}, {minute_of(state.trace.when)} UTC", "muted"))
    time = None if span.layer is None else opened.times.get(span.layer)
    return line(Span(f" {span.name}", "strong"), Span(f" {span_words(span, level, time)}", "muted"))


def progress_line(tracing: Tracing) -> Line:
    """Return how far a trace is: what ended levels have taken, and what runs now."""
    if tracing.cancelled:
        return line(Span(" cancelling", "warn"))
    if tracing.waits_for:
        return line(Span(f" waits for {tracing.waits_for}", "warn"))
    levels, ended = tracing.order.levels, tracing.ended_levels
    later = levels[len(ended) if tracing.level is None else levels.index(tracing.level) + 1 :]
    then = f"then {', '.join(it.value for it in later)}" if later else ""
    return line(Span(f" {', '.join(filter(None, [*map(_level_done, ended), _now(tracing), then]))}", "good"))


def _now(tracing: Tracing) -> str:
    if tracing.round is not None and tracing.round.rounds > 1:
        return f"round {tracing.round.number} of {tracing.round.rounds} at all levels"
    if tracing.level is None:
        return "" if tracing.ended_levels else "reading the model"
    if tracing.level in (it.level for it in tracing.ended_levels):
        return ""
    return f"{tracing.level.value} level {'starts' if tracing.round is None else 'is traced'}"


def _level_done(message: LevelDone) -> str:
    if message.inference_ms is None:
        return f"no {message.level.value}"
    added = "" if message.overhead_ms is None else f" ({signed_ms(message.overhead_ms)})"
    return f"{message.level.value} {in_ms(message.inference_ms)}{added}"
