"""The best measured latency of a model, the gap above it, and the differences between two executions."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
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
from dlbricks_tui.estimate.compositions import SequenceTask, critical_path, milliseconds, picoseconds
from dlbricks_tui.estimate.intervals import doubt_about
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Part
from dlbricks_tui.models.graph import digraph_of, topological_order


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
        return min(_critical_path_ps(self), self.latency_ps, *(picoseconds(it.parallel_ms) for it in composed))

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
        return milliseconds(self.latency_ps)

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
        interval = doubt_about(self.parts, self.latency_ms, relative).around(self.latency_ms)
        return Latency(self.latency_ms, interval.low_ms, interval.high_ms)

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


@dataclass(frozen=True, slots=True)
class Gap:
    """The parts of a gap. They add up to it exactly, in picoseconds."""

    # The time by which groups of layers are slower than in the fastest execution.
    slower_layers_ps: int
    # The layers that convert memory layouts.
    conversions_ps: int
    # The end-to-end latency minus the estimate; None without an end-to-end latency.
    unexplained_ps: int | None

    @property
    def total_ps(self) -> int:
        """The latency minus the best: the end-to-end latency, or the estimate without one."""
        return self.slower_layers_ps + self.conversions_ps + (self.unexplained_ps or 0)

    @property
    def slower_layers_ms(self) -> float:
        return milliseconds(self.slower_layers_ps)

    @property
    def conversions_ms(self) -> float:
        return milliseconds(self.conversions_ps)

    @property
    def unexplained_ms(self) -> float | None:
        return None if self.unexplained_ps is None else milliseconds(self.unexplained_ps)


def gap_of(baseline: MeasuredExecution, best: BestMeasured) -> Gap:
    """Return the gap between an execution and the best of several."""
    layers_ps = sum(part.paid_ps for part in baseline.parts)
    conversions_ps = sum(
        part.paid_ps for part in baseline.parts if all(is_conversion(baseline.graph.layers[it]) for it in part.layers)
    )
    measured = baseline.found.end_to_end
    return Gap(
        slower_layers_ps=layers_ps - conversions_ps - best.latency_ps,
        conversions_ps=conversions_ps,
        unexplained_ps=None if measured is None else picoseconds(measured.value_ms) - layers_ps,
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
    first, second = _reference_ms(one), _reference_ms(other)
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
    one, other = before.graph.batch_size, after.graph.batch_size
    found = []
    for group in groups_of([before, after]).groups:
        first, second = (
            milliseconds(paid_ps(each, parts)) / size
            for each, parts, size in zip((before, after), group.parts, (one, other), strict=True)
        )
        shown, numbers = (before, group.parts[0]) if group.parts[0] else (after, group.parts[1])
        found.append(Saving(layer_names(shown, numbers), first, first - second))
    return tuple(found)


def by_layer_name(before: MeasuredExecution, after: MeasuredExecution) -> tuple[Saving, ...]:
    """Return what a change saves in the layers whose written layers have the same names in both files.

    The layers of a quantised copy have those of its model, and more.
    """
    if before.file == after.file:
        return savings(before, after)
    numbers: dict[str, int] = {}
    covers = [_named_cover(it, numbers) for it in (before, after)]
    found = []
    for group in split(dict(enumerate(range(len(it)) for it in covers)), covers):
        first, second = group.parts
        if first and second:
            before_ms, after_ms = milliseconds(paid_ps(before, first)), milliseconds(paid_ps(after, second))
            found.append(Saving(layer_names(before, first), before_ms, before_ms - after_ms))
    return tuple(found)


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


def _reference_ms(one: MeasuredExecution) -> float:
    """Return the mean latency of the reference while the parts were measured, by their time; 0 if it is not known."""
    known = [(part.paid_ps, part.measured.reference_ms) for part in one.parts if part.measured is not None]
    weighed = [(paid, reference_ms) for paid, reference_ms in known if reference_ms and paid]
    paid_in_all = sum(paid for paid, _ in weighed)
    return sum(paid * reference_ms for paid, reference_ms in weighed) / paid_in_all if paid_in_all else 0.0
