"""The bounds of a model: the best measured latency with the gap above it, and the roofline."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from typing import NamedTuple

from dlbricks_tui.analysis.groups import (
    Group,
    Groups,
    MeasuredExecution,
    are_comparable,
    groups_of,
    is_conversion,
    latency_of,
    layer_names,
    paid_ps,
    split,
)
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.bricks.identity import brick_of, times_paid
from dlbricks_tui.estimate.compositions import SequenceTask, critical_path, from_picoseconds, to_picoseconds
from dlbricks_tui.estimate.estimate import doubt_about
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.host.peaks import MEMORY, SHARED_CACHE
from dlbricks_tui.models.graph import LayerGraph, bytes_read, digraph_of, topological_order
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.store.records import Peaks, System


@dataclass(frozen=True, slots=True)
class Winner:
    """Nodes of the files, the execution that computes them fastest, its parts that do, and the time that they take."""

    nodes: tuple[int, ...]
    # Its number among the compared executions.
    execution: int
    parts: tuple[int, ...]
    latency_ps: int


def fastest(groups: Groups, times_ps: Sequence[Sequence[int]]) -> list[Winner]:
    """Return the fastest parts of any execution that together compute all nodes, given the times of all parts.

    Executions that fuse fewer layers than others compete with one another over smaller sets of nodes.
    """
    known: dict[tuple[int, frozenset[int]], list[Winner]] = {}

    def winners(group: Group, among: frozenset[int]) -> list[Winner]:
        """Return the winners of a group among some executions."""
        key = group.nodes[0], among
        if key not in known:
            # Of equal times the first execution counts.
            totals = {it: sum([times_ps[it][part] for part in group.parts[it]]) for it in sorted(among)}
            first = min(totals, key=totals.__getitem__)
            known[key] = [Winner(group.nodes, first, group.parts[first], totals[first])]
            for others, finer in groups.refined(group, among):
                competing = [winner for each in finer for winner in winners(each, others)]
                if sum(it.latency_ps for it in competing) < sum(it.latency_ps for it in known[key]):
                    known[key] = competing
        return known[key]

    everyone = frozenset(range(len(groups.covers.own)))
    return [winner for group in groups.groups for winner in winners(group, everyone)]


# The interval of a latency may reach down to zero. Ratios take no more than this share off.
_MOST_BELOW = 0.999


class Ratio(NamedTuple):
    """A latency over another one, with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio_of(one: Latency, other: Latency) -> Ratio:
    """Return a latency over another one. Their errors count as independent of each other."""
    if not one.value_ms:
        return Ratio(0.0, 0.0, 0.0)
    value = one.value_ms / other.value_ms
    # The logarithms of both ends of the intervals.
    below, other_below = (-math.log(max(it.low_ms / it.value_ms, 1.0 - _MOST_BELOW)) for it in (one, other))
    above, other_above = (math.log(it.high_ms / it.value_ms) for it in (one, other))
    down, up = math.hypot(below, other_above), math.hypot(above, other_below)
    return Ratio(value, value * math.exp(-down), value * math.exp(up))


@dataclass(frozen=True)
class BestMeasured:
    """The sum over the groups of the least time of any execution."""

    # The first one is the baseline.
    executions: tuple[MeasuredExecution, ...]
    groups: Groups
    winners: tuple[Winner, ...]

    @cached_property
    def latency_ps(self) -> int:
        """The sum."""
        return sum(winner.latency_ps for winner in self.winners)

    @cached_property
    def parallel_ps(self) -> int:
        """The critical path through the groups, as the first execution connects them; at most any estimate of one."""
        composed = [it.estimate.composed for it in self.executions if it.estimate.composed is not None]
        return min(_critical_path_ps(self), self.latency_ps, *(to_picoseconds(it.parallel_ms) for it in composed))

    @cached_property
    def by_group(self) -> tuple[tuple[Winner, ...], ...]:
        """The winners of each group."""
        place = {node: number for number, group in enumerate(self.groups.groups) for node in group.nodes}
        found: list[list[Winner]] = [[] for _ in self.groups.groups]
        for winner in self.winners:
            found[place[winner.nodes[0]]].append(winner)
        return tuple(map(tuple, found))

    @property
    def latency_ms(self) -> float:
        """The sum in milliseconds."""
        return from_picoseconds(self.latency_ps)

    @cached_property
    def parts(self) -> tuple[Part, ...]:
        """The parts that won."""
        return tuple([self.executions[it.execution].parts[part] for it in self.winners for part in it.parts])

    @cached_property
    def latency(self) -> Latency:
        """The sum with its interval: that of a sequential estimate of the parts that won.

        The least of several latencies with errors tends to be too low. The interval does not contain that.
        """
        composed = [it.estimate.composed for it in self.executions if it.estimate.composed is not None]
        relative = max((it.doubt.method_ms / it.sequential_ms for it in composed if it.sequential_ms), default=0.0)
        return doubt_about(self.parts, self.latency_ms, relative).around(self.latency_ms)

    @cached_property
    def is_predicted(self) -> bool:
        """True if a part that won was not measured."""
        return any(part.predicted for part in self.parts)


def best_measured(executions: Sequence[MeasuredExecution]) -> BestMeasured:
    """Return the best of all executions of a model, the first of which is the baseline."""
    groups = groups_of(executions)
    winners = fastest(groups, [it.paid_ps for it in executions])
    return BestMeasured(tuple(executions), groups, tuple(winners))


def over_best(baseline: MeasuredExecution, best: BestMeasured) -> Ratio | None:
    """Return the end-to-end latency, or without one the estimate, over the best; None for a best that takes no time."""
    latency = baseline.found.end_to_end or latency_of(baseline)
    return ratio_of(latency, best.latency) if best.latency_ps else None


class GroupTimes(NamedTuple):
    """Layers that are compared together: their time in the baseline, the least one, and the executions with that."""

    layers: tuple[str, ...]
    latency_ps: int
    best_ps: int
    fastest: tuple[MeasuredExecution, ...]


def times_of_groups(best: BestMeasured) -> Iterator[GroupTimes]:
    """Yield the times of each group of layers that takes any."""
    baseline = best.executions[0]
    for group, winners in zip(best.groups.groups, best.by_group, strict=True):
        number = 0 if group.parts[0] else winners[0].execution
        layers = layer_names(best.executions[number], group.parts[number])
        reached = tuple([best.executions[it.execution] for it in winners if it.parts])
        if layers and reached:
            here_ps = paid_ps(baseline, group.parts[0])
            yield GroupTimes(layers, here_ps, sum(it.latency_ps for it in winners), reached)


def _critical_path_ps(best: BestMeasured) -> int:
    one = best.executions[0]
    place = {part: number for number, group in enumerate(best.groups.groups) for part in group.parts[0]}
    least_ps = [sum(winner.latency_ps for winner in winners) for winners in best.by_group]
    after: list[set[int]] = [set() for _ in least_ps]
    # The groups behind each part that belongs to none.
    through: dict[int, set[int]] = {}
    for source, reader in sorted(one.estimate.edges, key=lambda edge: edge[1]):
        groups = {place[source]} if source in place else through.get(source, set())
        if reader in place:
            after[place[reader]] |= groups - {place[reader]}
        else:
            through.setdefault(reader, set()).update(groups)
    order = [[group] for group in topological_order(after)]
    if len(order) < len(after):
        import networkx as nx

        # Groups that wait for one another are one item.
        condensed = nx.condensation(digraph_of(after))
        order = [sorted(condensed.nodes[number]["members"]) for number in nx.topological_sort(condensed)]
    number = {group: position for position, held in enumerate(order) for group in held}
    tasks = []
    for position, held in enumerate(order):
        sources = {number[source] for group in held for source in after[group]} - {position}
        tasks.append(SequenceTask(sum(least_ps[group] for group in held), tuple(sorted(sources))))
    return critical_path(tasks).latency_ps


class Gap(NamedTuple):
    """The parts of a gap, and their sum: the latency minus the best. They add up exactly in picoseconds."""

    # The time by which groups of layers are slower than in the fastest execution.
    slower_layers_ms: float
    # The layers that convert memory layouts.
    conversions_ms: float
    # The end-to-end latency minus the estimate; None without an end-to-end latency.
    unexplained_ms: float | None
    # The latency is the end-to-end latency, or the estimate without one.
    total_ms: float


def gap_of(baseline: MeasuredExecution, best: BestMeasured) -> Gap:
    """Return the gap between an execution and the best of several."""
    layers_ps = baseline.estimate.paid_ps
    conversions_ps = sum(
        part.paid_ps for part in baseline.parts if all(is_conversion(baseline.graph.layers[it]) for it in part.layers)
    )
    measured = baseline.found.end_to_end
    whole_ps = layers_ps if measured is None else to_picoseconds(measured.value_ms)
    return Gap(
        slower_layers_ms=from_picoseconds(layers_ps - conversions_ps - best.latency_ps),
        conversions_ms=from_picoseconds(conversions_ps),
        unexplained_ms=None if measured is None else from_picoseconds(whole_ps - layers_ps),
        total_ms=from_picoseconds(whole_ps - best.latency_ps),
    )


def gain_between(before: Latency, after: Latency, speed_difference: float = 0.0) -> Gain:
    """Return the gain of a change, given both latencies.

    Their errors count as independent. The speed of the host differed between the two by a share.
    """
    half = speed_difference * after.value_ms
    ratio = ratio_of(Latency(after.value_ms, max(0.0, after.low_ms - half), after.high_ms + half), before)
    return Gain(1.0 - ratio.value, 1.0 - ratio.high, 1.0 - ratio.low)


def speed_difference(one: MeasuredExecution, other: MeasuredExecution) -> float:
    """Return the share by which the host was slower or faster during one measurement; 0 if it is not known.

    The reference shows it. Its latency depends on the runtime and its settings, so it tells nothing about two of them.
    """
    if one.found.way.runtime != other.found.way.runtime:
        return 0.0
    first, second = one.estimate.reference_ms, other.estimate.reference_ms
    return abs(second / first - 1.0) if first and second else 0.0


class Saving(NamedTuple):
    """The layers of a group of nodes, and the time that a change saves in it; negative if it costs time."""

    layers: tuple[str, ...]
    before_ms: float
    saved_ms: float


def savings(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Saving, ...]:
    """Return what a change saves in each group, per item of a batch; none if their files have no layers in common."""
    if not are_comparable(before, after):
        return ()
    return tuple([_saving(before, after, group) for group in groups_of([before, after]).groups])


def by_layer_name(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Saving, ...]:
    """Return what a change saves in the layers whose written layers have the same names in both files.

    The layers of a quantised copy have those of its model, and more.
    """
    if before.file == after.file:
        return savings(before, after)
    numbers: dict[str, int] = {}
    covers = [_named_cover(it, numbers) for it in (before, after)]
    groups = split(dict(enumerate(range(len(it)) for it in covers)), covers)
    return tuple([_saving(before, after, group) for group in groups if all(group.parts)])


def _saving(before: MeasuredExecution, after: MeasuredExecution, group: Group) -> Saving:
    first, second = group.parts
    before_ms = from_picoseconds(paid_ps(before, first)) / before.graph.batch_size
    after_ms = from_picoseconds(paid_ps(after, second)) / after.graph.batch_size
    return Saving(layer_names(before, first) or layer_names(after, second), before_ms, before_ms - after_ms)


def _named_cover(one: MeasuredExecution, numbers: dict[str, int]) -> list[tuple[int, ...]]:
    """Return numbers for the names of the written layers behind each part; without these for its own name."""
    written = {} if one.written is None else {node: it.name for it in one.written.layers for node in it.nodes}
    cover = []
    for part in one.parts:
        layers = [one.graph.layers[index] for index in part.layers]
        names = [written.get(node, "") for layer in layers for node in layer.nodes]
        names = list(filter(None, names)) or [layer.name for layer in layers]
        is_own = not any(map(is_conversion, layers))
        cover.append(tuple([numbers.setdefault(name, len(numbers)) for name in names]) if is_own else ())
    return cover


def latencies_per_item(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Latency, Latency]:
    """Return the latencies that are compared: for each item of a batch if the batch sizes differ.

    They are those of the whole models if both were timed end to end, else the estimates of both.
    """
    first, second = before.found.end_to_end, after.found.end_to_end
    if first is None or second is None:
        first, second = latency_of(before), latency_of(after)
    one, other = before.graph.batch_size, after.graph.batch_size
    if one == other:
        return first, second
    return Latency(*(it / one for it in first)), Latency(*(it / other for it in second))


# The private caches of a core hold at most about so much. Reading from them costs nothing here.
_PRIVATE_BYTES = 2 << 20
# The size of a shared cache that the system hides.
_USUAL_SHARED_BYTES = 32 << 20
_SIZE = re.compile(r"(\d+)([KM])")
_UNITS = {"K": 10, "M": 20}
# These only give another name to a tensor.
_VIEWS = frozenset({Kind.RESHAPE, Kind.FLATTEN, Kind.DROPOUT, Kind.CONSTANT})
# Layers with a smaller share of their model's time are too uncertain to tell of the peaks.
_LEAST_SHARE = 0.01
# Billions per second to units per millisecond.
_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Work:
    """The floating-point operations of layers, and the bytes of the tensors and weights that they read and write."""

    operations: float
    tensor_bytes: float
    weight_bytes: float

    @property
    def bytes(self) -> float:
        """All bytes."""
        return self.tensor_bytes + self.weight_bytes

    @property
    def intensity(self) -> float:
        """The operations for each byte; infinite if none is moved."""
        return self.operations / self.bytes if self.bytes else math.inf


@dataclass(frozen=True, slots=True)
class Roof:
    """The peaks of a system at a number of threads, in billions per second, and the sizes of its caches."""

    threads: int
    # By instruction set.
    arithmetic: Mapping[str, float]
    memory: float
    # None if it could not be measured.
    shared_cache: float | None
    shared_bytes: int
    private_bytes: int

    @property
    def highest(self) -> float:
        """The highest arithmetic of any instruction set."""
        return max(self.arithmetic.values())

    def least_ms(self, work: Work, weights_in_all: float) -> float:
        """Return the least time for some work in a model that reads so many bytes of weights in an inference.

        Arithmetic and traffic overlap perfectly.
        """
        traffic_ms = self._traffic_ms(work.tensor_bytes, work.tensor_bytes)
        traffic_ms += self._traffic_ms(work.weight_bytes, max(work.weight_bytes, weights_in_all))
        return max(self.arithmetic_ms(work), traffic_ms)

    def arithmetic_ms(self, work: Work) -> float:
        """Return the least time for the arithmetic alone."""
        return work.operations / (self.highest * _PER_MS)

    def reached_by(self, points: Sequence["LayerPoint"]) -> "Roof":
        """Return the roof with the arithmetic that layers of a model have reached, where that is higher.

        Peaks that were measured on a busy host are too low.
        """
        least_ms = _LEAST_SHARE * math.fsum(it.times * it.latency_ms for it in points)
        reached = [it.billions_per_second for it in points if it.times * it.latency_ms >= least_ms]
        higher = max([1.0, *(it / self.highest for it in reached)])
        return replace(self, arithmetic={name: higher * value for name, value in self.arithmetic.items()})

    def _traffic_ms(self, moved: float, working_set: float) -> float:
        if working_set <= self.private_bytes:
            return 0.0
        if working_set > self.shared_bytes:
            return moved / (self.memory * _PER_MS)
        return 0.0 if self.shared_cache is None else moved / (self.shared_cache * _PER_MS)


@dataclass(frozen=True, slots=True)
class LayerPoint:
    """Layers of an execution in the roofline: their work, the time that they take, and the least one."""

    layers: tuple[int, ...]
    kinds: tuple[Kind, ...]
    times: int
    work: Work
    latency_ms: float
    least_ms: float

    @property
    def billions_per_second(self) -> float:
        """The operations per second that they reach."""
        return self.work.operations / (self.latency_ms * _PER_MS) if self.latency_ms else 0.0


def roof_of(peaks: Iterable[Peaks], system: System, threads: int) -> Roof | None:
    """Return the roof of a system at a number of threads; None if its peaks were not measured."""
    found = next((it for it in peaks if it.system == system.id and it.threads == threads), None)
    if found is None:
        return None
    bandwidth = dict(found.bandwidth)
    memory = bandwidth.get(MEMORY)
    if not memory or not any(value > 0 for _, value in found.arithmetic):
        return None
    size = _SIZE.fullmatch(str(dict(system.facts).get("last_level_cache", "")))
    shared = _USUAL_SHARED_BYTES if size is None else int(size[1]) << _UNITS[size[2]]
    return Roof(threads, dict(found.arithmetic), memory, bandwidth.get(SHARED_CACHE), shared, _PRIVATE_BYTES * threads)


def applies_to(found: SystemEstimate) -> bool:
    """Return whether the peaks, which are those of 32-bit numbers, bound a model in its variant."""
    return found.variant.precision is Precision.F32


def works_of(one: MeasuredExecution, written: LayerGraph) -> tuple[Work, ...]:
    """Return the work of one run of each part.

    The arithmetic is that of the written layers behind a part, however a runtime fuses them. The bytes are those that
    pass in and out of the part: a runtime moves no tensor between layers that it has fused.
    """
    # The operations of the layer behind each node in an inference, and True if it multiplies.
    by_node: dict[int, tuple[float, bool]] = {}
    for layer, (operations, multiplies) in zip(written.layers, _operations_of_layers(written), strict=True):
        # A layer of several nodes counts once.
        for place, node in enumerate(layer.nodes):
            by_node[node] = (0.0 if place else operations * layer.times, multiplies)
    own: dict[str, float] = {}
    found = []
    for part in one.parts:
        layers = [one.graph.layers[index] for index in part.layers]
        nodes = [node for layer in layers for node in layer.nodes]
        if all(map(is_conversion, layers)):
            computed = 0.0
        elif nodes:
            held = [by_node[node] for node in nodes if node in by_node]
            # Operations beside multiplications are folded into weights, or hidden by them.
            multiplied = math.fsum(operations for operations, multiplies in held if multiplies)
            # A part stands for `times` runs of its layers, and so do its nodes.
            computed = (multiplied or math.fsum(operations for operations, _ in held)) / part.times
        else:
            if part.brick.key not in own:
                own[part.brick.key] = _operations(part.brick.canonical)[0]
            computed = own[part.brick.key]
        found.append(Work(computed, *_bytes(one.graph, part.layers)))
    return tuple(found)


def written_works(written: LayerGraph) -> tuple[Work, ...]:
    """Return the work of each layer of a file in an inference, as if each ran by itself."""
    found = []
    for layer, (operations, _) in zip(written.layers, _operations_of_layers(written), strict=True):
        tensors, weights = _bytes(written, (layer.index,))
        found.append(Work(layer.times * operations, layer.times * tensors, layer.times * weights))
    return tuple(found)


def points_of(one: MeasuredExecution, works: Sequence[Work], roof: Roof) -> tuple[LayerPoint, ...]:
    """Return the parts of an execution that take time and compute or move anything.

    No bound is higher than what was measured: data may have been in nearer caches than the roof has.
    """
    weights, found = float(one.graph.weight_bytes), []
    for part, work in zip(one.parts, works, strict=True):
        latency_ms = part.latency.value_ms
        if part.counts and latency_ms and (work.operations or work.bytes):
            kinds = tuple(one.graph.layers[index].kind for index in part.layers)
            least_ms = min(latency_ms, roof.least_ms(work, weights))
            found.append(LayerPoint(part.layers, kinds, part.times, work, latency_ms, least_ms))
    return tuple(found)


def roofline_ms(
    executions: Sequence[MeasuredExecution], groups: Groups, works: Sequence[Sequence[Work]], roof: Roof
) -> float:
    """Return the sum over the groups of the least time that their work needs, as any of the executions fuses them."""
    weights = float(min(it.graph.weight_bytes for it in executions))
    least = [
        [to_picoseconds(part.times * roof.least_ms(work, weights)) for part, work in zip(one.parts, held, strict=True)]
        for one, held in zip(executions, works, strict=True)
    ]
    return from_picoseconds(sum(winner.latency_ps for winner in fastest(groups, least)))


def _operations_of_layers(written: LayerGraph) -> Iterator[tuple[float, bool]]:
    """Yield the operations of each layer in a run of it, and True if it multiplies."""
    known: dict[str, tuple[float, bool]] = {}
    for layer in written.layers:
        brick = brick_of(written, (layer.index,))
        if brick.key not in known:
            known[brick.key] = _operations(brick.canonical)
        yield (0.0, False) if layer.kind in _VIEWS else known[brick.key]


def _operations(canonical: str) -> tuple[float, bool]:
    features = features_of(canonical, "")
    return (0.0, False) if features is None else (features.operations, features.multiplies)


def _bytes(graph: LayerGraph, layers: Sequence[int]) -> tuple[float, float]:
    """Return the bytes of tensors that pass in and out of layers, and of the weights that they read."""
    held = [graph.layers[index] for index in layers]
    if all(layer.kind in _VIEWS for layer in held):
        return 0.0, 0.0
    inside = set(layers)
    read = {
        feed: tensor.size_bytes
        for layer in held
        for feed, tensor in zip(layer.feeds, layer.data, strict=True)
        if feed.layer not in inside
    }
    # A chain passes its last tensor on. Others may leave it too, which the bound leaves out.
    written = sum(tensor.size_bytes for tensor in held[-1].outputs)
    weights = sum(bytes_read(held, times_paid(graph, layers)).values())
    return float(sum(read.values()) + written), float(weights)
