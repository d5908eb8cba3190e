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

from dlbricks_tui.runtime.inside.backend import OperatorTime, ProfiledNetwork
from dlbricks_tui.runtime.inside.ort_session import ask, options, session
from dlbricks_tui.runtime.protocol import Network, Reason

# Nodes of our networks have these names; nodes inside an `If` or a `Loop` have others.
_OWN_NODE = re.compile(r"node(\d+)_kernel_time$")
_NANOSECONDS_PER_MICROSECOND = 1000


class ProfiledModel(ProfiledNetwork):
    """A model that gets a new profiling session per request."""

    def __init__(self, ort: Any, network: Network, weights: Mapping[str, Any], inputs: Sequence[Any]) -> None:
        self._ort = ort
        self._network = network
        self._weights = weights
        self._inputs = inputs

    def run(self, warm: int, repeat: int, before: Callable[[], None]) -> list[list[OperatorTime]]:
        """Run the model, and return the operator times of the last `repeat` runs."""
        with tempfile.TemporaryDirectory() as folder:
            settings = options(self._ort, optimised=False)
            settings.enable_profiling = True
            settings.profile_file_prefix = str(Path(folder) / "profile")
            profiled = session(self._ort, self._network.symbol, self._weights, settings, Reason.UNBUILDABLE)
            binding = profiled.io_binding()
            for place, name in enumerate(self._network.inputs):
                binding.bind_ortvalue_input(name, self._inputs[place])
            for output in profiled.get_outputs():
                binding.bind_output(output.name)
            for _ in range(warm + repeat):
                before()
                ask(self._ort, lambda: profiled.run_with_iobinding(binding), Reason.UNBUILDABLE)
            events = json.loads(Path(profiled.end_profiling()).read_bytes())
        return runs_in(events)[warm:]


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


def _node_times(events: Iterable[Mapping[str, Any]]) -> Iterable[OperatorTime]:
    for event in events:
        match = _OWN_NODE.match(event["name"])
        if match and event["cat"] == "Node":
            start, duration = (int(event[key]) * _NANOSECONDS_PER_MICROSECOND for key in ("ts", "dur"))
            yield OperatorTime(int(match[1]), start, duration)
