"""Events of a run."""

from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.jobs.events import Event, EventKinds, EventReader, JobEnded, JobStarted, event_kinds
from dlbricks_tui.measure import events as measuring
from dlbricks_tui.measure.events import BatchRestarted, BatchStarted, DriftNoted, RoundDone, RoundRepeated

# In runs of earlier versions, rounds with other programs followed this event: those of networks for calibration.
_CALIBRATING = b'{"event":"Calibrating"'
_OF_ROUNDS = (BatchStarted, RoundDone, RoundRepeated, BatchRestarted, DriftNoted)


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
    """The run goes on with another runtime or number of threads; `later_seconds` are expected for those after it."""

    part: str
    number: int
    of: int
    later_seconds: float


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
        self._calibrates = False

    def _read(self, line: bytes) -> Event | None:
        event = super()._read(line)
        if event is None:
            self._calibrates = line.startswith(_CALIBRATING)
        elif self._calibrates and isinstance(event, _OF_ROUNDS):
            return None
        else:
            self._calibrates = False
        return event
