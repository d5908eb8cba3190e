"""The parts of the open model, and what is known of each."""

from __future__ import annotations

from collections import Counter
from dataclasses import dataclass
from itertools import accumulate
from typing import TYPE_CHECKING

from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.estimate.intervals import is_wide
from dlbricks_tui.estimate.parts import Standing

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
    from dlbricks_tui.bricks.regions import Region
    from dlbricks_tui.estimate.estimate import Estimate
    from dlbricks_tui.estimate.parts import Part
    from dlbricks_tui.models.graph import Layer
    from dlbricks_tui.models.kinds import Kind
    from dlbricks_tui.store.records import Measurement
    from dlbricks_tui.tui.open_model import OpenModel
    from dlbricks_tui.tui.workbench.outline import Node, Outline


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


class PartLatencies:
    """The latencies of all parts of a model under one estimate; prefix sums make each one quick."""

    def __init__(self, opened: OpenModel, estimate: Estimate) -> None:
        self._nesting = nesting = opened.nesting
        # Parts by first layer: each begins a sequence. Of overlapping sequences only those that cover the model have a
        # part, and if none is measured, that part is its first layer alone.
        by_first = {part.layers[0]: part for part in estimate.parts}
        composed = estimate.composed
        critical = {estimate.parts[number].layers[0] for number in composed.critical_path} if composed else set()
        sequences = [opened.decomposition.occurrences[number].sequence for number in nesting.sequences]
        parts = [by_first.get(sequence.layers[0]) for sequence in sequences]
        on_path = [sequence.layers[0] in critical for sequence in sequences]
        self._total_ms = composed.sequential_ms if composed else 0.0
        # The model pays it once; it belongs to no part.
        self.call_ms = composed.call_ms if composed else 0.0
        self._parts = dict(zip(nesting.sequences, parts, strict=True))
        self._paid_ps = _sums(parts, lambda part: part.paid_ps if part.counts else 0)
        self._half_widths_ms = list(accumulate(map(_half_width_ms, parts), initial=0.0))
        self._layers = _sums(parts, lambda part: len(part.layers))
        self._predicted = _sums_of(parts, Standing.PREDICTED)
        self._missing = _sums_of(parts, Standing.MISSING)
        self._unmeasurable = _sums_of(parts, Standing.UNMEASURABLE)
        self._critical = list(accumulate(on_path, initial=0))
        # Positions in the nesting.
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
        inside = self._nesting.span_of(region)

        def within(sums: list[int]) -> int:
            return sums[inside.stop] - sums[inside.start]

        latency_ms = milliseconds(within(self._paid_ps))
        if region is self._nesting.root:
            # The latency of the model includes the call everywhere. Too few layers make no figure of it.
            latency_ms = latency_ms + self.call_ms if self._total_ms else 0.0
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


@dataclass(frozen=True, slots=True, eq=False)
class PartDetails:
    """A part of the open model with everything that the details show."""

    title: str
    names: str
    # The number of layers of each kind, the most frequent first, and of different bricks.
    kinds: tuple[tuple[Kind, int], ...]
    bricks: int
    times: int
    # Only for the model as a whole: its decomposition and the overhead of a call.
    whole: Decomposition | None = None
    call_ms: float = 0.0
    # Only for a sequence, or a layer of one.
    layers: tuple[Layer, ...] = ()
    occurrence: Occurrence | None = None
    # The contexts of the brick in this model.
    contexts: tuple[str, ...] = ()
    part: Part | None = None
    # None for a layer of a longer sequence.
    latency: PartLatency | None = None

    @property
    def brick_key(self) -> str | None:
        """The key of the brick of a sequence, or of a layer of one."""
        return self.occurrence.brick.key if self.occurrence else None


@dataclass(frozen=True, slots=True, eq=False)
class Measurements:
    """The stored samples of a brick in a context: the newest good ones, and the latency in each run, oldest first."""

    newest: Measurement
    history_ms: tuple[float, ...]


def part_details(node: Node, outline: Outline, latencies: PartLatencies | None) -> PartDetails:
    """Return what the details show of a part, without asking the store."""
    opened = outline.opened
    layers, occurrences = opened.graph.layers, opened.decomposition.occurrences
    inside = outline.sequences_in(node)
    indices = (
        [node.layer] if node.layer is not None else [it for at in inside for it in occurrences[at].sequence.layers]
    )
    # Sequences may overlap.
    kinds = Counter(layers[index].kind for index in dict.fromkeys(indices))
    latency = latencies.of(node.region) if latencies and node.layer is None else None
    title = ", ".join(filter(None, (outline.label(node) + outline.title(node), outline.size(node))))
    names = outline.names(node)
    sequence = node.sequence
    if sequence is None:
        bricks = len({occurrences[number].brick.key for number in inside})
        whole = opened.decomposition if node.parent is None and not outline.is_searched else None
        call_ms = latencies.call_ms if latencies and whole is not None else 0.0
        occurs = outline.occurs(node)
        return PartDetails(title, names, tuple(kinds.most_common()), bricks, occurs, whole, call_ms, latency=latency)
    equal = [number for region in outline.nesting.equal(node.region) for number in outline.nesting.numbers(region)]
    return PartDetails(
        title,
        names,
        tuple(kinds.most_common()),
        1,
        len(equal),
        layers=tuple(layers[index] for index in indices),
        occurrence=occurrences[sequence],
        contexts=tuple(sorted({occurrences[number].context for number in equal})),
        part=latencies.part(sequence) if latencies else None,
        latency=latency,
    )
