"""Follows one run through the events in its folder, as they come or again as a replay.

A snapshot is the state of a run at one moment: frozen values, made in a thread and drawn by screens.
"""

import math
import time
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import dataclass, fields, replace
from enum import Enum
from operator import attrgetter
from statistics import median
from typing import NamedTuple

from dlbricks_tui.estimate.estimate import WIDEST_MS, WIDEST_SHARE
from dlbricks_tui.host.noise import HostLoad
from dlbricks_tui.jobs.events import Event, Replay, events_so_far
from dlbricks_tui.jobs.folder import ACTIVE, RunFolder, State
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.runs.events import (
    STOPPED,
    Disturbances,
    EstimateChanged,
    RunEvents,
    RunProgress,
    RunStarted,
)
from dlbricks_tui.runs.events import BrickState as BrickState
from dlbricks_tui.runs.events import RunBrick as RunBrick
from dlbricks_tui.runtime.variant import CHOSEN_PRECISIONS, stated_precision
from dlbricks_tui.wording.answers import bricks_words, runtime_words
from dlbricks_tui.wording.events import counts_of, doing_now, noise_note, note_of
from dlbricks_tui.wording.numbers import capitalised, duration, sign_of
from dlbricks_tui.wording.runs import NONE_DONE, Done, Phrase, Tone

# The number of standard deviations that contain 95 % of a normal distribution.
_NORMAL_95 = 1.96
_FEWEST = 6


class SampleSummary(NamedTuple):
    """The median of the samples so far, and half of its interval."""

    latency_ms: float
    # As a share; None if it has none.
    half_width: float | None

    @property
    def half_width_us(self) -> float | None:
        """Half of the interval in microseconds, if only that is narrow enough."""
        share = self.half_width or 0.0
        return 1000 * share * self.latency_ms if share > WIDEST_SHARE and share * self.latency_ms <= WIDEST_MS else None


def summary_of(brick: RunBrick) -> SampleSummary | None:
    """Return the latency of a brick, or else the median of its samples so far, with half of its 95 % interval."""
    if brick.latency_ms is not None:
        return SampleSummary(brick.latency_ms, brick.half_width)
    count = len(brick.samples_ms)
    if count < _FEWEST:
        return None
    ordered = sorted(brick.samples_ms)
    middle = ordered[count // 2]
    # The interval of a median lies between two samples, whatever their distribution.
    reach = _NORMAL_95 * math.sqrt(count) / 2
    low, high = max(0, math.floor(count / 2 - reach)), min(count - 1, math.ceil(count / 2 + reach))
    return SampleSummary(middle, (ordered[high] - ordered[low]) / 2 / middle) if middle > 0 else None


@dataclass(frozen=True, slots=True, kw_only=True)
class RunModel(EstimateChanged):
    """The current estimate of a model, and how its interval has changed."""

    # Half of the interval as a share of the sequential latency, from the first estimate to the newest.
    half_widths: tuple[float, ...] = ()

    @property
    def layers(self) -> int:
        return self.measured_layers + self.sampled_layers + self.missing_layers + self.unmeasurable_layers

    @property
    def coverage(self) -> float:
        """The share of measured layers."""
        return self.measured_layers / self.layers if self.layers else 1.0

    @property
    def is_partial(self) -> bool:
        """Return whether the latencies of some layers are neither measured nor sampled."""
        return self.measured_layers + self.sampled_layers < self.layers

    @property
    def sign(self) -> str:
        """The sign before a latency that is a part, or that is partly predicted."""
        counted = self.measured_layers + self.sampled_layers + self.predicted_layers
        return sign_of(partial=counted < self.layers, predicted=self.is_partial)


@dataclass(frozen=True, slots=True)
class RunTally:
    """The counts of bricks and of whole models; `reused` and `failed` are of both."""

    bricks: Done = NONE_DONE
    models: Done = NONE_DONE
    reused: int = 0
    failed: int = 0


@dataclass(frozen=True, slots=True)
class ReplayPace:
    """The pace of a replay; `speed` is the seconds of the run that pass in one second."""

    speed: float
    paused: bool = False
    # True after the last event, and once the user has stopped it.
    ended: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class RunSnapshot:
    """Everything that is shown of a run."""

    run: str
    state: State
    models: tuple[str, ...]
    # True if the run was asked to pause, even if it has not paused yet.
    pausing: bool = False
    # The reason why it waits, or how it ended.
    message: str = ""
    # The settings in a few words.
    settings: tuple[str, ...] = ()
    counts: RunTally = RunTally()
    # The share of work done; None while the amount of work is unknown.
    share: float | None = None
    seconds_left: float | None = None
    seconds_spent: float = 0.0
    # The current step in words.
    at_work: str = ""
    # The slowdown of the host since the start; None while it is unknown.
    drift: float | None = None
    bricks: tuple[RunBrick, ...] = ()
    estimates: tuple[RunModel, ...] = ()
    notes: tuple[Phrase, ...] = ()
    # Set if these are events of the past, shown again.
    replay: ReplayPace | None = None
    # The load of the host; None before it is known, and after the run.
    load: HostLoad | None = None
    # The number of interrupted runs of the data folder, if this is one of them.
    interrupted: int = 0

    @property
    def active(self) -> bool:
        """Return whether a process works on it or waits to, or its replay goes on."""
        return self.state in ACTIVE if self.replay is None else not self.replay.ended

    @property
    def waits(self) -> bool:
        """Return whether it waits for other work of the host."""
        return self.state is State.WAITING

    @property
    def is_interrupted(self) -> bool:
        """Return whether its process was killed, or the host went down."""
        return self.state is State.INTERRUPTED and self.replay is None

    @property
    def measures(self) -> bool:
        """Return whether programs are timed now, which other work would disturb."""
        return self.active and self.replay is None and self.state is not State.PAUSED

    @property
    def can_be_resumed(self) -> bool:
        """Return whether it ended before it was complete."""
        return self.replay is None and self.state in (State.INTERRUPTED, State.CANCELLED, State.FAILED)


def stopped(run: RunSnapshot) -> RunSnapshot:
    """Return the state of a run whose process has ended: nothing is sampled any more."""
    bricks = [
        replace(it, state=BrickState.UNFINISHED, reason=STOPPED) if it.state is BrickState.SAMPLING else it
        for it in run.bricks
    ]
    return replace(run, bricks=tuple(bricks), at_work="", seconds_left=None)


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
        self._notes: deque[Phrase] = deque(maxlen=MOST_NOTES)
        # One note counts the disturbances in all processes of the run.
        self._disturbances = Disturbances()
        self._noise: Phrase | None = None
        # What was done before the run was resumed, which counts until its new plan is known.
        self._before: RunSnapshot | None = None
        self._restart()

    def take(self, events: Iterable[Event]) -> None:
        for event in events:
            if isinstance(event, RunStarted):
                self._before = stopped(self.snapshot())
                self._restart()
            self.progress.take(event)
            self._fold(event)
            note = note_of(event)
            if note is not None:
                self._notes.append(note._replace(text=capitalised(note.text)))
            if self._disturbances.take(event):
                self._noise = Phrase(capitalised(noise_note(self._disturbances)), Tone.DOUBT, event.when)

    def snapshot(self) -> RunSnapshot:
        progress, share, drift = self.progress, None, None
        if progress.planned is not None:
            # A run with a target may need no other bricks.
            has_all = progress.done >= progress.total or (progress.state is State.FINISHED and not progress.message)
            share = 1.0 if has_all else min(progress.furthest, 0.99)
        if len(self._first_reference_ms) == _ROUNDS_TO_COMPARE:
            drift = median(self._last_reference_ms) / median(self._first_reference_ms) - 1
        now = RunSnapshot(
            run=self._run,
            state=progress.state,
            models=self._models,
            message=progress.message,
            settings=self._settings(),
            counts=self._counts(),
            share=share,
            seconds_left=progress.seconds_left,
            seconds_spent=progress.ended.seconds if progress.ended else progress.seconds_spent,
            at_work=doing_now(progress),
            drift=drift,
            bricks=tuple(progress.bricks.values()),
            estimates=tuple(self._estimates.values()),
            notes=tuple(sorted(filter(None, (*self._notes, self._noise)), key=attrgetter("when"))),
        )
        done = self._before if progress.planned is None else None
        if done is None:
            return now
        return replace(now, counts=done.counts, share=done.share, bricks=done.bricks, estimates=done.estimates)

    def _restart(self) -> None:
        # The store keeps what an interrupted process has measured; the next process reports it.
        self.progress = RunProgress()
        self._estimates: dict[str, RunModel] = {}
        self._first_reference_ms: list[float] = []
        self._last_reference_ms: deque[float] = deque(maxlen=_ROUNDS_TO_COMPARE)

    def _fold(self, event: Event) -> None:
        if isinstance(event, RoundDone) and event.reference_ms is not None:
            self._last_reference_ms.append(event.reference_ms)
            if len(self._first_reference_ms) < _ROUNDS_TO_COMPARE:
                self._first_reference_ms.append(event.reference_ms)
        elif isinstance(event, EstimateChanged):
            self._estimates[event.model] = _model(event, self._estimates.get(event.model))

    def _counts(self) -> RunTally:
        bricks, models = self.progress.of_bricks, self.progress.of_models
        return RunTally(*counts_of(self.progress), bricks.reused + models.reused, bricks.failed + models.failed)

    def _settings(self) -> tuple[str, ...]:
        started = self.progress.started
        if started is None:
            return ()
        size = (bricks_words(started.granularity),) if started.granularity > 1 else ()
        whole = ("end to end",) if started.end_to_end else ()
        precisions = {stated_precision(it) for it in (started.runtime, *self.progress.runtimes)}
        unchecked = (each.in_words for each in CHOSEN_PRECISIONS if each in precisions and each.is_unchecked)
        return (started.level, *size, *whole, *unchecked, runtime_words(started.runtime))


def _model(event: EstimateChanged, before: RunModel | None) -> RunModel:
    widths = before.half_widths if before else ()
    if event.sequential_ms and event.low_ms is not None and event.high_ms is not None:
        widths = (*widths, (event.high_ms - event.low_ms) / 2 / event.sequential_ms)
        if len(widths) > MOST_WIDTHS:
            # Keeps the newest.
            widths = widths[1::2] if len(widths) % 2 == 0 else widths[::2]
    return RunModel(**{it.name: getattr(event, it.name) for it in fields(event)}, half_widths=widths)


_FACTOR = 2.0


class ReplayChange(Enum):
    """The effect of a key on a replay."""

    PAUSE = "pause"
    FASTER = "faster"
    SLOWER = "slower"
    STOP = "stop"


# A killed run writes no event, so its process is checked.
_SECONDS_BETWEEN_CHECKS = 1.0
# After this time without an event the time left counts down. Counting earlier would disturb rounds by drawing.
COUNTDOWN_AFTER_SECONDS = 2.0


class Follower:
    """Reads new events of a run at each look, and returns its state where that has changed."""

    def __init__(self, folder: RunFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        self._clock = clock
        self._state = folder.state()
        self._events = RunEvents(folder.events_file)
        self._builder = SnapshotBuilder(folder.run, self._state.models)
        self._shown: RunSnapshot | None = None
        self._checked = clock()
        # The time of the last event, to which the time left refers.
        self._heard = clock()

    @property
    def active(self) -> bool:
        """Return whether more events are to be expected."""
        return self._shown is None or self._shown.active

    def forget(self) -> None:
        """Make the next look return a snapshot even if nothing has changed."""
        self._shown = None

    def change(self, change: ReplayChange) -> None:
        """Change the pace of a replay, or stop it; without a replay there is nothing to do."""

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
            self._builder.take(events)
        progress, shown = self._builder.progress, self._shown
        # The process may have ended without an event.
        is_killed = progress.ended is None and not self._state.active
        told = shown is not None and (shown.pausing, shown.state is not progress.state)
        if shown is not None and not events and told == (pausing, is_killed):
            # A run writes no events while it loads or samples a program: only the time left may change.
            now = self._counted(replace(shown, seconds_left=progress.seconds_left))
            left = now.seconds_left, shown.seconds_left
            if shown.state is not State.RUNNING or None in left or duration(left[0] or 0) == duration(left[1] or 0):
                return None
            self._shown = now
            return now
        found = replace(self._builder.snapshot(), pausing=pausing)
        if is_killed:
            state, message = self._state.state, self._state.message
            found = replace(stopped(found), state=state, message=message)
        self._shown = self._counted(found)
        return self._shown

    def _counted(self, snapshot: RunSnapshot) -> RunSnapshot:
        """Return the snapshot with the time left now."""
        silent_seconds = self._clock() - self._heard
        if snapshot.seconds_left is None or snapshot.state is not State.RUNNING:
            return snapshot
        if silent_seconds < COUNTDOWN_AFTER_SECONDS:
            return snapshot
        return replace(snapshot, seconds_left=max(0.0, snapshot.seconds_left - silent_seconds))


class ReplayFollower(Follower):
    """Passes the events of a run when they are due; it stores nothing."""

    def __init__(
        self, folder: RunFolder, speed: float, clock: Callable[[], float] = time.monotonic, *, begin: float = 0.0
    ) -> None:
        super().__init__(folder, clock)
        self._replay = Replay(events_so_far(folder, self._events), speed, clock, begin)
        self._stopped = False

    def change(self, change: ReplayChange) -> None:
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
        events = () if self._stopped else self._replay.due()
        pace = ReplayPace(self._replay.speed, self._replay.paused, self._stopped or self._replay.ended)
        if not events and self._shown is not None and self._shown.replay == pace:
            return None
        self._builder.take(events)
        now = self._builder.snapshot()
        self._shown = replace(now, replay=pace, at_work="" if pace.ended else now.at_work)
        return self._shown
