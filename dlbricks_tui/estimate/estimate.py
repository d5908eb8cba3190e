"""The estimate of a model's latency from the latencies of its bricks.

Its interval comes from the intervals of the bricks, the error of the method, and missing layers.
"""

import math
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, fields
from functools import cached_property
from typing import NamedTuple

from dlbricks_tui.bricks.cutting import Cut, LayerSequence, sequence_edges
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
from dlbricks_tui.bricks.identity import CarrierKeys, carrier_keys
from dlbricks_tui.estimate.compositions import NO_RULES, Rules, SequenceTask, critical_path, from_picoseconds, schedule
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair
from dlbricks_tui.estimate.parts import Part, parts_of
from dlbricks_tui.models.graph import LayerGraph, Level

# By default a run accepts half widths of intervals up to the larger of these.
WIDEST_SHARE, WIDEST_MS = 0.05, 0.003
# Sums of isolated bricks of the committed networks differ from their end-to-end latencies by this, as a root mean
# square: docs/log/constants.md. Bricks inside of networks have the error of their carriers in their own intervals.
_ERROR_OF_ALONE = 0.096
# The ids of results of isolated bricks begin with this.
_ALONE = "alone-"
# The share of a model that others have to have before it is judged by their bricks.
_NEARLY_ALL = 0.9
# Two standard deviations, for 95 % of a normal distribution.
_SIGMAS = 1.96


def is_wide(latency_ms: float, half_width_ms: float) -> bool:
    """True if an interval is wider than a run asks for by default."""
    return half_width_ms > max(WIDEST_SHARE * latency_ms, WIDEST_MS)


def method_doubt(protocol: str) -> float:
    """Return half of the 95 % interval of a method, as a share of an estimate."""
    return _SIGMAS * _ERROR_OF_ALONE if protocol.startswith(_ALONE) else 0.0


class HalfIntervals(NamedTuple):
    """The parts of an interval below and above the estimate."""

    sampling_below_ms: float
    sampling_above_ms: float
    # The error of the measuring method, on both sides.
    method_ms: float
    # The latency that layers without results may add.
    lacking_ms: float
    # The errors of predicted latencies.
    predicted_below_ms: float = 0.0
    predicted_above_ms: float = 0.0

    def around(self, latency_ms: float) -> Latency:
        """Return an estimate with its interval; errors of sampling, method and predictions are independent."""
        below = math.hypot(self.sampling_below_ms, self.predicted_below_ms, self.method_ms)
        above = math.hypot(self.sampling_above_ms, self.predicted_above_ms, self.method_ms) + self.lacking_ms
        return Latency(latency_ms, max(0.0, latency_ms - below), latency_ms + above)


def doubt_about(parts: Iterable[Part], latency_ms: float, relative_doubt: float, shared: float = 1.0) -> HalfIntervals:
    """Return the parts of the uncertainty of a sequential estimate.

    Bricks of the same rounds share an error, since a host is slower for some seconds. Shared errors add up; the errors
    of single bricks are independent. If the shared part is not known, all of it counts as shared. The errors of
    predictions have a part in common, too: `shared` of each half interval.
    """
    parts = tuple(parts)
    known = [it for part in parts for it in part.measurements]
    sampled = [(it.pair, times, it.latency) for times, it in known]
    guessed = [(part.source, part.times, part.latency) for part in parts if part.predicted]
    shared_ms = _by_source(
        (it.pair, times * it.latency.value_ms * it.shared) for times, it in known if it.shared is not None
    )
    lacking_ms = _by_source((part.source, part.times * part.most_ms) for part in parts if not part.counts)
    below_ms, above_ms = (_together(halves_ms, shared_ms) for halves_ms in _halves_ms(sampled))
    return HalfIntervals(
        below_ms,
        above_ms,
        math.hypot(relative_doubt * latency_ms, _doubt_between_hours_ms(known)),
        math.fsum(lacking_ms.values()),
        *(
            _together(halves_ms, {source: shared * half_ms for source, half_ms in halves_ms.items()})
            for halves_ms in _halves_ms(guessed)
        ),
    )


def _halves_ms(latencies: Sequence[tuple[Pair, int, Latency]]) -> Iterator[dict[Pair, float]]:
    """Yield the halves of intervals below and above latencies."""
    yield _by_source((source, times * (it.value_ms - it.low_ms)) for source, times, it in latencies)
    yield _by_source((source, times * (it.high_ms - it.value_ms)) for source, times, it in latencies)


def _by_source(found: Iterable[tuple[Pair, float]]) -> dict[Pair, float]:
    """Return the sum for each source: the errors of all its uses add up."""
    sums: defaultdict[Pair, float] = defaultdict(float)
    for source, ms in found:
        sums[source] += ms
    return sums


def _together(halves_ms: Mapping[Pair, float], shared_ms: Mapping[Pair, float]) -> float:
    """Return half of the interval of a sum, from the halves of its terms."""
    shared = {source: shared_ms.get(source, half) for source, half in halves_ms.items()}
    own = [math.sqrt(max(0.0, half**2 - shared[source] ** 2)) for source, half in halves_ms.items()]
    return math.hypot(math.fsum(shared.values()), *own)


def _doubt_between_hours_ms(measurements: Iterable[tuple[int, MeasuredLatency]]) -> float:
    """Return the error due to bricks that were measured when the host was slower or faster than it was last."""
    known = [(times, it) for times, it in measurements if it.reference_ms]
    newest = max((it for _, it in known), key=lambda it: it.when, default=None)
    if newest is None:
        return 0.0
    return abs(
        math.fsum(times * it.latency.value_ms * (newest.reference_ms / it.reference_ms - 1) for times, it in known)
    )


# Operators with layers inside, which run as often as the inputs say.
_CONTROL_FLOW = frozenset(["onnx.If", "onnx.Loop", "onnx.Scan", "_foreach", "_while_loop", "_cond"])

# A sum of a smaller share of the layers is no figure.
_LEAST_SHARE = 0.5


class Options(NamedTuple):
    """Options: a composition for some workers, rules for parallel layers, and whether missing bricks are predicted.

    With `any_part` a sum of fewer than half of the layers is made, too: it says nothing about the model.
    """

    workers: int | None = None
    rules: Rules = NO_RULES
    measured_only: bool = False
    any_part: bool = False


class Composed(NamedTuple):
    """The latency by each composition."""

    # The sequential one, with its interval.
    latency: Latency
    parallel_ms: float
    workers_ms: float | None
    doubt: HalfIntervals
    # The numbers of the parts on the longest path through the model.
    critical_path: tuple[int, ...]

    @property
    def sequential_ms(self) -> float:
        """The sequential latency."""
        return self.latency.value_ms

    @property
    def parallel_gain(self) -> float:
        """The speed-up of a model if all data-independent sequences ran at the same time."""
        return self.sequential_ms / self.parallel_ms if self.parallel_ms else 1.0

    @property
    def half_width(self) -> float:
        """Half of the interval, as a share of the sequential latency."""
        return (self.latency.high_ms - self.latency.low_ms) / 2 / self.sequential_ms if self.sequential_ms else 0.0


@dataclass(frozen=True, slots=True)
class Coverage:
    """Counts of layers: each is measured, missing or unmeasurable.

    `predicted`: missing and unmeasurable layers with a predicted latency; `bridged` is the same number under its old
    name. `own_carrier`: measured layers that were timed in this very model, so that its end-to-end latency is no
    independent check of them. `other_models`: those that were timed in other models only.
    """

    measured: int
    missing: int
    unmeasurable: int
    bridged: int = 0
    own_carrier: int = 0
    other_models: int = 0
    predicted: int = 0

    @property
    def layers(self) -> int:
        """All layers of the model."""
        return self.measured + self.missing + self.unmeasurable

    @property
    def complete(self) -> bool:
        """True if every layer was measured."""
        return self.measured == self.layers


class RemainingBricks(NamedTuple):
    """The bricks that a run would still measure, and about how long that takes; None if not known."""

    pairs: tuple[Pair, ...]
    seconds: float | None


@dataclass(frozen=True, slots=True)
class ByOthers:
    """A sequential sum in which bricks count with their latency in other models, as far as any other has them.

    `share`: how much of the model's own sum those bricks are.
    """

    share: float
    sequential_ms: float

    @property
    def knows_nearly_all(self) -> bool:
        """True if next to nothing in it was measured in the model itself."""
        return self.share >= _NEARLY_ALL


@dataclass(frozen=True)
class Estimate:
    """The estimate of a model. Its end-to-end measurements have no part in it."""

    model: str
    level: Level
    cutting: Cutting
    options: Options
    parts: tuple[Part, ...]
    # Pairs of part numbers: the second reads the first.
    edges: tuple[tuple[int, int], ...]
    coverage: Coverage
    # None if fewer than half of the layers have a latency, or if no estimate is possible.
    composed: Composed | None
    # The reason why no estimate is possible, even after a run; empty if one is.
    obstacle: str = ""

    @cached_property
    def is_partial(self) -> bool:
        """True if its sums leave layers out. Such a sum is no bound: its layers may be too slow."""
        return any(not part.counts for part in self.parts)

    @property
    def latency(self) -> Latency | None:
        """The sequential latency of all layers; None if its sum leaves layers out."""
        return None if self.composed is None or self.is_partial else self.composed.latency

    @cached_property
    def paid_ps(self) -> int:
        """The sequential sum. Parts without a latency add nothing to it."""
        return sum(part.paid_ps for part in self.parts)

    @cached_property
    def predicted_share(self) -> float:
        """The share of predicted latencies in the sequential sum."""
        return sum(part.paid_ps for part in self.parts if part.predicted) / (self.paid_ps or 1)

    @cached_property
    def reference_ms(self) -> float:
        """The mean latency of the reference while its bricks were measured, by their time; 0 if it is not known."""
        known = [(it.paid_ps, it.measured.reference_ms) for it in self.parts if it.measured is not None]
        paid_ps = sum(paid for paid, reference_ms in known if reference_ms)
        return sum(paid * reference_ms for paid, reference_ms in known) / paid_ps if paid_ps else 0.0

    @cached_property
    def by_others(self) -> ByOthers:
        """The sequential sum as other models tell it, where they have its bricks."""
        total_ms, own_ms, others_ms = from_picoseconds(self.paid_ps), 0.0, 0.0
        for part in self.parts:
            if part.measured is not None and part.measured.others_ms is not None:
                own_ms += from_picoseconds(part.paid_ps)
                others_ms += part.times * part.measured.others_ms
        return ByOthers(own_ms / total_ms if total_ms else 0.0, total_ms - own_ms + others_ms)

    @property
    def is_unfused(self) -> bool:
        """True if it is of the layers in the file. A runtime that fuses layers takes less."""
        return self.level is Level.WRITTEN

    @cached_property
    def critical_layers(self) -> tuple[int, ...]:
        """The layers on the critical path, by index, in the order in which they run."""
        path = self.composed.critical_path if self.composed else ()
        return tuple(dict.fromkeys(layer for number in path for layer in self.parts[number].layers))

    @cached_property
    def remaining(self) -> RemainingBricks:
        """The bricks that would complete it; the time assumes the median number of samples of the measured ones."""
        missing = {part.pair: part for part in self.parts if not part.known and not part.reason}
        counts = sorted(part.measured.samples for part in self.parts if part.measured is not None)
        if not counts:
            return RemainingBricks(tuple(missing), 0.0 if not missing else None)
        guessed_ms = sum(part.latency.value_ms or part.most_ms for part in missing.values())
        return RemainingBricks(tuple(missing), counts[len(counts) // 2] * guessed_ms / 1000)


def estimate(decomposition: Decomposition, knowledge: Knowledge, options: Options | None = None) -> Estimate:
    """Compose a model's latency from the measurements of its bricks."""
    options = options or Options()
    graph = decomposition.graph
    parts = parts_of(decomposition, knowledge)
    edges = decomposition.edges
    if decomposition.cutting.cut is Cut.OVERLAP:
        # The parts are some of the sequences.
        edges = sequence_edges(graph, [LayerSequence(number, part.layers) for number, part in enumerate(parts)])
    obstacle = obstacle_in(graph, parts)
    least = 0.0 if options.any_part else _LEAST_SHARE
    counting = [part for part in parts if part.counts]
    # A sum without some layers needs a share of them, of which some compute.
    numbered = len(counting) == len(parts) or (
        any(not part.free for part in counting)
        and len({layer for part in counting for layer in part.layers}) >= least * len(graph.layers)
    )
    composed = _compose(graph, parts, edges, knowledge, options) if numbered and not obstacle else None
    coverage = coverage_of(parts, graph)
    return Estimate(graph.name, graph.level, decomposition.cutting, options, parts, edges, coverage, composed, obstacle)


def _compose(
    graph: LayerGraph, parts: Sequence[Part], edges: Iterable[tuple[int, int]], knowledge: Knowledge, options: Options
) -> Composed:
    after: list[list[int]] = [[] for _ in parts]
    for source, reader in edges:
        after[reader].append(source)
    tasks = [
        SequenceTask(
            part.paid_ps, tuple(sources), options.rules.sharing_of([graph.layers[index] for index in part.layers])
        )
        for part, sources in zip(parts, after, strict=True)
    ]
    sequential_ms = from_picoseconds(sum(task.latency_ps for task in tasks))
    path = critical_path(tasks)
    # Without rules unlimited workers take exactly the critical path, which is faster to find.
    parallel_ps = schedule(tasks).latency_ps if options.rules.rules else path.latency_ps
    predictor = knowledge.predictor if any(part.predicted for part in parts) else None
    doubt = doubt_about(parts, sequential_ms, knowledge.method_doubt, 1.0 if predictor is None else predictor().shared)
    return Composed(
        doubt.around(sequential_ms),
        from_picoseconds(parallel_ps),
        None if options.workers is None else from_picoseconds(schedule(tasks, options.workers).latency_ps),
        doubt,
        path.tasks,
    )


def coverage_of(parts: Sequence[Part], graph: LayerGraph) -> Coverage:
    """Return the counts of all layers of the parts; a layer in several parts counts once."""
    # Under the names of the counts.
    layers: defaultdict[str, set[int]] = defaultdict(set)
    of_parts = [part.measured.carriers if part.measured else frozenset() for part in parts]
    own = carrier_keys(graph) if any(of_parts) else CarrierKeys("", "")
    for part, carriers in zip(parts, of_parts, strict=True):
        layers["measured" if part.known else "unmeasurable" if part.reason else "missing"].update(part.layers)
        if part.predicted:
            layers["predicted"].update(part.layers)
        if carriers == {own.whole}:
            layers["own_carrier"].update(part.layers)
        elif carriers and not carriers & {*own, ""}:
            layers["other_models"].update(part.layers)
    layers["bridged"] = layers["predicted"]
    return Coverage(**{it.name: len(layers[it.name]) for it in fields(Coverage)})


def obstacle_in(graph: LayerGraph, parts: Sequence[Part]) -> str:
    """Return the reason why no estimate of these parts is possible, even after a run; empty if one is.

    A sum without layers that may take most of the time would mislead.
    """
    without = [part for part in parts if part.reason and not part.counts]
    for part in without:
        for index in part.layers:
            layer = graph.layers[index]
            if layer.op in _CONTROL_FLOW:
                op = layer.op.removeprefix("onnx.").lstrip("_")
                return f"layer {layer.name!r} ({op}) runs layers inside it, and cannot be measured by itself"
    if any(not part.counts and not part.reason for part in parts):
        # These are known after a run.
        return ""
    known_ms = sum(from_picoseconds(part.paid_ps) for part in parts)
    left_out_ms = sum(part.times * part.most_ms for part in without)
    if left_out_ms <= known_ms:
        return ""
    layers = len({index for part in without for index in part.layers})
    return (
        f"{layers} of {len(graph.layers)} layers cannot be measured by themselves, and may take longer than all others"
    )
