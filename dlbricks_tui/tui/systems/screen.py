"""The screen of systems: where results come from, which machine is best for a model, and what disturbs this host."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.models.graph import Level
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.analysis.work import options_of
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.systems import actions, work
from dlbricks_tui.tui.systems.panels import DoctorPanel, MachinesPanel, SystemPanel, SystemsPanel
from dlbricks_tui.tui.widgets.answering import AnsweringScreen
from dlbricks_tui.wording.fleets import machines_answer, machines_question

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Iterator, Mapping

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.store.records import RuntimeRecord
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.panel import Panel


class SystemsScreen(AnsweringScreen[tuple[str, Level]]):
    """Returns a system and the level measured there, if the user wants estimates from its results."""

    scope = actions.SYSTEMS
    CSS_PATH = "systems.tcss"
    AUTO_FOCUS = "#systems RowsView"
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The systems with measurements, the quickest and the cheapest of them for the open model, and what disturbs "
        "this host."
    )

    def __init__(self, session: Session, spec: ModelSpec | None, choices: Choices, config: Config) -> None:
        super().__init__()
        self._session = session
        self._spec = spec
        self._choices, self._config = choices, config
        self._runtimes: Mapping[str, RuntimeRecord] = {}
        self._found: tuple[Candidate, ...] | None = None
        self._systems = SystemsPanel()
        self._system = SystemPanel()
        self._machines = MachinesPanel()
        self._doctor = DoctorPanel()

    def panels(self) -> Iterable[Panel]:
        return (self._systems, self._system, self._machines, self._doctor)

    def question(self) -> str:
        return machines_question(self._spec.source.name if self._spec else "")

    def answer(self) -> Iterable[Line]:
        if self._spec is None:
            yield line(Span(" Open a model on the workbench to compare the systems for it.", "muted"))
        elif self._found is None:
            yield line(Span(" Estimating.", "muted"))
        else:
            yield line(Span(f" {machines_answer(self._spec.source.name, self._found)}", "strong"))
            if len(self._found) < 2:
                yield Hint(
                    " {workbench.show_results} {results.import_file} on the workbench imports results of other hosts,"
                    " {workbench.show_fleet} measures there.",
                    "muted",
                ).line

    def on_mount(self) -> None:
        self.make_current(self._systems)
        self._machines.show_waiting(self._spec.source.name if self._spec else "")
        self.action_look_again()

    @on(SystemsPanel.Selected)
    def _system_selected(self, event: SystemsPanel.Selected) -> None:
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

    @on(messages.NewResults)
    def action_look_again(self) -> None:
        self.run_steps_in_thread(self._look, "look", lambda show: show())

    def action_leave(self) -> None:
        self.dismiss(None)

    def _look(self) -> Iterator[Callable[[], None]]:
        """Yield functions that show what was found.

        One step follows another: in parallel, they would disturb the examination of this host.
        """
        yield partial(self._show_systems, work.list_systems(self._session))
        if self._spec is not None:
            options = options_of(self._spec, self._choices, self._config)
            yield partial(self._show_machines, work.rank(self._session, self._spec, options))
        yield partial(self._doctor.show, work.examine())

    def _show_systems(self, found: work.Systems) -> None:
        self._runtimes = found.runtimes
        self._systems.show(found.known)

    def _show_machines(self, found: tuple[Candidate, ...]) -> None:
        self._found = found
        self._machines.show(found)
        self.head_changed()
