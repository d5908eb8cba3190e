"""The panel of the best machine for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, bar, column, line, number_column
from dlbricks_tui.tui.systems import actions
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows
from dlbricks_tui.wording.numbers import PARTLY, milliseconds

if TYPE_CHECKING:
    from dlbricks_tui.estimate.comparison import Candidate

_MS, _COST, _REMARKS = 11, 11, 20
_WIDEST_BAR = 16


class MachineRows(ItemRows["Candidate"]):
    """The machines, the best first."""

    def __init__(self) -> None:
        super().__init__()
        self.remarks: tuple[str, ...] = ()

    def row(self, index: int, width: int) -> Line:
        it = self.items[index]
        longest_ms = max(each.latency_ms for each in self.items) or 1.0
        sign = "" if it.complete else PARTLY
        cost = "-" if it.dollars_per_million is None else f"$ {it.dollars_per_million:.2f}"
        name, room = _widths(width)
        return (
            column(it.estimate.way.system, name),
            number_column(f"{sign}{milliseconds(it.latency_ms)}", _MS, "strong" if it.complete else "warn"),
            Span(" "),
            *bar(it.latency_ms / longest_ms, room),
            number_column(cost, _COST),
            Span(f"  {self.remarks[index]}", "good" if it.complete else "muted"),
        )


class MachinesPanel(Panel):
    """Latency and cost of the model on every system that has results of it."""

    scope = actions.MACHINES
    TITLE = "Which machine"
    REACHED_BY = "systems.go_to_machines"
    HEADED = True
    ABOUT = (
        "The estimate of the open model on each system, by the runtime that covers most of it there, and the cost of a"
        " million inferences one after another on an otherwise idle machine. … before a latency: part of the model was"
        " not measured there. Such a machine is never called the best."
    )

    @dataclass
    class Taken(Message):
        """The user wants estimates from the results of this machine."""

        candidate: Candidate

    def __init__(self) -> None:
        self._list = MachineRows()
        super().__init__(self._list, id="machines")
        self._by_cost = False
        self._model = ""

    @property
    def found(self) -> tuple[Candidate, ...]:
        """The machines in the displayed order."""
        return self._list.items

    def heading(self, width: int) -> Line:
        name, room = _widths(width - 1)
        titles = (("ms", _MS), ("", room + 1), ("a million", _COST))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        return (Span(" "), column("system", name, "muted"), *right)

    def show_waiting(self, model: str) -> None:
        """Show that the machines are being ranked, or how to open a model if there is none."""
        self._model = model
        self._list.items, self._list.remarks = (), ()
        self.show_title(f" for {model}" if model else "")
        if model:
            self._list.show_placeholder(line(Span("Estimating.", "muted")))
        else:
            self._list.show_placeholder(
                line("Open a model on the workbench"),
                line(Span("to see its latency and cost on every system.", "muted")),
            )
        self._list.rows_changed()

    def show(self, found: tuple[Candidate, ...]) -> None:
        from dlbricks_tui.estimate.comparison import remarks_on

        if self._by_cost:
            # Machines without a price come last.
            found = tuple(sorted(found, key=_cost))
        self._list.items = found
        self._list.remarks = tuple(remarks_on(found))
        self._list.show_placeholder(
            line(f"{self._model} was not measured on any system."),
            Hint("On the workbench, {workbench.start_run} runs its bricks here;", "muted"),
            Hint("{workbench.show_results} {results.import_file} imports results of other hosts.", "muted"),
        )
        self._list.rows_changed()

    def action_take(self) -> None:
        if self._list.selected is not None:
            self.post_message(self.Taken(self._list.selected))

    def action_sort(self) -> None:
        self._by_cost = not self._by_cost
        self.show(tuple(sorted(self._list.items, key=_latency)))


def _latency(it: Candidate) -> tuple[bool, float]:
    return not it.complete, it.latency_ms


def _cost(it: Candidate) -> tuple[bool, bool, float]:
    return not it.complete, it.dollars_per_million is None, it.dollars_per_million or 0.0


def _widths(width: int) -> tuple[int, int]:
    """Return the widths of the names and of the bars."""
    left = max(12, width - _MS - _COST - _REMARKS - 3)
    drawn = min(_WIDEST_BAR, left // 3)
    return left - drawn, drawn
