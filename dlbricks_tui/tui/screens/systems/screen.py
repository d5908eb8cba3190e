"""The systems of the store, what disturbs this one, and which of them is best for a model."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, ClassVar

from textual import on
from textual.containers import Container

from dlbricks_tui.models.graph import Level
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.screens.panelled import PanelledScreen
from dlbricks_tui.tui.screens.systems import errands
from dlbricks_tui.tui.screens.systems.doctor import DoctorPanel
from dlbricks_tui.tui.screens.systems.known import SystemPanel, SystemsPanel
from dlbricks_tui.tui.screens.systems.machines import MachinesPanel
from dlbricks_tui.tui.widgets.key_bar import KeyBar

if TYPE_CHECKING:
    from collections.abc import Mapping

    from textual.app import ComposeResult

    from dlbricks_tui.store.records import Runtime
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.opened import Wish
    from dlbricks_tui.tui.session import Session


class SystemsScreen(PanelledScreen[tuple[str, Level]]):
    """Gives a system, and the level that was measured there, if the person wants estimates by its results."""

    scope: ClassVar[Scope] = Scope.SYSTEMS
    BINDINGS = bindings(Scope.SYSTEMS)
    AUTO_FOCUS = "#systems RowsView"
    HEARS_OF_RESULTS = True
    ABOUT = "Where things were measured, where the open model is quickest and cheapest, and what disturbs this host."

    def __init__(self, session: Session, wish: Wish | None, choices: Choices) -> None:
        super().__init__()
        self._errands = errands.SystemsErrands(session, self.post_message)
        self._wish = wish
        self._choices = choices
        self._runtimes: Mapping[str, Runtime] = {}
        self._systems = SystemsPanel()
        self._system = SystemPanel()
        self._machines = MachinesPanel()
        self._doctor = DoctorPanel()

    def compose(self) -> ComposeResult:
        with Container(id="system-panels"):
            yield self._systems
            yield self._system
            yield self._machines
            yield self._doctor
        yield KeyBar()

    def on_mount(self) -> None:
        self.make_current(self._systems)
        self._machines.show_waiting(self._wish.source.name if self._wish else "")
        self.action_look_again()

    @on(errands.SystemsListed)
    def _systems_listed(self, event: errands.SystemsListed) -> None:
        self._runtimes = event.by_id
        self._systems.show(event.known)

    @on(errands.HostExamined)
    def _host_examined(self, event: errands.HostExamined) -> None:
        self._doctor.show(event.found)

    @on(errands.MachinesRanked)
    def _machines_ranked(self, event: errands.MachinesRanked) -> None:
        self._machines.show(event.found)

    @on(SystemsPanel.Rested)
    def _system_rested(self, event: SystemsPanel.Rested) -> None:
        self._system.show(event.known, self._runtimes)

    @on(SystemsPanel.Taken)
    def _system_taken(self, event: SystemsPanel.Taken) -> None:
        if event.known.ways:
            self.dismiss((event.known.system.id, event.known.ways[0].level))
        else:
            self.notify("Nothing was measured on it yet.")

    @on(MachinesPanel.Taken)
    def _machine_taken(self, event: MachinesPanel.Taken) -> None:
        way = event.candidate.estimate.way
        self.dismiss((way.system, way.level))

    @on(messages.ResultsGrew)
    def action_look_again(self) -> None:
        self.ask(partial(self._errands.look, self._wish, self._choices.workers), "look")

    def action_go_to_systems(self) -> None:
        self.go_to(self._systems)

    def action_go_to_system(self) -> None:
        self.go_to(self._system)

    def action_go_to_machines(self) -> None:
        self.go_to(self._machines)

    def action_go_to_doctor(self) -> None:
        self.go_to(self._doctor)

    def action_leave(self) -> None:
        self.dismiss(None)
