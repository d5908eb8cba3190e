"""The screen of fleets: hosts, their progress, and what the models take on each of them."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.fleet import actions
from dlbricks_tui.tui.fleet.panels import FleetModelsPanel, HostsPanel, RankingPanel
from dlbricks_tui.tui.fleet.words import answer_line, question_of, state_line
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.widgets.answering import AnsweringScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterable
    from pathlib import Path

    from dlbricks_tui.documents.lines import Line
    from dlbricks_tui.fleet.folder import FleetFolder
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.fleet.boxes import FleetSettings
    from dlbricks_tui.tui.fleet.fleets import Fleets
    from dlbricks_tui.tui.fleet.view import FleetReader, FleetView
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.panel import Panel

# Over SSH each change of the screen costs time.
_SECONDS_BETWEEN_LOOKS = 0.5


class FleetScreen(AnsweringScreen[None]):
    """Shows a fleet run, which goes on when the screen is closed."""

    scope = actions.FLEET
    CSS_PATH = "fleet.tcss"
    ABOUT = (
        "Many hosts that measure for you: the models stay here, and only their layers travel. {fleet.start} starts a "
        "fleet run of the marked or open models on the hosts of a hosts file. {fleet.show_fleets} lists all fleet runs."
    )

    def __init__(self, session: Session, sources: tuple[ModelSource, ...]) -> None:
        super().__init__()
        self._session = session
        self._sources = sources
        self._fleets: Fleets | None = None
        self._reader: FleetReader | None = None
        self._view: FleetView | None = None
        self._is_looking = False
        self._hosts = HostsPanel()
        self._models = FleetModelsPanel()
        self._ranking = RankingPanel()

    def panels(self) -> Iterable[Panel]:
        return (self._hosts, self._models, self._ranking)

    def on_mount(self) -> None:
        self.run_in_thread(self._find_newest, "open", self._watch)
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self._look)

    # Watching

    def _find_newest(self) -> FleetFolder | None:
        from dlbricks_tui.tui.fleet.fleets import Fleets

        self._fleets = Fleets(self._session.data)
        return self._fleets.newest()

    def _watch(self, folder: FleetFolder | None) -> None:
        if folder is None:
            return
        from dlbricks_tui.tui.fleet.view import FleetReader

        self._reader, self._is_looking = FleetReader(folder), False
        self._look()

    def _look(self) -> None:
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
        self._hosts.show(view.hosts)
        self._models.show(view.result.models)
        self.head_changed()
        self.refresh_bindings()

    @on(FleetModelsPanel.Selected)
    def _model_selected(self) -> None:
        self._ranking.show(self._models.selected)

    def question(self) -> str:
        return question_of(self._view)

    def answer(self) -> Iterable[Line]:
        yield answer_line(self._view)

    def state(self) -> Line:
        return state_line(self._view)

    # Control

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        is_active = self._view is not None and self._view.state.active
        if action in ("pause", "cancel", "add"):
            return is_active
        if action == "resume":
            return self._view is not None and not is_active
        return super().check_action(action, parameters)

    def action_start(self) -> None:
        from dlbricks_tui.tui.fleet.boxes import HostsFileScreen

        if not self._sources:
            self.notify(f"Mark models on the workbench with {key('models.mark')}, or open one.")
        else:
            self.ask(HostsFileScreen(), self._ask_settings)

    def _ask_settings(self, hosts_file: Path) -> None:
        if self._fleets is not None:
            self.run_in_thread(self._fleets.runtimes, "runtimes", partial(self._ask_with_runtimes, hosts_file))

    def _ask_with_runtimes(self, hosts_file: Path, runtimes: tuple[str, ...]) -> None:
        from dlbricks_tui.tui.fleet.boxes import StartFleetScreen

        names = tuple(source.name for source in self._sources)
        self.ask(StartFleetScreen(names, runtimes), partial(self._start, hosts_file))

    def _start(self, hosts_file: Path, settings: FleetSettings) -> None:
        if self._fleets is not None:
            start = partial(self._fleets.start, self._sources, hosts_file, settings)
            self.notify("The fleet run is being started.")
            self.run_in_thread(start, "start", self._watch)

    def action_show_fleets(self) -> None:
        from dlbricks_tui.tui.fleet.boxes import AllFleetsScreen

        if self._fleets is not None:
            fleets = self._fleets
            self.ask(AllFleetsScreen(fleets.stored, fleets.resume), lambda run: self._watch(fleets.folder(run)))

    def action_pause(self) -> None:
        folder = self._folder
        if folder is not None:
            self._tell(folder.unpause if folder.pause_file.exists() else folder.pause)

    def action_cancel(self) -> None:
        from dlbricks_tui.tui.fleet.boxes import CancelFleetScreen

        folder, view = self._folder, self._view
        if folder is not None and view is not None:
            self.ask(CancelFleetScreen(view.state.run, view.state.models), lambda _: self._tell(folder.cancel))

    def action_resume(self) -> None:
        if self._fleets is not None and self._view is not None:
            self._tell(partial(self._fleets.resume, self._view.state.run))

    def action_add(self) -> None:
        from dlbricks_tui.tui.fleet.boxes import HostsFileScreen

        if self._fleets is not None and self._view is not None:
            add = partial(self._fleets.add, self._view.state.run)
            self.ask(HostsFileScreen(), lambda path: self._tell(partial(add, path)))

    @on(HostsPanel.Told)
    def _host_told(self, event: HostsPanel.Told) -> None:
        folder = self._folder
        if folder is None or self._view is None:
            return
        row = next((it for it in self._view.hosts if it.name == event.host), None)
        if event.what == "cancel":
            self._tell(partial(folder.cancel_host, event.host))
        else:
            is_paused = row is not None and row.state.value == "paused"
            self._tell(partial(folder.unpause_host if is_paused else folder.pause_host, event.host))

    @property
    def _folder(self) -> FleetFolder | None:
        return None if self._reader is None else self._reader.folder

    def _tell(self, what: Callable[[], object]) -> None:
        """Tell the driver something; errors are shown."""
        self.run_in_thread(what, "tell")


def _read(reader: FleetReader) -> tuple[FleetReader, FleetView | None]:
    return reader, reader.read()
