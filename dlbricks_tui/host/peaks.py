"""Peaks of this host: the most arithmetic and memory traffic that a number of threads reach together.

They are measured with numpy, whose matrix product comes close to the peak of the processor.
"""

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping
from pathlib import Path

from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import CPU, caches, distinct, vector_instructions
from dlbricks_tui.host.queue import HostQueue, WorkKind, queued
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.recorded_host import NOTHING_IS_MEASURED, recorded_host
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks, System, utc_now

MEMORY, SHARED_CACHE = "memory", "shared cache"
# About how long it takes to measure them.
PEAKS_SECONDS = 4.0

_PROGRAM = Path(__file__).with_name("peak_program.py")
_SECONDS_EACH = 0.3
# For a first impression.
_QUICK_SECONDS_EACH = 0.024
# A process that has not answered by then hangs.
_MOST_SECONDS = 60.0
_GIGA = 1e9
# Kernels of OpenBLAS for an instruction set; other libraries ignore the variable. The widest set is the default.
_KERNELS: Mapping[str, tuple[str, ...]] = {"avx512": ("avx512", "avx2"), "avx2": ("avx2",)}
_KERNELS_VARIABLE, _CORE_TYPES = "OPENBLAS_CORETYPE", {"avx2": "Haswell"}
_ONE_THREAD = dict.fromkeys(
    ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS", "VECLIB_MAXIMUM_THREADS"), "1"
)
# Arrays in memory are this many times as large as the shared caches, at least and at most so large.
_TIMES_THE_CACHE, _LEAST_BYTES, _MOST_BYTES = 4, 128 << 20, 1 << 30
# An array of this many times the private caches is read from the shared one.
_BEYOND_PRIVATE = 2


class PeaksError(UserError):
    """The peaks of this host cannot be measured."""


# Runs the program with arguments and variables, and returns what it prints.
Program = Callable[[list[str], Mapping[str, str]], str]


def measure_peaks(system: str, threads: int, host: HostFiles | None = None, run: Program | None = None) -> Peaks:
    """Measure for about four seconds what this many threads reach on this host."""
    host, run = host or HostFiles(), run or _run
    sizes = _sizes(host, threads)
    widest = vector_instructions(host) or "any"
    arithmetic: dict[str, float] = {}
    bandwidth: dict[str, float] = {}
    for instructions in _KERNELS.get(widest, (widest,)):
        first = not arithmetic
        wanted = sizes if first else {}
        kernels = {} if first else {_KERNELS_VARIABLE: _CORE_TYPES[instructions]}
        arguments = [str(threads), str(_SECONDS_EACH), *map(str, wanted.values())]
        arithmetic[instructions], read = _parsed(run(arguments, {**_ONE_THREAD, **kernels}))
        bandwidth |= zip(wanted, read, strict=True)
    return _peaks(system, threads, arithmetic, bandwidth)


def quick_peaks(system: str, threads: int, host: HostFiles | None = None, run: Program | None = None) -> Peaks:
    """Measure arithmetic and memory for about half a second: to predict by, too roughly to be stored."""
    arguments = [str(threads), str(_QUICK_SECONDS_EACH), str(_sizes(host or HostFiles(), threads)[MEMORY])]
    arithmetic, (bandwidth,) = _parsed((run or _run)(arguments, _ONE_THREAD))
    return _peaks(system, threads, {"any": arithmetic}, {MEMORY: bandwidth})


def _peaks(system: str, threads: int, arithmetic: Mapping[str, float], bandwidth: Mapping[str, float]) -> Peaks:
    return Peaks(
        when=utc_now(),
        system=system,
        threads=threads,
        arithmetic=tuple(arithmetic.items()),
        bandwidth=tuple(bandwidth.items()),
    )


def keep_peaks(
    store: Path, system: System, threads: int, queue: HostQueue, data: Path, tell_waiting: Callable[[str], None]
) -> Peaks:
    """Measure the peaks of this host once it is their turn, and store them with its description."""
    if not 1 <= threads <= MOST_THREADS:
        raise PeaksError(f"threads {threads}: give a number from 1 to {MOST_THREADS}")
    if recorded_host() is not None:
        raise PeaksError(NOTHING_IS_MEASURED)
    with ResultsDatabase(store) as database:
        # A store that cannot be written is told of before anything is measured.
        database.add(system)
    ticket = queue.join(queued(WorkKind.PEAKS, [f"{threads} thread{'' if threads == 1 else 's'}"], data))
    ticket.wait(tell_waiting)
    try:
        ticket.progress(None, PEAKS_SECONDS)
        found = measure_peaks(system.id, threads)
    finally:
        ticket.leave()
    with ResultsDatabase(store) as database:
        database.add(found)
    return found


def _sizes(host: HostFiles, threads: int) -> Mapping[str, int]:
    """Return the bytes of the arrays of each thread; none for the shared cache if this host hides it."""
    found_caches = caches(host)
    shared = max((it for it in found_caches if it.level > 2), key=lambda it: it.level, default=None)
    if shared is None:
        return {MEMORY: _LEAST_BYTES // threads}
    # Threads may have one such cache each: a processor of many cores, or a host of two sockets, has several.
    several = len(distinct(host, f"{CPU}/cpu[0-9]*/cache/index{shared.level}/shared_cpu_list"))
    cached = shared.bytes * max(1, min(threads, several))
    everything = min(_MOST_BYTES, max(_LEAST_BYTES, _TIMES_THE_CACHE * cached))
    private = max((it.bytes for it in found_caches if it.level < shared.level), default=0)
    share = shared.bytes // min(threads, shared.processors)
    # Other guests of the machine may fill the rest of the shared cache.
    size = _BEYOND_PRIVATE * private
    found = {MEMORY: everything // threads}
    return found | {SHARED_CACHE: size} if 0 < size < share + private else found


def _parsed(printed: str) -> tuple[float, list[float]]:
    """Return the operations and the bytes of each level in a second, in billions."""
    document = json.loads(printed)
    return float(document["flops"]) / _GIGA, [float(each) / _GIGA for each in document["bandwidth"]]


def _run(arguments: list[str], variables: Mapping[str, str]) -> str:
    if recorded_host() is not None:
        raise PeaksError(NOTHING_IS_MEASURED)
    command = [sys.executable, str(_PROGRAM), *arguments]
    try:
        done = subprocess.run(
            command,
            env={**os.environ, **variables},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            check=True,
            timeout=_MOST_SECONDS,
        )
    except (OSError, subprocess.SubprocessError) as error:
        said = (getattr(error, "stderr", "") or "").strip().splitlines()[-1:] or [str(error)]
        raise PeaksError(f"the peaks of this host cannot be measured: {said[0]}") from error
    return done.stdout
