"""This host: its runtimes, what disturbs measurements, its peaks, and weights that make a model slow."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.api.documents import document
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.noise import Finding, NoiseVerdict, findings
from dlbricks_tui.host.peaks import keep_peaks
from dlbricks_tui.host.queue import host_queue
from dlbricks_tui.models.loading import weights_in
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ENGINES, TRAITS
from dlbricks_tui.scenarios.loadgen import require_loadgen
from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Peaks, System


@dataclass(frozen=True, slots=True)
class DenormalCount:
    """The number of denormal values in an array."""

    array: str
    values: int
    denormals: int

    @property
    def share(self) -> float:
        """The share of denormal values, from 0 to 1."""
        return self.denormals / self.values if self.values else 0.0


def denormals_in(path: Path) -> tuple[DenormalCount, ...]:
    """Return the counts for each array of a `.params` file, or for each weight in a model file."""
    return tuple([_counted(name, pieces) for name, pieces in weights_in(path)])


def _counted(name: str, pieces: Iterable[NDArray[np.generic]]) -> DenormalCount:
    count = denormals = 0
    for values in pieces:
        count += values.size
        denormals += count_denormals(values)
    return DenormalCount(name, count, denormals)


def count_denormals(values: NDArray[np.generic]) -> int:
    """Return how many values are denormal; integers never are."""
    size = values.dtype.itemsize
    if values.dtype.kind != "f" or size > 8:
        return 0
    # Compare as integers: a process that flushes denormals to zero would not see them.
    bits = values.view(np.dtype(f"<u{size}"))
    magnitudes = bits & bits.dtype.type((1 << (8 * size - 1)) - 1)
    smallest_normal = bits.dtype.type(1 << np.finfo(f"f{size}").nmant)
    return int(np.count_nonzero((magnitudes != 0) & (magnitudes < smallest_normal)))


@dataclass(frozen=True, slots=True)
class ExaminedSystem:
    """This host, its stored peaks, and the sources of noise on it."""

    system: System
    peaks: tuple[Peaks, ...]
    noise: tuple[Finding, ...]

    @property
    def noisy(self) -> list[str]:
        """The sources that disturb measurements."""
        return [it.source for it in self.noise if it.verdict is NoiseVerdict.NOISY]


def examined_host(
    data: DataFolder, tell_waiting: Callable[[str], None], *, measures: bool = False, threads: int | None = None
) -> ExaminedSystem:
    """Examine this host, after its peaks were measured and stored if that is asked for."""
    system = fingerprint()
    peaks: tuple[Peaks, ...] = ()
    # Before the noise is examined, which the measured threads would be part of.
    if measures:
        keep_peaks(data.store, system, threads or system.cores_to_use, host_queue(), data.path, tell_waiting)
    if measures or data.store.exists():
        with ResultsDatabase(data.store) as store:
            peaks = tuple(it for it in store.peaks() if it.system == system.id)
    return ExaminedSystem(system, peaks, findings())


def examination_document(found: ExaminedSystem, weights: Mapping[Path, Sequence[DenormalCount]]) -> dict[str, Any]:
    """Return an examination as a JSON document."""
    return {
        "system": {**system_document(found.system), **dict(found.system.facts)},
        "peaks": [peaks_document(it) for it in found.peaks],
        "noise": [{**document(it), "cure": it.cure or None} for it in found.noise],
        "weights": [
            {
                "path": path,
                "values": sum(it.values for it in counts),
                "denormals": sum(it.denormals for it in counts),
                "arrays": [it for it in counts if it.denormals],
            }
            for path, counts in weights.items()
        ],
    }


def system_document(system: System) -> dict[str, Any]:
    """Return a system as a JSON document."""
    return {
        "system": system.id,
        "name": system.name,
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_bytes": system.memory_bytes,
        "instance_type": system.instance_type or None,
    }


def peaks_document(peaks: Peaks) -> dict[str, Any]:
    """Return the peaks at a number of threads as a JSON document."""
    return {
        "threads": peaks.threads,
        "gflops": dict(peaks.arithmetic),
        "gigabytes_per_second": dict(peaks.bandwidth),
        "when": peaks.when,
    }


FRAMEWORKS = (*TRAITS, *ENGINES)


def runtimes_of(data: DataFolder) -> Sequence[Runtime]:
    """Return the runtimes of this host; none is started."""
    registry = Registry(data.path)
    return (*registry.all(), *registry.engines())


def missing_loadgen() -> str:
    """Return what is missing to measure scenarios; empty if nothing is."""
    try:
        require_loadgen()
    except ScenarioError as missing:
        return str(missing)
    return ""


def added_runtime(
    data: DataFolder,
    python: str,
    *,
    name: str | None = None,
    threads: int | None = None,
    environment: tuple[tuple[str, str], ...] = (),
    framework: str | None = None,
    at_once: int = 1,
) -> Runtime:
    """Register an interpreter as a runtime, after a check that it works."""
    return Registry(data.path).add(python, name, Settings(threads, environment), framework, at_once)


def checked_runtimes(data: DataFolder, name: str | None = None) -> tuple[list[Runtime], list[str]]:
    """Start one runtime, or all; return those that work, and a line about each other one."""
    registry = Registry(data.path)
    # A name that no runtime has is an error.
    found = (registry.find_engine(name) or registry.find(name),) if name else (*registry.all(), *registry.engines())
    names = [runtime.name for runtime in found]
    working: list[Runtime] = []
    broken = []
    for each in names:
        try:
            working.append(registry.check(each))
        except WorkerError as error:
            broken.append(f"{each} does not work: {error}")
    return working, broken


def forget_runtime(name: str, data: DataFolder) -> None:
    """Forget a runtime; its results stay."""
    Registry(data.path).remove(name)


def runtime_document(runtime: Runtime) -> dict[str, Any]:
    """Return a runtime as a JSON document."""
    return {
        "name": runtime.name,
        "runtime": runtime.identity,
        "framework": runtime.framework,
        "version": runtime.version,
        "python": runtime.python,
        "python_version": runtime.python_version,
        "threads": runtime.settings.threads,
        "environment": dict(runtime.settings.environment),
    }
