"""The time of each layer in the model beside the time of its brick alone."""

from collections import defaultdict
from collections.abc import Iterable
from dataclasses import dataclass
from statistics import median

from dlbricks_tui.traces.trace import LevelTrace, Trace, TracedLayer, TraceLevel, TraceSpan, TrackKind

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
                spent_ms[span.layer, span.inference] += _whole_ms(span)
    by_layer: dict[int, list[float]] = defaultdict(list)
    for (layer, _), ms in spent_ms.items():
        by_layer[layer].append(ms)
    return {layer: median(each) for layer, each in by_layer.items()}


def together(kind: str, times: Iterable[LayerTime]) -> KindTime:
    """Return the sums of some layers."""
    found = list(times)
    compared = [it for it in found if it.layer.brick_ms is not None]
    return KindTime(
        kind,
        len(found),
        sum(it.in_model_ms for it in found),
        len(compared),
        sum(it.in_model_ms for it in compared),
        sum(it.layer.brick_ms or 0.0 for it in compared),
    )


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


def _whole_ms(span: TraceSpan) -> float:
    apart_ms = next((value for name, value in span.details if name == APART_MS), None)
    return span.duration_ns / _NS_PER_MS + (apart_ms if isinstance(apart_ms, float) else 0.0)
