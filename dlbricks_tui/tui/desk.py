"""Hands what is seen of runs to the screen that is in front."""

from __future__ import annotations

from typing import TYPE_CHECKING, Protocol, runtime_checkable

from textual.screen import ModalScreen

from dlbricks_tui.tui.live.watch import Listener, RunWatch
from dlbricks_tui.tui.messages import Failed, ResultsGrew, ResultsStored, RunSeen
from dlbricks_tui.tui.screens.asking import AskingScreen
from dlbricks_tui.tui.screens.workbench import WorkbenchScreen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App
    from textual.screen import Screen

    from dlbricks_tui.settings import DataFolder
    from dlbricks_tui.tui.live.snapshot import RunSnapshot


@runtime_checkable
class ShowsRun(Protocol):
    """A screen that says how the run stands."""

    def show_run(self, run: RunSnapshot) -> None:
        """Shows how the run stands now."""


class RunDesk:
    """For one application; a screen that is out of sight is not drawn, and estimates nothing."""

    def __init__(self, app: App[None], data: DataFolder, rarely: float) -> None:
        self._app = app
        self._watch = RunWatch(
            data,
            Listener(
                lambda run: app.post_message(RunSeen(run)),
                lambda: app.post_message(ResultsStored()),
                lambda error: app.post_message(Failed(error)),
            ),
            rarely=rarely,
        )
        self._run: RunSnapshot | None = None
        self._grown = False

    @property
    def run(self) -> RunSnapshot | None:
        """The run that was seen last."""
        return self._run

    def open(self) -> None:
        """Begins to watch."""
        self._watch.start()

    def close(self) -> None:
        """Nobody wants to know any more."""
        self._watch.close()

    def follow(self, run: str) -> None:
        """Has this run followed from now on."""
        self._watch.follow(run)

    def take(self, run: RunSnapshot) -> None:
        """Keep what was seen, and show it on all screens that are in sight."""
        self._run = run
        for screen in self._in_sight:
            self._show(screen)

    def take_results(self) -> None:
        """Remembers that there are new results, for the next time that estimates are in sight."""
        self._grown = True
        self._tell_of_results(self._in_front)

    def catch_up(self, screen: Screen[object]) -> None:
        """Brings a screen that has come to the front up to date."""
        self._show(screen)
        self._tell_of_results(screen)

    @property
    def _in_front(self) -> Screen[object] | None:
        """What is in sight; nothing any more while the program is being left."""
        screens = self._app.screen_stack
        return screens[-1] if screens else None

    @property
    def _in_sight(self) -> Iterator[Screen[object]]:
        """The screen in front, and where that is a box, the screens around it."""
        for screen in reversed(self._app.screen_stack):
            yield screen
            if not isinstance(screen, ModalScreen):
                return

    def _show(self, screen: Screen[object] | None) -> None:
        if self._run is not None and isinstance(screen, ShowsRun):
            screen.show_run(self._run)

    def _tell_of_results(self, screen: Screen[object] | None) -> None:
        if self._grown and isinstance(screen, AskingScreen) and screen.HEARS_OF_RESULTS:
            # The others hear of it when they come to the front.
            self._grown = not isinstance(screen, WorkbenchScreen)
            screen.post_message(ResultsGrew())
