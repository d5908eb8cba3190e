"""The breakdown of an estimate, and possible reasons for its difference from the end-to-end latency."""

import math
from collections import defaultdict
from dataclasses import dataclass
from enum import Enum
from itertools import groupby
from typing import NamedTuple

from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.regions import Leaf, Region, Repeat, layers_in, regions_of
from dlbricks_tui.estimate.compositions import from_picoseconds
from dlbricks_tui.estimate.estimate import Estimate, is_wide
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import LayerGraph

MOST_COSTLY = 10
# Latencies follow the latency of the reference only if that changes by more than this.
_SAME_SPEED = 0.15
# A smaller slowdown of the host is not worth a remark.
_NOTEWORTHY = 0.1
# Of a measurement and an estimate, one is in doubt whose interval is wider, or that is older, by this factor or time.
_WIDER, _OLDER_SECONDS = 2.0, 3600.0
# With fewer samples the interval of a whole model is often too narrow.
_FEW_SAMPLES = 8
_MICROSECONDS = 1e6


class Slice(NamedTuple):
    """The part of the sequential latency that the layers of one type take."""

    label: str
    layers: int
    latency_ms: float
    share: float


class RegionSlice(NamedTuple):
    """The part of the sequential latency that a module, or plain layers in a row, of the outermost chain take."""

    layers: tuple[int, ...]
    # The number of times that the module is repeated in a row; 0 for plain layers.
    repeats: int
    latency_ms: float
    share: float


class CostlyBrick(NamedTuple):
    """A brick in a context, and its part in the latency of a model."""

    part: Part
    # The number of times that the model runs it.
    uses: int
    latency_ms: float
    share: float


@dataclass(frozen=True, slots=True)
class Residual:
    """The end-to-end latency minus the estimate, and how far known causes explain it."""

    residual_ms: float
    # The parts that the intervals of the estimate and of the end-to-end measurement would explain.
    sampling_ms: float
    method_ms: float
    lacking_ms: float
    predicted_ms: float
    # The part due to bricks that were measured while the host was slower or faster than for the model.
    host_ms: float
    # The slowdown of the host for the model compared with its bricks; 1 if the host was the same.
    times_slower: float
    # The rest without all of these; negative if the estimate is too high.
    unexplained_ms: float


class Suspect(str, Enum):
    """The one of two latencies to doubt."""

    ESTIMATE = "estimate"
    MEASUREMENT = "measurement"
    EITHER = "either"


class Clue(str, Enum):
    """The reason to doubt one of two latencies; the first one that applies counts."""

    # The host was slower for it.
    SLOWER_HOST = "slower host"
    # The measurement has few samples.
    FEW_SAMPLES = "few samples"
    WIDER_INTERVAL = "wider interval"
    OLDER = "older"
    # Some bricks were timed in other networks than the model.
    OTHER_NETWORKS = "other networks"
    NONE = "none"


class Disagreement(NamedTuple):
    """A measured latency outside of the interval of its estimate, and the one of the two to doubt."""

    suspect: Suspect
    clue: Clue
    # By which the host was slower; 1 if that is not the clue.
    times_slower: float = 1.0


def by_type(graph: LayerGraph, estimate: Estimate) -> tuple[Slice, ...]:
    """Return the latency per kind of layer, the largest first; a sequence of several kinds is a separate type."""
    layers: defaultdict[str, set[int]] = defaultdict(set)
    paid_ps: defaultdict[str, int] = defaultdict(int)
    for part in estimate.parts:
        if part.counts:
            label = " + ".join(dict.fromkeys(graph.layers[index].kind.value for index in part.layers))
            layers[label].update(part.layers)
            paid_ps[label] += part.paid_ps
    return tuple(
        Slice(label, len(layers[label]), from_picoseconds(paid), paid / (estimate.paid_ps or 1))
        for label, paid in sorted(paid_ps.items(), key=lambda item: (-item[1], item[0]))
    )


def by_region(graph: LayerGraph, estimate: Estimate) -> tuple[RegionSlice, ...]:
    """Return the latency per region, in the order of the model."""

    def repeats(region: Region) -> int:
        if isinstance(region, Repeat):
            return len(region.parts)
        return 0 if isinstance(region, Leaf) else 1

    tree = regions_of(graph.predecessors, [brick_of(graph, (index,)).key for index in range(len(graph.layers))])
    latencies = layer_latencies(estimate)
    total_ms = math.fsum(latencies.values()) or 1.0
    found: list[RegionSlice] = []
    for plain, regions in groupby(tree.root.parts, key=lambda region: isinstance(region, Leaf)):
        for stretch in [list(regions)] if plain else [[region] for region in regions]:
            layers = tuple(layer for region in stretch for layer in layers_in(region))
            taken_ms = math.fsum(latencies.get(layer, 0.0) for layer in layers)
            found.append(RegionSlice(layers, repeats(stretch[0]), taken_ms, taken_ms / total_ms))
    return tuple(found)


def costliest(estimate: Estimate) -> tuple[CostlyBrick, ...]:
    """Return the bricks with the largest part in the latency of a model, the largest first."""
    uses: defaultdict[Pair, list[Part]] = defaultdict(list)
    for part in estimate.parts:
        if part.paid_ps:
            uses[part.pair].append(part)
    paid = sorted(((sum(part.paid_ps for part in parts), parts) for parts in uses.values()), key=lambda it: -it[0])
    return tuple(
        CostlyBrick(parts[0], sum(part.times for part in parts), from_picoseconds(paid_ps), paid_ps / estimate.paid_ps)
        for paid_ps, parts in paid[:MOST_COSTLY]
    )


def layer_latencies(estimate: Estimate) -> dict[int, float]:
    """Return the contribution of each layer to the sequential latency, in ms, for sums over regions.

    Layers of one sequence share its latency equally, since they were timed together. Layers without a latency are left
    out.
    """
    found: defaultdict[int, float] = defaultdict(float)
    for part in estimate.parts:
        if part.counts:
            for layer in part.layers:
                found[layer] += from_picoseconds(part.paid_ps) / len(part.layers)
    return dict(found)


def unpredicted_operators(graph: LayerGraph, estimate: Estimate) -> tuple[str, ...]:
    """Return the operators of layers that a run would measure and that cannot be predicted."""
    if estimate.options.measured_only:
        return ()
    without = (index for part in estimate.parts if not part.counts and not part.reason for index in part.layers)
    return tuple(dict.fromkeys(layer.op for layer in map(graph.layers.__getitem__, without) if layer.operators))


def residual(one: SystemEstimate) -> Residual | None:
    """Return the difference of the end-to-end latency from the estimate; None without such a measurement."""
    composed, end_to_end = one.estimate.composed, one.end_to_end
    if composed is None or end_to_end is None:
        return None
    beyond_ms = end_to_end.value_ms - composed.sequential_ms
    doubt = composed.doubt
    # The side of each interval on which the measured latency is.
    if beyond_ms >= 0:
        sampling_ms = math.hypot(doubt.sampling_above_ms, end_to_end.value_ms - end_to_end.low_ms)
        lacking_ms, predicted_ms = doubt.lacking_ms, doubt.predicted_above_ms
    else:
        sampling_ms = math.hypot(doubt.sampling_below_ms, end_to_end.high_ms - end_to_end.value_ms)
        lacking_ms, predicted_ms = 0.0, doubt.predicted_below_ms
    moved_ms = _host_change_ms(one)
    times_slower = 1.0 + moved_ms / composed.sequential_ms if composed.sequential_ms else 1.0
    host_ms = abs(moved_ms) if moved_ms * beyond_ms > 0 else 0.0
    explained_ms = math.hypot(sampling_ms, predicted_ms, doubt.method_ms) + lacking_ms + host_ms
    unexplained_ms = math.copysign(max(0.0, abs(beyond_ms) - explained_ms), beyond_ms)
    return Residual(
        beyond_ms, sampling_ms, doubt.method_ms, lacking_ms, predicted_ms, host_ms, times_slower, unexplained_ms
    )


def disagreement(one: SystemEstimate) -> Disagreement | None:
    """Return which of two latencies to doubt; None if the measured one is in the interval of the estimate."""
    composed, whole = one.estimate.composed, one.end_to_end
    if composed is None or whole is None or one.estimate.is_partial or not composed.sequential_ms:
        return None
    found, is_longer = composed.latency, whole.value_ms > composed.sequential_ms
    if found.low_ms <= whole.value_ms <= found.high_ms:
        return None
    slower = 1.0 + _host_change_ms(one) / composed.sequential_ms
    if slower > 1.0 and is_longer:
        return Disagreement(Suspect.MEASUREMENT, Clue.SLOWER_HOST, slower)
    if slower < 1.0 and not is_longer:
        return Disagreement(Suspect.ESTIMATE, Clue.SLOWER_HOST, 1.0 / slower)
    if 0 < one.timed_samples < _FEW_SAMPLES:
        return Disagreement(Suspect.MEASUREMENT, Clue.FEW_SAMPLES)
    of_estimate, of_measurement = (it.high_ms - it.low_ms for it in (found, whole))
    if of_estimate > _WIDER * of_measurement and is_wide(composed.sequential_ms, of_estimate / 2):
        return Disagreement(Suspect.ESTIMATE, Clue.WIDER_INTERVAL)
    if of_measurement > _WIDER * of_estimate and is_wide(whole.value_ms, of_measurement / 2):
        return Disagreement(Suspect.MEASUREMENT, Clue.WIDER_INTERVAL)
    between = one.measured_between
    if between is not None and one.timed_when:
        later_seconds = one.timed_when / _MICROSECONDS - between[1]
        if abs(later_seconds) > _OLDER_SECONDS:
            return Disagreement(Suspect.ESTIMATE if later_seconds > 0 else Suspect.MEASUREMENT, Clue.OLDER)
    coverage = one.estimate.coverage
    if coverage.own_carrier < coverage.layers:
        return Disagreement(Suspect.ESTIMATE, Clue.OTHER_NETWORKS)
    return Disagreement(Suspect.EITHER, Clue.NONE)


class Slowdown(NamedTuple):
    """The factors by which the host was slower than usual for the bricks and for the whole model; 1 if not known."""

    bricks: float
    model: float

    @property
    def largest(self) -> float:
        return max(self.bricks, self.model)


def slowdown(one: SystemEstimate) -> Slowdown | None:
    """Return by how much the host was slower than usual when a model was measured; None if it hardly was."""
    usual_ms = one.usual_reference_ms
    if not usual_ms:
        return None
    bricks = one.estimate.reference_ms / usual_ms or 1.0
    found = Slowdown(bricks, one.reference_ms / usual_ms if one.reference_ms and one.end_to_end else 1.0)
    return found if found.largest > 1.0 + _NOTEWORTHY else None


def _host_change_ms(one: SystemEstimate) -> float:
    """Return the time that the bricks would take more (or, negative, less) at the speed of the host for the model.

    Only bricks count that were measured at another speed by far: the reference varies by some percent on shared hosts.
    """
    changes = (
        (part.paid_ps, one.reference_ms / part.measured.reference_ms - 1.0)
        for part in one.estimate.parts
        if part.counts and part.measured is not None and part.measured.reference_ms and one.reference_ms
    )
    return math.fsum(from_picoseconds(paid_ps) * slower for paid_ps, slower in changes if abs(slower) > _SAME_SPEED)
