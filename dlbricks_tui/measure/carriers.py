"""Carriers as programs for the worker, and the samples of their layers.

A profiler adds about the same time to each operator, and it does not see what the runtime does between them. So the
same time is subtracted from each operator, and the rest is shared out in proportion: the layers add up to the plain
latency. `python -m benchmarks.carriers` compares this with other ways.
"""

import math
from collections import Counter, defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from pathlib import Path
from statistics import median

from dlbricks_tui.bricks.carriers import Carrier, cover
from dlbricks_tui.bricks.identity import brick_of
from dlbricks_tui.bricks.programs import file_program
from dlbricks_tui.measure.jobs import CutModel, Job, expected_ms, memory_bytes, timed_runs, untimed_runs
from dlbricks_tui.measure.noise import Counting, HostTrack, counting
from dlbricks_tui.measure.stopping import (
    FEWEST_OF_THE_LONGEST,
    FEWEST_SAMPLES,
    Adaptive,
    drifting_half_width_ms,
    samples_until_narrow,
)
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.networks import whole_network
from dlbricks_tui.runtime.protocol import Profiled, Program
from dlbricks_tui.store.statistics import trimmed_mean

# A carrier is loaded this often, unless it is slow or loading takes longer than this many seconds.
COPIES, SECONDS_TO_COPY = 2, 2.5
_FEWEST_ROUNDS, _MOST_ROUNDS = FEWEST_SAMPLES, Adaptive().most
# Noise averages out within one run of a network slower than this.
_SLOWEST_MS, _FEWEST_ROUNDS_OF_THE_SLOWEST = 1000.0, 2
# Models with up to this expected latency are timed whole. Most of a round of a shorter carrier would be untimed runs,
# and the caches would hold more of it than of its model (docs/log/inside.md).
_WHOLE_UP_TO_MS = 40.0
# Untimed and timed runs under the profiler in each round: of a carrier, and of a slow one, whose first run there is
# untimed in its first round only, and of the slowest in none.
_PROFILED, _SLOW_PROFILED, SLOW_MS = (1, 3), (0, 1), 150.0
# The share of the shortest operator that the profiler may have added. No operator takes no time at all. Other ways to
# share out the latency were worse (docs/log/inside.md).
_MOST_ADDED = 0.9
# A heavy carrier is profiled in so many rounds; their shares of its latency count for later ones. So each of these has
# more runs, for about so long.
PROFILES_OF_HEAVY = 2
_MOST_PROFILED_OF_HEAVY, _PROFILED_MS_OF_HEAVY = 9, 2000.0
# Before its rounds a carrier is expected to need a number between the fewest and the most, as logarithms: from their
# middle neither is far.
_SHARE_OF_THE_MOST = 0.5
# From so many rounds on, only they tell how many it needs, and whether the host is quiet.
ROUNDS_TO_PREDICT = 8
# With fewer rounds an interval is too often narrow by chance, unless the rounds last long.
_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE = 24, 4.0
# A carrier takes at most so many times the usual most rounds while it waits for a quiet host.
MOST_TIMES_LONGER = 5
# The mean latencies of two loads of a network and of two others differ by less than this share in 95 % of cases
# (`python -m benchmarks.loads`).
PLACEMENT_SHARE = 0.027
# A first run as long as this one shows that a carrier is slow, however much of it is loading.
FIRST_RUN_TELLS_MS = 4000.0
# A carrier with more than this share of an estimate is timed as if it had all of it.
_NEARLY_ALL = 0.9
_NANOSECONDS_PER_MS = 1e6


@dataclass(frozen=True)
class CarrierJob:
    """A carrier as a program, with the layer of each operator and the bricks to time by layer."""

    # The name of the carrier in the worker.
    name: str
    # The key that results state: that of the model, marked if the carrier is a part of it.
    key: str
    carrier: Carrier
    program: Program
    expected_ms: float
    owners: Mapping[int, int]
    bricks: Mapping[int, Job]
    # The file of the model, if the carrier is the whole model: plain runs are runs of the file.
    file: Path | None = None
    # The expected share of a model's estimate that rests on this carrier, in the model where it is largest.
    share: float = 1.0
    # Making another copy of it takes seconds and memory: it is loaded once, and profiled in its first rounds only.
    is_heavy: bool = False

    @property
    def plain(self) -> Program:
        """The program to run plainly."""
        return self.program if self.file is None else file_program(self.carrier.model, self.file)


def carrier_jobs(cut: Iterable[CutModel], needed: Mapping[str, Job]) -> list[CarrierJob]:
    """Carriers that hold the needed bricks, given by key.

    Models with a layer that cannot run are no carriers, nor are written layers that the runtime would fuse.
    """
    cut = list(cut)
    graphs = [model.decomposition.graph for model in cut]
    graphs = [graph for graph in graphs if graph.level is Level.FUSED or not graph.traits.always_fuses]
    runnable = [graph for graph in graphs if all(layer.unmeasurable is None for layer in graph.layers)]
    # By identity: hashing a graph takes longer than reading it.
    models = {id(model.decomposition.graph): model for model in cut}

    def counts(graph: LayerGraph, layer: int) -> bool:
        return layer not in models[id(graph)].edges

    carriers = cover(runnable, needed.keys(), _expected_ms, _WHOLE_UP_TO_MS, counts)
    found = [_job(number, carrier, needed, models[id(carrier.model)]) for number, carrier in enumerate(carriers)]
    return [replace(it, share=share) for it, share in zip(found, _shares(found, cut), strict=True)]


def _shares(carriers: Sequence[CarrierJob], cut: Iterable[CutModel]) -> Iterator[float]:
    """Yield for each carrier the share of an estimate that its bricks are, in the model where that is largest.

    A brick in several carriers counts in equal parts; nearly all of an estimate counts as all.
    """
    held = [{job.key.brick for job in it.bricks.values()} for it in carriers]
    holders = Counter(chain.from_iterable(held))
    models_ms = [_bricks_ms(model.decomposition.graph) for model in cut]
    for bricks in held:
        parts_ms = [math.fsum(of_it[it] / holders[it] for it in bricks & of_it.keys()) for of_it in models_ms]
        share = max(part / math.fsum(of_it.values()) for part, of_it in zip(parts_ms, models_ms, strict=True) if of_it)
        yield 1.0 if share > _NEARLY_ALL else share


def _bricks_ms(graph: LayerGraph) -> Mapping[str, float]:
    """Return the expected latency of all layers of each brick of a model."""
    found: defaultdict[str, float] = defaultdict(float)
    for layer in graph.layers:
        if layer.operators and layer.unmeasurable is None:
            found[brick_of(graph, (layer.index,)).key] += _expected_ms(graph, layer.index)
    return found


def groups(carriers: Iterable[CarrierJob], most_bytes: int) -> Iterator[Sequence[CarrierJob]]:
    """The carriers in groups that fit into memory together."""
    group: list[CarrierJob] = []
    taken = 0
    for carrier in carriers:
        # Under the profiler a network has its results, and what a runtime makes of its weights, once more.
        needed = 2 * COPIES * memory_bytes(carrier.carrier.graph.layers)
        if group and taken + needed > most_bytes:
            yield group
            group, taken = [], 0
        group.append(carrier)
        taken += needed
    if group:
        yield group


def _job(number: int, carrier: Carrier, needed: Mapping[str, Job], model: CutModel) -> CarrierJob:
    keys = {layer.index: brick_of(carrier.graph, (layer.index,)).key for layer in carrier.graph.layers}
    network, owners = whole_network(carrier.graph)
    # As many weights as the model reads between two runs of a layer have to pass through the caches here, too.
    program = Program(network, between_bytes=carrier.missing_bytes)
    latency_ms = sum(_expected_ms(carrier.graph, index) for index in keys)
    return CarrierJob(
        f"carrier {number}",
        carrier.key,
        carrier,
        program,
        latency_ms,
        owners,
        {
            index: needed[key]
            for index, key in keys.items()
            if key in needed and carrier.origin[index] not in model.edges
        },
        model.file if carrier.is_whole else None,
    )


def _expected_ms(graph: LayerGraph, layer: int) -> float:
    return expected_ms(brick_of(graph, (layer,)).canonical) * graph.layers[layer].times


@dataclass(slots=True)
class TimedCarrier:
    """A carrier that is being timed: its plain runs, and the samples of each of its layers."""

    what: CarrierJob
    # The names of its copies in the worker.
    copies: tuple[str, ...]
    # What one run took before the rounds, about.
    first_ms: float
    # The most seconds to time the carrier, unless its fewest rounds take longer.
    most_seconds: float
    track: HostTrack
    rule: Adaptive = field(default_factory=Adaptive)
    # A sample for each round, and the moment of the host when it was taken.
    plain_ms: list[float] = field(default_factory=list)
    moments: list[int] = field(default_factory=list)
    layers_ms: dict[int, list[float]] = field(default_factory=lambda: defaultdict(list))
    profiles: list[Profiled] = field(default_factory=list)
    seconds: float = 0.0

    def __post_init__(self) -> None:
        self.rule = self.rule.for_share(self.what.share)

    @property
    def copy(self) -> str:
        """The copy to run next."""
        return self.copies[len(self.plain_ms) % len(self.copies)]

    @property
    def programs(self) -> Collection[str]:
        """The names of all its programs in the worker."""
        return {*self.copies, self.layers}

    @property
    def layers(self) -> str:
        """The name in the worker of the program that the profiler runs."""
        return self.copy if self.what.file is None else f"{self.what.name}, layers"

    @property
    def usual_ms(self) -> float:
        """The latency as far as it is known."""
        return median(self.plain_ms) if self.plain_ms else self.first_ms

    @property
    def plain_runs(self) -> tuple[int, int]:
        """Untimed and timed plain runs in a round."""
        return untimed_runs(self.usual_ms, whole=True), timed_runs(self.usual_ms)

    @property
    def profiled_runs(self) -> tuple[int, int]:
        """Untimed and timed runs under the profiler in a round."""
        if self.what.is_heavy:
            return 1, max(1, min(_MOST_PROFILED_OF_HEAVY, int(_PROFILED_MS_OF_HEAVY / max(1.0, self.first_ms))))
        if self.usual_ms <= SLOW_MS:
            return _PROFILED
        return _SLOW_PROFILED if self.profiles or self.usual_ms > _SLOWEST_MS else (1, 1)

    @property
    def fewest_rounds(self) -> int:
        """The rounds it takes part in at least."""
        if self.usual_ms > _SLOWEST_MS:
            return _FEWEST_ROUNDS_OF_THE_SLOWEST
        return FEWEST_OF_THE_LONGEST if self.seconds > self.most_seconds else _FEWEST_ROUNDS

    @property
    def seconds_per_round(self) -> float:
        return self.seconds / len(self.plain_ms) if self.plain_ms else 0.0

    @property
    def counting(self) -> Counting:
        """The rounds that count."""
        return counting(self.plain_ms, self.moments, self.track)

    def samples_ms(self, counting: Counting) -> dict[int, list[float]]:
        """The samples of one pass of each layer in these rounds, scaled so that the layers add up to the carrier.

        The trimmed mean of a layer drops the rounds in which that layer was interrupted. In most rounds some layer is,
        so that the trimmed mean of all layers together is longer than the sum of theirs.
        """
        layers_ms = {layer: counting.of(samples_ms) for layer, samples_ms in self.layers_ms.items()}
        together_ms = [math.fsum(layers) for layers in zip(*layers_ms.values(), strict=True)]
        apart_ms = math.fsum(map(trimmed_mean, layers_ms.values()))
        factor = trimmed_mean(together_ms) / apart_ms if apart_ms else 1.0
        layers = self.what.carrier.graph.layers
        return {
            layer: [sample_ms * factor / layers[layer].times for sample_ms in samples_ms]
            for layer, samples_ms in layers_ms.items()
        }

    def shared_doubt(self, counting: Counting) -> float:
        """Half of the interval that all of its layers share, as a share of their latencies."""
        plain_ms = counting.of(self.plain_ms)
        return math.hypot(drifting_half_width_ms(plain_ms) / median(plain_ms), PLACEMENT_SHARE, counting.doubt)

    def is_done(self) -> bool:
        """True if its latency is known as well as the rule asks, or it has had its time."""
        rounds = len(self.plain_ms)
        if rounds < self.fewest_rounds:
            return False
        if rounds >= self.rule.bounds(median(self.plain_ms))[1] or self.seconds > self.most_seconds:
            return True
        found = self.counting
        plain_ms = found.of(self.plain_ms)
        is_narrow = drifting_half_width_ms(plain_ms) <= self.rule.target * median(plain_ms)
        return is_narrow and not found.doubt and self._is_sure(plain_ms)

    def lacks_quiet_rounds(self) -> bool:
        """True if it has had its time, too little of it on a quiet host, and only that counts.

        A carrier whose single round takes longer than it has for all of them does not wait: its interval is wider.
        """
        _, most = self.rule.bounds(median(self.plain_ms))
        if self.track.counts_all or len(self.plain_ms) >= MOST_TIMES_LONGER * most:
            return False
        if self.seconds_per_round > self.most_seconds:
            return False
        found = self.counting
        is_quiet = len(found.places) == len(self.plain_ms) or self._is_sure(found.of(self.plain_ms))
        return found.doubt > 0 or not is_quiet

    def _is_sure(self, plain_ms: Sequence[float]) -> bool:
        """True if so many rounds are enough for a narrow interval."""
        return len(plain_ms) >= self._sure_rounds(plain_ms)

    def _sure_rounds(self, plain_ms: Sequence[float]) -> float:
        fewest, _ = self.rule.bounds(median(plain_ms))
        return max(fewest, min(_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE / self.seconds_per_round))

    def rounds_left(self) -> float:
        """The rounds that it probably takes part in from now on, unless it waits for a quiet host."""
        rounds, per_round = len(self.plain_ms), self.seconds_per_round
        usual = usual_rounds(self.usual_ms, self.most_seconds)
        usual = max(self.fewest_rounds, min(usual, self.rule.most))
        if rounds < self.fewest_rounds:
            return usual - rounds
        most = max(self.fewest_rounds, min(self.rule.bounds(median(self.plain_ms))[1], self.most_seconds / per_round))
        found = self.counting
        plain_ms = found.of(self.plain_ms)
        narrow = samples_until_narrow(plain_ms, self.rule.target * median(plain_ms), math.ceil(most))
        needed = max(narrow, self._sure_rounds(plain_ms)) * rounds / len(plain_ms)
        # The interval of few samples is itself not well known.
        trust = min(1.0, rounds / ROUNDS_TO_PREDICT)
        expected = most if found.doubt else min(usual ** (1 - trust) * needed**trust, most)
        return max(0.0, max(self.fewest_rounds, expected) - rounds)

    def quiet_rounds_lacking(self) -> float:
        """The rounds that it probably takes part in while it waits for a quiet host; infinite without a quiet one."""
        found = self.counting
        quiet, rounds = len(found.places), len(self.plain_ms)
        if found.doubt:
            return math.inf
        if quiet == rounds:
            return 0.0
        needed = self._sure_rounds(found.of(self.plain_ms)) * rounds / quiet
        return max(0.0, needed - rounds - self.rounds_left())


def round_seconds(latency_ms: float, profiled: int = 0) -> float:
    """Return what a network takes in a round, with so many runs under the profiler."""
    return (untimed_runs(latency_ms, whole=True) + timed_runs(latency_ms) + profiled) * latency_ms / 1000


def carrier_seconds(latency_ms: float) -> float:
    """Return what a carrier takes in a round."""
    return round_seconds(latency_ms, sum(_SLOW_PROFILED if latency_ms > SLOW_MS else _PROFILED))


def usual_rounds(latency_ms: float, most_seconds: float) -> float:
    """Return how many rounds a carrier takes part in on an ordinary host: between the fewest and the most."""
    if latency_ms > _SLOWEST_MS:
        return _FEWEST_ROUNDS_OF_THE_SLOWEST
    per_round = carrier_seconds(latency_ms)
    most = max(FEWEST_OF_THE_LONGEST, min(_MOST_ROUNDS, most_seconds / per_round))
    sure = min(most, max(_FEWEST_ROUNDS, min(_ROUNDS_TO_BE_SURE, _SECONDS_TO_BE_SURE / per_round)))
    return sure * float((most / sure) ** _SHARE_OF_THE_MOST)


def layer_times(profile: Profiled, owners: Mapping[int, int], plain_ms: float) -> Mapping[int, float]:
    """The milliseconds of each layer, by index, in a network that takes `plain_ms`.

    `owners` says which layer an operator belongs to. Operators without an owner take their share of the latency.
    """
    found: defaultdict[int, float] = defaultdict(float)
    # Of several runs the median: some operator of a run is always interrupted.
    operators_ms = [median(of_one) / _NANOSECONDS_PER_MS for of_one in zip(*profile.durations_ns, strict=True)]
    for node, operator_ms in zip(profile.nodes, corrected(operators_ms, plain_ms), strict=True):
        if node in owners:
            found[owners[node]] += operator_ms
    return dict(found)


def corrected(profiled_ms: Sequence[float], plain_ms: float) -> list[float]:
    """The times of operators without the time that the profiler added, so that they add up to `plain_ms`."""
    if not profiled_ms:
        return []
    added_ms = max(0.0, math.fsum(profiled_ms) - plain_ms) / len(profiled_ms)
    added_ms = min(added_ms, _MOST_ADDED * min(profiled_ms))
    return in_proportion([operator_ms - added_ms for operator_ms in profiled_ms], plain_ms)


def in_proportion(durations: Sequence[float], total_ms: float) -> list[float]:
    """The durations in milliseconds, so that they add up to a total."""
    together = math.fsum(durations)
    return [total_ms * duration / together if together else 0.0 for duration in durations]
