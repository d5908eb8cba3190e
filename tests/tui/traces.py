"""Made-up traces of the layers of a model, the same on every host and at every time."""

from dataclasses import replace
from functools import cache
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.traces.file import trace_path, write_trace
from dlbricks_tui.traces.trace import (
    Counter,
    LevelTrace,
    MissingLevel,
    Trace,
    TracedLayer,
    TraceLevel,
    TraceSpan,
    Track,
    TrackKind,
)
from tests.tui.results import RUNTIME, graph_of

MODEL = "squeezenet1.1"
ID = "20261127-071500-ab12"
WHEN = "2026-11-27T07:15:00.000000+00:00"
# The instruments of each level make everything slower by a percentage.
_SLOWER = {TraceLevel.MODEL: 0, TraceLevel.LAYER: 5, TraceLevel.PRIMITIVE: 9, TraceLevel.THREAD: 10}
_PAUSE_NS = 50_000
# Each layer takes this time for each step of its index in a cycle, the first of them longest.
_STEP_NS, _CYCLE = 20_000, 7
_FIRST_NS = 900_000


def trace_of(*, inferences: int = 3, **changes: Any) -> Trace:
    """Return a trace of a model at all levels but the thread level."""
    return replace(_trace_of(inferences), **changes)


@cache
def _trace_of(inferences: int) -> Trace:
    graph = graph_of(MODEL)
    occurrences = decompose(graph).occurrences
    bricks = {it.sequence.layers[0]: it for it in occurrences}
    layers = tuple(
        TracedLayer(
            index=index,
            name=layer.name,
            kind=layer.kind.value,
            brick=bricks[index].brick.key,
            context=bricks[index].context,
            # Every third brick was not measured.
            brick_ms=None if index % 3 == 2 else 0.9 * _layer_ns(index) / 1e6,
        )
        for index, layer in enumerate(graph.layers)
    )
    levels = [_level(it, layers, inferences) for it in (TraceLevel.MODEL, TraceLevel.LAYER, TraceLevel.PRIMITIVE)]
    return Trace(
        id=ID,
        when=WHEN,
        model=graph.name,
        model_key=end_to_end_keys(graph)[graph.level],
        system="c5.xlarge-4c-1f2e3d4c",
        runtime=RUNTIME.id,
        graph_level=graph.level,
        batch_size=1,
        layers=layers,
        levels=tuple(levels),
        missing=(MissingLevel(level=TraceLevel.THREAD, reason="/proc is not readable here"),),
    )


def with_threads(trace: Trace) -> Trace:
    """Return a trace with a level of two threads and a counter."""
    below = trace.levels[-1]
    (whole,) = (it for it in below.tracks if it.kind is TrackKind.INFERENCES)
    ran = [
        Track(
            name=f"thread {number}",
            kind=TrackKind.THREAD,
            spans=tuple(
                TraceSpan(
                    name=f"processor {(number + it.inference) % 2}" if it.inference is not None else "processor 0",
                    start_ns=it.start_ns,
                    duration_ns=it.duration_ns // (number + 1),
                    details=(("processor", number),),
                )
                for it in whole.spans
            ),
        )
        for number in range(2)
    ]
    times = tuple(it.start_ns for it in whole.spans)
    faults = Counter(
        name="page faults", unit="faults", times_ns=times, values=tuple(10.0 * it for it in range(len(times)))
    )
    level = replace(
        below, level=TraceLevel.THREAD, overhead_ms=0.01, tracks=(*below.tracks, *ran), counters=(faults,), notes=()
    )
    return replace(trace, levels=(*trace.levels, level), missing=())


def store_trace(data: DataFolder, trace: Trace | None = None) -> Trace:
    """Write a trace to its file in a data folder."""
    trace = trace or trace_of()
    write_trace(trace, trace_path(data.traces, trace.id))
    return trace


def _layer_ns(index: int) -> int:
    return _FIRST_NS if index == 0 else _STEP_NS * (1 + index % _CYCLE)


def _level(level: TraceLevel, layers: tuple[TracedLayer, ...], inferences: int) -> LevelTrace:
    ran: list[TraceSpan] = []
    added: list[TraceSpan] = []
    whole: list[TraceSpan] = []
    primitives: list[TraceSpan] = []
    now = 0
    for inference in range(inferences):
        begin = now
        for layer in layers:
            took = _layer_ns(layer.index) * (100 + _SLOWER[level]) // 100
            span = TraceSpan(name=layer.name, start_ns=now, duration_ns=took, inference=inference, layer=layer.index)
            ran.append(span)
            if layer.kind == "convolution":
                details = (("implementation", "jit:avx2"), ("layouts", "aBcd8b to aBcd8b"))
                primitives.append(replace(span, name="convolution", duration_ns=took * 9 // 10, details=details))
            now += took
        reorder = TraceSpan(name="reorder", start_ns=now, duration_ns=3 * _STEP_NS, inference=inference)
        added.append(reorder)
        now += reorder.duration_ns
        whole.append(
            TraceSpan(name=f"inference {inference + 1}", start_ns=begin, duration_ns=now - begin, inference=inference)
        )
        now += _PAUSE_NS
    tracks = [Track(name="inferences", kind=TrackKind.INFERENCES, spans=tuple(whole))]
    if level is not TraceLevel.MODEL:
        tracks += [
            Track(name="layers", kind=TrackKind.LAYERS, spans=tuple(ran)),
            Track(name="added", kind=TrackKind.ADDED, spans=tuple(added)),
        ]
    if level is TraceLevel.PRIMITIVE:
        tracks.append(Track(name="primitives", kind=TrackKind.PRIMITIVES, spans=tuple(primitives)))
    below = {TraceLevel.LAYER: TraceLevel.MODEL, TraceLevel.PRIMITIVE: TraceLevel.LAYER}.get(level)
    took_ms = whole[0].duration_ns / 1e6
    slower = 0 if below is None else _SLOWER[level] - _SLOWER[below]
    return LevelTrace(
        level=level,
        inference_ms=tuple(it.duration_ns / 1e6 for it in whole),
        overhead_ms=None if below is None else took_ms * slower / (100 + _SLOWER[level]),
        tracks=tuple(tracks),
        notes=("the starts of layers are derived from their order",) if level is TraceLevel.LAYER else (),
    )
