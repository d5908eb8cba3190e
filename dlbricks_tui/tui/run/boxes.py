"""The boxes about runs: all jobs, the line of work on this host, the settings of a new run."""

from __future__ import annotations

import os
import signal
from collections import deque
from collections.abc import Callable, Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING, Generic

from dlbricks_tui.answers.sides import PairKind
from dlbricks_tui.documents.lines import BLANK, Line, Span, column, contains_all, line, spread, wrapped
from dlbricks_tui.documents.parts import BLANK_LINE, MarkedSentence, Part, Sentence
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen, Dialog, Result, SearchedDialog, TextDialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.messages import ReplayWanted, RunBegun
from dlbricks_tui.tui.run.settings import RUN_ROWS, RunSettings, shown_rows
from dlbricks_tui.tui.run.snapshot import STATE_STYLES, RunSnapshot, joined
from dlbricks_tui.tui.saving import show_message
from dlbricks_tui.tui.widgets.form import FormDialog
from dlbricks_tui.tui.widgets.rows import ItemRows, place_of
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.jobs import unreadable_in_words
from dlbricks_tui.wording.numbers import ago, capitalised, counted, duration, names_of
from dlbricks_tui.wording.runs import Done, how_far_in_line, named_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.jobs.folder import JobFolder, JobState, StoredJobs
    from dlbricks_tui.tui.run.runs import RunPreview, Runs


_ROOMY = 80


class StoredRunsScreen(SearchedDialog[Result], Generic[Result]):
    """Lists all jobs or fleet runs, the newest first, and returns the one to watch."""

    SEARCH_HINT = "model, state, date or id"

    def __init__(self, rows: RunRows, stored: Callable[[], StoredJobs], resume: Callable[[str], None]) -> None:
        self._list = rows
        super().__init__(rows)
        self._stored = stored
        self._resume = resume

    def on_mount(self) -> None:
        self.look()

    def look(self) -> None:
        """Read the states."""
        self.run_in_thread(self._stored, "runs", self._show_runs)

    def result_for(self, job: JobState) -> Result:
        """Return the result of the box for one to watch."""
        raise NotImplementedError

    def show_found(self, words: Sequence[str]) -> None:
        self._list.seek(words)

    def action_show(self) -> None:
        if self._list.selected is not None:
            self.watch_job(self._list.selected)

    def action_resume(self) -> None:
        job = self._list.selected
        if job is not None:
            self.run_in_thread(partial(self._resume, job.run), "tell", lambda _: self.watch_job(job))

    def watch_job(self, job: JobState) -> None:
        # Without its result: a screen cannot await its own end.
        self.dismiss(self.result_for(job))

    def _show_runs(self, found: StoredJobs) -> None:
        self._list.show(found.states[::-1])
        self.refresh_bindings()
        if found.unreadable:
            self.notify(_unreadable_jobs(found), severity="warning", markup=False)


class AllJobsScreen(StoredRunsScreen["RunBegun | ReplayWanted"]):
    """Returns the run to watch or to replay, as the message that asks for it."""

    scope = scopes.RUNS
    HEADING = "Jobs"
    SEARCH_HINT = "model, kind, state, date or id"
    ABOUT = (
        "All runs, proofs, load tests, traces and exports, the newest first, including those that were started in "
        "other terminals. {workbench.show_fleet} on the workbench lists fleet runs."
    )

    def __init__(self, runs: Runs) -> None:
        super().__init__(RunRows("job", "{workbench.start_run} on the workbench"), runs.stored, runs.resume)
        self._list.stands_for = self._comparable
        self._runs = runs

    def result_for(self, job: JobState) -> RunBegun | ReplayWanted:
        return RunBegun(job.run)

    def watch_job(self, job: JobState) -> None:
        if _is_run(job):
            super().watch_job(job)
        else:
            self.run_in_thread(partial(self._runs.job, job.run), "job", self._show_job)

    def _show_job(self, job: JobFolder) -> None:
        self.app.push_screen(JobScreen(job), lambda _: self.look())

    def action_replay(self) -> None:
        selected = self._list.selected
        if selected is None:
            return
        if _is_run(selected) and not selected.active:
            self.dismiss(ReplayWanted(selected.run))
        else:
            self.watch_job(selected)

    def action_resume(self) -> None:
        selected = self._list.selected
        if selected is not None and selected.active and _is_run(selected):
            self.run_in_thread(partial(self._runs.pause_or_unpause, selected.run), "tell", self._paused)
        else:
            super().action_resume()

    def _paused(self, told: str) -> None:
        self.notify(told)
        self.look()

    def _comparable(self, index: int) -> ComparableRow | None:
        if index >= len(self._list.items) or not _is_run(self._list.items[index]):
            return None
        state = self._list.items[index]
        return ComparableRow(PairKind.RUN, state.run, f"{names_of(state.models)}, {_began(state)}", state.run)


def _is_run(job: JobState) -> bool:
    return job.kind in (WorkKind.RUN, WorkKind.PROBE)


_MOST_LINES = 8
_SECONDS_BETWEEN_LOOKS = 0.5


class JobScreen(TextDialog[None]):
    """Shows how far a job is, and ends it; the job goes on when the box is closed."""

    scope = scopes.JOB
    ABOUT = "The job goes on when you close the box, and when you quit. `dlbricks jobs` lists it, too."

    def __init__(self, job: JobFolder) -> None:
        # Loaded here: the first screen needs no jobs of all kinds.
        from dlbricks_tui.answers.jobs import reader_of, words_for

        self._job = job
        self._state = job.state()
        models = f" of {names_of(self._state.models)}" if self._state.models else ""
        super().__init__(heading=capitalised(f"{self._state.kind.value}{models}"))
        self._reader, self._line_of = reader_of(job), words_for(job).line
        self._lines: deque[str] = deque(maxlen=_MOST_LINES)

    def on_mount(self) -> None:
        self.set_interval(_SECONDS_BETWEEN_LOOKS, self._look)
        self._look()

    def _look(self) -> None:
        # Before reading the events, so that the last ones are read.
        state = self._job.state()
        new = self._reader.new()
        self._lines.extend(it for it in map(self._line_of, new) if it)
        if new or state != self._state:
            self._state = state
            self.parts_changed()
            self.query_one(Box).keys_changed()
            self.refresh_bindings()

    def parts(self) -> Iterable[Part]:
        state = self._state
        mark, told = (f"{state.state.value}:", f"{state.message}, ") if state.message else (f"{state.state.value},", "")
        yield MarkedSentence(mark, STATE_STYLES.get(state.state, "text"), f"{told}started {ago(state.started)}")
        yield BLANK_LINE
        for each in self._lines or ("It has told nothing yet.",):
            yield Sentence(each)
        if unread := unreadable_in_words(self._reader.unreadable):
            yield Sentence(unread, "warn")

    def action_cancel(self) -> None:
        self.run_in_thread(
            self._job.cancel, "cancel", lambda _: self.notify("The job ends; what it has stored is kept.")
        )

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._state.active if action == "cancel" else super().check_action(action, parameters)


def _unreadable_jobs(found: StoredJobs) -> str:
    """Name a run that cannot be read, and the number of the others."""
    first, *others = found.unreadable.values()
    return f"{first}; {counted(len(others), 'other')} cannot be read either" if others else first


class RunRows(ItemRows["JobState"]):
    """The runs, or the fleet runs, that contain all words of a search."""

    def __init__(self, name: str, start: str) -> None:
        super().__init__()
        self._name, self._start = name, start
        self._states: tuple[JobState, ...] = ()
        self._words: tuple[str, ...] = ()
        self.show_placeholder(line(Span(f"Looking for {name}s.", "muted")))

    def row(self, index: int, width: int) -> Line:
        return _run_row(self.items[index], width)

    def show(self, states: tuple[JobState, ...]) -> None:
        self._states = states
        if states:
            self.show_placeholder(
                line(f"No {self._name} contains all of these words."),
                Hint(f"{{find.clear}} shows all {self._name}s again.", "muted"),
            )
        else:
            self.show_placeholder(
                line(f"There are no {self._name}s yet."),
                Hint(f"{{dialog.close}} goes back; {self._start} starts the first."),
            )
        self.seek(self._words)

    def seek(self, words: Sequence[str]) -> None:
        """Show only those that contain all of the words."""
        self._words = tuple(words)
        here = self.selected.run if self.selected else None
        self.items = tuple(state for state in self._states if _matches(state, self._words))
        self.rows_changed()
        self.move_to(place_of(here, [state.run for state in self.items]))


def _run_row(state: JobState, width: int) -> Line:
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
    left = (Span(f"{_began(state)} ", "muted"), state_cell, Span(_subject(state)))
    return spread(left, (Span("  "), *joined(counts), Span(" ")), width)


def _subject(state: JobState) -> str:
    models = names_of(state.models)
    return (
        models if _is_run(state) or state.kind is WorkKind.FLEET else f"{state.kind.value} of {models or 'this host'}"
    )


def _began(state: JobState) -> str:
    return datetime.fromisoformat(state.started).astimezone().strftime("%d %b %H:%M")


def _matches(state: JobState, words: Sequence[str]) -> bool:
    return contains_all(
        f"{_began(state)} {state.state.value} {state.kind.value} {' '.join(state.models)} {state.run}", words
    )


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
        self._list = _Places()
        self._places = places
        super().__init__(self._list)

    def on_mount(self) -> None:
        self._list.show(self._places)

    def show_queue(self, places: tuple[Place, ...]) -> None:
        self._list.show(places)

    def action_follow(self) -> None:
        place = self._list.selected
        if place is None:
            return
        if place.data_folder == str(self._data.path.absolute()) and place.kind not in (
            WorkKind.PEAKS,
            WorkKind.KERNELS,
        ):
            self.dismiss(place)
        else:
            show_message(self.app, f"Nothing more is known of it here: {place}.")

    def action_cancel(self) -> None:
        place = self._list.selected
        if place is not None:
            self.ask(CancelWorkScreen(place), lambda _: self._cancel(place))

    def _cancel(self, place: Place) -> None:
        # Its number may belong to another process by now.
        if not place.process.alive:
            show_message(self.app, f"{place.brief} has ended.")
            return
        try:
            os.kill(place.pid, signal.SIGTERM)
        except ProcessLookupError:
            return
        except PermissionError:
            show_message(self.app, f"Process {place.pid} belongs to {place.user}: ask them.", warning=True)


class _Places(ItemRows["Place"]):
    def __init__(self) -> None:
        super().__init__()
        self.show_placeholder(line("Nothing measures on this host now."), Hint("{dialog.close} goes back.", "muted"))

    def row(self, index: int, width: int) -> Line:
        place = self.items[index]
        state = how_far_in_line(place) or "measures" if place.measures else f"waits, place {index or 1}"
        where = f"{place.user}, process {place.pid} " if width >= _ROOMY_FOR_USERS else f"{place.pid} "
        left = (
            column(f" {place.kind or 'work'}", _KIND_WIDTH, "muted"),
            Span(f"{place.title}  "),
            Span(state, "good" if place.measures else "warn"),
        )
        return spread(left, (Span(f"  {where}", "muted"),), width)

    def show(self, places: tuple[Place, ...]) -> None:
        here = self.selected.process if self.selected else None
        self.items = places
        self.rows_changed()
        self.move_to(place_of(here, [place.process for place in places]))


class CancelWorkScreen(ConfirmingScreen):
    HEADING = "Cancel this work?"
    scope = scopes.CANCEL_WORK
    ABOUT = "Its process is asked to end, whoever has started it. Results that are stored by then are kept."

    def __init__(self, place: Place) -> None:
        told = "Its process ends; what it has stored is kept."
        super().__init__(Sentence(f"{place}."), BLANK_LINE, Sentence(told))


_LINES_BELOW = 3
# The frame of the box, its padding, and the lines below the settings.
_AROUND = 8


class StartRunScreen(FormDialog[RunSettings]):
    """Returns the settings to start the run with."""

    scope = scopes.START_RUN
    CSS_PATH = "run.tcss"
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
        self._rows.show_rows(shown_rows(self._rows.form, len(self._models), expert=self._expert))
        self._rows.styles.height = max(1, min(len(self._rows.items), self.size.height - _AROUND))

    def _start_preview(self) -> None:
        self.run_in_thread(partial(self._preview_run, self._rows.form), "preview", self._show_preview)

    def _show_preview(self, preview: RunPreview | None) -> None:
        self._preview = preview
        self._below.refresh(layout=True)

    def _below_lines(self, width: int) -> tuple[Line, ...]:
        if self._preview is not None and self._preview.refusal:
            return tuple(wrapped(line(Span(self._preview.refusal, "warn")), width))
        found = wrapped(_preview_line(self._preview), width)
        if self._preview is not None and self._preview.is_guess:
            found += wrapped(line(Span("A guess: not all formats and batch sizes were read yet.", "warn")), width)
        if self._preview is not None and self._preview.waits_for:
            found += wrapped(line(Span(f"It will wait for {self._preview.waits_for}", "warn")), width)
        for warning in () if self._preview is None else self._preview.warnings:
            found += wrapped(line(Span(warning, "warn")), width)
        if hidden := len(RUN_ROWS) - len(self._rows.items):
            found += wrapped(Hint(f"{{start_run.expert}} shows {hidden} expert settings", "muted").line, width)
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
