"""A trace: one model run at rising levels of detail, the time of its layers beside their bricks, and its job."""

from collections import defaultdict
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from enum import Enum
from statistics import median

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.queue import WorkKind
from dlbricks_tui.jobs.events import Event, event_kinds
from dlbricks_tui.jobs.kinds import JobKind
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.store.records import Facts

# The total of the layer level with the median inference of the network of layers without the profiler.
PLAIN_MS = "plain_ms"


class TraceLevel(str, Enum):
    """The levels, in the order in which they add instruments."""

    # Whole inferences, timed as an end-to-end measurement times them.
    MODEL = "model"
    # The layers, by the profiler of the runtime.
    LAYER = "layer"
    # The kernels of oneDNN, by what it prints.
    PRIMITIVE = "primitive"
    # The threads of the worker, by the counters of the kernel of the operating system.
    THREAD = "thread"


class TrackKind(str, Enum):
    """The subject of a track."""

    INFERENCES = "inferences"
    # Every layer of the layer graph, once in each inference.
    LAYERS = "layers"
    # Conversions and other operators that the runtime added, and that the layer graph lacks.
    ADDED = "added"
    PRIMITIVES = "primitives"
    THREAD = "thread"


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSpan:
    """An interval of a track. Times count from the start of the level's first inference."""

    name: str
    start_ns: int
    duration_ns: int
    # The number of the inference that it belongs to, from 0 on; None if it belongs to none.
    inference: int | None = None
    # The index in the layer graph; None if it belongs to no layer.
    layer: int | None = None
    # Such as the implementation and the layouts of a primitive, or the processor of a thread.
    details: Facts = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Track:
    """Spans in the order of their starts, none of which overlap."""

    name: str
    kind: TrackKind
    spans: tuple[TraceSpan, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Counter:
    """A number that was read at several times, such as page faults of the worker."""

    name: str
    unit: str
    times_ns: tuple[int, ...]
    values: tuple[float, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelTrace:
    """A level, from inferences of its own."""

    level: TraceLevel
    # Of all rounds. Those in the tracks come first, so that spans have their numbers.
    inference_ms: tuple[float, ...]
    # The median inference minus that of the level below; None for the lowest level.
    overhead_ms: float | None
    tracks: tuple[Track, ...]
    counters: tuple[Counter, ...] = ()
    # Sums over the level, such as `cycles` and `instructions` where perf events are allowed.
    totals: Facts = ()
    # What a reader should know, such as that the runtime does not tell when layers start.
    notes: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class TracedLayer:
    """A layer of the graph, with the key of its brick, under which the store has its stand-alone time."""

    index: int
    name: str
    kind: str
    brick: str
    context: str
    # The stored latency of the brick under the same conditions; None if there is none.
    brick_ms: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class MissingLevel:
    """A level that cannot be traced here, and why."""

    level: TraceLevel
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceHeader:
    """All that names a trace: everything but its layers and levels."""

    id: str
    when: str
    model: str
    model_key: str
    system: str
    # The identity of the runtime.
    runtime: str
    graph_level: Level
    batch_size: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Trace(TraceHeader):
    """A model on this system by one runtime, at several levels."""

    layers: tuple[TracedLayer, ...]
    levels: tuple[LevelTrace, ...]
    missing: tuple[MissingLevel, ...] = ()


class TraceError(UserError):
    """A trace that cannot be made, written or read."""


# The detail of a layer's span with the time of its other parts, if its operators ran apart.
APART_MS = "apart_ms"
_NS_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class LayerTime:
    """A layer with the median of its times in the inferences of a level."""

    layer: TracedLayer
    in_model_ms: float

    @property
    def difference_ms(self) -> float | None:
        """The time in the model minus that of the brick; None without a stored time of the brick."""
        return None if self.layer.brick_ms is None else self.in_model_ms - self.layer.brick_ms


@dataclass(frozen=True, slots=True)
class KindTime:
    """The layers of a kind together."""

    kind: str
    layers: int
    in_model_ms: float
    # Of the layers whose bricks have a stored time: their number, and their times in the model and alone.
    compared: int
    compared_in_model_ms: float
    brick_ms: float


def layer_times(trace: Trace) -> tuple[LayerTime, ...]:
    """Return the time of each layer at the layer level, in the order of the graph; nothing without that level."""
    level = next((it for it in trace.levels if it.level is TraceLevel.LAYER), None)
    times_ms = {} if level is None else times_by_layer(level)
    return tuple(LayerTime(layer, times_ms[layer.index]) for layer in trace.layers if layer.index in times_ms)


def times_by_layer(level: LevelTrace) -> dict[int, float]:
    """Return the time of each layer by its index, in milliseconds: the median over the inferences that show it."""
    spent_ms: dict[tuple[int, int], float] = defaultdict(float)
    for track in level.tracks:
        for span in track.spans if track.kind is TrackKind.LAYERS else ():
            if span.layer is not None and span.inference is not None:
                apart_ms = dict(span.details).get(APART_MS)
                spent_ms[span.layer, span.inference] += span.duration_ns / _NS_PER_MS
                spent_ms[span.layer, span.inference] += apart_ms if isinstance(apart_ms, float) else 0.0
    by_layer: dict[int, list[float]] = defaultdict(list)
    for (layer, _), ms in spent_ms.items():
        by_layer[layer].append(ms)
    return {layer: median(each) for layer, each in by_layer.items()}


def together(kind: str, times: Iterable[LayerTime]) -> KindTime:
    """Return the sums of some layers."""
    found = list(times)
    compared = [it for it in found if it.layer.brick_ms is not None]
    in_all_ms, in_model_ms = (sum(it.in_model_ms for it in some) for some in (found, compared))
    alone_ms = sum(it.layer.brick_ms or 0.0 for it in compared)
    return KindTime(kind, len(found), in_all_ms, len(compared), in_model_ms, alone_ms)


def by_kind(times: Iterable[LayerTime]) -> list[KindTime]:
    """Return the sums of each kind of layer, the longest in the model first."""
    kinds: dict[str, list[LayerTime]] = defaultdict(list)
    for it in times:
        kinds[it.layer.kind].append(it)
    return sorted((together(kind, those) for kind, those in kinds.items()), key=lambda it: it.in_model_ms, reverse=True)


def shown_inference_ms(trace: Trace) -> float | None:
    """Return the median of the inferences that the layer level shows; None without any."""
    tracks = [track for it in trace.levels if it.level is TraceLevel.LAYER for track in it.tracks]
    shown = [span.duration_ns for track in tracks if track.kind is TrackKind.INFERENCES for span in track.spans]
    return median(shown) / _NS_PER_MS if shown else None


def slowest_first(times: tuple[LayerTime, ...]) -> list[LayerTime]:
    """Return the times, the longest in the model first."""
    return sorted(times, key=lambda it: it.in_model_ms, reverse=True)


USUAL_INFERENCES = 10


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceOrder:
    """A model, how it is executed, and the levels to trace, with so many inferences of each in each round."""

    source: ModelSource
    execution: Execution
    levels: tuple[TraceLevel, ...] = tuple(TraceLevel)
    inferences: int = USUAL_INFERENCES
    inputs: Mapping[str, Shape] = field(default_factory=dict)
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelStarted(Event):
    """The worker of a level starts, and loads the model."""

    level: TraceLevel


@dataclass(frozen=True, slots=True, kw_only=True)
class RoundStarted(Event):
    """A round begins: the model runs some times at each level whose worker has loaded it."""

    # From 1 on.
    number: int
    rounds: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelDone(Event):
    """The end of a level: the median of its inferences, or the reason why it cannot be traced."""

    level: TraceLevel
    inference_ms: float | None
    # None for the lowest level that was traced, and for a level that cannot be traced.
    overhead_ms: float | None
    missing: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceDone(Event):
    """The trace is in its file."""

    id: str


TRACE = JobKind(
    WorkKind.TRACE,
    TraceOrder,
    event_kinds(LevelStarted, RoundStarted, LevelDone, TraceDone),
    "dlbricks_tui.traces.measuring",
)
