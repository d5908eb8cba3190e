"""Load programs and time them."""

from __future__ import annotations

import gc
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from time import perf_counter, perf_counter_ns
from typing import Any

import numpy

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.inside.backend import Backend, BoundNetwork, ProfiledNetwork, RefusalError
from dlbricks_tui.runtime.inside.tracing import traced
from dlbricks_tui.runtime.inside.values import array_bytes

_QUICK_SECONDS = 1.0
# Threads share a network of this size.
_WAKING_BYTES = 1 << 20


class LoadedPrograms:
    """The loaded programs of one worker by their names."""

    def __init__(self, backend: Backend) -> None:
        self._backend = backend
        self._programs: dict[str, _BoundProgram] = {}
        self._null = _BoundProgram(backend, protocol.Program(backend.nothing))
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
        outputs = program.network.output_types()
        # Arrays that are written in place are both inputs and outputs.
        taken = needed + array_bytes(outputs) - array_bytes(network.inputs[name] for name in network.in_place)
        return protocol.Loaded(seconds, tuple(shape for shape, _ in outputs), taken, program.network.allocates)

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
            runs = program.profiled().run(request.warm, request.repeat, program.pass_over)
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

    def null_calls(self, request: protocol.NullCalls) -> protocol.Sampled:
        with _no_collection():
            return protocol.Sampled((self._null.durations_ns(1, request.count),))

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
