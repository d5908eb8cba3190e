"""Where a model's time goes, and what could explain that the estimate is not what was measured."""

import math
from collections import defaultdict
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from itertools import groupby

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.regions import Leaf, Region, RegionTree, Repeat, layers_in, region_tree
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.estimate.estimate import Composed, Estimate
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import LayerGraph

MOST_COSTLY = 10
# Where the reference took so much more or less, latencies have been seen to follow it, and not where it was nearer.
_SAME_SPEED = 0.15


@dataclass(frozen=True, slots=True)
class Slice:
    """What layers of one sort take of the sequential latency."""

    label: str
    layers: int
    latency_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class RegionSlice:
    """What a part of the model's outermost chain takes: some plain layers in a row, or a module."""

    layers: tuple[int, ...]
    # How many times in a row the same module stands there; 0 where it is no module.
    repeats: int
    latency_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class CostlyBrick:
    """A brick in a context and all that a model pays for it."""

    part: Part
    # How often it is paid.
    uses: int
    latency_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class Residual:
    """What was measured beyond the estimate, and what of it is known."""

    residual_ms: float
    # How much of it the doubts of the estimate and of the end-to-end measurement would explain.
    sampling_ms: float
    method_ms: float
    lacking_ms: float
    # How much of it is explained by bricks measured while the host was slower or quicker than while the model was.
    host_ms: float
    # How many times as slow the host was for the model as for its bricks, whatever that explains; 1 where it was alike.
    times_slower: float
    # What is left when all of these are granted in full; negative where the estimate is too high.
    unexplained_ms: float

    @property
    def host_told(self) -> str:
        """The change of the host in words; none where it was alike."""
        if self.times_slower == 1.0:
            return ""
        slower = self.times_slower > 1.0
        return f"{self.times_slower if slower else 1.0 / self.times_slower:.2f} times as {'slow' if slower else 'fast'}"


def by_type(graph: LayerGraph, estimate: Estimate) -> tuple[Slice, ...]:
    """The latency per kind of layer, the largest first; a sequence of several kinds is a type of its own."""

    def kinds(part: Part) -> str:
        return " + ".join(dict.fromkeys(graph.layers[index].kind.value for index in part.layers))

    return _slices(estimate, kinds)


def by_region(graph: LayerGraph, estimate: Estimate, tree: RegionTree | None = None) -> tuple[RegionSlice, ...]:
    """The latency per region, in the order of the model; the tree of regions is made where it is not at hand."""
    if tree is None:
        tree = region_tree(graph, [brick_of(graph, (index,)).key for index in range(len(graph.layers))])
    latencies = layer_latencies(estimate)
    total_ms = math.fsum(latencies.values()) or 1.0
    found: list[RegionSlice] = []
    for plain, regions in groupby(tree.root.parts, key=lambda region: isinstance(region, Leaf)):
        for stretch in [list(regions)] if plain else [[region] for region in regions]:
            layers = tuple(layer for region in stretch for layer in layers_in(region))
            taken_ms = math.fsum(latencies.get(layer, 0.0) for layer in layers)
            found.append(RegionSlice(layers, _repeats(stretch[0]), taken_ms, taken_ms / total_ms))
    return tuple(found)


def costliest(estimate: Estimate, most: int = MOST_COSTLY) -> tuple[CostlyBrick, ...]:
    """The bricks that a model pays most for, the dearest first."""
    uses: defaultdict[Pair, list[Part]] = defaultdict(list)
    for part in estimate.parts:
        if part.counts and part.paid_ps:
            uses[part.pair].append(part)
    total_ps = _total_ps(estimate)
    paid = sorted(((sum(part.paid_ps for part in parts), parts) for parts in uses.values()), key=lambda it: -it[0])
    return tuple(
        CostlyBrick(parts[0], sum(part.times for part in parts), milliseconds(paid_ps), paid_ps / total_ps)
        for paid_ps, parts in paid[:most]
    )


def layer_latencies(estimate: Estimate) -> dict[int, float]:
    """What each layer contributes to the sequential latency, in ms, for summing over regions.

    Layers of one sequence share its latency equally, as nobody has timed them apart. Layers of which nothing is
    known are left out.
    """
    found: defaultdict[int, float] = defaultdict(float)
    for part in estimate.parts:
        if part.counts:
            for layer in part.layers:
                found[layer] += milliseconds(part.paid_ps) / len(part.layers)
    return dict(found)


def parallel_gain(composed: Composed) -> float:
    """How many times as fast the model would be if all data-independent sequences ran at the same time."""
    return composed.sequential_ms / composed.parallel_ms if composed.parallel_ms else 1.0


def residual(one: SystemEstimate) -> Residual | None:
    """What an end-to-end measurement says beyond the estimate, None where there is no such measurement."""
    composed, end_to_end = one.estimate.composed, one.end_to_end
    if composed is None or end_to_end is None:
        return None
    beyond_ms = end_to_end.value_ms - composed.sequential_ms
    doubt = composed.doubt
    # Of each doubt the side on which the truth was found.
    if beyond_ms >= 0:
        sampling_ms = math.hypot(doubt.sampling_above_ms, end_to_end.value_ms - end_to_end.low_ms)
        lacking_ms = doubt.lacking_ms
    else:
        sampling_ms = math.hypot(doubt.sampling_below_ms, end_to_end.high_ms - end_to_end.value_ms)
        lacking_ms = 0.0
    moved_ms = _host_change_ms(one)
    times_slower = 1.0 + moved_ms / composed.sequential_ms if composed.sequential_ms else 1.0
    host_ms = abs(moved_ms) if moved_ms * beyond_ms > 0 else 0.0
    explained_ms = math.hypot(sampling_ms, doubt.method_ms) + lacking_ms + host_ms
    unexplained_ms = math.copysign(max(0.0, abs(beyond_ms) - explained_ms), beyond_ms)
    return Residual(beyond_ms, sampling_ms, doubt.method_ms, lacking_ms, host_ms, times_slower, unexplained_ms)


def _host_change_ms(one: SystemEstimate) -> float:
    """How much more (or, negative, less) the bricks would take at the speed that the host had for the whole model.

    Of bricks measured while it was another by far: the reference varies by some percent on any host that others share.
    """
    changes = ((part, _times_slower(one, part)) for part in one.estimate.parts if part.counts)
    return math.fsum(
        milliseconds(part.paid_ps) * (slower - 1.0) for part, slower in changes if abs(slower - 1.0) > _SAME_SPEED
    )


def _times_slower(one: SystemEstimate, part: Part) -> float:
    """How many times as slow as for the part the host was for the whole model; 1 where nobody knows."""
    if part.measured is None or not part.measured.reference_ms or not one.reference_ms:
        return 1.0
    return one.reference_ms / part.measured.reference_ms


def _repeats(region: Region) -> int:
    if isinstance(region, Repeat):
        return len(region.instances)
    return 0 if isinstance(region, Leaf) else 1


def _slices(estimate: Estimate, label_of: Callable[[Part], str]) -> tuple[Slice, ...]:
    layers: defaultdict[str, set[int]] = defaultdict(set)
    paid_ps: defaultdict[str, int] = defaultdict(int)
    for part in _counting(estimate):
        label = label_of(part)
        layers[label].update(part.layers)
        paid_ps[label] += part.paid_ps
    total_ps = _total_ps(estimate)
    return tuple(
        Slice(label, len(layers[label]), milliseconds(paid), paid / total_ps)
        for label, paid in sorted(paid_ps.items(), key=lambda item: (-item[1], item[0]))
    )


def _counting(estimate: Estimate) -> Iterable[Part]:
    return (part for part in estimate.parts if part.counts)


def _total_ps(estimate: Estimate) -> int:
    # A model that takes no time has shares of nothing, whatever they are divided by.
    return sum(part.paid_ps for part in _counting(estimate)) or 1
