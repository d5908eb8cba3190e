"""Which machine for this model, and what it costs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, bar, column, figure, line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.wording.numbers import PARTLY, milliseconds

if TYPE_CHECKING:
    from dlbricks_tui.estimate.comparison import Candidate

_MS, _COST, _REMARKS = 11, 11, 20
_WIDEST_BAR = 16


class MachineRows(RowsView):
    """The machines, the best first."""

    def __init__(self) -> None:
        super().__init__()
        self.found: tuple[Candidate, ...] = ()
        self.remarks: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        return len(self.found)

    @property
    def under_cursor(self) -> Candidate | None:
        """The machine that the cursor is on."""
        return self.found[self.cursor] if self.cursor < len(self.found) else None

    def row(self, index: int, width: int) -> Line:
        it = self.found[index]
        longest_ms = max(each.latency_ms for each in self.found) or 1.0
        sign = "" if it.complete else PARTLY
        cost = "-" if it.dollars_per_million is None else f"$ {it.dollars_per_million:.2f}"
        name, room = _widths(width)
        return (
            column(it.estimate.way.system, name),
            figure(f"{sign}{milliseconds(it.latency_ms)}", _MS, "strong" if it.complete else "warn"),
            Span(" "),
            *bar(it.latency_ms / longest_ms, room),
            figure(cost, _COST),
            Span(f"  {self.remarks[index]}", "good" if it.complete else "muted"),
        )


class MachinesPanel(Panel):
    """The model of the workbench on every system that has results of it."""

    scope = Scope.MACHINES
    BINDINGS = bindings(Scope.MACHINES)
    TITLE = "Which machine"
    REACHED_BY = "systems.go_to_machines"
    HEADED = True
    ABOUT = (
        "The estimate of the open model on each system, by the runtime that covers most of it there, and what a "
        "million inferences cost, one after another, on a machine that does nothing else. > before a latency: a part "
        "of the model was not measured there, and such a machine is never called the best."
    )

    class Taken(Message):
        """The person wants estimates by the results of this machine."""

        def __init__(self, candidate: Candidate) -> None:
            super().__init__()
            self.candidate = candidate

    def __init__(self) -> None:
        self._list = MachineRows()
        super().__init__(self._list, id="machines")
        self._by_cost = False
        self._model = ""

    @property
    def found(self) -> tuple[Candidate, ...]:
        """The machines, as they are listed."""
        return self._list.found

    def heading(self, width: int) -> Line:
        name, room = _widths(width - 1)
        titles = (("ms", _MS), ("", room + 1), ("a million", _COST))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        return (Span(" "), column("system", name, "muted"), *right)

    def show_waiting(self, model: str) -> None:
        """Says that the machines for a model are being found, or, for none, how to choose one."""
        self._model = model
        self._list.found, self._list.remarks = (), ()
        self.show_title(f" for {model}" if model else "")
        if model:
            self._list.say(line(Span("Estimating.", "muted")))
        else:
            self._list.say(
                line("Open a model on the workbench first:"),
                line(Span("then its latency and cost on every system stand here.", "muted")),
            )
        self._list.rows_changed()

    def show(self, found: tuple[Candidate, ...]) -> None:
        """Lists the machines."""
        from dlbricks_tui.estimate.comparison import cheapest, quickest

        best, thrifty = quickest(found), cheapest(found)
        if self._by_cost:
            # Where no price is known there is nothing to sort by.
            found = tuple(sorted(found, key=_cost))
        self._list.found = found
        self._list.remarks = tuple(
            ", ".join(["quickest"] * (it is best) + ["cheapest"] * (it is thrifty) + ["incomplete"] * (not it.complete))
            for it in found
        )
        self._list.say(
            line(f"Nothing of {self._model} was measured on any system."),
            Hint("On the workbench, {workbench.start_run} runs its bricks here;", "muted"),
            Hint("results of other hosts come in by {workbench.show_results} {results.import_file}.", "muted"),
        )
        self._list.rows_changed()

    def on_click(self) -> None:
        self.take_focus()

    def action_take(self) -> None:
        if self._list.under_cursor is not None:
            self.post_message(self.Taken(self._list.under_cursor))

    def action_sort(self) -> None:
        self._by_cost = not self._by_cost
        self.show(tuple(sorted(self._list.found, key=_latency)))

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()


def _latency(it: Candidate) -> tuple[bool, float]:
    return not it.complete, it.latency_ms


def _cost(it: Candidate) -> tuple[bool, bool, float]:
    return not it.complete, it.dollars_per_million is None, it.dollars_per_million or 0.0


def _widths(width: int) -> tuple[int, int]:
    """Those of the names and of the bars."""
    left = max(12, width - _MS - _COST - _REMARKS - 3)
    drawn = min(_WIDEST_BAR, left // 3)
    return left - drawn, drawn
