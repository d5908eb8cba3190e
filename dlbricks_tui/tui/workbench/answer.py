"""The answer about the open model as a picture: the measured latency and the estimate with its interval, as bars."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Line, Span, column, line, number_column
from dlbricks_tui.tui.run.words import on_its_way
from dlbricks_tui.wording.answers import answer_words, faster_words
from dlbricks_tui.wording.numbers import PREDICTED, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.tui.run.snapshot import RunBrick, RunModel, RunSnapshot

_NAME, _MS = 10, 12
_LEAST_BAR, _MOST_BAR = 8, 60
# Fewer samples of the whole model tell less than the short burst that times it at first.
_ENOUGH_SAMPLES = 8
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96
# The bar up to the interval, within it below the estimate, and within it above.
_SOLID, _BELOW, _ABOVE = "█", "▓", "░"


@dataclass(frozen=True, slots=True)
class UnderWay:
    """The progress of a run of the open model: in words, and the figures of that run so far."""

    words: str = ""
    # From all layers of the model; None until each has samples.
    estimate: Latency | None = None
    # The latency of the whole model.
    end_to_end: Latency | None = None

    @property
    def has_figures(self) -> bool:
        return self.estimate is not None or self.end_to_end is not None


NOTHING_UNDER_WAY = UnderWay()


def under_way(run: RunSnapshot, model: str) -> UnderWay:
    """Return the progress of a run of a model; nothing if the run is of other models, has ended or is replayed."""
    words = on_its_way(run, model)
    if not words:
        return NOTHING_UNDER_WAY
    # A run in several variants has several figures, of which none is the answer.
    estimates = [it for it in run.estimates if it.name == model]
    wholes = [it for it in run.bricks if it.whole and model in it.used_by]
    if len(estimates) > 1 or len(wholes) > 1:
        return UnderWay(words)
    return UnderWay(
        words,
        next((found for it in estimates if (found := _estimate_so_far(it)) is not None), None),
        next((found for it in wholes if (found := _timed(it)) is not None), None),
    )


def _estimate_so_far(model: RunModel) -> Latency | None:
    from dlbricks_tui.estimate.knowledge import Latency

    if model.is_partial or not model.sequential_ms or model.low_ms is None or model.high_ms is None:
        return None
    return Latency(model.sequential_ms, model.low_ms, model.high_ms)


def _timed(whole: RunBrick) -> Latency | None:
    from dlbricks_tui.estimate.knowledge import Latency

    if len(whole.samples_ms) >= _ENOUGH_SAMPLES:
        # Loaded here: the first screen needs no NumPy.
        from dlbricks_tui.store.statistics import trimmed_mean

        # Samples of the rounds of the bricks saw the host at the same speed as these. The bootstrap of the final
        # interval would take the processor from the run.
        value_ms, samples = trimmed_mean(whole.samples_ms), len(whole.samples_ms)
        squares = fsum((it - value_ms) ** 2 for it in whole.samples_ms)
        half_ms = _TWO_SIDED_95 * sqrt(squares / (samples - 1) / samples)
        return Latency(value_ms, max(0.0, value_ms - half_ms), value_ms + half_ms)
    if not whole.latency_ms:
        return None
    half_ms = whole.latency_ms * (whole.half_width or 0.0)
    return Latency(whole.latency_ms, whole.latency_ms - half_ms, whole.latency_ms + half_ms)


def replaces(under_way: UnderWay, found: SystemEstimate) -> bool:
    """Return whether the figures of the run tell more than the stored results: until these cover the model."""
    return under_way.has_figures and not found.estimate.coverage.complete


def so_far_lines(under_way: UnderWay, width: int) -> Iterator[Line]:
    """Yield the picture of a run in progress: each figure as soon as the run has it."""
    estimate, whole = under_way.estimate, under_way.end_to_end
    if estimate is None:
        yield line(Span("The whole model is timed; its layers follow.", "strong"))
    else:
        yield line(Span(f"The estimate so far is {milliseconds(estimate.value_ms)} ms.", "strong"))
    yield from _bars(estimate, whole, width)
    if estimate is not None:
        yield line(Span(f"{_interval(estimate)} so far; more samples narrow it.", "muted"))


def answer_lines(
    found: SystemEstimate,
    width: int,
    *,
    chosen: bool = False,
    fastest: SystemEstimate | None = None,
    on: str = "",
) -> Iterator[Line]:
    """Yield the answer in a sentence, the picture, and how the estimate and the measurement agree.

    There is no picture of an estimate that lacks layers. `on` names the system, unless that is this host.
    """
    yield line(Span(answer_words(found, chosen=chosen, on=on), "strong"))
    if faster := faster_words(found, fastest):
        yield line(Span(faster, "warn"))
    composed, whole = found.estimate.composed, found.end_to_end
    if composed is None or found.estimate.is_partial or not composed.sequential_ms:
        return
    # Loaded here: the first screen needs no bricks.
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.wording.doubts import doubts_about

    interval = Latency(composed.sequential_ms, composed.interval.low_ms, composed.interval.high_ms)
    is_predicted = found.estimate.coverage.predicted > 0
    yield from _bars(interval, whole, width, PREDICTED if is_predicted else "")
    yield line(Span(_agreement(interval, whole, is_predicted=is_predicted), "muted"))
    yield from (line(Span(told, "warn")) for told in doubts_about(found))


def _agreement(estimate: Latency, whole: Latency | None, *, is_predicted: bool) -> str:
    kind = "prediction" if is_predicted else "estimate"
    told = f"{_interval(estimate)} of the {kind}"
    if whole is None:
        return told
    is_inside = estimate.low_ms <= whole.value_ms <= estimate.high_ms
    return f"{told}; the measured latency is inside" if is_inside else told


def _interval(estimate: Latency) -> str:
    return f"{milliseconds(estimate.low_ms)} to {milliseconds(estimate.high_ms)} ms, the 95 % interval"


def _bars(estimate: Latency | None, whole: Latency | None, width: int, sign: str = "") -> Iterator[Line]:
    room = min(_MOST_BAR, width - _NAME - _MS)
    longest = max((it.high_ms for it in (estimate, whole) if it is not None), default=0.0)
    for name, latency, mark in (("measured", whole, ""), ("estimate", estimate, sign)):
        if latency is None:
            continue
        figure = number_column(f"{mark}{milliseconds(latency.value_ms)}", _MS - 3, "warn" if mark else "strong")
        drawn = _bar(latency, longest, room) if room >= _LEAST_BAR and longest > 0 else ()
        yield line(column(name, _NAME), *drawn, figure, Span(" ms", "muted"))


def _bar(latency: Latency, longest_ms: float, width: int) -> Line:
    """Return a latency as a bar on the scale of the longest one, with its interval in lighter shades."""
    low, middle, high = (
        min(width, max(0, round(each / longest_ms * width)))
        for each in (latency.low_ms, latency.value_ms, latency.high_ms)
    )
    low = max(low, 1)
    middle, high = max(low, middle), max(low, middle, high)
    return (
        Span(_SOLID * low, "bar"),
        Span(_BELOW * (middle - low), "bar"),
        Span(_ABOVE * (high - middle), "bar"),
        Span(" " * (width - high)),
    )
