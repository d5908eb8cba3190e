"""Follows one run through the events in its folder, as they come or again as a replay."""

import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from datetime import datetime
from enum import Enum
from operator import attrgetter
from statistics import median

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import RunFolder, State
from dlbricks_tui.jobs.replay import Replay, events_so_far
from dlbricks_tui.measure.events import BatchRestarted, RoundDone
from dlbricks_tui.runs.events import (
    AboutProgram,
    EstimateChanged,
    ProgramMeasured,
    ProgramUnfinished,
    RunEvents,
    RunStarted,
)
from dlbricks_tui.runs.progress import Disturbances, ProgramProgress, RunProgress
from dlbricks_tui.runtime.variant import CHOSEN_PRECISIONS, stated_precision
from dlbricks_tui.tui.run.snapshot import BrickState, ReplayPace, RunBrick, RunModel, RunSnapshot, RunTally
from dlbricks_tui.wording.answers import runtime_words
from dlbricks_tui.wording.events import counts_of, doing_now, noise_note, note_of
from dlbricks_tui.wording.layers import bricks_words
from dlbricks_tui.wording.numbers import capitalised, duration
from dlbricks_tui.wording.runs import Note, Tone

# A run of fifty models may report a failure per brick.
MOST_NOTES = 500
# The width of the sparkline limits the number of interval widths.
MOST_WIDTHS = 32
# With fewer rounds the speed of the host is uncertain.
_ROUNDS_TO_COMPARE = 15


class SnapshotBuilder:
    """Builds snapshots of a run from its events."""

    def __init__(self, run: str, models: tuple[str, ...]) -> None:
        self._run = run
        self._models = models
        self._notes: deque[Note] = deque(maxlen=MOST_NOTES)
        # One note counts the disturbances in all processes of the run.
        self._disturbances = Disturbances()
        self._noise: Note | None = None
        self._noted: tuple[Note, ...] = ()
        self._restart()

    @property
    def progress(self) -> RunProgress:
        """The progress that the events describe."""
        return self._progress

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, RunStarted):
                self._restart()
            before = self._progress.state
            self._progress.take(event)
            self._spend(event, before)
            self._go_further()
            self._touch(event)
            note = note_of(event)
            if note is not None:
                self._notes.append(replace(note, text=capitalised(note.text)))
            if self._disturbances.take(event):
                self._noise = Note(event.when, Tone.DOUBT, capitalised(noise_note(self._disturbances)))
        self._redo()

    def snapshot(self) -> RunSnapshot:
        progress = self._progress
        return RunSnapshot(
            run=self._run,
            state=progress.state,
            models=self._models,
            message=progress.message,
            settings=self._settings(),
            counts=self._counts(),
            share=self._share(),
            seconds_left=progress.seconds_left,
            seconds_spent=progress.ended.seconds if progress.ended else self._seconds_spent,
            at_work=doing_now(progress),
            drift=self._drift(),
            bricks=self._made_bricks,
            estimates=self._made_estimates,
            notes=self._noted,
        )

    def _restart(self) -> None:
        # The store keeps what an interrupted process has measured; the next process reports it.
        self._progress = RunProgress()
        self._bricks: dict[int, RunBrick] = {}
        self._estimates: dict[str, RunModel] = {}
        self._touched: set[int] = set()
        self._estimated: set[str] = set()
        self._made_bricks: tuple[RunBrick, ...] = ()
        self._made_estimates: tuple[RunModel, ...] = ()
        self._seconds_spent = 0.0
        self._furthest = 0.0
        self._last_when: datetime | None = None
        self._first_reference_ms: list[float] = []
        self._last_reference_ms: deque[float] = deque(maxlen=_ROUNDS_TO_COMPARE)

    def _spend(self, event: Event, before: State) -> None:
        when = datetime.fromisoformat(event.when)
        # The time spent paused or waiting is not working time.
        if self._last_when is not None and before not in (State.PAUSED, State.WAITING):
            self._seconds_spent += max(0.0, (when - self._last_when).total_seconds())
        self._last_when = when if self._progress.planned is not None else None

    def _go_further(self) -> None:
        progress = self._progress
        if progress.planned is not None and progress.ended is None:
            whole = self._seconds_spent + (progress.seconds_left or 0.0)
            share = self._seconds_spent / whole if whole > 0 else 0.0
            # The estimated time left may grow, but the bar must not move back.
            self._furthest = max(self._furthest, share)

    def _touch(self, event: Event) -> None:
        if isinstance(event, BatchRestarted):
            self._touched.update(program for program, _ in event.samples_ms)
        elif isinstance(event, RoundDone):
            self._touched.update(program for program, _ in event.samples_ms)
            if event.reference_ms is not None:
                self._last_reference_ms.append(event.reference_ms)
                if len(self._first_reference_ms) < _ROUNDS_TO_COMPARE:
                    self._first_reference_ms.append(event.reference_ms)
        elif isinstance(event, AboutProgram):
            self._touched.add(event.program)
        elif isinstance(event, EstimateChanged):
            self._estimates[event.model] = _model(event, self._estimates.get(event.model))
            self._estimated.add(event.model)

    def _redo(self) -> None:
        if self._touched:
            failures = {failed.program: failed for failed in self._progress.failed}
            for number in sorted(self._touched):
                program = self._progress.programs.get(number)
                if program is not None:
                    self._bricks[number] = _brick(program)
                elif (failed := failures.get(number)) is not None:
                    reason = f"{failed.reason}: {failed.message}"
                    self._bricks[number] = RunBrick(
                        number, failed.label, whole=not failed.brick, state=BrickState.FAILED, reason=reason
                    )
            self._made_bricks = tuple(self._bricks.values())
            self._touched.clear()
        if self._estimated:
            self._made_estimates = tuple(self._estimates.values())
            self._estimated.clear()
        notes = tuple(self._notes)
        if self._noise is not None:
            notes = tuple(sorted((*notes, self._noise), key=attrgetter("when")))
        if notes != self._noted:
            self._noted = notes

    def _counts(self) -> RunTally:
        progress, planned = self._progress, self._progress.planned
        if planned is None:
            return RunTally()
        failed_before = planned.bricks_failed_before + planned.models_failed_before
        return RunTally(
            *counts_of(progress),
            planned.bricks_reused + planned.models_reused,
            progress.bricks_failed + progress.models_failed + failed_before,
        )

    def _share(self) -> float | None:
        progress = self._progress
        if progress.planned is None:
            return None
        return 1.0 if progress.done >= progress.total else min(self._furthest, 0.99)

    def _settings(self) -> tuple[str, ...]:
        started = self._progress.started
        if started is None:
            return ()
        size = (bricks_words(started.granularity),) if started.granularity > 1 else ()
        whole = ("end to end",) if started.end_to_end else ()
        precisions = {stated_precision(it) for it in (started.runtime, *self._progress.runtimes)}
        unchecked = (each.in_words for each in CHOSEN_PRECISIONS if each in precisions and each.is_unchecked)
        return (started.level, *size, *whole, *unchecked, runtime_words(started.runtime))

    def _drift(self) -> float | None:
        if len(self._first_reference_ms) < _ROUNDS_TO_COMPARE:
            return None
        return median(self._last_reference_ms) / median(self._first_reference_ms) - 1


def _brick(program: ProgramProgress) -> RunBrick:
    about, failed = program.about, program.failed
    begun = RunBrick(
        about.program, about.label, about.used_by, whole=not about.brick, samples_ms=tuple(program.samples_ms)
    )
    if (known := program.measured or program.unfinished) is not None:
        latency_ms = known.trimmed_mean_ms
        half_width = (known.high_ms - known.low_ms) / 2 / latency_ms if latency_ms > 0 else None
        if program.measured is None:
            state, reason = BrickState.UNFINISHED, "the run was stopped before there were enough samples"
        elif program.at_limit:
            state, reason = BrickState.AT_LIMIT, "its samples vary too much to be as precise as asked"
        else:
            state, reason = BrickState.MEASURED, ""
        return replace(begun, state=state, latency_ms=latency_ms, half_width=half_width, reason=reason)
    if failed is not None:
        return replace(begun, state=BrickState.FAILED, reason=f"{failed.reason}: {failed.message}")
    return begun


def _model(event: EstimateChanged, before: RunModel | None) -> RunModel:
    widths = before.half_widths if before else ()
    if event.sequential_ms and event.low_ms is not None and event.high_ms is not None:
        widths = (*widths, (event.high_ms - event.low_ms) / 2 / event.sequential_ms)
        if len(widths) > MOST_WIDTHS:
            # Keeps the newest.
            widths = widths[1::2] if len(widths) % 2 == 0 else widths[::2]
    counted_in = event.measured_layers + event.sampled_layers
    return RunModel(
        event.model,
        event.sequential_ms,
        event.parallel_ms,
        widths,
        event.measured_layers,
        counted_in + event.missing_layers + event.unmeasurable_layers,
        event.sampled_layers,
        event.unmeasurable_layers,
        event.low_ms,
        event.high_ms,
        event.predicted_layers,
    )


# A killed run writes no event, so its process is checked.
_SECONDS_BETWEEN_CHECKS = 1.0
# After this time without an event the time left counts down. Counting earlier would disturb rounds by drawing.
COUNTDOWN_AFTER_SECONDS = 2.0


class Follower:
    """Reads new events of a run at each look."""

    def __init__(self, folder: RunFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        # The number of results that the run has stored.
        self.stored = 0
        self._clock = clock
        self._events = RunEvents(folder.events_file)
        self._state = folder.state()
        self._checked = clock()
        self._builder = SnapshotBuilder(folder.run, self._state.models)
        self._shown: RunSnapshot | None = None
        # The time of the last event, to which the time left refers.
        self._heard = clock()

    @property
    def active(self) -> bool:
        """Return whether more events are to be expected."""
        return self._shown is None or self._shown.active

    def forget(self) -> None:
        """Make the next look return a snapshot even if nothing has changed."""
        self._shown = None

    def look(self) -> RunSnapshot | None:
        """Return the state of the run; None if it has not changed since the last look."""
        # Before reading the events, so that the last ones are read.
        if self._clock() - self._checked >= _SECONDS_BETWEEN_CHECKS:
            self._state = self.folder.state()
            self._checked = self._clock()
        events = self._events.new()
        pausing = self.folder.pause_file.exists()
        if events:
            self._heard = self._clock()
            self.stored += sum(isinstance(event, ProgramMeasured | ProgramUnfinished) for event in events)
            self._builder.take(events)
        elif self._shown is not None and (pausing, self._ended_otherwise) == (
            self._shown.pausing,
            self._shown.state is not self._builder.progress.state,
        ):
            return self._counted_down(self._shown)
        self._shown = self._counted(self._corrected(replace(self._builder.snapshot(), pausing=pausing)))
        return self._shown

    def _counted_down(self, shown: RunSnapshot) -> RunSnapshot | None:
        """Return the snapshot with less time left; None if the displayed time is the same."""
        now = self._counted(replace(shown, seconds_left=self._builder.progress.seconds_left))
        if now.seconds_left is None or shown.seconds_left is None or shown.state is not State.RUNNING:
            return None
        if duration(now.seconds_left) == duration(shown.seconds_left):
            return None
        self._shown = now
        return now

    def _counted(self, snapshot: RunSnapshot) -> RunSnapshot:
        """Return the snapshot with the time left now: a run writes no events while it loads or samples a program."""
        if snapshot.seconds_left is None or snapshot.state is not State.RUNNING:
            return snapshot
        silent_seconds = self._clock() - self._heard
        if silent_seconds < COUNTDOWN_AFTER_SECONDS:
            return snapshot
        return replace(snapshot, seconds_left=max(0.0, snapshot.seconds_left - silent_seconds))

    @property
    def _ended_otherwise(self) -> bool:
        """Return whether the process ended without an event."""
        return self._builder.progress.ended is None and not self._state.active

    def _corrected(self, snapshot: RunSnapshot) -> RunSnapshot:
        if not self._ended_otherwise:
            return snapshot
        return replace(
            snapshot,
            state=self._state.state,
            message=self._state.message,
            at_work="",
            seconds_left=None,
        )


_FACTOR = 2.0


class ReplayChange(Enum):
    """The effect of a key on a replay."""

    PAUSE = "pause"
    FASTER = "faster"
    SLOWER = "slower"
    STOP = "stop"


class ReplayFollower:
    """Passes the events of a run when they are due; stands where a `Follower` passes those of a live run."""

    # A replay stores nothing.
    stored = 0

    def __init__(
        self, folder: RunFolder, speed: float, clock: Callable[[], float] = time.monotonic, *, begin: float = 0.0
    ) -> None:
        self.folder = folder
        self._replay = Replay(events_so_far(folder, RunEvents(folder.events_file)), speed, clock, begin)
        self._builder = SnapshotBuilder(folder.run, folder.state().models)
        self._stopped = False
        self._shown: RunSnapshot | None = None

    @property
    def active(self) -> bool:
        """Return whether more events are to be passed."""
        return self._shown is None or self._shown.active

    def forget(self) -> None:
        """Make the next look return a snapshot even if nothing has changed."""
        self._shown = None

    def change(self, change: ReplayChange) -> None:
        """Do what the user asks for."""
        replay = self._replay
        match change:
            case ReplayChange.PAUSE:
                (replay.go_on if replay.paused else replay.pause)()
            case ReplayChange.FASTER:
                replay.change_speed(_FACTOR)
            case ReplayChange.SLOWER:
                replay.change_speed(1 / _FACTOR)
            case ReplayChange.STOP:
                self._stopped = True

    def look(self) -> RunSnapshot | None:
        """Return the state of the run at this point of the replay; None if nothing has changed since the last look."""
        events = () if self._stopped else self._replay.due()
        pace = ReplayPace(self._replay.speed, self._replay.paused, self._stopped or self._replay.ended)
        if not events and self._shown is not None and self._shown.replay == pace:
            return None
        if events:
            self._builder.take(events)
        self._shown = replace(self._builder.snapshot(), replay=pace)
        return self._shown
