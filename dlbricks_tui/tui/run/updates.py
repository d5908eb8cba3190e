"""Shows the state of runs and of this host on the screens in sight."""

from __future__ import annotations

from typing import TYPE_CHECKING
from weakref import WeakKeyDictionary

from textual.screen import ModalScreen

from dlbricks_tui.api.workbench_session import LineSeen, LoadSeen, ResultsGrown, RunWatch
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.tui.messages import Failed, NewResults, WatchTold
from dlbricks_tui.tui.run.status import HostNow, StatusLine
from dlbricks_tui.tui.widgets.screens import ThreadedScreen

if TYPE_CHECKING:
    from collections.abc import Iterator

    from textual.app import App
    from textual.screen import Screen

    from dlbricks_tui.api.followed_runs import RunSnapshot
    from dlbricks_tui.api.workbench_session import News
    from dlbricks_tui.folders import DataFolder

RECORDED = "recorded results"


class RunUpdates:
    """Passes the state of the run to the screens in sight; hidden screens wait until they are shown."""

    def __init__(self, app: App[None], data: DataFolder, poll_factor: float) -> None:
        self._app = app
        self.watch = RunWatch(data, lambda news: app.post_message(WatchTold(news)), poll_factor=poll_factor)
        self._run: RunSnapshot | None = None
        # What the status lines show, and the run whose end the user has seen.
        self._now = HostNow(load=RECORDED if recorded_host() is not None else "")
        self._seen = ""
        # Counts the messages about new results, and which of them each screen knows.
        self._news = 0
        self._known: WeakKeyDictionary[Screen[object], int] = WeakKeyDictionary()

    def take(self, news: News) -> None:
        """Show what is new on the screens in sight."""
        if isinstance(news, LineSeen):
            for screen in self._app.screen_stack:
                if isinstance(screen, ThreadedScreen):
                    screen.show_queue(news.places)
            self._show_now(self._now._replace(places=news.places))
        elif isinstance(news, LoadSeen):
            self._show_now(self._now._replace(load=news.words))
        elif isinstance(news, ResultsGrown):
            self.take_results()
        elif isinstance(news, Exception):
            self._app.post_message(Failed(news))
        else:
            self._run = news
            if news.active:
                self._seen = ""
            self._now = self._now._replace(run=None if news.run == self._seen else news)
            for screen in self._in_sight:
                self._show(screen)

    def take_end_seen(self, run: str) -> None:
        """Tell nothing more of a run that has ended; a new or resumed run is shown again."""
        self._seen = run
        self._show_now(self._now._replace(run=None))

    def _show_now(self, now: HostNow) -> None:
        self._now = now
        for screen in self._in_sight:
            self._show_status(screen)

    def _show_status(self, screen: Screen[object]) -> None:
        for line in screen.query(StatusLine):
            line.show(self._now)

    def take_results(self) -> None:
        """Note that there are new results, and tell the screen in front if it shows estimates."""
        self._news += 1
        for screen in self._app.screen_stack[-1:]:
            self._tell_of_results(screen)

    def catch_up(self, screen: Screen[object]) -> None:
        """Update a screen that has come to the front; a new one has just read the store."""
        self._show(screen)
        self._known.setdefault(screen, self._news)
        self._tell_of_results(screen)

    @property
    def _in_sight(self) -> Iterator[Screen[object]]:
        """The screen in front and, behind a box, the screen below it."""
        for screen in reversed(self._app.screen_stack):
            yield screen
            if not isinstance(screen, ModalScreen):
                return

    def _show(self, screen: Screen[object]) -> None:
        if self._run is not None and isinstance(screen, ThreadedScreen):
            screen.show_run(self._run)
        self._show_status(screen)

    def _tell_of_results(self, screen: Screen[object]) -> None:
        if not isinstance(screen, ThreadedScreen) or not screen.WANTS_NEW_RESULTS:
            return
        # Reading them over and over would disturb the run.
        has_to_wait = screen.WAITS_FOR_RUN and self._run is not None and self._run.measures
        if self._known.get(screen, 0) < self._news and not has_to_wait:
            self._known[screen] = self._news
            screen.post_message(NewResults())
