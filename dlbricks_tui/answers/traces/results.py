"""Traces as plain values: the results of the Python API, and the JSON documents of `dlbricks trace`."""

from dataclasses import dataclass
from pathlib import Path
from statistics import median

from dlbricks_tui.answers.traces.tracing import TraceFormat
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision, stated_precision, stated_threads
from dlbricks_tui.store.records import Fact
from dlbricks_tui.traces.file import StoredTrace
from dlbricks_tui.traces.trace import LayerTime, LevelTrace, Trace, TraceLevel, TrackKind, layer_times, slowest_first


@dataclass(frozen=True, slots=True)
class TrackResult:
    """A track with the number of its spans."""

    name: str
    kind: TrackKind
    spans: int


@dataclass(frozen=True, slots=True)
class Total:
    """A sum over a level, such as `cycles`."""

    name: str
    value: Fact


@dataclass(frozen=True, slots=True, kw_only=True)
class LevelResult:
    """A level: the median of its inferences, what its instruments add, and how much it holds."""

    level: TraceLevel
    # Null if no inference was timed.
    inference_ms: float | None
    # The median inference minus that of the level below; null for the lowest level.
    overhead_ms: float | None
    # Of all rounds.
    inferences: int
    spans: int
    tracks: tuple[TrackResult, ...]
    counters: tuple[str, ...]
    totals: tuple[Total, ...]
    notes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class MissingLevelResult:
    """A level that cannot be traced, and the reason."""

    level: TraceLevel
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class LayerResult:
    """A layer: its median time in the inferences of the layer level, and the stored time of its brick."""

    layer: int
    name: str
    kind: str
    brick: str
    context: str
    in_model_ms: float
    # Null without a stored result under the same conditions.
    brick_ms: float | None
    # In the model minus the brick.
    difference_ms: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceResult:
    """A trace: what each level takes and adds, and the layers in the model beside their bricks."""

    id: str
    when: str
    model: str
    system: str
    runtime: str
    # That of the layers.
    level: Level
    batch: int
    threads: int | None
    precision: Precision
    # The file for other programs, and its format; null if none was written.
    file: Path | None
    format: TraceFormat | None
    levels: tuple[LevelResult, ...]
    missing: tuple[MissingLevelResult, ...]
    # The slowest first; empty if the layer level was not traced.
    layers: tuple[LayerResult, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class TraceSummary:
    """A trace of the data folder."""

    id: str
    when: str
    model: str
    system: str
    runtime: str
    level: Level
    batch: int
    # That of the data folder.
    stored: Path
    size_bytes: int


def trace_result(trace: Trace, file: Path | None = None, form: TraceFormat | None = None) -> TraceResult:
    """Return a trace as a document; `file` has been written in the format."""
    return TraceResult(
        id=trace.id,
        when=trace.when,
        model=trace.model,
        system=trace.system,
        runtime=trace.runtime,
        level=trace.graph_level,
        batch=trace.batch_size,
        threads=stated_threads(trace.runtime),
        precision=stated_precision(trace.runtime),
        file=file,
        format=form,
        levels=tuple(map(_level, trace.levels)),
        missing=tuple(MissingLevelResult(it.level, it.reason) for it in trace.missing),
        layers=tuple(map(_layer, slowest_first(layer_times(trace)))),
    )


def trace_summary(stored: StoredTrace) -> TraceSummary:
    """Return a trace of the data folder as a document."""
    header = stored.header
    return TraceSummary(
        id=header.id,
        when=header.when,
        model=header.model,
        system=header.system,
        runtime=header.runtime,
        level=header.graph_level,
        batch=header.batch_size,
        stored=stored.path,
        size_bytes=stored.size_bytes,
    )


def _level(level: LevelTrace) -> LevelResult:
    return LevelResult(
        level=level.level,
        inference_ms=median(level.inference_ms) if level.inference_ms else None,
        overhead_ms=level.overhead_ms,
        inferences=len(level.inference_ms),
        spans=sum(len(track.spans) for track in level.tracks),
        tracks=tuple(TrackResult(it.name, it.kind, len(it.spans)) for it in level.tracks),
        counters=tuple(it.name for it in level.counters),
        totals=tuple(Total(name, value) for name, value in level.totals),
        notes=level.notes,
    )


def _layer(time: LayerTime) -> LayerResult:
    return LayerResult(
        layer=time.layer.index,
        name=time.layer.name,
        kind=time.layer.kind,
        brick=time.layer.brick,
        context=time.layer.context,
        in_model_ms=time.in_model_ms,
        brick_ms=time.layer.brick_ms,
        difference_ms=time.difference_ms,
    )
