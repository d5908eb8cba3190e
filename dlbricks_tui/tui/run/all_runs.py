"""The box that lists all jobs, and the one that asks before a run is cancelled."""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import partial
from typing import TYPE_CHECKING

from dlbricks_tui.answers.comparisons.named import PairKind
from dlbricks_tui.documents.lines import BLANK, Line, Span, column, contains_all, line, spread
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.tui.dialogs.dialog import Box, ConfirmingScreen, SearchedDialog
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.messages import ReplayWanted, RunBegun
from dlbricks_tui.tui.run import actions
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.run.words import STATE_STYLES, joined
from dlbricks_tui.tui.widgets.rows import ItemRows, place_of
from dlbricks_tui.tui.widgets.text import TextView
from dlbricks_tui.wording.numbers import counted, duration, names_of
from dlbricks_tui.wording.runs import Done, named_counts

if TYPE_CHECKING:
    from collections.abc import Sequence

    from textual.app import ComposeResult

    from dlbricks_tui.jobs.folder import JobFolder, JobState, StoredJobs
    from dlbricks_tui.tui.run.runs import Runs

_ROOMY = 80


class AllJobsScreen(SearchedDialog["RunBegun | ReplayWanted"]):
    """Returns the run to watch or to replay, as the message that asks for it."""

    scope = actions.RUNS
    SEARCH_HINT = "model, kind, state, date or id"
    ABOUT = (
        "All runs, proofs, load tests, traces and exports, the newest first, including those that were started in "
        "other terminals. {workbench.show_fleet} on the workbench lists fleet runs."
    )

    def __init__(self, runs: Runs) -> None:
        self._list = _ComparableRuns("job", "{workbench.start_run} on the workbench")
        super().__init__(self._list)
        self._runs = runs

    def compose(self) -> ComposeResult:
        with Box("Jobs", actions.RUNS, classes="-tall"):
            yield self._list
            yield self.search_line

    def on_mount(self) -> None:
        self._read()

    def _read(self) -> None:
        self.run_in_thread(self._runs.stored, "runs", self._show_runs)

    def show_found(self, words: Sequence[str]) -> None:
        self._list.seek(words)

    # A box hides the keys of the application.

    async def action_mark_row(self) -> None:
        await self.run_action("app.mark_row")

    async def action_compare_marked(self) -> None:
        await self.run_action("app.compare_marked")

    async def action_unmark_rows(self) -> None:
        await self.run_action("app.unmark_rows")

    def action_show(self) -> None:
        if self._list.selected is not None:
            self._watch(self._list.selected)

    def action_replay(self) -> None:
        selected = self._list.selected
        if selected is None:
            return
        if not is_run(selected):
            self._watch(selected)
        elif not selected.active:
            self.dismiss(ReplayWanted(selected.run))
        else:
            self.run_in_thread(partial(self._runs.pause_or_unpause, selected.run), "tell", self._paused)

    def _paused(self, told: str) -> None:
        self.notify(told)
        self._read()

    def action_resume(self) -> None:
        if self._list.selected is not None:
            self.run_in_thread(partial(self._resume, self._list.selected), "tell", self._watch)

    def _resume(self, job: JobState) -> JobState:
        self._runs.resume(job.run)
        return job

    def _watch(self, job: JobState) -> None:
        if is_run(job):
            self.dismiss(RunBegun(job.run))
        else:
            self.run_in_thread(partial(self._runs.job, job.run), "job", self._show_job)

    def _show_job(self, job: JobFolder) -> None:
        from dlbricks_tui.tui.run.job import JobScreen

        self.app.push_screen(JobScreen(job), lambda _: self._read())

    def _show_runs(self, found: StoredJobs) -> None:
        self._list.show(found.states[::-1])
        self.refresh_bindings()
        if found.unreadable:
            self.notify(unreadable_in_words(found), severity="warning", markup=False)


def is_run(job: JobState) -> bool:
    return job.kind in (WorkKind.RUN, WorkKind.PROBE)


def unreadable_in_words(found: StoredJobs) -> str:
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


class _ComparableRuns(RunRows):
    def comparable_row(self, index: int) -> ComparableRow | None:
        if index >= len(self.items) or not is_run(self.items[index]):
            return None
        state = self.items[index]
        return ComparableRow(PairKind.RUN, state.run, f"{names_of(state.models)}, {_began(state)}", state.run)


def _run_row(state: JobState, width: int) -> Line:
    """Return a run as a row."""
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
    return models if is_run(state) or state.kind is WorkKind.FLEET else f"{state.kind.value} of {models or 'this host'}"


def _began(state: JobState) -> str:
    return datetime.fromisoformat(state.started).astimezone().strftime("%d %b %H:%M")


def _matches(state: JobState, words: Sequence[str]) -> bool:
    return contains_all(
        f"{_began(state)} {state.state.value} {state.kind.value} {' '.join(state.models)} {state.run}", words
    )


class CancelScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Cancel the run?"
    scope = actions.CANCEL_RUN
    ABOUT = "The store keeps the measurements of the run. You can resume the run later."

    def __init__(self, run: RunSnapshot) -> None:
        super().__init__()
        self._run = run

    def show_run(self, run: RunSnapshot) -> None:
        """Update the progress in the question."""
        self._run = run
        self.query_one(TextView).remake()

    def paragraphs(self) -> Iterable[Line]:
        counts = self._run.counts
        done = ", ".join(named_counts(counts.bricks, counts.models))
        yield line(f"Run {self._run.run} of {names_of(self._run.models)}{f': {done}' if done else ''}.")
        yield BLANK
        yield line("Its measurements are kept, and it can be resumed later.")
