"""The boxes about runs: all jobs, the line of work on this host, the settings of a new run."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from operator import attrgetter
from typing import TYPE_CHECKING

from dlbricks_tui.api.followed_runs import RunSnapshot
from dlbricks_tui.api.jobs import (
    ToldJob,
    can_be_followed,
    end_work,
    find_job,
    has_screen,
    is_run,
    pause_or_resume,
    stored_jobs,
)
from dlbricks_tui.api.measuring import MOST_MODELS_END_TO_END
from dlbricks_tui.api.new_runs import RunSettings
from dlbricks_tui.api.open_models import ComparableRow, PairKind
from dlbricks_tui.documents.lines import (
    BLANK,
    Line,
    Span,
    column,
    contains_all,
    fitted,
    line,
    spread,
    wrapped,
    wrapped_lines,
)
from dlbricks_tui.documents.parts import BLANK_LINE, MarkedSentence, Part, Sentence
from dlbricks_tui.documents.run import STATE_STYLES, joined
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.cutting import CUT, GRANULARITY, LEVEL
from dlbricks_tui.settings.measuring import (
    AGAIN,
    END_TO_END,
    METHOD,
    PROBE_SECONDS,
    RETRY_FAILED,
    TARGET_INTERVAL,
    TIME_BUDGET,
)
from dlbricks_tui.settings.variant import BATCH, INSTRUCTIONS, OPTIMISATION, PRECISION, RUNTIME, THREADS
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen, Dialog, SearchedDialog, TextDialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.messages import JobWanted
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.form import FormDialog, FormRow
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.numbers import ago, capitalised, counted, duration, names_of, percent
from dlbricks_tui.wording.runs import Done, how_far_in_line, named_counts

if TYPE_CHECKING:
    from dlbricks_tui.api.new_runs import RunPreview
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.jobs.folder import JobState, StoredJobs

_ROOMY, _NARROW = 80, 50


class AllJobsScreen(SearchedDialog[None]):
    """Lists jobs of all kinds, the newest first; runs and fleet runs are shown on their screens, others in a box."""

    scope = scopes.RUNS
    HEADING = "Jobs"
    SEARCH_HINT = "model, kind, state, date or id"
    ABOUT = (
        "All runs, fleet runs, proofs, load tests, traces and exports, the newest first, including those that were "
        "started in other terminals."
    )

    def __init__(self, data: DataFolder) -> None:
        self._list: DrawnRows[JobState] = DrawnRows(lambda index, width: _job_row(self._list.items[index], width))
        self._list.show_placeholder(line(Span("Looking for jobs.", "muted")))
        self._list.stands_for = self._comparable
        super().__init__(self._list)
        self._data = data
        self._states: tuple[JobState, ...] = ()
        self._followed: RunSnapshot | None = None

    def on_mount(self) -> None:
        self._look()

    def show_run(self, run: RunSnapshot) -> None:
        before, self._followed = self._followed, run
        # Not at each change of the run: reading all jobs disturbs measurements.
        if before is None or (before.run, before.state) != (run.run, run.state):
            self._look()

    def _look(self) -> None:
        self.run_in_thread(partial(stored_jobs, self._data), "jobs", self._show_jobs)

    def _show_jobs(self, found: StoredJobs) -> None:
        self._states = found.states[::-1]
        if self._states:
            told = line("No job contains all of these words."), Hint("{find.clear} shows all jobs again.", "muted")
        else:
            how = Hint("{dialog.close} goes back; {workbench.start_run} on the workbench starts the first.")
            told = line("There are no jobs yet."), how
        self._list.show_placeholder(*told)
        self.search_changed()
        self.refresh_bindings()
        if found.unreadable:
            # One is named, and the others are counted.
            first, *others = found.unreadable.values()
            more = f"; {counted(len(others), 'other')} cannot be read either" if others else ""
            self.notify(f"{first}{more}", severity="warning")

    def search_changed(self) -> None:
        found = (it for it in self._states if contains_all(_searched(it), self.words))
        self._list.show_items(found, attrgetter("run"))

    def action_show(self) -> None:
        if self._list.selected is not None:
            self._show(self._list.selected)

    def action_replay(self) -> None:
        job = self._list.selected
        if job is not None:
            self._show(job, replayed=is_run(job.kind) and not job.active)

    def action_resume(self) -> None:
        def tell(told: str) -> None:
            if job is not None and job.active:
                self.notify(told)
                self._look()
            elif job is not None:
                self._show(job)

        job = self._list.selected
        if job is not None:
            self.run_in_thread(partial(pause_or_resume, job.run, self._data), "tell", tell)

    def _show(self, job: JobState, *, replayed: bool = False) -> None:
        def show_box(found: ToldJob) -> None:
            self.app.push_screen(JobScreen(found, self._data), lambda _: self._look())

        if has_screen(job.kind):
            # Without its result: a screen cannot await its own end.
            self.dismiss(None)
            self.app.post_message(JobWanted(job.run, job.kind, replayed))
        else:
            self.run_in_thread(lambda: ToldJob(find_job(job.run, self._data)), "job", show_box)

    def _comparable(self, index: int) -> ComparableRow | None:
        if index >= len(self._list.items) or not is_run(self._list.items[index].kind):
            return None
        state = self._list.items[index]
        return ComparableRow(PairKind.RUN, state.run, f"{names_of(state.models)}, {_began(state)}", state.run)


_SECONDS_BETWEEN_LOOKS = 0.5


class JobScreen(TextDialog[None]):
    """Shows how far a job is, pauses and ends it; the job goes on when the box is closed."""

    scope = scopes.JOB
    ABOUT = "The job goes on when you close the box, and when you quit. `dlbricks jobs` lists it, too."

    def __init__(self, job: ToldJob, data: DataFolder) -> None:
        models = f" of {names_of(job.state.models)}" if job.state.models else ""
        super().__init__(heading=capitalised(f"{job.state.kind.value}{models}"))
        self._job = job
        self._data = data

    def on_mount(self) -> None:
        self._looks = self.set_interval(_SECONDS_BETWEEN_LOOKS, self._look)
        self._look()

    def _look(self) -> None:
        try:
            is_new = self._job.look()
        except UserError as error:
            # It has made room for a newer one.
            self._looks.stop()
            self.notify(str(error), severity="warning")
            return
        if is_new:
            self.parts_changed()
            self.query_one(Box).keys_changed()
            self.refresh_bindings()

    def parts(self) -> Iterable[Part]:
        state = self._job.state
        mark, told = (f"{state.state.value}:", f"{state.message}, ") if state.message else (f"{state.state.value},", "")
        yield MarkedSentence(mark, STATE_STYLES.get(state.state, "text"), f"{told}started {ago(state.started)}")
        yield BLANK_LINE
        for each in self._job.lines or ("It has told nothing yet.",):
            yield Sentence(each)
        if self._job.unread:
            yield Sentence(self._job.unread, "warn")

    def action_pause(self) -> None:
        self.run_in_thread(partial(pause_or_resume, self._job.folder.run, self._data), "tell", self.notify)

    def action_cancel(self) -> None:
        told = "The job ends; what it has stored is kept."
        self.run_in_thread(self._job.folder.cancel, "cancel", lambda _: self.notify(told))

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        is_of_active = action in ("cancel", "pause")
        return self._job.state.active if is_of_active else super().check_action(action, parameters)


def _job_row(state: JobState, width: int) -> Line:
    tallies = state.bricks, state.whole_models
    done = [Done(it.measured + it.reused, it.total) for it in tallies]
    # A narrow box has room for one of them.
    roomy = width >= _ROOMY
    counts = [Span(told, "muted") for told in named_counts(*done)][: 2 if roomy else 1]
    if failed := sum(it.failed for it in tallies):
        counts.append(Span(f"{failed:,} failed", "bad"))
    if roomy and not state.active:
        counts.append(Span(duration(state.seconds), "muted"))
    state_cell = column(state.state.value, 12, STATE_STYLES.get(state.state, "text"))
    if width < _NARROW:
        return fitted((state_cell, Span(_subject(state))), width)
    left = (Span(f"{_began(state)} ", "muted"), state_cell, Span(_subject(state)))
    return spread(left, (Span("  "), *joined(counts), Span(" ")), width)


def _subject(state: JobState) -> str:
    models = names_of(state.models)
    return models if is_run(state.kind) else f"{state.kind.value} of {models or 'this host'}"


def _began(state: JobState) -> str:
    return datetime.fromisoformat(state.started).astimezone().strftime("%d %b %H:%M")


def _searched(state: JobState) -> str:
    return f"{_began(state)} {state.state.value} {state.kind.value} {' '.join(state.models)} {state.run}"


class CancelScreen(ConfirmingScreen):
    HEADING = "Cancel the run?"
    scope = scopes.CANCEL_RUN
    ABOUT = "The store keeps the measurements of the run. You can resume the run later."

    def __init__(self, run: RunSnapshot) -> None:
        super().__init__()
        self._run = run

    def show_run(self, run: RunSnapshot) -> None:
        """Update the progress in the question."""
        self._run = run
        self.parts_changed()

    def parts(self) -> Iterable[Part]:
        counts = self._run.counts
        done = ", ".join(named_counts(counts.bricks, counts.models))
        yield Sentence(f"Run {self._run.run} of {names_of(self._run.models)}{f': {done}' if done else ''}.")
        yield BLANK_LINE
        yield Sentence("Its measurements are kept, and it can be resumed later.")


_KIND_WIDTH, _ROOMY_FOR_USERS = 16, 90


class QueueScreen(Dialog["Place"]):
    """Returns the work to follow, if its data is in this data folder."""

    scope = scopes.QUEUE
    HEADING = "Work on this host"
    BOX_CLASSES = "-tall"
    ABOUT = (
        "Only one piece of work measures on this host at a time. The others wait in the order in which they came, of "
        "all terminals, users and data folders. Work goes on when its terminal or the workbench is closed."
    )

    def __init__(self, places: tuple[Place, ...], data: DataFolder) -> None:
        self._data = data
        self._list: DrawnRows[Place] = DrawnRows(self._row, places)
        self._list.show_placeholder(
            line("Nothing measures on this host now."), Hint("{dialog.close} goes back.", "muted")
        )
        super().__init__(self._list)

    def show_queue(self, places: tuple[Place, ...]) -> None:
        self._list.show_items(places, attrgetter("process"))

    def action_follow(self) -> None:
        place = self._list.selected
        if place is not None and can_be_followed(place, self._data):
            self.dismiss(place)
        elif place is not None:
            show_message(self.app, f"Nothing more is known of it here: {place}.")

    def action_cancel(self) -> None:
        def cancel(_: bool) -> None:
            if place is not None and (problem := end_work(place)):
                show_message(self.app, problem, warning=place.process.alive)

        place = self._list.selected
        if place is not None:
            self.ask(CancelWorkScreen(place), cancel)

    def _row(self, index: int, width: int) -> Line:
        place = self._list.items[index]
        state = how_far_in_line(place) or "measures" if place.measures else f"waits, place {index or 1}"
        where = f"{place.user}, process {place.pid} " if width >= _ROOMY_FOR_USERS else f"{place.pid} "
        left = (
            column(f" {place.kind or 'work'}", _KIND_WIDTH, "muted"),
            Span(f"{place.title}  "),
            Span(state, "good" if place.measures else "warn"),
        )
        return spread(left, (Span(f"  {where}", "muted"),), width)


class CancelWorkScreen(ConfirmingScreen):
    HEADING = "Cancel this work?"
    scope = scopes.CANCEL_WORK
    ABOUT = "Its process is asked to end, whoever has started it. Results that are stored by then are kept."

    def __init__(self, place: Place) -> None:
        told = "Its process ends; what it has stored is kept."
        super().__init__(Sentence(f"{place}."), BLANK_LINE, Sentence(told))


def _time(seconds: float | None, otherwise: str) -> str:
    return otherwise if seconds is None else duration(seconds)


_BASIC = (
    FormRow(
        setting=RUNTIME, meaning="the runtime that runs the bricks", many=True, offered=attrgetter("offered_runtimes")
    ),
    FormRow(setting=THREADS, many=True, usual="default"),
    FormRow(setting=BATCH, many=True, usual="the file's"),
    FormRow(setting=TIME_BUDGET, usual="none", words=lambda it: _time(it.time_budget_seconds, "none")),
)
RUN_ROWS = (
    *_BASIC,
    FormRow(setting=LEVEL),
    FormRow(setting=GRANULARITY),
    FormRow(setting=CUT),
    FormRow(setting=METHOD, usual="default"),
    FormRow(setting=END_TO_END),
    FormRow(setting=TARGET_INTERVAL, words=lambda it: f"±{percent(it.target_interval, 1)}"),
    FormRow(
        setting=PROBE_SECONDS,
        label="probe",
        kept_in="probe_seconds",
        usual="no",
        words=lambda it: _time(it.probe_seconds, "no"),
    ),
    FormRow(setting=PRECISION, many=True),
    FormRow(setting=INSTRUCTIONS, many=True, usual="all", offered=attrgetter("offered_instructions")),
    FormRow(setting=OPTIMISATION, many=True, usual="all"),
    FormRow(setting=AGAIN, label="measured before"),
    FormRow(setting=RETRY_FAILED, label="failed before"),
)


def shown_rows(settings: RunSettings, models: int, *, expert: bool) -> tuple[FormRow, ...]:
    """Return the rows to show: all of them to an expert, else the basic ones and those that are not as usual."""
    usual = RunSettings(runtime=settings.runtime, end_to_end=models <= MOST_MODELS_END_TO_END)
    return tuple(it for it in RUN_ROWS if expert or it in _BASIC or it.shown(settings) != it.shown(usual))


_LINES_BELOW = 3
# The frame of the box, its padding, and the lines below the settings.
_AROUND = 8


class StartRunScreen(FormDialog[RunSettings]):
    """Returns the settings to start the run with."""

    scope = scopes.START_RUN
    CSS = """
    StartRunScreen Box { max-height: 100%; padding: 0 2; }
    Box .run-preview { height: auto; min-height: 4; }
    StartRunScreen RowsView { height: auto; margin-top: 0; }
    """
    ABOUT = (
        "Bricks that were measured on this system in the same way are not run again, unless you ask for it. The run is"
        " a separate process that continues if you quit. You can cancel it at any time; its measurements are kept."
    )

    def __init__(
        self,
        models: tuple[str, ...],
        settings: RunSettings,
        preview_run: Callable[[RunSettings], RunPreview],
        *,
        expert: bool,
        show_expert: Callable[[bool], object],
    ) -> None:
        """`show_expert` is called when the user shows expert settings, or hides them."""
        self._below = TextLines(self._below_lines, classes="run-preview")
        super().__init__(RUN_ROWS, settings, self._below, heading=f"Run {names_of(models)}")
        self._models = models
        self._preview_run = preview_run
        self._expert = expert
        self._show_expert = show_expert
        self._preview: RunPreview | None = None

    def on_mount(self) -> None:
        self._fit()
        self._start_preview()

    def on_resize(self) -> None:
        self._fit()

    def action_expert(self) -> None:
        """Show the expert settings too, or hide them."""
        self._expert = not self._expert
        self._show_expert(self._expert)
        self._fit()
        self._below.refresh(layout=True)

    def take(self, form: RunSettings) -> None:
        super().take(form)
        self._fit()
        self._show_preview(None)
        self._start_preview()

    def _fit(self) -> None:
        """Show the settings in a list as high as they are many, where the terminal has the room."""
        self._rows.show_items(shown_rows(self._rows.form, len(self._models), expert=self._expert))
        self._rows.styles.height = max(1, min(len(self._rows.items), self.size.height - _AROUND))

    def _start_preview(self) -> None:
        self.run_in_thread(partial(self._preview_run, self._rows.form), "preview", self._show_preview)

    def _show_preview(self, preview: RunPreview | None) -> None:
        self._preview = preview
        self._below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        preview = self._preview
        if preview is not None and preview.refusal:
            return tuple(wrapped(line(Span(preview.refusal, "warn")), width))
        told = [_preview_line(preview)]
        if preview is not None:
            guess = "A guess: not all formats and batch sizes were read yet."
            wait = f"It will wait for {preview.waits_for}"
            warnings = [*[guess] * preview.is_guess, *[wait] * bool(preview.waits_for), *preview.warnings]
            told += [line(Span(warning, "warn")) for warning in warnings]
        if hidden := len(RUN_ROWS) - len(self._rows.items):
            told.append(Hint(f"{{start_run.expert}} shows {hidden} expert settings", "muted").line)
        found = wrapped_lines(told, width)
        return (*found, *[BLANK] * (_LINES_BELOW - len(found)))


def _preview_line(preview: RunPreview | None) -> Line:
    if preview is None:
        return line(Span("Looking up what is already measured.", "muted"))
    spans = []
    if preview.bricks or preview.whole_models or not preview.unread:
        most = "at most " * preview.is_probe or "about " * preview.is_guess
        spans.append(Span(f"{most}{counted(preview.bricks, 'brick')} to run", "strong"))
    if preview.whole_models:
        spans.append(Span(f"{counted(preview.whole_models, 'whole model')} to time", "strong"))
    if preview.bricks or preview.whole_models:
        spans.append(Span(f"about {duration(preview.seconds)}", "strong"))
    if preview.reused:
        spans.append(Span(f"{preview.reused:,} known"))
    if preview.failed_before:
        spans.append(Span(f"{preview.failed_before:,} failed before", "warn"))
    if preview.unread:
        spans.append(Span(f"{names_of(preview.unread)} not read yet: the time is unknown", "warn"))
    return joined(spans)
