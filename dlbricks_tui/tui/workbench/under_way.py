"""The progress of a run of the open model, and its figures so far."""

from __future__ import annotations

from dataclasses import dataclass
from math import fsum, sqrt
from typing import TYPE_CHECKING

from dlbricks_tui.tui.run.words import on_its_way
from dlbricks_tui.wording.numbers import in_ms, milliseconds

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.estimate.knowledge import Latency
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.tui.run.snapshot import RunBrick, RunModel, RunSnapshot

# Fewer samples of the whole model tell less than the short burst that times it at first.
_ENOUGH_SAMPLES = 8
# A mean lies within this many standard errors with 95 % confidence.
_TWO_SIDED_95 = 1.96


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


def so_far_parts(under_way: UnderWay) -> Iterator[Part]:
    """Yield the figures of a run in progress, each as soon as the run has it."""
    # Loaded here: the first screen shows no run.
    from dlbricks_tui.documents.parts import Figure, Figures, Sentence

    estimate, whole = under_way.estimate, under_way.end_to_end
    if estimate is None:
        yield Sentence("The whole model is timed; its layers follow.", "strong")
    else:
        yield Sentence(f"The estimate so far is {milliseconds(estimate.value_ms)} ms.", "strong")
    named = ("end to end", whole), ("sequential", estimate)
    known = [(name, it) for name, it in named if it is not None]
    yield Figures(tuple(Figure(name, in_ms(it.value_ms), it.value_ms, it.low_ms, it.high_ms) for name, it in known))
    if estimate is not None:
        ends = f"{milliseconds(estimate.low_ms)} to {milliseconds(estimate.high_ms)} ms"
        yield Sentence(f"{ends}, the 95 % interval so far; more samples narrow it.", "muted")
