"""The panels of one result and of its history."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.documents.lines import (
    BLANK,
    Line,
    Span,
    bar,
    column,
    fact,
    fact_lines,
    line,
    number_column,
    titles,
)
from dlbricks_tui.documents.samples import sample_lines
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.results import actions
from dlbricks_tui.tui.results.columns import NO_RESULT, cell
from dlbricks_tui.tui.widgets.panel import ItemPanel, Panel
from dlbricks_tui.tui.widgets.rows import DrawnRows, LineRows
from dlbricks_tui.wording.numbers import counted, in_ms, milliseconds, percent, signed_percent

if TYPE_CHECKING:
    from collections.abc import Iterator, Sequence

    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.records import Facts, Provenance, Result
    from dlbricks_tui.tui.results.work import ResultRead

_KEY_DIGITS = 12


def _latency(summary: Summary) -> Iterator[Line]:
    half = (summary.high_ms - summary.low_ms) / 2
    share = f", ± {percent(half / summary.trimmed_mean_ms, 1)}" if summary.trimmed_mean_ms > 0 else ""
    yield fact("takes", Span(milliseconds(summary.trimmed_mean_ms), "strong"), Span(f" ms{share}", "muted"))
    yield fact("interval", f"{milliseconds(summary.low_ms)} to {milliseconds(summary.high_ms)} ms")


def _way(summary: Summary) -> Iterator[Line]:
    if summary.brick:
        yield fact("brick", summary.brick[:_KEY_DIGITS], Span(f" {summary.kind}", "muted"))
        yield fact("context", summary.context or Span("any", "muted"))
    else:
        yield fact("model", summary.model[:_KEY_DIGITS], Span(" end to end", "muted"))
    yield fact("system", summary.system)
    yield fact("runtime", summary.runtime)
    yield fact("level", summary.level.value, Span(f", protocol {summary.protocol}", "muted"))
    kernel = f", kernel {summary.kernel_variant}" if summary.kernel_variant else ""
    yield fact("variant", summary.variant.in_words, Span(f", {summary.dtype}{kernel}", "muted"))
    yield fact("run", summary.run)
    yield fact("id", summary.id[:_KEY_DIGITS])


def _samples_and_facts(result: Result, layers: Sequence[tuple[str, float]], width: int) -> Iterator[Line]:
    for flag in result.flags:
        yield fact("doubtful", Span(flag, "warn"))
    yield BLANK
    yield from sample_lines(result, width)
    yield from _facts("Conditions on the host", result.noise)
    if layers:
        yield from _facts(f"Mean of {len(layers)} layers", tuple((name, in_ms(found)) for name, found in layers))
    else:
        yield from _facts("Occurrence", getattr(result, "occurrence", ()))


def _origin(found: Provenance | None, model: str) -> Iterator[Line]:
    if found is None:
        return
    yield from _facts("Versions", found.packages)
    yield from _facts("Host", found.host)
    digest = dict(found.models).get(model)
    yield from _facts("Model file", (("SHA-256", digest),) if digest is not None else ())
    asked = (("evaluation", found.evaluation),) if found.evaluation else ()
    yield from _facts("Evaluation", (*asked, *(("not met", it) for it in found.unmet)))


def _facts(title: str, facts: Facts) -> Iterator[Line]:
    if facts:
        yield BLANK
        yield line(Span(title, "heading"))
        yield from fact_lines(facts)


def _lost() -> Iterator[Line]:
    yield BLANK
    yield line(Span("Its samples can no longer be read; `dlbricks results verify` reports the damage.", "bad"))


class RecordPanel(Panel):
    """The selected result."""

    scope = actions.RESULT
    TITLE = "Result"
    REACHED_BY = "results.go_to_result"
    ABOUT = (
        "One result: its brick or model, how it was measured, the distribution of its samples, and the conditions on "
        "the host."
    )

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="result")
        self._shown: ResultRead | None = None
        self._list.show_placeholder(line(Span("Select a result to read about it.", "muted")))

    @property
    def summary(self) -> Summary | None:
        """The summary of the result in view."""
        return self._shown.summary if self._shown else None

    def show(self, read: ResultRead | None) -> None:
        before, self._shown = self.summary, read
        if before is None or self.summary is None or before.id != self.summary.id:
            self._list.move_to(0)
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(self.summary.key if self.summary else None, NO_RESULT)

    def _lines(self, width: int) -> Iterator[Line]:
        if self._shown is None:
            return
        summary = self._shown.summary
        yield line(Span(summary.name or summary.brick or summary.model, "strong"))
        yield from _latency(summary)
        yield from _way(summary)
        read, layers = self._shown.result, self._shown.layers
        yield from _samples_and_facts(read, layers, width) if read else _lost()
        yield from _origin(self._shown.provenance, summary.model)


_WHEN, _MS, _CHANGE = 16, 10, 11
_NARROWEST_BAR = 4


def result_row(summary: Summary) -> ComparableRow:
    """Return a result as a row to compare."""
    name = summary.name or summary.brick[:_KEY_DIGITS] or summary.model[:_KEY_DIGITS]
    return ComparableRow(Kind.RESULT, summary.id, f"{name}, {cell('when', summary.when)}", summary.id)


class HistoryPanel(ItemPanel["Summary"]):
    """The results of all runs for one brick or model in one way, the newest first."""

    scope = actions.HISTORY
    TITLE = "History"
    REACHED_BY = "results.go_to_history"
    ABOUT = (
        "The results of all runs for the brick in its context, or for the model, on the same system by the same "
        "runtime, the newest first: time, milliseconds, and the change since the previous run. A change in brackets "
        "may be due to sampling, because the intervals overlap."
    )

    @dataclass
    class Opened(Message):
        """The user wants to read about another measurement."""

        summary: Summary

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="history")
        self.rows.stands_for = lambda index: result_row(self.items[index]) if index < len(self.items) else None
        self.show_placeholder(line(Span("Select a result to see its history.", "muted")))

    def copied_heading(self, width: int) -> Line:
        return (Span(" "), column("when, UTC", _WHEN), *titles(("ms", _MS), ("change", _CHANGE)))

    def show(self, history: tuple[Summary, ...]) -> None:
        """Show measurements that are given oldest first."""
        before = [it.id for it in self.items]
        self.show_items(history[::-1])
        if [it.id for it in self.items] != before:
            self.rows.cursor = 0

    def show_counts(self) -> None:
        self.show_title(f" {counted(len(self.items), 'run')}, in ms" if self.items else "")

    def action_open(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened(self.selected))

    def action_copy(self) -> None:
        self.copy(self.selected.id if self.selected else None, NO_RESULT)

    def _row(self, index: int, width: int) -> Line:
        summary = self.items[index]
        older = self.items[index + 1] if index + 1 < len(self.items) else None
        longest_ms = max(it.trimmed_mean_ms for it in self.items)
        room = width - _WHEN - _MS - _CHANGE - 1
        roomy = room >= _NARROWEST_BAR and longest_ms > 0
        return (
            column(cell("when", summary.when), _WHEN, "muted" if summary.good else "warn"),
            number_column(milliseconds(summary.trimmed_mean_ms), _MS, "strong"),
            _change(summary, older),
            Span(" "),
            *(bar(summary.trimmed_mean_ms / longest_ms, room) if roomy else ()),
        )


def _change(summary: Summary, older: Summary | None) -> Span:
    if older is None or not older.trimmed_mean_ms:
        return Span(" " * _CHANGE)
    change = summary.trimmed_mean_ms / older.trimmed_mean_ms - 1.0
    if summary.low_ms <= older.high_ms and older.low_ms <= summary.high_ms:
        return number_column(f"({signed_percent(change)})", _CHANGE, "muted")
    return number_column(signed_percent(change), _CHANGE, "bad" if change > 0 else "good")
