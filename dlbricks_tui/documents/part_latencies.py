"""The known latency of each part of a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from dlbricks_tui.documents.lines import Span
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.wording.numbers import CANNOT, LEFT_OUT, UNKNOWN, WIDE, milliseconds, sign_of

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.bricks.regions import Region
    from dlbricks_tui.documents.outline import Outline
    from dlbricks_tui.estimate.estimate import Estimate
    from dlbricks_tui.estimate.parts import Part


@dataclass(frozen=True, slots=True)
class PartLatency:
    """The known latency of some layers; counts are of layers."""

    latency_ms: float
    share: float
    layers: int
    predicted: int
    missing: int
    unmeasurable: int
    critical: bool
    # True if the interval of its samples is wider than a run asks for.
    wide: bool = False

    @property
    def known(self) -> int:
        """The number of layers with a measured latency."""
        return self.layers - self.predicted - self.missing - self.unmeasurable

    @property
    def coverage(self) -> float:
        """The share of measured layers."""
        return self.known / self.layers if self.layers else 1.0

    @property
    def told(self) -> Span:
        """The latency, or a sign for why there is none."""
        if not self.layers:
            return Span(LEFT_OUT, "muted")
        if self.unmeasurable == self.layers:
            return Span(CANNOT, "bad")
        if not self.known and not self.predicted:
            return Span(UNKNOWN, "muted")
        lacks = self.missing + self.unmeasurable > 0
        if not self.latency_ms and not lacks:
            return Span("0", "muted")
        sign = sign_of(partial=lacks, predicted=self.predicted > 0) or (WIDE if self.wide else "")
        return Span(sign + milliseconds(self.latency_ms), "warn" if sign else "strong")


class PartLatencies:
    """The latencies of all parts of a model under one estimate; prefix sums make each one quick."""

    def __init__(self, outline: Outline, estimate: Estimate) -> None:
        self.outline = outline
        # Parts by first layer: each begins a sequence. Of overlapping sequences only those that cover the model have a
        # part, and if none is measured, that part is its first layer alone.
        by_first = {part.layers[0]: part for part in estimate.parts}
        composed = estimate.composed
        critical = {estimate.parts[number].layers[0] for number in composed.critical_path} if composed else set()
        sequences = [outline.decomposition.occurrences[number].sequence for number in outline.sequences]
        parts = [by_first.get(sequence.layers[0]) for sequence in sequences]
        on_path = [sequence.layers[0] in critical for sequence in sequences]
        self._total_ms = composed.sequential_ms if composed else 0.0
        self._parts = dict(zip(outline.sequences, parts, strict=True))
        self._paid_ps = _sums(parts, lambda part: part.paid_ps if part.counts else 0)
        self._half_widths_ms = list(accumulate(map(_half_width_ms, parts), initial=0.0))
        self._layers = _sums(parts, lambda part: len(part.layers))
        self._predicted = _sums_of(parts, Standing.PREDICTED)
        self._missing = _sums_of(parts, Standing.MISSING)
        self._unmeasurable = _sums_of(parts, Standing.UNMEASURABLE)
        self._critical = list(accumulate(on_path, initial=0))
        # Positions in the outline.
        self.critical = tuple(place for place, each in enumerate(on_path) if each)
        self.missing = tuple(place for place, part in enumerate(parts) if part is not None and not part.known)

    def slowest_first(self) -> list[int]:
        """Return the sequences, the slowest first, and last those without a latency."""

        def rank(sequence: int) -> tuple[int, tuple[int, ...]]:
            part = self._parts[sequence]
            return (-part.paid_ps, part.layers) if part is not None and part.counts else (1, ())

        return sorted(self._parts, key=rank)

    def part(self, sequence: int) -> Part | None:
        """Return the part of a sequence; None if the estimate does not use it."""
        return self._parts[sequence]

    def of(self, region: Region) -> PartLatency:
        """Return the latency of a region."""
        inside = self.outline.span_of(region)

        def within(sums: list[int]) -> int:
            return sums[inside.stop] - sums[inside.start]

        latency_ms = from_picoseconds(within(self._paid_ps))
        if region is self.outline.root.region and not self._total_ms:
            # Too few layers make no figure of the model.
            latency_ms = 0.0
        return PartLatency(
            latency_ms,
            latency_ms / self._total_ms if self._total_ms else 0.0,
            within(self._layers),
            within(self._predicted),
            within(self._missing),
            within(self._unmeasurable),
            within(self._critical) > 0,
            is_wide(latency_ms, self._half_widths_ms[inside.stop] - self._half_widths_ms[inside.start]),
        )


def _half_width_ms(part: Part | None) -> float:
    """Return half of the interval of what the model pays for a measured part."""
    if part is None or part.standing is not Standing.MEASURED:
        return 0.0
    return part.times * (part.latency.high_ms - part.latency.low_ms) / 2


def _sums(parts: list[Part | None], value: Callable[[Part], int]) -> list[int]:
    return list(accumulate((0 if part is None else value(part) for part in parts), initial=0))


def _sums_of(parts: list[Part | None], standing: Standing) -> list[int]:
    return _sums(parts, lambda part: len(part.layers) if part.standing is standing else 0)
