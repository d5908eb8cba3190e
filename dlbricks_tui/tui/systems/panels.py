"""The panels of the systems screen: the ranking of the systems, and one machine."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.answers.comparisons.named import PairKind
from dlbricks_tui.documents.doctor import finding_parts
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.documents.systems import machine_columns, system_columns, system_parts
from dlbricks_tui.estimate.comparison import Candidate
from dlbricks_tui.host.noise import NoiseVerdict
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.systems import actions
from dlbricks_tui.tui.widgets.panel import Orders, Panel
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.tui.widgets.table import TablePanel

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

    from dlbricks_tui.answers.systems import KnownSystem
    from dlbricks_tui.documents.parts import Column
    from dlbricks_tui.host.noise import Finding
    from dlbricks_tui.store.records import RuntimeRecord


class SystemsPanel(TablePanel["KnownSystem"]):
    """The systems with results, and their prices; this host comes first."""

    scope = actions.SYSTEM_LIST
    TITLE = "Systems"
    REACHED_BY = "systems.go_to_systems"
    SEARCH_HINT = "name, processor or instance type"
    ABOUT = (
        "This host and all systems that have results in the store. You can change the prices in prices.toml in your "
        "data folder."
    )

    @dataclass
    class Selected(Message):
        """The cursor has settled on a system."""

        known: KnownSystem

    @dataclass
    class Taken(Message):
        """The user wants estimates from the results of this system."""

        known: KnownSystem

    def __init__(self) -> None:
        super().__init__(id="systems")
        self.rows.stands_for = self._comparable
        self.show_placeholder(line(Span("Reading the store.", "muted")))

    def columns(self) -> tuple[Column[KnownSystem], ...]:
        return system_columns(self.items)

    def show(self, known: tuple[KnownSystem, ...]) -> None:
        self.show_placeholder(line("No system matches the search."), Hint("{find.clear} shows all.", "muted"))
        self.show_items(known)

    def searched(self, item: KnownSystem) -> str:
        system = item.system
        return f"{system.id} {system.name} {system.cpu} {system.instance_type}"

    def identity(self, item: KnownSystem) -> str:
        return item.system.id

    def show_counts(self) -> None:
        self.show_title()

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        if self.selected is not None:
            self.post_message(self.Selected(self.selected))

    def action_take(self) -> None:
        if self.selected is not None:
            self.post_message(self.Taken(self.selected))

    def _comparable(self, index: int) -> ComparableRow | None:
        if index >= len(self.found):
            return None
        system = self.found[index].system
        return ComparableRow(PairKind.SYSTEM, system.id, system.id, system.id)


class SystemPanel(Panel):
    """The facts about one system."""

    TITLE = "System"
    REACHED_BY = "systems.go_to_system"
    ABOUT = "The facts about the system, and its measurements by runtime, level and method."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="system")
        self._known: KnownSystem | None = None
        self._runtimes: Mapping[str, RuntimeRecord] = {}

    def show(self, known: KnownSystem, runtimes: Mapping[str, RuntimeRecord]) -> None:
        self._known, self._runtimes = known, runtimes
        self._list.move_to(0)
        self._list.remake()

    def _lines(self, width: int) -> Iterator[Line]:
        if self._known is not None:
            yield from laid_out(system_parts(self._known, self._runtimes), width)
            if not self._known.ways:
                yield Hint("On the workbench, {workbench.start_run} runs a model's bricks.", "muted").line


_WORST_FIRST = (NoiseVerdict.NOISY, NoiseVerdict.UNKNOWN, NoiseVerdict.QUIET)


class DoctorPanel(Panel):
    """The sources of noise on this host, with their effects and cures."""

    scope = actions.DOCTOR
    TITLE = "Doctor"
    REACHED_BY = "systems.go_to_doctor"
    ABOUT = "The sources of noise on this host, as in `dlbricks doctor`, the worst first. {doctor.copy} copies a cure."

    def __init__(self) -> None:
        self._list = LineRows(self._lines)
        super().__init__(self._list, id="doctor")
        self._found: tuple[Finding, ...] = ()
        # The finding that each line belongs to.
        self._owners: tuple[Finding, ...] = ()
        self._list.show_placeholder(line(Span("Examining this host.", "muted")))

    def show(self, found: tuple[Finding, ...]) -> None:
        """Show the findings, the worst first."""
        self._found = tuple(sorted(found, key=lambda it: _WORST_FIRST.index(it.verdict)))
        noisy = sum(it.verdict is NoiseVerdict.NOISY for it in found)
        self.border_subtitle = f"{noisy} noisy" if noisy else ""
        self._list.remake()

    def action_copy(self) -> None:
        here = self._list.cursor
        cure = self._owners[here].cure if here < len(self._owners) else ""
        if cure:
            self.app.copy_to_clipboard(cure)
        else:
            self.notify("This line has no cure.")

    def _lines(self, width: int) -> tuple[Line, ...]:
        made = [(it, each) for it in self._found for each in laid_out(finding_parts(it), width)]
        self._owners = tuple(it for it, _ in made)
        return tuple(each for _, each in made)


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
        return ComparableRow(PairKind.SYSTEM, system, system, system)
