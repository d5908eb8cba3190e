"""A trace in words: what each level takes and adds, and a layer in the model beside its brick alone."""

from __future__ import annotations

from statistics import median
from typing import TYPE_CHECKING

from dlbricks_tui.traces.trace import TraceLevel, TrackKind
from dlbricks_tui.wording.numbers import in_ms, percent, signed_percent
from dlbricks_tui.wording.tracing import signed_ms

if TYPE_CHECKING:
    from dlbricks_tui.traces.layer_times import LayerTime
    from dlbricks_tui.traces.trace import LevelTrace, Span, TracedLayer

_INSTRUMENTS = {
    TraceLevel.MODEL: "by its clock",
    TraceLevel.LAYER: "by the profiler",
    TraceLevel.PRIMITIVE: "by the output of oneDNN",
    TraceLevel.THREAD: "by the counters of threads",
}


def inference_of(level: LevelTrace) -> float | None:
    """Return the median inference of a level in milliseconds."""
    return median(level.inference_ms) if level.inference_ms else None


def overhead_of(level: LevelTrace) -> str:
    """Return what a level adds to the one below: `+0.2000 ms (+6 %) by the profiler`; nothing for the lowest level."""
    whole_ms = inference_of(level)
    if level.overhead_ms is None or whole_ms is None:
        return ""
    below_ms = whole_ms - level.overhead_ms
    share = f" ({signed_percent(level.overhead_ms / below_ms, 0)})" if below_ms > 0 else ""
    return f"{signed_ms(level.overhead_ms)}{share} {_INSTRUMENTS[level.level]}"


def level_answer(level: LevelTrace, slowest: LayerTime | None = None) -> str:
    """Return what a level says, with the slowest layer of the trace at the layer level.

    `3.410 ms per inference, +0.2000 ms (+6 %) by the profiler; slowest layer conv0, 12.0 %`
    """
    whole_ms = inference_of(level)
    if whole_ms is None:
        return "no inference was timed"
    told = ", ".join(filter(None, (f"{in_ms(whole_ms)} per inference", overhead_of(level))))
    if slowest is None or level.level is not TraceLevel.LAYER or whole_ms <= 0:
        return told
    return f"{told}; slowest layer {slowest.layer.name}, {percent(slowest.in_model_ms / whole_ms, 1)}"


def beside_brick(layer: TracedLayer, in_model_ms: float) -> str:
    """Return the difference of a layer in the model to its brick alone: `+0.01200 ms, +3.0 %`; nothing without one."""
    if layer.brick_ms is None:
        return ""
    difference_ms = in_model_ms - layer.brick_ms
    share = f", {signed_percent(difference_ms / layer.brick_ms)}" if layer.brick_ms > 0 else ""
    return f"{signed_ms(difference_ms)}{share}"


def share_of_inference(span: Span, level: LevelTrace) -> str:
    """Return the share of a span in its own inference: `12.0 %`; nothing if it belongs to none."""
    whole = (it.spans for it in level.tracks if it.kind is TrackKind.INFERENCES)
    found = next((it for spans in whole for it in spans if it.inference == span.inference), None)
    if span.inference is None or found is None or not found.duration_ns:
        return ""
    return percent(span.duration_ns / found.duration_ns, 1)
