"""The screen of fleets: hosts, their progress, and what the models take on each of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.documents.fleet import fastest_sentence, fleet_question
from dlbricks_tui.documents.lines import Line, Span, line
from dlbricks_tui.fleet.request import FleetHostState
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.fleet.panels import (
    AllFleetsScreen,
    CancelFleetScreen,
    FleetModelsPanel,
    FleetSettings,
    HostsFileScreen,
    HostsPanel,
    RankingPanel,
    StartFleetScreen,
)
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.run.snapshot import STATE_STYLES
from dlbricks_tui.tui.widgets.screens import AnswerScreen
from dlbricks_tui.wording.fleets import settled_line
from dlbricks_tui.wording.numbers import ago

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from dlbricks_tui.fleet.folder import FleetFolder
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.fleet.fleets import FleetReader, Fleets, FleetView
    from dlbricks_tui.tui.session import Session

# Over SSH each change of the screen costs time.
_SECONDS_BETWEEN_LOOKS = 0.5


class FleetScreen(AnswerScreen[None]):
    """Shows a fleet run, which goes on when the screen is closed."""

    scope = scopes.FLEET
    CSS_PATH = "fleet.tcss"
    ABOUT = (
        "Many hosts that measure for you: the models stay here, and only their layers travel. {fleet.start} starts a "
        "fleet run of the marked or open models on the hosts of a hosts file. {fleet.show_fleets} lists all fleet runs."
    )

    def __init__(self, session: Session, sources: tuple[ModelSource, ...]) -> None:
        self._hosts = HostsPanel()
        self._models = FleetModelsPanel()
        self._ranking = RankingPanel()
        super().__init__(self._hosts, self._models, self._ranking)
        self._session = session
        self._sources = sources
        self._fleets: Fleets | None = None
        self._reader: FleetReader | None = None
        self._view: FleetView | None = None
        self._is_looking = False

    def on_mount(self) -> None:
        self.run_in_thread(self._find_newest, "open", self._watch)
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self.look)

    # Watching

    def _find_newest(self) -> FleetFolder | None:
        from dlbricks_tui.tui.fleet.fleets import Fleets

        self._fleets = Fleets(self._session.data)
        return self._fleets.newest()

    def _watch(self, folder: FleetFolder | None) -> None:
        if folder is None:
            return
        from dlbricks_tui.tui.fleet.fleets import FleetReader

        self._reader, self._is_looking = FleetReader(folder), False
        self.look()

    def look(self) -> None:
        # A slow disk must not let threads pile up.
        if self._reader is not None and not self._is_looking and self.app.screen is self:
            self._is_looking = True
            self.run_in_thread(partial(_read, self._reader), "look", self._show)

    def _show(self, found: tuple[FleetReader, FleetView | None]) -> None:
        reader, view = found
        if reader is not self._reader:
            return
        self._is_looking = False
        if view is None:
            return
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
        yield _answer_of(self._view)

    # Control

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        is_active = self._view is not None and self._view.state.active
        if action in ("cancel", "add"):
            return is_active
        if action == "pause":
            return self._view is not None
        return super().check_action(action, parameters)

    def action_start(self) -> None:
        if not self._sources:
            self.notify(f"Mark models on the workbench with {key('app.mark')}, or open one.")
        else:
            self.ask(HostsFileScreen(), self._ask_settings)

    def _ask_settings(self, hosts_file: Path) -> None:
        if self._fleets is not None:
            self.run_in_thread(self._fleets.runtimes, "runtimes", partial(self._ask_with_runtimes, hosts_file))

    def _ask_with_runtimes(self, hosts_file: Path, runtimes: tuple[str, ...]) -> None:
        names = tuple(source.name for source in self._sources)
        self.ask(StartFleetScreen(names, runtimes), partial(self._start, hosts_file))

    def _start(self, hosts_file: Path, settings: FleetSettings) -> None:
        if self._fleets is not None:
            start = partial(self._fleets.start, self._sources, hosts_file, settings)
            self.notify("The fleet run is being started.")
            self.run_in_thread(start, "start", self._watch)

    def action_show_fleets(self) -> None:
        if self._fleets is not None:
            fleets = self._fleets
            self.ask(AllFleetsScreen(fleets.stored, fleets.resume), lambda run: self._watch(fleets.folder(run)))

    def action_pause(self) -> None:
        folder, view = self._folder, self._view
        if folder is None or view is None or self._fleets is None:
            return
        if view.state.active:
            self._tell(folder.unpause if folder.pause_file.exists() else folder.pause)
        else:
            self._tell(partial(self._fleets.resume, view.state.run))

    def action_cancel(self) -> None:
        folder, view = self._folder, self._view
        if folder is not None and view is not None:
            self.ask(CancelFleetScreen(view.state.run, view.state.models), lambda _: self._tell(folder.cancel))

    def action_add(self) -> None:
        if self._fleets is not None and self._view is not None:
            add = partial(self._fleets.add, self._view.state.run)
            self.ask(HostsFileScreen(), lambda path: self._tell(partial(add, path)))

    @on(HostsPanel.Told)
    def _host_told(self, event: HostsPanel.Told) -> None:
        folder = self._folder
        if folder is None:
            return
        is_paused = event.host.state is FleetHostState.PAUSED
        what = "cancel" if event.what == "cancel" else "resume" if is_paused else "pause"
        self._tell(partial(folder.command_host, event.host.name, what))

    @property
    def _folder(self) -> FleetFolder | None:
        return None if self._reader is None else self._reader.folder

    def _tell(self, what: Callable[[], object]) -> None:
        """Tell the driver something; errors are shown."""
        self.run_in_thread(what, "tell")


def _read(reader: FleetReader) -> tuple[FleetReader, FleetView | None]:
    return reader, reader.read()


def _answer_of(view: FleetView | None) -> Line:
    """Return the answer so far in one line."""
    if view is None:
        return Hint(" {fleet.start} starts a fleet run of the marked or open models.", "muted").line
    if view.state.state is State.FAILED and view.state.message:
        return line(Span(f" {view.state.message}", "bad"))
    models = view.result.models
    if not models:
        return line(Span(" Nothing is known yet.", "muted"))
    is_settled = all(it.settled for it in models)
    found = f" {fastest_sentence(models, is_final=is_settled)}"
    if is_settled:
        return line(Span(f"{found}; the order is sure.", "good"))
    return line(Span(found, "strong"), Span(f"; {settled_line(it.settled for it in models)}.", "warn"))
