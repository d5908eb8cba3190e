"""The base of the workbench screen, which starts runs, and the updates of all screens about what measures."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from threading import Event
from typing import TYPE_CHECKING

from textual import events, on
from textual.screen import ModalScreen

from dlbricks_tui.api.open_models import ListedModels, id_of
from dlbricks_tui.api.run_watch import LineSeen, LoadSeen, ResultsGrown, RunWatch
from dlbricks_tui.errors import UserError
from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.messages import Failed, NewResults
from dlbricks_tui.tui.run.status import HostNow, StatusLine
from dlbricks_tui.tui.view_state import read_view, write_view
from dlbricks_tui.tui.widgets.screens import PanelledScreen, ThreadedScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.app import App
    from textual.screen import Screen

    from dlbricks_tui.api.followed_runs import RunSnapshot
    from dlbricks_tui.api.new_runs import RunPreview, RunSettings, WantedCombination
    from dlbricks_tui.api.open_models import Choices, ModelId
    from dlbricks_tui.api.run_watch import News
    from dlbricks_tui.api.session import WorkbenchSession
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.models.library import ModelSource

# A box that is opened again within this time finds the spare process of the one before.
_SPARE_SECONDS = 10.0


class RunHostScreen(PanelledScreen[None]):
    """Starts runs, and opens the screens of runs; subclasses place `status`."""

    def __init__(self, session: WorkbenchSession, choices: Choices, config: Callable[[], Config]) -> None:
        super().__init__()
        self.session = session
        self.choices = choices
        self.view = read_view(session.data.view)
        self._library = ListedModels()
        self.status = StatusLine(has_keys=True)
        self._run: RunSnapshot | None = None
        self._config = config
        # The settings of the last run, and of the last run of each group of models, under the config of the time.
        self._last: RunSettings | None = None
        self._last_of: dict[frozenset[ModelId], RunSettings] = {}
        self._last_config: Config | None = None

    @property
    def measuring(self) -> bool:
        """Return whether a run measures now; other work waits meanwhile."""
        return self._run is not None and self._run.measures

    def run_has_stopped(self) -> None:
        """Do the work that waited for the run to pause or end."""

    def show_expert(self, expert: bool) -> None:
        """Show expert settings, or hide them, and remember it."""
        self.view = replace(self.view, expert=expert)
        self.keep_view()

    def keep_view(self) -> None:
        """Write the look to its file."""
        # The newest look, even if an earlier thread writes last.
        self.run_in_thread(lambda: write_view(self.session.data.view, self.view), "view")

    def start_run(self, sources: Sequence[ModelSource], combinations: Sequence[WantedCombination] = ()) -> None:
        """Ask for the settings of a run, showing its expected time, and start it.

        With combinations it measures exactly those, in several runs where one would measure others, too.
        """
        from dlbricks_tui.api.new_runs import exactly
        from dlbricks_tui.tui.run.boxes import StartRunScreen

        over = Event()

        def close() -> None:
            over.set()
            self.set_timer(_SPARE_SECONDS, end_spare)

        def end_spare() -> None:
            # Another box, of the next run or opened since, goes on with it.
            if not any(isinstance(it, StartRunScreen) for it in self.app.screen_stack):
                self.session.spare.end()

        def begin(settings: RunSettings) -> None:
            over.set()
            self._last = self._last_of[_ids(sources)] = settings
            self._last_config = self._config()
            self.run_in_thread(partial(self._start, sources, settings), "start run")

        try:
            settings = self._settings(sources)
            each = exactly(settings, combinations, self.session.data) if combinations else [settings]
        except UserError as error:
            self.app.post_message(Failed(error))
            return
        names, preview = tuple(source.name for source in sources), partial(self._preview_run, sources, over)
        # The box of the first run is in front.
        for settings in reversed(each):
            box = StartRunScreen(names, settings, preview, expert=self.view.expert, show_expert=self.show_expert)
            self.ask(box, begin, close)

    def start_default_run(self, sources: Sequence[ModelSource]) -> None:
        """Start a run with the default settings."""
        self.run_in_thread(lambda: self._start(sources, self._settings(sources)), "start run")

    def show_run(self, run: RunSnapshot) -> None:
        measured = self.measuring
        self._run = run
        self.refresh_bindings()
        if measured and not self.measuring:
            self.run_has_stopped()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "close_run_bar":
            return self.status.now.run is not None and not self.status.now.run.active
        return super().check_action(action, parameters)

    @on(events.Click, "#status")
    def _status_clicked(self) -> None:
        if self.status.now.run is not None:
            self.action_show_run()
        elif self.status.now.places:
            self.action_show_queue()

    def action_show_queue(self) -> None:
        from dlbricks_tui.tui.run.boxes import QueueScreen

        self.ask(QueueScreen(self.status.now.places, self.session.data), self._follow_work)

    def _follow_work(self, place: Place) -> None:
        """Show the screen on which work is followed."""
        from dlbricks_tui.api.jobs import is_run

        if is_run(place.kind):
            self.post_message(messages.JobWanted(place.id, place.kind))
        else:
            self.follow_job(place.kind, place.title)

    def follow_job(self, kind: str, model: str) -> None:
        """Show the screen of a model on which its proof, load test or trace is followed."""
        raise NotImplementedError

    def action_close_run_bar(self) -> None:
        if self._run is not None:
            self.post_message(messages.RunEndSeen(self._run.run))

    def action_show_run(self) -> None:
        from dlbricks_tui.tui.run.screen import RunScreen

        # The watch has not told yet of a run that was just started.
        started = self._newest.get("start run")
        if self._run is None and (started is None or started.error is not None):
            self.action_show_runs()
        else:
            self.app.push_screen(RunScreen(self.session.data, self._run))

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.run.boxes import AllJobsScreen

        self.app.push_screen(AllJobsScreen(self.session.data))

    def _settings(self, sources: Sequence[ModelSource]) -> RunSettings:
        from dlbricks_tui.api.new_runs import settings_for

        config = self._config()
        if self._last_config is not None and _of_runs(self._last_config) != _of_runs(config):
            # A change of the config overrides the settings of earlier runs.
            self._last, self._last_of = None, {}
        last = self._last_of.get(_ids(sources))
        return settings_for(self.choices, sources, self.session.data, config, last, self._last)

    def _start(self, sources: Sequence[ModelSource], settings: RunSettings) -> None:
        # Loaded here, in a thread: the first screen starts no run.
        from dlbricks_tui.api.jobs import start_run
        from dlbricks_tui.api.new_runs import request_for

        request = request_for(sources, self._library.shapes, settings, self.session.data)
        # A probe predicts all but a few bricks.
        measured_only = self.choices.measured_only and request.probe_bricks is None
        request = replace(request, measured_only=measured_only)
        self.post_message(messages.RunBegun(start_run(request, self.session.data, self.session.spare)))

    def _preview_run(self, sources: Sequence[ModelSource], over: Event, settings: RunSettings) -> RunPreview:
        from dlbricks_tui.api.new_runs import preview_run, request_for

        found = preview_run(self.session, sources, self._library.shapes, settings)
        if found.bricks or found.whole_models or found.unread:
            # It loads the framework while the user looks at the settings.
            request = request_for(sources, self._library.shapes, settings, self.session.data)
            self.session.spare.prepare(request, over.is_set)
        return found


def _ids(sources: Sequence[ModelSource]) -> frozenset[ModelId]:
    return frozenset(map(id_of, sources))


def _of_runs(config: Config) -> tuple[object, ...]:
    return config.runtime, config.threads, config.target_ci, config.time_budget


RECORDED = "recorded results"


class RunUpdates:
    """Passes the state of the run to the screens in sight; hidden screens wait until they are shown."""

    def __init__(self, app: App[None], data: DataFolder, poll_factor: float) -> None:
        self._app = app
        # It watches in a thread of its own.
        self.watch = RunWatch(data, partial(app.call_later, self.take), poll_factor=poll_factor)
        self._run: RunSnapshot | None = None
        # What the status lines show, and the run whose end the user has seen.
        self._now = HostNow(load=RECORDED if recorded_host() is not None else "")
        self._seen = ""

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
            # The end of a run lets those go on that have waited for it.
            for screen in self._app.screen_stack[-1:]:
                self._tell_of_results(screen)

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
        for screen in self._app.screen_stack:
            if isinstance(screen, ThreadedScreen):
                screen.lacks_results = screen.WANTS_NEW_RESULTS
        for screen in self._app.screen_stack[-1:]:
            self._tell_of_results(screen)

    def catch_up(self, screen: Screen[object]) -> None:
        """Update a screen that has come to the front; a new one has just read the store."""
        self._show(screen)
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
        if not isinstance(screen, ThreadedScreen):
            return
        # Reading them over and over would disturb the run.
        has_to_wait = screen.WAITS_FOR_RUN and self._run is not None and self._run.measures
        if screen.lacks_results and not has_to_wait:
            screen.lacks_results = False
            screen.post_message(NewResults())
