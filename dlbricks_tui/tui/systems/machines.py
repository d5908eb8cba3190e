"""The panel of the best machine for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.message import Message

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.documents.lines import Line, Span, bar, column, line, number_column, titles
from dlbricks_tui.estimate.comparison import Candidate, remarks_on
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.systems import actions
from dlbricks_tui.tui.widgets.panel import ItemPanel, Orders
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.wording.answers import combination_words, figure_number
from dlbricks_tui.wording.numbers import PARTLY, milliseconds

_MS, _COST, _REMARKS = 11, 11, 20
_LEAST_BAR, _WIDEST_BAR = 4, 16


class MachinesPanel(ItemPanel[Candidate]):
    """Latency and cost of the model on every system that has results of it."""

    scope = actions.MACHINES
    TITLE = "Which machine"
    REACHED_BY = "systems.go_to_machines"
    HEADED = True
    ABOUT = (
        "The answer of the open model on each system, with its combination, and the cost of a million inferences one"
        " after another on an otherwise idle machine. … before a latency: part of the model was not measured there;"
        " ~: a predicted range."
    )

    ORDERS: ClassVar[Orders] = {
        "latency": lambda it: (not it.complete, it.latency_ms),
        # Machines without a price come last.
        "cost": lambda it: (not it.complete, it.dollars_per_million is None, it.dollars_per_million or 0.0),
    }

    @dataclass
    class Taken(Message):
        """The user wants estimates from the results of this machine."""

        candidate: Candidate

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="machines")
        self.rows.stands_for = self._comparable
        self._model = ""

    def heading(self, width: int) -> Line:
        name, room = self._widths(width - 1)
        right = titles(("ms", _MS), ("", room + 1), ("$/million", _COST))
        return (Span(" "), column("system", name, "muted"), *right)

    def copied_heading(self, width: int) -> Line:
        return (*self.heading(width), Span("  remark"))

    def show_waiting(self, model: str) -> None:
        """Show that the machines are being ranked, or how to open a model if there is none."""
        self._model = model
        if model:
            self.show_placeholder(line(Span("Estimating.", "muted")))
        else:
            self.show_placeholder(
                line("Open a model on the workbench"),
                line(Span("to see its latency and cost on every system.", "muted")),
            )
        self.show_items(())

    def show(self, found: tuple[Candidate, ...]) -> None:
        self.show_placeholder(
            line(f"{self._model} was not measured on any system."),
            Hint("On the workbench, {workbench.start_run} runs its bricks here;", "muted"),
            Hint("{workbench.show_results} {results.import_file} imports results of other hosts.", "muted"),
        )
        self.show_items(found)

    def identity(self, item: Candidate) -> str:
        return item.estimate.way.system

    def show_counts(self) -> None:
        self.show_title(f" for {self._model}" if self._model else "")

    def action_take(self) -> None:
        if self.selected is not None:
            self.post_message(self.Taken(self.selected))

    def _comparable(self, index: int) -> ComparableRow | None:
        if index >= len(self.found):
            return None
        system = self.found[index].estimate.way.system
        return ComparableRow(Kind.SYSTEM, system, system, system)

    def _row(self, index: int, width: int) -> Line:
        it = self.found[index]
        longest_ms = max(each.latency_ms for each in self.found) or 1.0
        figure = figure_number(it.estimate) or f"{PARTLY}{milliseconds(it.latency_ms)}"
        said = ", ".join(filter(None, (remarks_on(self.items)[self.items.index(it)], combination_words(it.estimate))))
        cost = "-" if it.dollars_per_million is None else f"$ {it.dollars_per_million:.2f}"
        name, room = self._widths(width)
        return (
            column(it.estimate.way.system, name),
            number_column(figure, _MS, "strong" if it.complete else "warn"),
            Span(" "),
            *bar(it.latency_ms / longest_ms, room),
            number_column(cost, _COST),
            # A search hides systems, but the quickest one stays the same.
            Span(f"  {said}", "good" if it.complete else "muted"),
        )

    def _widths(self, width: int) -> tuple[int, int]:
        """Return the widths of the names and of the bars, which have what whole names leave."""
        left = max(12, width - _MS - _COST - _REMARKS - 3)
        longest = max((len(it.estimate.way.system) for it in self.found), default=0)
        drawn = max(_LEAST_BAR, min(_WIDEST_BAR, left // 3, left - longest - 1))
        return left - drawn, drawn
