"""Whole runs with the times around them, the operators in them, and the lines that oneDNN prints meanwhile.

oneDNN prints to the standard output of the process, through the buffer of the C library.
"""

from __future__ import annotations

import ctypes
import os
import re
import tempfile
from collections.abc import Callable
from dataclasses import replace
from time import monotonic_ns, time_ns
from typing import Any

from dlbricks_tui.runtime.inside.backend import BoundNetwork, ProfiledNetwork
from dlbricks_tui.runtime.protocol import Said, TracedRun, TracedRuns, TraceRuns

_STANDARD_OUTPUT = 1
_LINE = re.compile(r"(?:dnnl|onednn|mkldnn)_verbose,")
# Written between the lines where an operator has ended.
_MARK = "dlbricks,ran,"


def lines_printed(run: Callable[[], Any]) -> tuple[Said, ...]:
    """Return the lines that oneDNN prints while a function runs."""
    before = os.dup(_STANDARD_OUTPUT)
    with tempfile.TemporaryFile() as file:
        try:
            _flush()
            os.dup2(file.fileno(), _STANDARD_OUTPUT)
            run()
        finally:
            _flush()
            os.dup2(before, _STANDARD_OUTPUT)
            os.close(before)
        file.seek(0)
        return lines_in(file.read().decode(errors="replace"))


def mark(node: int) -> None:
    """Note in the output that the operator of this number has run."""
    _flush()
    os.write(_STANDARD_OUTPUT, f"{_MARK}{node}\n".encode())


def lines_in(text: str) -> tuple[Said, ...]:
    """Return the lines of oneDNN in an output. Those in front of a mark belong to its operator."""
    found: list[Said] = []
    unowned = 0
    for line in text.splitlines():
        if line.startswith(_MARK):
            node = int(line[len(_MARK) :])
            found[unowned:] = [Said(it.line, node) for it in found[unowned:]]
            unowned = len(found)
        elif _LINE.match(line):
            found.append(Said(line, None))
    return tuple(found)


def _flush() -> None:
    ctypes.CDLL(None).fflush(None)


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
