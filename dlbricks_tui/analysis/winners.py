"""The fastest way to compute a model by parts of several executions."""

from collections.abc import Sequence
from dataclasses import dataclass

from dlbricks_tui.analysis.groups import Group, Groups


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
    contest, everyone = _Contest(groups, times_ps), frozenset(range(len(groups.covers.own)))
    return [winner for group in groups.groups for winner in contest.winners(group, everyone)]


class _Contest:
    """Finds the winners of groups, with all executions and with fewer of them."""

    def __init__(self, groups: Groups, times_ps: Sequence[Sequence[int]]) -> None:
        self._groups = groups
        self._times_ps = times_ps
        self._known: dict[tuple[int, frozenset[int]], list[Winner]] = {}

    def winners(self, group: Group, among: frozenset[int]) -> list[Winner]:
        """Return the winners of a group among some executions."""
        key = group.nodes[0], among
        if key not in self._known:
            self._known[key] = self._found(group, among)
        return self._known[key]

    def _found(self, group: Group, among: frozenset[int]) -> list[Winner]:
        # Of equal times the first execution counts.
        totals = {it: sum([self._times_ps[it][part] for part in group.parts[it]]) for it in sorted(among)}
        first = min(totals, key=totals.__getitem__)
        found = [Winner(group.nodes, first, group.parts[first], totals[first])]
        for others, finer in self._groups.refined(group, among):
            competing = [winner for each in finer for winner in self.winners(each, others)]
            if sum(it.latency_ps for it in competing) < sum(it.latency_ps for it in found):
                found = competing
        return found
