"""Load programs, time them, and trace their runs: the operators in them, and the lines that oneDNN prints meanwhile.

oneDNN prints to the standard output of the process, through the buffer of the C library.
"""

from __future__ import annotations

import ctypes
import gc
import os
import re
import tempfile
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from time import monotonic_ns, perf_counter, perf_counter_ns, time_ns
from typing import Any

import numpy

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import Backend, BoundNetwork, ProfiledNetwork, RefusalError, unwatched
from dlbricks_tui.runtime.inside.values import array_bytes
from dlbricks_tui.runtime.protocol import Said, TracedOperator, TracedRun, TracedRuns, TraceRuns

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


def traced(network: BoundNetwork, profiled: ProfiledNetwork | None, request: TraceRuns) -> TracedRuns:
    """Run a network as a request asks, under the profiler if there is one."""
    runs: list[TracedRun] = []
    operators: list[list[TracedOperator]] = []

    def timed(run: Callable[[], None]) -> None:
        host, begin = time_ns(), monotonic_ns()
        run()
        runs.append(TracedRun(begin, host, monotonic_ns() - begin))

    def watch(run: Callable[[], None]) -> int:
        if request.lines:
            lines = lines_printed(partial(timed, run))
            runs[-1] = replace(runs[-1], lines=lines)
        else:
            timed(run)
        return runs[-1].host_ns

    def run_all() -> None:
        for _ in range(request.warm):
            network.run()
        if profiled is not None:
            operators.extend(profiled.run(_WARM_UNDER_PROFILER, request.repeat, lambda: None, watch))
        else:
            for _ in range(request.repeat):
                watch(network.run)

    if request.lines:
        # The lines of runs that are not traced would fill the log of the worker.
        lines_printed(run_all)
    else:
        run_all()
    if profiled is None:
        return TracedRuns(tuple(runs), True)
    # One row of operators stands for all runs.
    rows = operators if profiled.has_starts else operators * len(runs)
    owned = [replace(it, lines=profiled.with_owners(it.lines)) for it in runs] if request.lines else runs
    return TracedRuns(
        tuple(replace(it, operators=tuple(rows[number])) for number, it in enumerate(owned)), profiled.has_starts
    )


_QUICK_SECONDS = 1.0
# Threads share a network of this size.
_WAKING_BYTES = 1 << 20


class LoadedPrograms:
    """The loaded programs of one worker by their names."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._programs = {protocol.NULL_PROGRAM: _BoundProgram(backend, protocol.Program(backend.nothing))}
        self._sweeper: BoundNetwork | None = None

    def load(self, request: protocol.Load) -> protocol.Loaded:
        self._programs.pop(request.program_id, None)
        network, producer = request.program.network, request.program.producer
        # All arrays that are created before the first run.
        networks = (network,) if producer is None else (producer, network)
        needed = sum(array_bytes(it.weights.values()) for it in networks) + array_bytes(networks[0].inputs.values())
        limit = request.memory_limit_bytes
        if limit is not None and needed > limit:
            raise RefusalError(protocol.Reason.TOO_LARGE, f"its arrays take {needed} bytes, more than {limit}")
        begin = perf_counter()
        try:
            program = _BoundProgram(self._backend, request.program)
            program.network.run()
            seconds = perf_counter() - begin
            if program.network.may_allocate and seconds < _QUICK_SECONDS:
                # The second run decides. Of a slow network it is the first one that is timed.
                program.network.run()
            # A model file has its own weights, so infinite results are not caused by ours.
            if request.check_values and not request.program.network.file:
                program.network.refuse_infinite_values()
        except MemoryError as error:
            raise RefusalError(protocol.Reason.TOO_LARGE, f"out of memory: {error}") from error
        self._programs[request.program_id] = program
        return protocol.Loaded(seconds, program.network.allocates)

    def sample(self, request: protocol.Sample) -> protocol.Sampled:
        programs = [self._program(name) for name in request.programs]
        with _no_collection():
            durations = [
                () if program.cold else program.durations_ns(request.warm, request.repeat) for program in programs
            ]
            cold = [place for place, program in enumerate(programs) if program.cold]
            taken = self._cold_durations_ns([programs[place] for place in cold], request.repeat)
        for number, place in enumerate(cold):
            durations[place] = taken[number]
        return protocol.Sampled(tuple(durations))

    def profile(self, request: protocol.Profile) -> protocol.Profiled:
        program = self._program(request.program)
        with _no_collection():
            runs = program.profiled().run(request.warm, request.repeat, program.pass_over, unwatched)
        nodes = tuple(time.node for time in runs[0]) if runs else ()
        if any(tuple(time.node for time in run) != nodes for run in runs):
            raise RefusalError(protocol.Reason.UNBUILDABLE, "the profiler shows different operators in different runs")
        starts = [run[0].start_ns if run else 0 for run in runs]
        return protocol.Profiled(
            nodes,
            tuple(tuple(time.start_ns - starts[number] for time in run) for number, run in enumerate(runs)),
            tuple(tuple(time.duration_ns for time in run) for run in runs),
        )

    def trace(self, request: protocol.TraceRuns) -> protocol.TracedRuns:
        program = self._program(request.program)
        profiled = program.profiled() if request.operators else None
        with _no_collection():
            return traced(program.network, profiled, request)

    def unload(self, request: protocol.Unload) -> protocol.Unloaded:
        for name in request.programs:
            self._programs.pop(name, None)
        return protocol.Unloaded()

    def _cold_durations_ns(self, programs: list[_BoundProgram], repeat: int) -> list[tuple[int, ...]]:
        """Time each program once per sweep of the caches, `repeat` times."""
        rounds = []
        for _ in range(repeat if programs else 0):
            self._sweep_caches()
            without = [0 if it.prelude is None else _duration_ns(it.prelude) for it in programs]
            self._sweep_caches()
            taken = [_duration_ns(program.network) for program in programs]
            rounds.append([max(0, taken[number] - without[number]) for number in range(len(programs))])
        return [tuple(taken[number] for taken in rounds) for number in range(len(programs))]

    def _sweep_caches(self) -> None:
        """Replace the contents of the caches of all cores."""
        if self._sweeper is None:
            self._sweeper = self._backend.bind(self._backend.sweep)
        self._sweeper.run()

    def _program(self, name: str) -> _BoundProgram:
        if name not in self._programs:
            raise RefusalError(protocol.Reason.MALFORMED, f"no program is loaded as {name}")
        return self._programs[name]


class _BoundProgram:
    """A network with its prelude, both fed in the layouts of the model."""

    def __init__(self, backend: Backend, program: protocol.Program) -> None:
        fed = None
        if program.producer is not None:
            # Networks change no inputs but those that they write in place, so the producer runs only once.
            producer = backend.bind(program.producer)
            producer.run()
            fed = producer.outputs
        self._profiled: ProfiledNetwork | None = None
        self.cold = program.cold
        self.network = backend.bind(program.network, fed, side_by_side=program.side_by_side)
        # Touches the memory that passes through the caches between two runs.
        self.pass_over: Callable[[], Any] = lambda: None
        if program.between_bytes and program.only_reads:
            awake = backend.bind(backend.passing_over(_WAKING_BYTES)).run if backend.falls_asleep else None
            # Memory that stays as it is, as weights do.
            self.pass_over = partial(_read_and_wake, numpy.ones(max(1, program.between_bytes // 4), "float32"), awake)
        elif program.between_bytes:
            self.pass_over = backend.bind(backend.passing_over(program.between_bytes)).run
        self.prelude: BoundNetwork | None = None
        if program.prelude is not None:
            self.prelude = backend.bind(program.prelude, self.network.inputs)

    def profiled(self) -> ProfiledNetwork:
        """Return the network under the profiler, which is prepared at the first call."""
        if self._profiled is None:
            self._profiled = self.network.profiled()
        return self._profiled

    def durations_ns(self, warm: int, repeat: int) -> tuple[int, ...]:
        """Return the durations of `repeat` runs after `warm` untimed ones, without the prelude."""
        if self.prelude is None:
            return tuple(_durations_ns(self.network, warm, repeat, self.pass_over))
        without = _durations_ns(self.prelude, warm, repeat, self.pass_over)
        durations = _durations_ns(self.network, warm, repeat, self.pass_over)
        # Noise can make the difference of two short runs negative.
        return tuple(max(0, durations[run] - without[run]) for run in range(repeat))


def _read_and_wake(values: Any, wake: Callable[[], Any] | None) -> None:
    """Read values, and wake up the threads of the framework, which in an engine are awake."""
    values.max()
    if wake is not None:
        wake()


def _durations_ns(network: BoundNetwork, warm: int, repeat: int, before: Callable[[], Any]) -> list[int]:
    """Return the durations of the last `repeat` runs; `before` is called ahead of each run."""
    durations = []
    network.begin()
    for _ in range(warm + repeat):
        network.prepare()
        before()
        durations.append(_duration_ns(network))
    return durations[warm:]


def _duration_ns(network: BoundNetwork) -> int:
    allocated = network.allocates
    begin = perf_counter_ns()
    network.run()
    taken = perf_counter_ns() - begin
    # The run that finds the outputs too small is a failed run and another one.
    return taken if network.allocates == allocated else _duration_ns(network)


@contextmanager
def _no_collection() -> Iterator[None]:
    # A garbage collection within a run would be timed with it.
    gc.disable()
    try:
        yield
    finally:
        gc.enable()
