"""The base of the workbench screen: starts runs, and the bar of the followed run."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, bar, spread
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.queue import Place
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.keys.keymap import key
from dlbricks_tui.tui.messages import Failed
from dlbricks_tui.tui.open_model import ListedModels, ModelSpec, id_of
from dlbricks_tui.tui.run.snapshot import RunSnapshot, estimate_of, how_far, load_of, state_of, what_now
from dlbricks_tui.tui.view_state import read_view, write_view
from dlbricks_tui.tui.widgets.screens import PanelledScreen
from dlbricks_tui.tui.widgets.text import LineBar
from dlbricks_tui.wording.numbers import names_of, percent
from dlbricks_tui.wording.runs import line_of_work

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.host.queue import Place, WorkKind
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runs.request import RunRequest
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelId
    from dlbricks_tui.tui.run.runs import RunPreview
    from dlbricks_tui.tui.run.settings import RunSettings, WantedCombination
    from dlbricks_tui.tui.run.snapshot import RunSnapshot
    from dlbricks_tui.tui.session import Session

_ROOMY = 100
_BAR_NARROW, _BAR_WIDE = 10, 30
_TRACK = "░"


def status_lines(run: RunSnapshot | None, places: Sequence[Place], width: int) -> tuple[Line, ...]:
    """Return the lines of the bar: the line of work on this host, unless it is only the run, and then the run."""
    lines = () if run is None else bar_lines(run, width)
    if not places or (run is not None and run.active and [it.id for it in places] == [run.run]):
        return lines
    keys = (Span(f"  {key('workbench.show_queue')} ", "accent"), Span("queue ", "muted"))
    words = Span(f" {line_of_work(places)}", "strong" if places[0].measures else "warn")
    # A run that is under way is part of the line already.
    return (spread((words,), keys, width), *(() if run is not None and run.active and width < _ROOMY else lines[:1]))


def bar_lines(run: RunSnapshot, width: int) -> tuple[Line, ...]:
    roomy = width >= _ROOMY
    if roomy:
        return (
            spread(_head(run, _BAR_WIDE, how_far(run)), _keys(run), width),
            spread(_foot(run), load_of(run, with_cores=True), width),
        )
    # An ended run needs no bar beside its percentage.
    return (spread(_head(run, _BAR_NARROW if run.active else 0, how_far(run)), _keys(run), width),)


def _keys(run: RunSnapshot) -> Line:
    show = (Span(f"  {key('workbench.show_run')} ", "accent"), Span("run ", "muted"))
    close = (Span(f"  {key('workbench.close_run_bar')} ", "accent"), Span("close", "muted"))
    if run.state is State.INTERRUPTED and run.replay is None:
        # The key on the screen of the run.
        resume = f"  {key('workbench.show_run')} {key('run.pause')} "
        return (*close, Span(resume, "accent"), Span("resume ", "muted"))
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
    """Shows the followed run until the user has seen how it ended, and other work on this host; hidden without both."""

    class Opened(Message):
        """The user wants to see the run screen."""

    def __init__(self) -> None:
        super().__init__(id="run")
        self._run: RunSnapshot | None = None
        self.places: tuple[Place, ...] = ()
        self._drawn: tuple[Line, ...] = ()
        self.display = False

    def show(self, run: RunSnapshot) -> None:
        self._run = run
        self._show()

    def show_queue(self, places: tuple[Place, ...]) -> None:
        self.places = places
        self._show()

    def hide(self) -> None:
        self._run = None
        self._show()

    @property
    def shows_run(self) -> bool:
        return self._run is not None

    def _show(self) -> None:
        lines = status_lines(self._run, self.places, self.size.width)
        self.display = bool(lines)
        # Drawing disturbs measurements.
        if lines != self._drawn:
            self.refresh(layout=len(lines) != len(self._drawn))
        if not lines:
            self._drawn = ()

    def lines(self, width: int) -> tuple[Line, ...]:
        self._drawn = status_lines(self._run, self.places, width)
        return self._drawn

    def on_click(self) -> None:
        self.post_message(self.Opened())


class RunHostScreen(PanelledScreen[None]):
    """Starts runs, shows the bar of the followed run, and opens the screens of runs; subclasses place `run_bar`."""

    def __init__(self, session: Session, choices: Choices, config: Callable[[], Config]) -> None:
        super().__init__()
        self.session = session
        self.choices = choices
        self.view = read_view(session.data.view)
        self._library = ListedModels()
        self.run_bar = RunBar()
        self._run: RunSnapshot | None = None
        # The run whose end the user has seen.
        self._seen: str | None = None
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

    @property
    def is_expert(self) -> bool:
        """Return whether expert settings are shown."""
        return self.view.expert

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
        from dlbricks_tui.tui.run.boxes import StartRunScreen
        from dlbricks_tui.tui.run.settings import exactly

        def begin(settings: RunSettings) -> None:
            self._last = self._last_of[_ids(sources)] = settings
            self._last_config = self._config()
            self.run_in_thread(partial(self._start, sources, settings), "start run")

        try:
            settings = self._settings(sources)
            each = exactly(settings, combinations, self.session.data) if combinations else [settings]
        except UserError as error:
            self.app.post_message(Failed(error))
            return
        names, preview = tuple(source.name for source in sources), partial(self._preview_run, sources)
        # The box of the first run is in front.
        for settings in reversed(each):
            box = StartRunScreen(names, settings, preview, expert=self.is_expert, show_expert=self.show_expert)
            self.ask(box, begin)

    def start_default_run(self, sources: Sequence[ModelSource]) -> None:
        """Start a run with the default settings."""
        self.run_in_thread(lambda: self._start(sources, self._settings(sources)), "start run")

    def show_run(self, run: RunSnapshot) -> None:
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
            return self.run_bar.shows_run and self._run is not None and not self._run.active
        return super().check_action(action, parameters)

    def on_screen_resume(self) -> None:
        self.post_message(messages.RunStateNeeded())

    def show_queue(self, places: tuple[Place, ...]) -> None:
        self.run_bar.show_queue(places)

    def on_run_bar_opened(self) -> None:
        if self.run_bar.shows_run:
            self.action_show_run()
        else:
            self.action_show_queue()

    def action_show_queue(self) -> None:
        from dlbricks_tui.tui.run.boxes import QueueScreen

        self.ask(QueueScreen(self.run_bar.places, self.session.data), self._follow_work)

    def _follow_work(self, place: Place) -> None:
        """Show the screen on which work is followed."""
        from dlbricks_tui.host.queue import WorkKind

        if place.kind in (WorkKind.RUN, WorkKind.PROBE):
            self.post_message(messages.RunBegun(place.id))
            self._show(None)
        else:
            self.follow_job(WorkKind(place.kind), place.title)

    def follow_job(self, kind: WorkKind, model: str) -> None:
        """Show the screen of a model on which its proof, load test or trace is followed."""
        raise NotImplementedError

    def action_close_run_bar(self) -> None:
        self._end_seen(self._run)

    def action_show_run(self) -> None:
        if self._run is None:
            self.action_show_runs()
        else:
            self._show(self._run)

    def action_show_runs(self) -> None:
        from dlbricks_tui.tui.run.boxes import AllJobsScreen

        def chosen(wanted: messages.RunBegun | messages.ReplayWanted) -> None:
            self.post_message(wanted)
            self._show(None)

        self.ask(AllJobsScreen(self.session.runs), chosen)

    def _show(self, run: RunSnapshot | None) -> None:
        from dlbricks_tui.tui.run.screen import RunScreen

        self.app.push_screen(RunScreen(self.session.runs, run), self._end_seen)

    def _end_seen(self, run: RunSnapshot | None) -> None:
        """Hide the bar of a run that has ended; a new or resumed run shows it again."""
        if run is not None and not run.active:
            self._seen = run.run
            self.show_run(run)

    def _settings(self, sources: Sequence[ModelSource]) -> RunSettings:
        from dlbricks_tui.tui.run.settings import settings_for

        config = self._config()
        if self._last_config is not None and _of_runs(self._last_config) != _of_runs(config):
            # A change of the config overrides the settings of earlier runs.
            self._last, self._last_of = None, {}
        last = self._last_of.get(_ids(sources))
        return settings_for(self.choices, sources, self.session.data, config, last, self._last)

    def _start(self, sources: Sequence[ModelSource], settings: RunSettings) -> None:
        from dlbricks_tui.tui.run.runs import request_for

        request = request_for(sources, self._library.shapes, settings, self.session.data)
        self.post_message(messages.RunBegun(self.session.runs.start(request)))

    def _preview_run(self, sources: Sequence[ModelSource], settings: RunSettings) -> RunPreview:
        from dlbricks_tui.tui.run.runs import RunPreview, preview_run, request_for

        shapes = self._library.shapes
        try:
            request = request_for(sources, shapes, settings, self.session.data)
        except UserError as error:
            return RunPreview(refusal=str(error))

        def specs_of(part: RunRequest) -> list[ModelSpec]:
            form, precision = part.runtime.traits.format, part.runtime.settings.precision
            return [
                replace(spec, batch_size=batch_size, precision=precision, kernels=part.runtime.kernels)
                for spec in (
                    ModelSpec(it.in_format(form), settings.level, part.measured_cutting, shapes.get(id_of(it), {}))
                    for it in sources
                )
                for batch_size in request.batch_sizes or (None,)
            ]

        return preview_run(self.session, request, specs_of)


def _ids(sources: Sequence[ModelSource]) -> frozenset[ModelId]:
    return frozenset(map(id_of, sources))


def _of_runs(config: Config) -> tuple[object, ...]:
    return config.runtime, config.threads, config.target_ci, config.time_budget
