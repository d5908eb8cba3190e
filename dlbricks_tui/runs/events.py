"""Events of a run, and the progress that they tell."""

from dataclasses import dataclass, field, fields, replace
from datetime import datetime
from enum import Enum
from pathlib import Path

from dlbricks_tui.jobs.events import (
    Event,
    EventKinds,
    EventReader,
    JobEnded,
    JobStarted,
    Paused,
    Resumed,
    Waiting,
    event_kinds,
)
from dlbricks_tui.jobs.folder import State, Tally
from dlbricks_tui.measure import events as measuring
from dlbricks_tui.measure.events import (
    END_SECONDS,
    BatchRestarted,
    BatchStarted,
    DriftNoted,
    RoundDone,
    RoundRepeated,
    Stop,
)


@dataclass(frozen=True, slots=True, kw_only=True)
class RunStarted(JobStarted):
    """A process executes the run; another one resumes it after an interruption."""

    run: str
    models: tuple[str, ...]
    runtime: str
    level: str
    granularity: int
    end_to_end: bool


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLoading(Event):
    """A model is read and cut, which takes a while for a new one."""

    model: str
    number: int
    of: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelLeftOut(Event):
    """A model cannot be read; the run goes on with the others."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ShapesRemembered(Event):
    """The run uses shapes or values of inputs that were given before."""

    model: str
    shapes: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelLowered(Event):
    """The runtime cannot fuse this model: its written layers are measured."""

    model: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerUnmeasurable(Event):
    """No runtime can run these layers alone. `layer` names them."""

    model: str
    layer: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class FailedBefore(Event):
    """A brick in a context, or a whole model, is not tried again: it failed in an earlier run, for this reason."""

    brick: str
    context: str
    model: str
    label: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Planned(Event):
    """The plan of the run, or of one combination; bricks count once per context, whole models apart.

    A brick that several combinations share counts in the first of them.
    """

    system: str
    runtime: str
    bricks: int
    bricks_reused: int
    bricks_failed_before: int
    models: int
    models_reused: int
    models_failed_before: int
    expected_seconds: float
    # Of the bricks to measure, those with a result that is too imprecise, or of a slower host.
    bricks_imprecise: int = 0
    bricks_of_slow_host: int = 0
    # The variant and its number, where the run measures several combinations.
    combination: str = ""
    number: int = 1
    of: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class PartStarted(Event):
    """The run goes on with another runtime or number of threads; `later_seconds` are expected for those after it.

    `budget_seconds` are left of the time budget.
    """

    part: str
    number: int
    of: int
    later_seconds: float
    budget_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class AboutProgram(Event):
    """The base of events about a brick in a context, or (brick empty) a whole model; `program` is its number."""

    program: int
    brick: str
    context: str
    model: str
    label: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramLoaded(AboutProgram):
    """The program is loaded and has run once; `used_by` are the names of the models that need it.

    `samples_ms` are of an earlier run, and count. With `allocates`, each run makes new arrays for the outputs.
    """

    first_run_ms: float
    used_by: tuple[str, ...]
    samples_ms: tuple[float, ...] = ()
    allocates: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramMeasured(AboutProgram):
    """The program's result is in the store."""

    trimmed_mean_ms: float
    low_ms: float
    high_ms: float
    samples: int
    warm_up: int
    outliers: int
    # Why it got no more samples: a value of `stopping.Stop`, or empty.
    stop: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramUnfinished(AboutProgram):
    """The run was stopped before there were enough samples; those so far are in the store."""

    trimmed_mean_ms: float
    low_ms: float
    high_ms: float
    samples: int


@dataclass(frozen=True, slots=True, kw_only=True)
class ProgramFailed(AboutProgram):
    """The program cannot be measured; the failure is in the store."""

    reason: str
    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class WorkerReplaced(Event):
    """The worker was lost, and a new one has replaced it."""

    message: str


@dataclass(frozen=True, slots=True, kw_only=True)
class EstimateChanged(Event):
    """The estimate of a model so far; latencies are None while no brick is known.

    It includes provisional latencies of bricks that are still being sampled, and predictions of those before them.
    """

    model: str
    sequential_ms: float | None
    parallel_ms: float | None
    low_ms: float | None
    high_ms: float | None
    measured_layers: int
    sampled_layers: int = 0
    # Of the missing ones.
    predicted_layers: int = 0
    missing_layers: int
    unmeasurable_layers: int


@dataclass(frozen=True, slots=True, kw_only=True)
class RunEnded(JobEnded):
    """The last event; `state` is the final state, `message` the reason, if it needs words."""

    bricks: int
    bricks_measured: int
    bricks_reused: int
    bricks_failed: int
    models_failed: int


EVENTS: EventKinds = event_kinds(
    *(
        it
        for it in (*vars(measuring).values(), *list(globals().values()))
        if isinstance(it, type) and issubclass(it, Event)
    )
)


class RunEvents(EventReader):
    """Reads the events of a run."""

    def __init__(self, path: Path) -> None:
        super().__init__(path, EVENTS)


# The events that estimate the time left.
TellsTimeLeft = BatchStarted | RoundDone | RoundRepeated | BatchRestarted


@dataclass(slots=True)
class Disturbances:
    """Counts of repeated rounds and restarted batches, and the change of the host's speed."""

    rounds: int = 0
    seconds: float = 0.0
    batches: int = 0
    # The slowdown of the host since the start, as a share; None while its speed is unchanged.
    slower: float | None = None

    def take(self, event: Event) -> bool:
        """Count a disturbance; return False for other events."""
        match event:
            case RoundRepeated():
                self.rounds += 1
                self.seconds += event.seconds
            case BatchRestarted():
                self.batches += 1
            case DriftNoted():
                self.slower = event.reference_ms / event.usual_ms - 1
            case _:
                return False
        return True


class BrickState(Enum):
    """The state of a brick in the run."""

    SAMPLING = "sampling"
    MEASURED = "measured"
    # The most samples were taken, and the interval is still too wide.
    AT_LIMIT = "noisy"
    # The run ended before there were enough samples.
    UNFINISHED = "unfinished"
    FAILED = "failed"


# Why a brick is unfinished.
STOPPED = "the run was stopped before there were enough samples"


@dataclass(frozen=True, slots=True)
class RunBrick:
    """A brick in a context, or a whole model, that the run has started to time."""

    number: int
    label: str
    used_by: tuple[str, ...] = ()
    whole: bool = False
    state: BrickState = BrickState.SAMPLING
    samples_ms: tuple[float, ...] = ()
    # None while it is sampled and after a failure; a latency of zero has no share either.
    latency_ms: float | None = None
    half_width: float | None = None
    # The reason of the failure or of the limit.
    reason: str = ""

    @property
    def is_measured(self) -> bool:
        return self.state in (BrickState.MEASURED, BrickState.AT_LIMIT)


@dataclass(slots=True)
class RunProgress:
    """The progress of a run, from all events so far; it starts again when the run is resumed."""

    state: State = State.STARTING
    # The holder of the host while the run waits, or the reason why the run ended.
    message: str = ""
    started: RunStarted | None = None
    loading: ModelLoading | None = None
    # The plans of all combinations together.
    planned: Planned | None = None
    # The identities of the runtimes of all combinations.
    runtimes: set[str] = field(default_factory=set)
    # The seconds that later parts of the run are expected to take.
    later_seconds: float = 0.0
    # What is left of the time budget, as told by the last part; None without one.
    budget_left: float | None = None
    batch: BatchStarted | None = None
    # By the numbers of their programs.
    bricks: dict[int, RunBrick] = field(default_factory=dict)
    left_out: list[ModelLeftOut] = field(default_factory=list)
    # By model, in the order of their first events.
    estimates: dict[str, EstimateChanged] = field(default_factory=dict)
    of_bricks: Tally = field(default_factory=Tally)
    of_models: Tally = field(default_factory=Tally)
    # The last estimate of the time left, minus the time that passed between it and the newest event.
    seconds_left: float | None = None
    newest: datetime | None = field(default=None, compare=False)
    # The time of work since the plan was known, and the largest share of all of it that was done at any moment.
    seconds_spent: float = 0.0
    furthest: float = 0.0
    disturbances: Disturbances = field(default_factory=Disturbances)
    ended: RunEnded | None = None

    @property
    def total(self) -> int:
        """The number of bricks and whole models."""
        return self.of_bricks.total + self.of_models.total

    @property
    def done(self) -> int:
        """The number of bricks and whole models that need no more work."""
        return self.of_bricks.done + self.of_models.done

    @property
    def failed(self) -> int:
        """The number of bricks and whole models that have failed in this run, and not in one before."""
        planned = self.planned
        before = planned.bricks_failed_before + planned.models_failed_before if planned else 0
        return self.of_bricks.failed + self.of_models.failed - before

    @property
    def being_sampled(self) -> tuple[RunBrick, ...]:
        return tuple(it for it in self.bricks.values() if it.state is BrickState.SAMPLING)

    @property
    def at_limits(self) -> int:
        """The number of bricks with the most samples and an interval that is still too wide."""
        return sum(it.state is BrickState.AT_LIMIT for it in self.bricks.values())

    def take(self, event: Event) -> None:
        self._let_time_pass(event)
        self.disturbances.take(event)
        self._fold(event)
        if self.seconds_left and 0 < self.total <= self.done:
            # The rounds of the last estimate of it are not needed.
            self.seconds_left = min(self.seconds_left, self.later_seconds + END_SECONDS)
        if self.planned is not None and self.ended is None:
            whole = self.seconds_spent + (self.seconds_left or 0.0)
            # The estimated time left may grow, but the bar must not move back.
            self.furthest = max(self.furthest, self.seconds_spent / whole if whole > 0 else 0.0)

    def _let_time_pass(self, event: Event) -> None:
        now = datetime.fromisoformat(event.when)
        waits = self.state in (State.PAUSED, State.WAITING)
        passed = 0.0 if self.newest is None or waits else (now - self.newest).total_seconds()
        self.newest = now
        if self.planned is not None:
            self.seconds_spent += max(0.0, passed)
        if self.seconds_left is not None:
            self.seconds_left = max(0.0, self.seconds_left - passed)
        if self.budget_left is not None:
            self.budget_left = max(0.0, self.budget_left - passed)
        if isinstance(event, TellsTimeLeft) and event.seconds_left is not None:
            left = event.seconds_left + self.later_seconds
            self.seconds_left = left if self.budget_left is None else min(left, self.budget_left)

    def _fold(self, event: Event) -> None:
        match event:
            case RunStarted():
                fresh = RunProgress(started=event, newest=self.newest)
                for each in fields(self):
                    setattr(self, each.name, getattr(fresh, each.name))
            case Waiting():
                self.state, self.message = State.WAITING, f"for {event.holder}"
            case Paused():
                self.state = State.PAUSED
            case Resumed():
                self._run_on()
            case ModelLoading():
                self._run_on()
                self.loading = event
            case ModelLeftOut():
                self.left_out.append(event)
            case Planned():
                self._run_on()
                self.planned = planned = event if self.planned is None else _together(self.planned, event)
                self.of_bricks = Tally(planned.bricks, 0, planned.bricks_reused, planned.bricks_failed_before)
                self.of_models = Tally(planned.models, 0, planned.models_reused, planned.models_failed_before)
                self.runtimes.add(event.runtime)
                self.loading, self.seconds_left = None, planned.expected_seconds
            case PartStarted():
                self.batch, self.later_seconds, self.budget_left = None, event.later_seconds, event.budget_seconds
            case BatchStarted():
                self._run_on()
                self.batch = event
            case RoundDone():
                self._run_on()
                for brick, samples_ms in self._samples_of(event):
                    self.bricks[brick.number] = replace(brick, samples_ms=brick.samples_ms + samples_ms)
            case BatchRestarted():
                for brick, samples_ms in self._samples_of(event):
                    if brick.is_measured:
                        self._count(is_whole=brick.whole, measured=-1)
                        brick = RunBrick(brick.number, brick.label, brick.used_by, brick.whole)
                    self.bricks[brick.number] = replace(brick, samples_ms=samples_ms)
            case EstimateChanged():
                self.estimates[event.model] = event
            case AboutProgram():
                self._fold_program(event)
            case RunEnded():
                self.state, self.message, self.ended, self.seconds_left = State(event.state), event.message, event, 0.0

    def _run_on(self) -> None:
        self.state, self.message = State.RUNNING, ""

    def _samples_of(self, event: RoundDone | BatchRestarted) -> list[tuple[RunBrick, tuple[float, ...]]]:
        """Return the samples of known bricks."""
        # The line that told of the program may have been torn when its writer died.
        return [(self.bricks[it], samples_ms) for it, samples_ms in event.samples_ms if it in self.bricks]

    def _fold_program(self, event: AboutProgram) -> None:
        number, is_whole = event.program, not event.brick
        brick = self.bricks.get(number)
        match event:
            case ProgramLoaded():
                self.bricks[number] = RunBrick(
                    number, event.label, event.used_by, whole=is_whole, samples_ms=event.samples_ms
                )
            case ProgramMeasured():
                if brick is None or not brick.is_measured:
                    self._count(is_whole=is_whole, measured=1)
                if brick is not None and event.stop == Stop.MOST_SAMPLES.value:
                    reason = "its samples vary too much to be as precise as asked"
                    self.bricks[number] = _timed(brick, event, BrickState.AT_LIMIT, reason)
                elif brick is not None:
                    self.bricks[number] = _timed(brick, event, BrickState.MEASURED)
            case ProgramUnfinished():
                self._count(is_whole=is_whole, unfinished=1)
                if brick is not None:
                    self.bricks[number] = _timed(brick, event, BrickState.UNFINISHED, STOPPED)
            case ProgramFailed():
                self._count(is_whole=is_whole, failed=1)
                begun = brick or RunBrick(number, event.label, whole=is_whole)
                reason = f"{event.reason}: {event.message}"
                self.bricks[number] = replace(begun, state=BrickState.FAILED, reason=reason)

    def _count(self, *, is_whole: bool, **more: int) -> None:
        tally = self.of_models if is_whole else self.of_bricks
        counted = replace(tally, **{name: getattr(tally, name) + number for name, number in more.items()})
        if is_whole:
            self.of_models = counted
        else:
            self.of_bricks = counted


def _timed(
    brick: RunBrick, event: ProgramMeasured | ProgramUnfinished, state: BrickState, reason: str = ""
) -> RunBrick:
    latency_ms = event.trimmed_mean_ms
    half_width = (event.high_ms - event.low_ms) / 2 / latency_ms if latency_ms > 0 else None
    return replace(brick, state=state, latency_ms=latency_ms, half_width=half_width, reason=reason)


def _together(one: Planned, other: Planned) -> Planned:
    """Return the plans of two combinations as one."""
    counts = (each.name for each in fields(Planned) if each.name.startswith(("bricks", "models", "expected")))
    return replace(one, **{name: getattr(one, name) + getattr(other, name) for name in counts})
