"""Whole runs with the times around them, the operators in them, and the lines that oneDNN prints meanwhile."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from time import monotonic_ns, time_ns

from dlbricks_tui.runtime.inside.backend import BoundNetwork, ProfiledNetwork
from dlbricks_tui.runtime.inside.onednn_lines import lines_printed
from dlbricks_tui.runtime.protocol import TracedRun, TracedRuns, TraceRuns

# Under a profiler, further runs follow those that warm up without it.
_WARM_UNDER_PROFILER = 2


class _Watch:
    """Times whole runs. With `takes_lines`, it also takes what oneDNN prints."""

    def __init__(self, takes_lines: bool) -> None:
        self._takes_lines = takes_lines
        self.runs: list[TracedRun] = []

    def __call__(self, run: Callable[[], None]) -> int:
        """Run a network, and return the time of the host's clock at its start."""
        if self._takes_lines:
            lines = lines_printed(lambda: self._time(run))
            self.runs[-1] = replace(self.runs[-1], lines=lines)
        else:
            self._time(run)
        return self.runs[-1].host_ns

    def _time(self, run: Callable[[], None]) -> None:
        host, begin = time_ns(), monotonic_ns()
        run()
        self.runs.append(TracedRun(begin, host, monotonic_ns() - begin))


def traced(network: BoundNetwork, profiled: ProfiledNetwork | None, request: TraceRuns) -> TracedRuns:
    """Run a network as a request asks, under the profiler if there is one."""
    if not request.lines:
        return _traced(network, profiled, request)
    found: list[TracedRuns] = []
    # The lines of runs that are not traced would fill the log of the worker.
    lines_printed(lambda: found.append(_traced(network, profiled, request)))
    return found[0]


def _traced(network: BoundNetwork, profiled: ProfiledNetwork | None, request: TraceRuns) -> TracedRuns:
    watch = _Watch(request.lines)
    for _ in range(request.warm):
        network.run()
    if profiled is None:
        for _ in range(request.repeat):
            watch(network.run)
        return TracedRuns(tuple(watch.runs), True)
    found, has_starts = profiled.trace(_WARM_UNDER_PROFILER, request.repeat, watch)
    return TracedRuns(
        tuple(
            replace(
                run,
                operators=tuple(found[number]),
                lines=profiled.with_owners(run.lines) if request.lines else (),
            )
            for number, run in enumerate(watch.runs)
        ),
        has_starts,
    )
