"""A host whose true latencies are known: it drifts, it is noisy, and its profiler adds time to each operator."""

import json
import math
import random
from collections import defaultdict
from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import fmean
from typing import Any

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.host.noise import Contention
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.measure.carriers import PLACEMENT_SHARE, carrier_jobs
from dlbricks_tui.measure.inside import Beside, Inside
from dlbricks_tui.measure.jobs import Job, cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NoiseMonitor
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.results import CarrierOccurrence, ResultSink
from dlbricks_tui.measure.stopping import Adaptive, Samples
from dlbricks_tui.measure.supervised_worker import Loss
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.protocol import ArrayType, Loaded, Network, Profiled, Program
from dlbricks_tui.store.records import Facts
from dlbricks_tui.store.statistics import mean_latency

REFERENCE = Program(Network(json.dumps({"nodes": [{"op": "reference", "name": "r"}]}), {}, {}))
_ONE = ArrayType((1,), "float32")


@dataclass
class SimulatedHost:
    """Runs programs by their operators' attributes, as a worker does.

    An operator truly takes what `latencies_ms` says of its kind. The profiler makes it longer by the share `profiler`.
    `placement` is the standard deviation of what a network takes from one load to the next. `files_ms` has the
    latency of each model file that runs. `noisy` has the operators that have a noise of their own.
    """

    latencies_ms: Mapping[str, float]
    seed: int
    noise: float = 0.02
    drift: float = 0.03
    profiler: float = 0.04
    placement: float = PLACEMENT_SHARE / 1.96
    broken: Collection[str] = ()
    files_ms: Mapping[str, float] = field(default_factory=dict)
    noisy: Mapping[str, float] = field(default_factory=dict)
    reasons: Mapping[str, Loss] = field(default_factory=dict)
    _speed: float = 0.0
    _programs: dict[str, dict[int, str]] = field(default_factory=dict)
    _factors: dict[str, float] = field(default_factory=dict)

    def __post_init__(self) -> None:
        self._chance = random.Random(self.seed)

    def load(self, name: str, program: Program, expected_ms: float = 0.0, *, fixture: bool = False) -> Loaded | None:
        if file := program.network.file:
            if file not in self.files_ms:
                return None
            self._programs[name], self._factors[name] = {0: file}, 1.0
            return Loaded(0.001)
        nodes = json.loads(program.network.symbol)["nodes"]
        operators = {number: node["op"] for number, node in enumerate(nodes) if node["op"] != "null"}
        if set(operators.values()) & set(self.broken):
            return None
        self._programs[name] = operators
        self._factors[name] = math.exp(self._chance.gauss(0, self.placement))
        return Loaded(0.001)

    def sample(self, names: Sequence[str], warm: int, repeat: int) -> dict[str, tuple[float, ...]]:
        return {name: tuple(self._plain_ns(name) / 1e6 for _ in range(repeat)) for name in names}

    def profile(self, name: str, warm: int, repeat: int) -> Profiled | None:
        operators = self._programs[name]
        rows = tuple(tuple(self._ns(name, it, 1 + self.profiler) for it in operators.values()) for _ in range(repeat))
        return Profiled(tuple(operators), rows, rows)

    def null_calls(self, count: int) -> tuple[float, ...]:
        # Once in each round: from one to the next the host becomes a little slower or quicker.
        self._speed = 0.5 * self._speed + self._chance.gauss(0, self.drift)
        return (0.001,) * count

    def contention(self) -> Contention | None:
        return None

    def wait_until_idle(self) -> None: ...

    def holds(self, name: str) -> bool:
        return name in self._programs

    def take_losses(self) -> dict[str, Loss]:
        return {}

    def clear(self) -> None:
        self._programs = {}

    def truth_ms(self, operators: Sequence[str]) -> float:
        """Return the mean latency of a network over two loads."""
        factor = math.exp(self._chance.gauss(0, self.placement / math.sqrt(2)))
        return factor * sum(map(self._kernel_ms, operators))

    def _kernel_ms(self, operator: str) -> float:
        return self.files_ms.get(operator) or self.latencies_ms.get(operator, 0.05)

    def _plain_ns(self, name: str) -> int:
        return sum(self._ns(name, it) for it in self._programs[name].values())

    def _ns(self, name: str, operator: str, longer: float = 1.0) -> int:
        noise = self._chance.gauss(0, self.noisy.get(operator, self.noise))
        return round(self._kernel_ms(operator) * longer * self._factors[name] * math.exp(self._speed + noise) * 1e6)


@dataclass
class Notes(ResultSink):
    """A stand-in for results and control that notes what is kept."""

    kept: dict[Job, list[CarrierOccurrence]] = field(default_factory=dict)
    # The numbers of samples of each whole model, each time that it was kept.
    wholes: dict[str, list[int]] = field(default_factory=lambda: defaultdict(list))
    events: list[Event] = field(default_factory=list)
    seconds_left: float | None = None

    def keep(self, timed: Sequence[tuple[Job, Samples]], noise: Facts, *, finished: bool = True) -> None:
        for job, samples in timed:
            self.wholes[job.uses[0].model].append(len(samples.samples_ms))

    def keep_occurrences(self, found: Mapping[Job, Sequence[CarrierOccurrence]], *, finished: bool) -> None:
        self.kept.update({job: list(places) for job, places in found.items()})

    def checkpoint(self) -> None: ...


def measured_inside(
    host: SimulatedHost,
    graphs: Sequence[LayerGraph],
    file: Path | None = None,
    *,
    end_to_end: bool = False,
    usual_reference_ms: float | None = None,
    notes: Notes | None = None,
    beside: Beside | None = None,
) -> Notes:
    """Return the results of the method `inside` for these models, all in the same file if one is given."""
    models = [cut_model(decompose(graph), file) for graph in graphs]
    jobs = plan(models, Known(), Adaptive(), method=Method.INSIDE, end_to_end=end_to_end).jobs
    bricks = {job.key.brick: job for job in jobs if not job.whole}
    notes = notes or Notes()
    worker: Any = host
    inside = Inside(
        worker, notes, notes, Adaptive(), notes.events.append, REFERENCE, NoiseMonitor(), usual_reference_ms, beside
    )
    inside.time_models([job for job in jobs if job.whole])
    inside.time_carriers(carrier_jobs(models, bricks))
    return notes


def estimated(graph: LayerGraph, notes: Notes) -> Estimate:
    """The estimate of a model from what was kept."""
    decomposition = decompose(graph)
    by_brick = {job.key.brick: _measured(places) for job, places in notes.kept.items()}
    known = {pair: by_brick[pair[0]] for pair in decomposition.pairs if pair[0] in by_brick}
    return estimate(decomposition, Knowledge(known))


def _measured(places: Sequence[CarrierOccurrence]) -> MeasuredLatency:
    statistics = [it.samples.statistics for it in places]
    latency = Latency(*mean_latency([(it.trimmed_mean_ms, it.low_ms, it.high_ms) for it in statistics]))
    shared = fmean(float(dict(it.noise).get("shared") or 0.0) for it in places)
    return MeasuredLatency(latency, ("", ""), statistics[0].count, shared=shared)
