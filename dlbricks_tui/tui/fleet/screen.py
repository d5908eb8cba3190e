"""The screen of fleets: hosts, their progress, and what the models take on each of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING, Any

from textual import on

from dlbricks_tui.api.fleets import FleetJob, FleetSettings, FleetView, newest_fleet, start_fleet, stored_fleets
from dlbricks_tui.api.new_runs import registered_runtimes
from dlbricks_tui.documents.fleet import fastest_sentence, fleet_question
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.documents.run import STATE_STYLES
from dlbricks_tui.tui.fleet.panels import (
    AllFleetsScreen,
    CancelFleetScreen,
    FleetModelsPanel,
    HostsFileScreen,
    HostsPanel,
    RankingPanel,
    StartFleetScreen,
)
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.run.work_screen import WorkScreen
from dlbricks_tui.wording.jobs import settled_line
from dlbricks_tui.wording.numbers import ago

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable, Mapping
    from pathlib import Path

    from dlbricks_tui.api.workbench_session import WorkbenchSession
    from dlbricks_tui.models.library import ModelSource

# Over SSH each change of the screen costs time.
_SECONDS_BETWEEN_LOOKS = 0.5


class FleetScreen(WorkScreen[None, Any]):
    """Shows a fleet run, which goes on when the screen is closed."""

    scope = scopes.FLEET
    CSS_PATH = "fleet.tcss"
    ABOUT = (
        "Many hosts that measure for you: the models stay here, and only their layers travel. {fleet.start} starts a "
        "fleet run of the marked or open models on the hosts of a hosts file. {fleet.show_fleets} lists all fleet runs."
    )

    def __init__(self, session: WorkbenchSession, sources: tuple[ModelSource, ...]) -> None:
        self._hosts = HostsPanel()
        self._models = FleetModelsPanel()
        self._ranking = RankingPanel()
        super().__init__(self._hosts, self._models, self._ranking)
        self._data = session.data
        self._sources = sources
        self._fleet: FleetJob | None = None
        self._view: FleetView | None = None
        self._is_looking = False

    def on_mount(self) -> None:
        self.run_in_thread(partial(newest_fleet, self._data), "open", self._watch)
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self.look)

    # Watching

    def _watch(self, fleet: FleetJob | None) -> None:
        if fleet is not None:
            self._fleet, self._is_looking = fleet, False
            self.look()

    def look(self) -> None:
        # A slow disk must not let threads pile up.
        if self._fleet is not None and not self._is_looking and self.app.screen is self:
            self._is_looking = True
            self.run_in_thread(self._fleet.look, "look", partial(self._show, self._fleet))

    def _show(self, fleet: FleetJob, view: FleetView | None) -> None:
        if fleet is not self._fleet:
            return
        self._is_looking = False
        if view is not None:
            self._view = view
            self._hosts.show_items(view.hosts)
            self._models.show_items(view.result.models)
            self.head_changed()

    @on(FleetModelsPanel.Settled, "#fleet-models")
    def _model_selected(self) -> None:
        self._ranking.show(self._models.selected)

    def question(self) -> str:
        view = self._view
        if view is None:
            return "Which host is best?"
        return fleet_question(view.result.question, view.state.models, len(view.hosts))

    def state(self) -> Line:
        if self._view is None:
            return ()
        state = self._view.state
        named = Span(f"  {state.run}, begun {ago(state.started)}", "muted")
        return line(Span(f" {state.state.value}", STATE_STYLES.get(state.state, "text")), named)

    def answer(self) -> Iterable[Line]:
        if self._view is None:
            yield Hint(" {fleet.start} starts a fleet run of the marked or open models.", "muted").line
            return
        models = self._view.result.models
        if self._view.failure:
            yield line(Span(f" {self._view.failure}", "bad"))
        elif not models:
            yield line(Span(" Nothing is known yet.", "muted"))
        elif all(it.settled for it in models):
            yield line(Span(f" {fastest_sentence(models, is_final=True)}; the order is sure.", "good"))
        else:
            found = Span(f" {fastest_sentence(models, is_final=False)}", "strong")
            yield line(found, Span(f"; {settled_line(it.settled for it in models)}.", "warn"))

    # Control

    def controls(self) -> Mapping[str, bool]:
        is_active = self._view is not None and self._view.state.active
        return {"cancel": is_active, "add": is_active, "pause": self._view is not None}

    def action_start(self) -> None:
        def ask_settings(hosts_file: Path) -> None:
            self.run_in_thread(
                partial(registered_runtimes, self._data), "runtimes", partial(ask_with_runtimes, hosts_file)
            )

        def ask_with_runtimes(hosts_file: Path, runtimes: tuple[str, ...]) -> None:
            names = tuple(source.name for source in self._sources)
            self.ask(StartFleetScreen(names, runtimes), partial(start, hosts_file))

        def start(hosts_file: Path, settings: FleetSettings) -> None:
            self.notify("The fleet run is being started.")
            begin = partial(start_fleet, self._sources, hosts_file, settings, self._data)
            self.run_in_thread(begin, "start", self._watch)

        if not self._sources:
            self.notify(f"Mark models on the workbench with {key('app.mark')}, or open one.")
        else:
            self.ask(HostsFileScreen(), ask_settings)

    def action_show_fleets(self) -> None:
        def find(run: str) -> FleetJob:
            return FleetJob.find(run, self._data)

        box = AllFleetsScreen(partial(stored_fleets, self._data), lambda run: find(run).resume_apart())
        self.ask(box, lambda run: self._watch(find(run)))

    def action_pause(self) -> None:
        self._tell(FleetJob.pause_or_resume)

    def action_cancel(self) -> None:
        if self._view is not None:
            box = CancelFleetScreen(self._view.state.run, self._view.state.models)
            self.ask(box, lambda _: self._tell(lambda fleet: fleet.folder.cancel()))

    def action_add(self) -> None:
        self.ask(HostsFileScreen(), lambda path: self._tell(lambda fleet: fleet.add_hosts(path)))

    @on(HostsPanel.Told)
    def _host_told(self, event: HostsPanel.Told) -> None:
        self._tell(lambda fleet: fleet.control_host(event.host, event.what))

    def _tell(self, what: Callable[[FleetJob], object]) -> None:
        """Tell the driver something; errors are shown."""
        if self._fleet is not None:
            self.run_in_thread(partial(what, self._fleet), "tell")
