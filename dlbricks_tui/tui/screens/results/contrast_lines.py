"""Two selections beside each other, as lines."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.store.contrast import Contrast, Paired, Verdict
from dlbricks_tui.tui.lines import Line, Span, column, figure, line
from dlbricks_tui.wording.numbers import counted, milliseconds, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterator

_MS, _CHANGE, _P, _VERDICT = 10, 10, 8, 17
_SIGNS = {Verdict.SLOWER: "+", Verdict.FASTER: "-", Verdict.ALIKE: "=", Verdict.TOO_FEW: "?"}
_STYLES = {Verdict.SLOWER: "bad", Verdict.FASTER: "good", Verdict.ALIKE: "muted", Verdict.TOO_FEW: "warn"}
_LEAST_P = 0.001


def heading(width: int) -> Line:
    """What the columns are called."""
    name = _name_width(width)
    texts = (("A ms", _MS), ("B ms", _MS), ("change", _CHANGE), ("p", _P))
    right = [column(text, wide, "muted", right=True) for text, wide in texts]
    return (column("brick or model", name, "muted"), *right, Span("  B is", "muted"))


def row(pair: Paired, width: int) -> Line:
    """One thing that both have."""
    verdict = pair.verdict
    style = _STYLES[verdict]
    return (
        column(pair.name, _name_width(width)),
        figure(milliseconds(pair.first.trimmed_mean_ms), _MS),
        figure(milliseconds(pair.second.trimmed_mean_ms), _MS),
        figure(signed_percent(pair.ratio - 1.0), _CHANGE, style),
        figure(_p_text(pair.p_value), _P, "muted"),
        Span(f"  {_SIGNS[verdict]} {verdict.value}", style),
    )


def head_lines(found: Contrast | None, first: str, second: str, count_first: int, count_second: int) -> Iterator[Line]:
    """What was compared, and what comes out on the whole."""
    for letter, text, count in (("A", first, count_first), ("B", second, count_second)):
        yield line(Span(f" {letter} ", "accent"), text, Span(f"  {counted(count, 'result')}", "muted"))
    if found is None:
        yield line(Span("   Comparing.", "muted"))
        return
    if found.ratio is None:
        yield line(Span("   They have no brick in its context and no model in common.", "warn"))
        return
    first_ms, second_ms = found.total_ms
    yield line(
        Span("   B takes ", "muted"),
        Span(f"{found.ratio:.3f}", "strong"),
        Span(f" times as long (95 % {found.low:.3f} to {found.high:.3f}, geometric mean of ", "muted"),
        Span(f"{len(found.pairs):,}", "strong"),
        Span(f"); together {milliseconds(first_ms)} and {milliseconds(second_ms)} ms", "muted"),
    )
    told = [
        Span(f"{found.count(verdict):,} {verdict.value}", _STYLES[verdict])
        for verdict in Verdict
        if found.count(verdict)
    ]
    alone = f"; only in A {found.only_first:,}, only in B {found.only_second:,}"
    spans = [part for each in told for part in (each, Span(", ", "muted"))][:-1]
    yield line(Span("   "), *spans, Span(alone, "muted"))


def _name_width(width: int) -> int:
    return max(8, width - 2 * _MS - _CHANGE - _P - _VERDICT - 2)


def _p_text(p_value: float | None) -> str:
    if p_value is None:
        return "-"
    return f"<{_LEAST_P:g}" if p_value < _LEAST_P else f"{p_value:.3f}"
