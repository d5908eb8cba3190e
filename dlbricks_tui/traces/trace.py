"""A trace: one model run at rising levels of detail, each level with the overhead that it adds."""

from dataclasses import dataclass
from enum import Enum

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.graph import Level
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
class Trace:
    """A model on this system by one runtime, at several levels."""

    id: str
    when: str
    model: str
    model_key: str
    system: str
    # The identity of the runtime.
    runtime: str
    graph_level: Level
    batch_size: int
    layers: tuple[TracedLayer, ...]
    levels: tuple[LevelTrace, ...]
    missing: tuple[MissingLevel, ...] = ()


class TraceError(UserError):
    """A trace that cannot be made, written or read."""
