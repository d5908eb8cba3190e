"""A result as lines to read: what it is of, how it was measured, its samples, and what speaks against it."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.lines import BLANK, Line, Span, line, wrapped
from dlbricks_tui.tui.samples import fact_lines, said, sample_lines
from dlbricks_tui.wording.numbers import milliseconds, percent

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.records import Facts, Result

_KEY_DIGITS = 12


def record_lines(summary: Summary, result: Result | None, width: int) -> tuple[Line, ...]:
    """Everything about a result, what matters most first."""
    lines = [
        line(Span(summary.name or summary.brick or summary.model, "strong")),
        *_latency(summary),
        *_way(summary),
        *(_rest(result, width) if result else _lost()),
    ]
    return tuple(each for long in lines for each in (wrapped(long, width) if long else [BLANK]))


def _latency(summary: Summary) -> Iterator[Line]:
    half = (summary.high_ms - summary.low_ms) / 2
    share = f", ± {percent(half / summary.trimmed_mean_ms, 1)}" if summary.trimmed_mean_ms > 0 else ""
    yield said("takes", Span(milliseconds(summary.trimmed_mean_ms), "strong"), Span(f" ms{share}", "muted"))
    yield said("interval", f"{milliseconds(summary.low_ms)} to {milliseconds(summary.high_ms)} ms")


def _way(summary: Summary) -> Iterator[Line]:
    if summary.brick:
        yield said("brick", summary.brick[:_KEY_DIGITS], Span(f" {summary.kind}", "muted"))
        yield said("context", summary.context or Span("any", "muted"))
    else:
        yield said("model", summary.model[:_KEY_DIGITS], Span(" end to end", "muted"))
    yield said("system", summary.system)
    yield said("runtime", summary.runtime)
    yield said("level", summary.level.value, Span(f", protocol {summary.protocol}", "muted"))
    kernel = f", kernel {summary.kernel_variant}" if summary.kernel_variant else ""
    yield said("batch", f"{summary.batch_size}", Span(f", {summary.dtype}{kernel}", "muted"))
    yield said("run", summary.run)
    yield said("id", summary.id[:_KEY_DIGITS])


def _rest(result: Result, width: int) -> Iterator[Line]:
    for flag in result.flags:
        yield said("doubtful", Span(flag, "warn"))
    yield BLANK
    yield from sample_lines(result, width)
    yield from _facts("While it was measured", result.noise)
    yield from _facts("Which of them", getattr(result, "occurrence", ()))


def _facts(title: str, facts: Facts) -> Iterator[Line]:
    if facts:
        yield BLANK
        yield line(Span(title, "heading"))
        yield from fact_lines(facts)


def _lost() -> Iterator[Line]:
    yield BLANK
    yield line(Span("Its samples can no longer be read; `dlbricks results verify` says what is damaged.", "bad"))
