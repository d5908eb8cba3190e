"""The base of the workbench screen: starts runs and shows the bar of the followed run."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.errors import UserError
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.lines import Line, Span, bar, spread
from dlbricks_tui.tui.messages import Failed, RunBegun
from dlbricks_tui.tui.open_model import ModelSpec, id_of
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.run.words import estimate_of, how_far, how_far_alone, state_of, what_now
from dlbricks_tui.tui.widgets.screens import PanelledScreen
from dlbricks_tui.tui.widgets.text import LineBar
from dlbricks_tui.wording.numbers import names_of, percent

if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.graph import Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelId
    from dlbricks_tui.tui.run.runs import RunPreview
    from dlbricks_tui.tui.run.start import RunSettings
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.widgets.screens import ThreadedScreen

ROOMY = 100
_BAR_NARROW, _BAR_WIDE = 10, 30
_TRACK = "░"


def bar_lines(run: RunSnapshot, width: int) -> tuple[Line, ...]:
    """Return the lines of the run bar."""
    roomy = width >= ROOMY
    if roomy:
        return (spread(_head(run, _BAR_WIDE, how_far(run)), _keys(run), width), spread(_foot(run), (), width))
    # An ended run needs no bar beside its percentage.
    return (spread(_head(run, _BAR_NARROW if run.active else 0, how_far_alone(run)), _keys(run), width),)


def _keys(run: RunSnapshot) -> Line:
    show = (Span(f"  {key('workbench.show_run')} ", "accent"), Span("run ", "muted"))
    close = (Span(f"  {key('workbench.close_run_bar')} ", "accent"), Span("close", "muted"))
    return show if run.active else (*close, *show)


def _head(run: RunSnapshot, bar_width: int, said: Line) -> Line:
    head = (Span(" "), state_of(run), Span(" "))
    if run.share is None:
        return (*head, *(what_now(run) or (Span(names_of(run.models), "muted"),)))
    drawn = bar(run.share, bar_width, _TRACK) if bar_width else ()
    progress = (*drawn, Span(f" {percent(run.share):>5}  ", "strong"))
    return (*head, *progress, *said)


def _foot(run: RunSnapshot) -> Line:
    estimated = [model for model in run.estimates if model.sequential_ms is not None]
    now = what_now(run) if run.share is not None else ()
    spans = [Span(" ")]
    # The least certain estimate changes most.
    for model in sorted(estimated, key=lambda it: -(it.half_widths[-1] if it.half_widths else 0))[:2]:
        spans += [*estimate_of(model), Span("   ")]
    return (*spans, *now)


class RunBar(LineBar):
    """Shows the followed run; hidden without a run, and after the user has seen how it ended."""

    class Opened(Message):
        """The user wants to see the run screen."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._run: RunSnapshot | None = None
        self._drawn: tuple[Line, ...] = ()
        self.display = False

    def show(self, run: RunSnapshot) -> None:
        self._run = run
        self.display = True
        # Drawing disturbs measurements.
        if bar_lines(run, self.size.width) != self._drawn:
            self.refresh(layout=not self._drawn)

    def hide(self) -> None:
        self.display = False
        self._drawn = ()

    def lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = bar_lines(self._run, width) if self._run is not None else ()
        return self._drawn

    def on_click(self) -> None:
        self.post_message(self.Opened())


_Told = tuple[str | None, int | None, float, float | None]


class Launcher:
    """Asks for the settings of runs and starts them."""

    def __init__(self, session: Session, screen: ThreadedScreen[None], config: Callable[[], Config]) -> None:
        self._session = session
        self._screen = screen
        self._config = config
        self._shapes: Mapping[ModelId, Mapping[str, Shape]] = {}
        self._last: RunSettings | None = None
        # The config at the time of the last run.
        self._told: _Told | None = None

    def ask_how(
        self,
        sources: Sequence[ModelSource],
        shapes: Mapping[ModelId, Mapping[str, Shape]],
        choices: Choices,
        follow: Callable[[Choices], None],
    ) -> None:
        """Show the settings and the expected time; `follow` gets the choices of the started run."""
        from dlbricks_tui.tui.run.start import StartRunScreen

        self._shapes = shapes
        try:
            settings = self._settings(sources, choices)
        except UserError as error:
            self._screen.app.post_message(Failed(error))
            return
        names = tuple(source.name for source in sources)
        screen = StartRunScreen(names, settings, partial(self._preview_run, sources))
        self._screen.app.push_screen(screen, partial(self._begin, sources, follow))

    def begin(
        self,
        sources: Sequence[ModelSource],
        shapes: Mapping[ModelId, Mapping[str, Shape]],
        choices: Choices,
    ) -> None:
        """Start a run with the default settings."""
        self._shapes = shapes
        self._screen.run_in_thread(lambda: self._start(sources, self._settings(sources, choices)), "start run")

    def _begin(
        self, sources: Sequence[ModelSource], follow: Callable[[Choices], None], settings: RunSettings | None
    ) -> None:
        if settings is not None:
            self._last, self._told = settings, _told_by(self._config())
            follow(settings.choices)
            self._screen.run_in_thread(partial(self._start, sources, settings), "start run")

    def _settings(self, sources: Sequence[ModelSource], choices: Choices) -> RunSettings:
        from dlbricks_tui.tui.run.start import settings_for

        config = self._config()
        # Changes of the config override the settings of the last run.
        last = self._last if self._told == _told_by(config) else None
        return settings_for(choices, sources, self._session.data.path, config, last)

    def _start(self, sources: Sequence[ModelSource], settings: RunSettings) -> None:
        run = self._session.runs.start(self._request(sources, settings))
        self._screen.post_message(RunBegun(run))

    def _preview_run(self, sources: Sequence[ModelSource], settings: RunSettings) -> RunPreview:
        from dlbricks_tui.tui.run.runs import preview_run

        choices = settings.choices
        specs = [ModelSpec(it, choices.level, choices.cutting, self._shapes.get(id_of(it), {})) for it in sources]
        return preview_run(self._session, specs, self._request(sources, settings))

    def _request(self, sources: Sequence[ModelSource], settings: RunSettings) -> RunRequest:
        from dlbricks_tui.tui.run.start import request_for

        return request_for(sources, self._shapes, settings, self._session.data.path)


def _told_by(config: Config) -> _Told:
    return config.runtime, config.threads, config.target_ci, config.time_budget


class RunHostScreen(PanelledScreen[None]):
    """Shows the bar of the followed run and opens the screens of runs; subclasses place `run_bar`."""

    def __init__(self, session: Session, config: Callable[[], Config]) -> None:
        super().__init__()
        self.session = session
        self.run_bar = RunBar()
        self._run: RunSnapshot | None = None
        # The run whose end the user has seen.
        self._seen: str | None = None
        self._launcher = Launcher(session, self, config)

    @property
    def measuring(self) -> bool:
        """Return whether a run measures now; other work waits meanwhile."""
        return self._run is not None and self._run.active and self._run.state is not State.PAUSED

    def run_has_stopped(self) -> None:
        """Do the work that waited for the run to pause or end."""

    def choose(self, choices: Choices) -> None:
        """Apply other settings, under which the results of a run are found."""
        raise NotImplementedError

    def start_run(
        self, sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]], choices: Choices
    ) -> None:
        """Ask for the settings of a run, and start it."""

        def follow(chosen: Choices) -> None:
            if chosen != choices:
                self.choose(chosen)

        self._launcher.ask_how(sources, shapes, choices, follow)

    def start_default_run(
        self, sources: Sequence[ModelSource], shapes: Mapping[ModelId, Mapping[str, Shape]], choices: Choices
    ) -> None:
        """Start a run with the default settings."""
        self._launcher.begin(sources, shapes, choices)

    def show_run(self, run: RunSnapshot) -> None:
        """Show the state of the followed run."""
        measured = self.measuring
        self._run = run
        if run.active:
            self._seen = None
        if run.run == self._seen:
            self.run_bar.hide()
        else:
            self.run_bar.show(run)
        self.refresh_bindings()
        if measured and not self.measuring:
            self.run_has_stopped()

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        if action == "close_run_bar":
            return self.run_bar.display and self._run is not None and not self._run.active
        return super().check_action(action, parameters)

    def action_close_run_bar(self) -> None:
        self._end_seen(self._run)

    def _end_seen(self, run: RunSnapshot | None) -> None:
        """Hide the bar of a run that has ended; a new or resumed run shows it again."""
        if run is not None and not run.active:
            self._seen = run.run
            self.show_run(run)

    def on_screen_resume(self) -> None:
        self.post_message(messages.RunStateNeeded())

    def on_run_bar_opened(self) -> None:
        self.action_show_run()

    def action_show_run(self) -> None:
        from dlbricks_tui.tui.run.screen import RunScreen

        if self._run is None:
            self.action_show_runs()
        else:
            self.app.push_screen(RunScreen(self.session.runs, self._run), self._end_seen)

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.run.all_runs import AllRunsScreen

        self.app.push_screen(AllRunsScreen(self.session.runs), self._run_chosen)

    def _run_chosen(self, run: str | None) -> None:
        from dlbricks_tui.tui.run.screen import RunScreen

        if run is not None:
            self.post_message(messages.RunBegun(run))
            self.app.push_screen(RunScreen(self.session.runs, None), self._end_seen)
