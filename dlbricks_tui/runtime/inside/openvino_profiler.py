"""OpenVINO's profiler: the time of each executed node.

It counts whole microseconds, and tells the mean of all runs since the model was compiled, rounded down. So the model is
compiled again after a few runs, and the time of a request is the difference of two totals.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

from dlbricks_tui.runtime.inside.backend import OperatorsOfRuns, OperatorTime, ProfiledNetwork
from dlbricks_tui.runtime.inside.openvino_decoders import ModelRequest
from dlbricks_tui.runtime.inside.openvino_graph import Executed, executed_nodes, numbers_of
from dlbricks_tui.runtime.inside.openvino_models import ModelText, ask, compiled
from dlbricks_tui.runtime.inside.openvino_primitives import with_owners
from dlbricks_tui.runtime.protocol import Reason, Said, TracedOperator

# The totals are known to this many microseconds after as many runs.
_MOST_RUNS = 16
_NANOSECONDS_PER_MICROSECOND = 1000
# Rounding down takes away this much on average, from each duration and from each mean (docs/log/openvino.md).
_ROUNDED_OFF_US = 0.5
# Nodes of these kinds may only pass on memory, which takes no time.
_PASSING = ("Reshape", "Squeeze", "Unsqueeze", "Flatten", "Split", "Concatenation", "StridedSlice")


class ProfiledOpenvinoModel(ProfiledNetwork):
    """A model that is compiled with counters, and again when these have become coarse."""

    def __init__(
        self, core: Any, model: Any, text: ModelText, inputs: Sequence[Any], in_place: Mapping[int, Any]
    ) -> None:
        self._core = core
        self._model = model
        self._text = text
        self._inputs = inputs
        self._in_place = in_place
        self._request: Any = None
        self._runs = 0
        # The executed nodes, and for each the number of a node of the network.
        self._executed: Sequence[Executed] = ()
        self._numbers: Sequence[int] = ()

    def run(self, warm: int, repeat: int, before: Callable[[], None]) -> list[list[OperatorTime]]:
        """Run the model; return the mean times of the last `repeat` runs as those of one run."""
        if self._request is None or self._runs + warm + repeat > _MOST_RUNS:
            self._compile()
        self._runs += ask(self._request.begin, Reason.UNBUILDABLE)
        for _ in range(warm):
            self._run(before)
        begin = self._totals_us()
        for _ in range(repeat):
            self._run(before)
        return self._times(begin, self._totals_us(), repeat)

    def trace(self, warm: int, repeat: int, watch: Callable[[Callable[[], None]], int]) -> OperatorsOfRuns:
        """Run the model; each run has the mean times of all watched ones."""
        if self._request is None or self._runs + warm > _MOST_RUNS:
            self._compile()
        self._runs += ask(self._request.begin, Reason.UNBUILDABLE)
        for _ in range(warm):
            self._run(lambda: None)
        begin = self._totals_us()
        for _ in range(repeat):
            watch(lambda: self._run(lambda: None))
        row: list[TracedOperator] = []
        at = 0
        for place, taken_ns in self._taken(begin, self._totals_us(), repeat):
            row.append(TracedOperator(self._numbers[place], self._executed[place].kind, at, taken_ns))
            at += taken_ns
        return OperatorsOfRuns([row] * repeat, has_starts=False)

    def with_owners(self, lines: tuple[Said, ...]) -> tuple[Said, ...]:
        return with_owners(lines, [it.kind for it in self._executed], self._numbers)

    def _compile(self) -> None:
        # Frees the memory of the one before.
        self._request = None
        found = compiled(self._core, self._model, Reason.UNBUILDABLE, profiled=True)
        self._request = ModelRequest(self._model, found.create_infer_request())
        self._request.feed(range(len(self._inputs)), self._inputs, self._in_place)
        self._executed = executed_nodes(found, self._text.nodes)
        self._numbers = numbers_of(self._executed, self._text.conversions, self._text.nodes)
        self._runs = 0
        self._run(lambda: None)

    def _run(self, before: Callable[[], None]) -> None:
        before()
        ask(self._request.run, Reason.UNBUILDABLE)
        self._runs += 1

    def _totals_us(self) -> dict[str, float]:
        """Return the time of each node in all runs; 0 if it takes less than a microsecond."""
        means = {it.node_name: round(it.real_time.total_seconds() * 1e6) for it in self._request.request.profiling_info}
        most_rounded_off = self._runs - 1
        return {name: mean * self._runs + most_rounded_off / 2 if mean else 0.0 for name, mean in means.items()}

    def _times(self, begin: Mapping[str, float], end: Mapping[str, float], runs: int) -> list[list[OperatorTime]]:
        row: list[OperatorTime] = []
        at = 0
        for place, taken_ns in self._taken(begin, end, runs):
            row.append(OperatorTime(self._numbers[place], at, taken_ns))
            at += taken_ns
        return [row]

    def _taken(self, begin: Mapping[str, float], end: Mapping[str, float], runs: int) -> Iterator[tuple[int, int]]:
        """Yield the places of the nodes that ran, and the mean of their nanoseconds."""
        for place, it in enumerate(self._executed):
            total = end.get(it.name, 0.0)
            if total or it.kind not in _PASSING:
                taken_us = max(0.0, total - begin.get(it.name, 0.0)) / runs + _ROUNDED_OFF_US
                yield place, round(taken_us * _NANOSECONDS_PER_MICROSECOND)
