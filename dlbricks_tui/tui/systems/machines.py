"""The panel of the best machine for a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import ClassVar

from textual.message import Message

from dlbricks_tui.answers.pairs.compared import Kind
from dlbricks_tui.documents.lines import Span, line
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.documents.systems import machine_columns
from dlbricks_tui.estimate.comparison import Candidate
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.systems import actions
from dlbricks_tui.tui.widgets.panel import Orders
from dlbricks_tui.tui.widgets.table import TablePanel


class MachinesPanel(TablePanel[Candidate]):
    """Latency and cost of the model on every system that has results of it."""

    scope = actions.MACHINES
    TITLE = "Which machine"
    REACHED_BY = "systems.go_to_machines"
    ABOUT = (
        "The answer of the open model on each system, with its combination, and the cost of a million inferences one"
        " after another on an otherwise idle machine. part: some of the model was not measured there; ~: a"
        " predicted range."
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
        super().__init__(id="machines")
        self.rows.stands_for = self._comparable
        self._model = ""

    def columns(self) -> tuple[Column[Candidate], ...]:
        # A search hides systems, but the quickest one stays the same.
        return machine_columns("system", self.items)

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
