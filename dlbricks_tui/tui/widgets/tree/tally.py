"""What an estimate says of each part of a model."""

from __future__ import annotations

from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.estimate.parts import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.bricks.regions import Region
    from dlbricks_tui.estimate.estimate import Estimate
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.tui.opened import Opened


@dataclass(frozen=True, slots=True)
class Tally:
    """The latency of some layers, as far as it is known; counts are of layers."""

    latency_ms: float
    share: float
    layers: int
    guessed: int
    missing: int
    unmeasurable: int
    critical: bool
    # Whether the samples leave its interval wider than a run asks for.
    wide: bool = False

    @property
    def known(self) -> int:
        """How many layers have a latency that is no guess."""
        return self.layers - self.guessed - self.missing - self.unmeasurable

    @property
    def coverage(self) -> float:
        """The share of the layers that were measured."""
        return self.known / self.layers if self.layers else 1.0


class Tallies:
    """What one estimate says of one model; every part spans some of its sequences, and is quickly added up."""

    def __init__(self, opened: Opened, estimate: Estimate) -> None:
        self._nesting = nesting = opened.nesting
        # One sequence begins at each of these layers. Of overlapping ones only those that cover the model have a part,
        # and where none is measured that part is the first layer alone.
        by_first = {part.layers[0]: part for part in estimate.parts}
        composed = estimate.composed
        critical = {estimate.parts[number].layers[0] for number in composed.critical_path} if composed else set()
        sequences = [opened.decomposition.occurrences[number].sequence for number in nesting.sequences]
        parts = [by_first.get(sequence.layers[0]) for sequence in sequences]
        on_path = [sequence.layers[0] in critical for sequence in sequences]
        self._total_ms = composed.sequential_ms if composed else 0.0
        # The model pays it once, and no part of it does.
        self.call_ms = composed.call_ms if composed else 0.0
        self._parts = dict(zip(nesting.sequences, parts, strict=True))
        self._paid_ps = _sums(parts, lambda part: part.paid_ps if part.counts else 0)
        self._half_widths_ms = list(accumulate(map(_half_width_ms, parts), initial=0.0))
        self._layers = _sums(parts, lambda part: len(part.layers))
        self._guessed = _sums_of(parts, Standing.BRIDGED)
        self._missing = _sums_of(parts, Standing.MISSING)
        self._unmeasurable = _sums_of(parts, Standing.UNMEASURABLE)
        self._critical = list(accumulate(on_path, initial=0))
        # Where in the nesting they stand.
        self.critical = tuple(place for place, each in enumerate(on_path) if each)
        self.gaps = tuple(place for place, part in enumerate(parts) if part is not None and not part.known)

    def part(self, sequence: int) -> Part | None:
        """What is known of a sequence; None where the estimate does without it."""
        return self._parts[sequence]

    def of(self, region: Region) -> Tally:
        """What is known of a part of the model."""
        inside = self._nesting.span_of(region)

        def within(sums: list[int]) -> int:
            return sums[inside.stop] - sums[inside.start]

        latency_ms = milliseconds(within(self._paid_ps))
        if region is self._nesting.root:
            # As in every other place that says what the model takes.
            latency_ms += self.call_ms
        return Tally(
            latency_ms,
            latency_ms / self._total_ms if self._total_ms else 0.0,
            within(self._layers),
            within(self._guessed),
            within(self._missing),
            within(self._unmeasurable),
            within(self._critical) > 0,
            is_wide(latency_ms, self._half_widths_ms[inside.stop] - self._half_widths_ms[inside.start]),
        )


def _half_width_ms(part: Part | None) -> float:
    """Half of the interval of all that the model pays for a measured part."""
    if part is None or part.standing is not Standing.MEASURED:
        return 0.0
    return part.times * (part.latency.high_ms - part.latency.low_ms) / 2


def _sums(parts: list[Part | None], value: Callable[[Part], int]) -> list[int]:
    return list(accumulate((0 if part is None else value(part) for part in parts), initial=0))


def _sums_of(parts: list[Part | None], standing: Standing) -> list[int]:
    return _sums(parts, lambda part: len(part.layers) if part.standing is standing else 0)
