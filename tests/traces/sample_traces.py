"""Traces of a small model, as if a runtime had been traced."""

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from hypothesis import strategies as st

from dlbricks_tui.models.graph import Level
from dlbricks_tui.store.records import Facts
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

_INFERENCE_NS = 1_000_000
_LAYERS = (("conv0", "convolution", 600_000), ("pool0", "pooling", 150_000), ("dense0", "dense", 200_000))


def sample_trace(inferences: int = 2, **changes: Any) -> Trace:
    """A trace of three layers at all levels but the thread level."""
    layers: list[TracedLayer] = []
    for index, (name, kind, ns) in enumerate(_LAYERS):
        brick, brick_ms = f"{index}" * 16, None if kind == "pooling" else ns / 1e6
        layers.append(TracedLayer(index=index, name=name, kind=kind, brick=brick, context="warm", brick_ms=brick_ms))
    trace = Trace(
        id="20261127-071500-ab12",
        when="2026-11-27T07:15:00.000000+00:00",
        model="three layers",
        model_key="f" * 16,
        system="5" * 16,
        runtime="onnxruntime-1.32.0 python-3.11 threads-1",
        graph_level=Level.FUSED,
        batch_size=1,
        layers=tuple(layers),
        levels=tuple(_levels(inferences)),
        missing=(MissingLevel(level=TraceLevel.THREAD, reason="/proc is not readable here"),),
    )
    return replace(trace, **changes)


def _level(level: TraceLevel, ms: float, overhead_ms: float | None, *tracks: Track, **more: Any) -> LevelTrace:
    inferences = Track(name="inferences", kind=TrackKind.INFERENCES, spans=tuple(_spans(more.pop("count"), ms)))
    times = (ms,) * len(inferences.spans)
    return LevelTrace(level=level, inference_ms=times, overhead_ms=overhead_ms, tracks=(inferences, *tracks), **more)


def _spans(count: int, ms: float) -> Iterator[TraceSpan]:
    for number in range(count):
        start_ns = number * 2 * _INFERENCE_NS
        yield TraceSpan(name=f"inference {number}", start_ns=start_ns, duration_ns=round(1e6 * ms), inference=number)


def _layer_spans(count: int) -> Iterator[TraceSpan]:
    for inference in range(count):
        start_ns = inference * 2 * _INFERENCE_NS
        for index, (name, _, ns) in enumerate(_LAYERS):
            details = (("kernel", "jit:avx2"), ("calls", 1)) if index != 1 else ()
            where = {"inference": inference, "layer": index}
            yield TraceSpan(name=name, start_ns=start_ns, duration_ns=ns, details=details, **where)
            start_ns += ns


def _levels(count: int) -> Iterator[LevelTrace]:
    """The model, the layer and the primitive level."""
    yield _level(TraceLevel.MODEL, 1.0, None, count=count)
    added = TraceSpan(name="reorder", start_ns=960_000, duration_ns=30_000, inference=0)
    yield _level(
        TraceLevel.LAYER,
        1.2,
        0.2,
        Track(name="layers", kind=TrackKind.LAYERS, spans=tuple(_layer_spans(count))),
        Track(name="added by the runtime", kind=TrackKind.ADDED, spans=(added,)),
        notes=("the runtime does not tell when layers start",),
        count=count,
    )
    details: Facts = (("implementation", "jit:avx2"), ("threads", 1), ("share", 1.0), ("blocked", True))
    ran = TraceSpan(name="convolution", start_ns=0, duration_ns=590_000, inference=0, layer=0, details=details)
    converted = TraceSpan(name="reorder", start_ns=590_000, duration_ns=0)
    faults = Counter(name="page faults", unit="faults", times_ns=(0, 1_000_000), values=(0.0, 12.0))
    yield _level(
        TraceLevel.PRIMITIVE,
        1.3,
        0.1,
        Track(name="primitives", kind=TrackKind.PRIMITIVES, spans=(ran, converted)),
        counters=(faults,),
        totals=(("cycles", 3_000_000), ("instructions", None)),
        count=count,
    )


_texts = st.text(st.characters(exclude_categories=()), max_size=20)
_numbers = st.floats(allow_nan=False, allow_infinity=False)
_facts = st.lists(
    st.tuples(_texts, st.none() | st.booleans() | st.integers(-(1 << 63), (1 << 63) - 1) | _numbers | _texts),
    max_size=3,
).map(tuple)


@st.composite
def traces(draw: st.DrawFn) -> Trace:
    """A trace with odd names and facts, and with some of the levels."""

    def odd(track: Track) -> Track:
        spans = (
            replace(it, name=draw(_texts), start_ns=it.start_ns - 1000, details=draw(_facts)) for it in track.spans
        )
        return replace(track, name=draw(_texts), spans=tuple(spans))

    trace = sample_trace(draw(st.integers(1, 3)))
    split = draw(st.integers(0, len(trace.levels)))
    levels = (
        replace(
            level,
            overhead_ms=draw(st.none() | st.floats(-1e3, 1e3)),
            tracks=tuple(map(odd, level.tracks)),
            totals=draw(_facts),
            notes=(draw(_texts),),
            counters=tuple(replace(it, name=draw(_texts), values=(draw(_numbers), 1.0)) for it in level.counters),
        )
        for level in trace.levels[:split]
    )
    layers = (
        replace(it, name=draw(_texts), kind=draw(_texts), brick=draw(_texts), context=draw(_texts))
        for it in trace.layers
    )
    missing = (MissingLevel(level=it.level, reason=draw(_texts)) for it in trace.levels[split:])
    texts = {name: draw(_texts) for name in ("id", "model", "model_key", "system", "runtime")}
    return replace(trace, layers=tuple(layers), levels=tuple(levels), missing=tuple(missing), **texts)  # type: ignore[arg-type]
