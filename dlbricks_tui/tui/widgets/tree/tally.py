"""What an estimate says of each part of a model."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.estimate.parts import Standing

if TYPE_CHECKING:
    from dlbricks_tui.estimate.estimate import Estimate
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.tui.opened import Opened
    from dlbricks_tui.tui.widgets.tree.outline import Node, Outline


@dataclass(frozen=True, slots=True)
class Tally:
    """The latency of some sequences, as far as it is known."""

    latency_ms: float
    share: float
    sequences: int
    missing: int
    unmeasurable: int
    critical: bool

    @property
    def known(self) -> int:
        """How many sequences have a latency."""
        return self.sequences - self.missing - self.unmeasurable


class Tallies:
    """Adds up, when it is asked for, what one estimate says of the parts of one model."""

    def __init__(self, opened: Opened, outline: Outline, estimate: Estimate) -> None:
        self._outline = outline
        self._estimate = estimate
        by_layers = {part.layers: part for part in estimate.parts}
        # Of overlapping sequences only those that cover the model have a part in its latency.
        self._parts = [by_layers.get(it.sequence.layers) for it in opened.decomposition.occurrences]
        composed = estimate.composed
        self._total_ms = composed.sequential_ms if composed else 0.0
        critical = {estimate.parts[number].layers for number in composed.critical_path} if composed else set()
        self.critical = tuple(
            number for number, it in enumerate(opened.decomposition.occurrences) if it.sequence.layers in critical
        )
        self._critical = frozenset(self.critical)
        self._made: dict[int, Tally] = {}

    def part(self, sequence: int) -> Part | None:
        """What is known of a sequence; None where the estimate does without it."""
        return self._parts[sequence]

    def of(self, node: Node) -> Tally:
        """What is known of a part of the model."""
        key = id(node.region)
        found = self._made.get(key)
        if found is None:
            found = self._made[key] = self._tally(node)
        return found

    def _tally(self, node: Node) -> Tally:
        numbers = list(self._outline.sequences_in(node))
        parts = [part for number in numbers if (part := self._parts[number]) is not None]
        latency_ms = milliseconds(sum(part.paid_ps for part in parts if part.counts))
        return Tally(
            latency_ms,
            latency_ms / self._total_ms if self._total_ms else 0.0,
            len(parts),
            sum(part.standing is Standing.MISSING for part in parts),
            sum(part.standing is Standing.UNMEASURABLE for part in parts),
            any(number in self._critical for number in numbers),
        )
