"""ONNX Runtime's profiler: the time of each node of a model in each run.

A session profiles all of its runs or none, and returns its events only when it stops profiling for good. So each
request gets a new session with the same weights.
"""

from __future__ import annotations

import json
import re
import tempfile
from collections.abc import Callable, Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from dlbricks_tui.runtime.inside.backend import OperatorsOfRuns, OperatorTime, ProfiledNetwork
from dlbricks_tui.runtime.inside.ort_session import ask, bind_inputs, bind_new_outputs, options, session
from dlbricks_tui.runtime.protocol import Network, Reason, TracedOperator

# Nodes of our networks have these names; nodes inside an `If` or a `Loop` have others.
_OWN_NODE = re.compile(r"node(\d+)_kernel_time$")
_NANOSECONDS_PER_MICROSECOND = 1000


class ProfiledModel(ProfiledNetwork):
    """A model that gets a new profiling session per request."""

    def __init__(
        self,
        ort: Any,
        network: Network,
        weights: Mapping[str, Any],
        inputs: Sequence[Any],
        in_place: Mapping[int, Any],
        allocates: bool,
    ) -> None:
        """With `allocates`, each run makes new arrays for the outputs that are not written in place."""
        self._ort = ort
        self._network = network
        self._weights = weights
        self._inputs = inputs
        self._in_place = in_place
        self._allocates = allocates

    def run(self, warm: int, repeat: int, before: Callable[[], None]) -> list[list[OperatorTime]]:
        """Run the model, and return the operator times of the last `repeat` runs."""
        with tempfile.TemporaryDirectory() as folder:
            profiled, run = self._session(folder)
            for _ in range(warm + repeat):
                before()
                run()
            events = json.loads(Path(profiled.end_profiling()).read_bytes())
        return runs_in(events)[warm:]

    def trace(self, warm: int, repeat: int, watch: Callable[[Callable[[], None]], int]) -> OperatorsOfRuns:
        """Run the model; ONNX Runtime tells when its profiler began by the clock of the host."""
        with tempfile.TemporaryDirectory() as folder:
            profiled, run = self._session(folder)
            for _ in range(warm):
                run()
            begins = [watch(run) for _ in range(repeat)]
            origin = profiled.get_profiling_start_time_ns()
            events = json.loads(Path(profiled.end_profiling()).read_bytes())
        kinds = dict(_kinds(events))
        # A network without nodes has no events.
        times = runs_in(events)[warm:] or [[] for _ in begins]
        runs = [
            [
                TracedOperator(it.node, kinds[it.node], max(0, origin + it.start_ns - begins[number]), it.duration_ns)
                for it in row
            ]
            for number, row in enumerate(times)
        ]
        return OperatorsOfRuns(runs, has_starts=True)

    def _session(self, folder: str) -> tuple[Any, Callable[[], None]]:
        """Return a new profiling session, and a function that runs it once."""
        settings = options(self._ort, optimised=False)
        settings.enable_profiling = True
        settings.profile_file_prefix = str(Path(folder) / "profile")
        profiled = session(self._ort, self._network.symbol, self._weights, settings, Reason.UNBUILDABLE)
        binding = profiled.io_binding()
        bind_inputs(binding, self._network.inputs, self._inputs)
        names = [output.name for output in profiled.get_outputs()]
        bind_new_outputs(binding, names, self._in_place)

        def run() -> None:
            if self._allocates:
                bind_new_outputs(binding, names, self._in_place)
            ask(self._ort, lambda: profiled.run_with_iobinding(binding), Reason.UNBUILDABLE)

        return profiled, run


def runs_in(events: Iterable[Mapping[str, Any]]) -> list[list[OperatorTime]]:
    """Return the node times of each run; a node that occurs again begins the next run."""
    runs: list[list[OperatorTime]] = []
    shown: set[int] = set()
    for time in sorted(_node_times(events), key=lambda time: time.start_ns):
        if not runs or time.node in shown:
            runs.append([])
            shown = set()
        runs[-1].append(time)
        shown.add(time.node)
    return runs


def _kinds(events: Iterable[Mapping[str, Any]]) -> Iterable[tuple[int, str]]:
    for event in events:
        match = _OWN_NODE.match(event["name"])
        if match and event["cat"] == "Node":
            yield int(match[1]), str(event.get("args", {}).get("op_name", ""))


def _node_times(events: Iterable[Mapping[str, Any]]) -> Iterable[OperatorTime]:
    for event in events:
        match = _OWN_NODE.match(event["name"])
        if match and event["cat"] == "Node":
            start, duration = (int(event[key]) * _NANOSECONDS_PER_MICROSECOND for key in ("ts", "dur"))
            yield OperatorTime(int(match[1]), start, duration)
