"""The panels of all what-ifs, and of the selected one."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import BLANK, Line, Span, fact, line
from dlbricks_tui.documents.what_ifs import (
    NO_WHAT_IFS,
    change_facts,
    change_reasons,
    gain_with_interval,
    gains_picture,
    what_if_columns,
)
from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.widgets.panel import Orders, Panel, counts_text
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping, Sequence

    from dlbricks_tui.documents.parts import Column
    from dlbricks_tui.documents.what_ifs import Change
    from dlbricks_tui.tui.analysis.proving import Proving


class WhatIfsPanel(TablePanel["Change"]):
    """A row for each change, with its predicted and its measured gain."""

    scope = actions.WHAT_IFS
    TITLE = "What-ifs"
    REACHED_BY = "analysis.go_to_what_ifs"
    PICTURED = True
    SEARCH_HINT = "kind, name, setting or layer"
    ABOUT = (
        "Changes of the way in which the model is executed. The gain is the share of the latency that a change saves, "
        "with its 95 % interval; a negative one costs time. For batches it is that of one item. A bound is a change "
        "that no runtime makes. Proved is the gain that was measured when the change was carried out."
    )
    ORDERS: ClassVar[Orders] = {
        "by kind": lambda _: 0,
        "by gain": lambda it: -it.what_if.gain.value,
    }

    @dataclass
    class Selected(Message):
        """The cursor has settled on a what-if; None if there is none."""

        row: Change | None

    class Opened(Message):
        """The user wants to read about the selected what-if."""

    def __init__(self) -> None:
        super().__init__(id="what-ifs")
        self._proving: Proving | None = None

    def columns(self) -> tuple[Column[Change], ...]:
        proving = self._proving
        under_way = {} if proving is None else {proving.now: "waits" if proving.waits_for else "running"}
        return what_if_columns(self.items, under_way)

    def show(self, rows: Sequence[Change]) -> None:
        self.show_placeholder(
            line(NO_WHAT_IFS),
            Hint("{analysis.measure} measures others: threads, kernels, runtimes, batch sizes.", "muted"),
        )
        self.show_items(rows)
        self.show_picture(gains_picture(rows))
        self.cursor_settled()

    def show_proving(self, proving: Proving | None) -> None:
        """Show how far the proofs are."""
        self._proving = proving
        self.columns_changed()

    def identity(self, item: Change) -> str:
        return item.what_if.id

    def searched(self, item: Change) -> str:
        found = item.what_if
        return f"{found.kind.value} {found.id} {found.how} {' '.join(found.layers)}"

    def show_counts(self) -> None:
        order = f", {self.order}" if len(self.items) > 1 else ""
        self.show_title(f" {counts_text(len(self.found), len(self.items))}{order}")

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Selected(self.selected))

    def action_show(self) -> None:
        if self.selected is not None:
            self.post_message(self.Opened())

    def action_copy(self) -> None:
        self.copy(None if self.selected is None else self.selected.what_if.how, "There is no what-if to copy.")


class ChangePanel(Panel):
    """The selected what-if: how to make the change, the layers responsible, and how far to trust the prediction."""

    scope = actions.CHANGE
    TITLE = "The change"
    REACHED_BY = "analysis.go_to_change"
    ABOUT = "The selected what-if. {change.copy} copies the command or setting that makes the change."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="change")
        self._row: Change | None = None
        self._proving: Proving | None = None
        # The reason why the last proof of a what-if failed, by its id.
        self._failures: Mapping[str, str] = {}
        self.show_placeholder(line(Span("Select a what-if to read how it is done.", "muted")))

    def show(self, row: Change | None) -> None:
        """Show a what-if; the cursor stays if it is the same one."""
        if row != self._row:
            if row is None or self._row is None or row.what_if.id != self._row.what_if.id:
                self._list.move_to(0)
            self._row = row
            self.show_title(f": {row.what_if.id}" if row else "")
            self._list.remake()

    def show_proving(self, proving: Proving | None, failures: Mapping[str, str]) -> None:
        """Show how far the proof of the selected what-if is, or why it failed."""
        self._proving, self._failures = proving, failures
        self._list.remake()

    def action_copy(self) -> None:
        self.copy(None if self._row is None else self._row.what_if.how, "Select a what-if first.")

    def _lines(self, width: int) -> Iterator[Line]:
        if self._row is not None:
            proving = self._proving if self._proving and self._proving.now == self._row.what_if.id else None
            failure = self._failures.get(self._row.what_if.id, "")
            yield from laid_out(change_facts(self._row), width)
            if self._row.proof is None and not self._row.is_bound and proving is None and not failure:
                yield fact("proved", Span("not yet: ", "muted"), *Hint("{analysis.prove} carries it out", "muted").line)
            if failure:
                yield fact("failed", Span(failure, "bad"))
            if proving is not None:
                yield from _progress(proving)
            yield BLANK
            yield from laid_out(change_reasons(self._row), width)


def _progress(proving: Proving) -> Iterator[Line]:
    place = f" {proving.place}" if proving.place else ""
    if proving.waits_for:
        told = Span(f"waits for {proving.waits_for}", "warn")
    elif proving.rounds is None:
        told = Span("loading the model twice, before and after the change", "warn")
    else:
        done = proving.rounds
        left = "" if done.seconds_left is None else f", about {duration(done.seconds_left)} left"
        told = Span(f"{counted(done.rounds, 'round')}, {gain_with_interval(done.gain)} so far{left}", "warn")
    yield fact("proving", told, Span(place, "muted"))
    yield Hint("           {analysis.leave} cancels it", "muted").line
