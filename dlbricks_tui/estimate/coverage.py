"""How much of a model an estimate stands on, and what is left to measure."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.parts import Part, Standing


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of layers; `bridged` says how many of the missing and unmeasurable ones a guess stands in for."""

    measured: int
    missing: int
    unmeasurable: int
    bridged: int

    @property
    def layers(self) -> int:
        """All layers of the model."""
        return self.measured + self.missing + self.unmeasurable

    @property
    def complete(self) -> bool:
        """Whether every layer was measured."""
        return self.measured == self.layers


@dataclass(frozen=True, slots=True)
class Remaining:
    """The bricks that a run would still measure, and about how long it would take (None: nothing tells)."""

    pairs: tuple[Pair, ...]
    seconds: float | None


def coverage_of(parts: Iterable[Part]) -> Coverage:
    """How the layers of all parts stand; a layer in several parts counts once."""
    measured: set[int] = set()
    unmeasurable: set[int] = set()
    missing: set[int] = set()
    bridged: set[int] = set()
    for part in parts:
        (measured if part.known else unmeasurable if part.reason else missing).update(part.layers)
        if part.standing is Standing.BRIDGED:
            bridged.update(part.layers)
    return Coverage(len(measured), len(missing), len(unmeasurable), len(bridged))


def remaining_of(parts: Sequence[Part]) -> Remaining:
    """What is missing and can be measured, timed as often as the measured bricks were in the median."""
    missing = {part.pair: part for part in parts if not part.known and not part.reason}
    counts = sorted(part.measured.samples for part in parts if part.measured is not None)
    if not counts:
        return Remaining(tuple(missing), 0.0 if not missing else None)
    samples = counts[len(counts) // 2]
    guessed_ms = sum(part.latency.value_ms or part.most_ms for part in missing.values())
    return Remaining(tuple(missing), samples * guessed_ms / 1000)
