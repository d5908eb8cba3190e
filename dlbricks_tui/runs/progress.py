"""The progress of a run, derived from its events."""

from collections.abc import Iterable
from dataclasses import dataclass, field, fields
from datetime import datetime
from functools import singledispatchmethod

from dlbricks_tui.measure.events import (
    BatchRestarted,
    BatchStarted,
    Calibrated,
    Calibrating,
    CalibrationFailed,
    DriftNoted,
    Event,
    RoundDone,
    RoundRepeated,
    Stop,
)
from dlbricks_tui.runs.events import (
    EstimateChanged,
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Paused,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    ProgramMeasured,
    ProgramUnfinished,
    Resumed,
    RunEnded,
    RunStarted,
    Waiting,
)
from dlbricks_tui.runs.run_folder import State


@dataclass(slots=True)
class Disturbances:
    """Counts of repeated rounds and restarted batches, and the change of the host's speed."""

    rounds: int = 0
    seconds: float = 0.0
    batches: int = 0
    # How much slower than at first the host is, as a share; None while its speed is unchanged.
    slower: float | None = None

    @singledispatchmethod
    def take(self, event: Event) -> bool:
        """Count a disturbance; return False for other events."""
        return False

    @take.register
    def _(self, event: RoundRepeated) -> bool:
        self.rounds += 1
        self.seconds += event.seconds
        return True

    @take.register
    def _(self, event: BatchRestarted) -> bool:
        self.batches += 1
        return True

    @take.register
    def _(self, event: DriftNoted) -> bool:
        self.slower = event.reference_ms / event.usual_ms - 1
        return True


@dataclass(slots=True)
class ProgramProgress:
    """The progress of one program."""

    about: ProgramLoaded
    samples_ms: list[float] = field(default_factory=list)
    measured: ProgramMeasured | None = None
    # Set if the run was stopped before the program was measured.
    unfinished: ProgramUnfinished | None = None
    failed: ProgramFailed | None = None

    @property
    def is_sampled(self) -> bool:
        """True while the program is being sampled."""
        return self.measured is None and self.unfinished is None and self.failed is None

    @property
    def at_limit(self) -> bool:
        """True if it has the most samples that the rule allows and its interval is still too wide."""
        return self.measured is not None and self.measured.stop == Stop.MOST_SAMPLES.value


@dataclass(slots=True)
class RunProgress:
    """The progress of a run, from all events so far; it starts again when the run is resumed."""

    state: State = State.STARTING
    # What it waits for, or why it ended, if that needs words.
    message: str = ""
    started: RunStarted | None = None
    loading: ModelLoading | None = None
    planned: Planned | None = None
    # The current calibration network.
    calibrating: Calibrating | None = None
    batch: BatchStarted | None = None
    programs: dict[int, ProgramProgress] = field(default_factory=dict)
    failed: list[ProgramFailed] = field(default_factory=list)
    failed_before: list[FailedBefore] = field(default_factory=list)
    left_out: list[ModelLeftOut] = field(default_factory=list)
    lowered: list[LevelLowered] = field(default_factory=list)
    unmeasurable: list[LayerUnmeasurable] = field(default_factory=list)
    # By model, in the order of their first events.
    estimates: dict[str, EstimateChanged] = field(default_factory=dict)
    bricks_measured: int = 0
    bricks_failed: int = 0
    models_measured: int = 0
    models_failed: int = 0
    # The time left at the newest event: the last value of the run, less the time since then.
    seconds_left: float | None = None
    newest: datetime | None = field(default=None, compare=False)
    disturbances: Disturbances = field(default_factory=Disturbances)
    ended: RunEnded | None = None

    @property
    def total(self) -> int:
        """The number of bricks and whole models."""
        return self.planned.bricks + self.planned.models if self.planned else 0

    @property
    def done(self) -> int:
        """The number of bricks and whole models that need no more work."""
        if self.planned is None:
            return 0
        known = self.planned.bricks_reused + self.planned.models_reused
        given_up = self.planned.bricks_failed_before + self.planned.models_failed_before
        now = self.bricks_measured + self.bricks_failed + self.models_measured + self.models_failed
        return known + given_up + now

    @property
    def being_sampled(self) -> tuple[ProgramProgress, ...]:
        """The programs that are being sampled."""
        return tuple(program for program in self.programs.values() if program.is_sampled)

    @property
    def at_limits(self) -> int:
        """Number of programs with the most samples and an interval that is still too wide."""
        return sum(program.at_limit for program in self.programs.values())

    def take_all(self, events: Iterable[Event]) -> None:
        """Take several events, in their order."""
        for event in events:
            self.take(event)

    def take(self, event: Event) -> None:
        """Take the next event."""
        self._let_time_pass(event)
        self.disturbances.take(event)
        self._fold(event)

    def _let_time_pass(self, event: Event) -> None:
        now = datetime.fromisoformat(event.when)
        waits = self.state in (State.PAUSED, State.WAITING)
        if self.newest is not None and self.seconds_left is not None and not waits:
            self.seconds_left = max(0.0, self.seconds_left - (now - self.newest).total_seconds())
        self.newest = now
        kinds = BatchStarted | RoundDone | RoundRepeated | BatchRestarted
        if isinstance(event, kinds) and event.seconds_left is not None:
            self.seconds_left = event.seconds_left

    @singledispatchmethod
    def _fold(self, event: Event) -> None:
        """Apply an event of this kind; other events change nothing."""

    @_fold.register
    def _(self, event: RunStarted) -> None:
        fresh = RunProgress(started=event, newest=self.newest)
        for each in fields(self):
            setattr(self, each.name, getattr(fresh, each.name))

    @_fold.register
    def _(self, event: Waiting) -> None:
        self.state, self.message = State.WAITING, f"for {event.holder}"

    @_fold.register
    def _(self, event: ModelLoading) -> None:
        self.state, self.message, self.loading = State.RUNNING, "", event

    @_fold.register
    def _(self, event: ModelLeftOut) -> None:
        self.left_out.append(event)

    @_fold.register
    def _(self, event: LevelLowered) -> None:
        self.lowered.append(event)

    @_fold.register
    def _(self, event: LayerUnmeasurable) -> None:
        self.unmeasurable.append(event)

    @_fold.register
    def _(self, event: FailedBefore) -> None:
        self.failed_before.append(event)

    @_fold.register
    def _(self, event: Planned) -> None:
        self.planned, self.loading, self.seconds_left = event, None, event.expected_seconds

    @_fold.register
    def _(self, event: Calibrating) -> None:
        self.state, self.message, self.calibrating = State.RUNNING, "", event

    @_fold.register
    def _(self, event: Calibrated) -> None:
        self.calibrating = None

    @_fold.register
    def _(self, event: CalibrationFailed) -> None:
        self.calibrating = None

    @_fold.register
    def _(self, event: BatchStarted) -> None:
        self.state, self.message, self.batch = State.RUNNING, "", event

    @_fold.register
    def _(self, event: ProgramLoaded) -> None:
        self.programs[event.program] = ProgramProgress(event, list(event.samples_ms))

    @_fold.register
    def _(self, event: RoundDone) -> None:
        self.state, self.message = State.RUNNING, ""
        if self.calibrating is not None:
            # The programs of these rounds belong to a calibration network.
            return
        for program, samples_ms in event.samples_ms:
            # The line that told of the program may have been torn when its writer died.
            if program in self.programs:
                self.programs[program].samples_ms += samples_ms

    @_fold.register
    def _(self, event: BatchRestarted) -> None:
        if self.calibrating is not None:
            return
        for number, samples_ms in event.samples_ms:
            if number in self.programs:
                program = self.programs[number]
                program.samples_ms = list(samples_ms)
                if program.measured is not None:
                    self._count_measured(program.measured, -1)
                    program.measured = None

    @_fold.register
    def _(self, event: ProgramMeasured) -> None:
        again = event.program in self.programs and self.programs[event.program].measured is not None
        if event.program in self.programs:
            self.programs[event.program].measured = event
        if not again:
            self._count_measured(event, 1)

    @_fold.register
    def _(self, event: ProgramUnfinished) -> None:
        if event.program in self.programs:
            self.programs[event.program].unfinished = event

    @_fold.register
    def _(self, event: ProgramFailed) -> None:
        self.failed.append(event)
        if event.program in self.programs:
            self.programs[event.program].failed = event
        if event.brick:
            self.bricks_failed += 1
        else:
            self.models_failed += 1

    @_fold.register
    def _(self, event: EstimateChanged) -> None:
        self.estimates[event.model] = event

    @_fold.register
    def _(self, event: Paused) -> None:
        self.state = State.PAUSED

    @_fold.register
    def _(self, event: Resumed) -> None:
        self.state, self.message = State.RUNNING, ""

    @_fold.register
    def _(self, event: RunEnded) -> None:
        self.state, self.message, self.ended, self.seconds_left = State(event.state), event.message, event, 0.0
        self.calibrating = None

    def _count_measured(self, event: ProgramMeasured, more: int) -> None:
        if event.brick:
            self.bricks_measured += more
        else:
            self.models_measured += more
