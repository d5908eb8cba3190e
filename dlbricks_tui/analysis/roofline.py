"""The roofline of a model: the arithmetic and the bytes of its layers over the peaks of the machine."""

import math
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.analysis.bounds import fastest
from dlbricks_tui.analysis.groups import Groups, MeasuredExecution, is_conversion
from dlbricks_tui.bricks.identity import brick_of, times_paid
from dlbricks_tui.estimate.compositions import milliseconds, picoseconds
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.host.peaks import MEMORY, SHARED_CACHE
from dlbricks_tui.models.graph import LayerGraph, bytes_read
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.variant import Precision, stated_precision
from dlbricks_tui.store.records import Peaks, System

# The private caches of a core hold at most about so much. Reading from them costs nothing here.
_PRIVATE_BYTES = 2 << 20
# The size of a shared cache that the system hides.
_USUAL_SHARED_BYTES = 32 << 20
_SIZE = re.compile(r"(\d+)([KM])")
_UNITS = {"K": 10, "M": 20}
# These only give another name to a tensor.
_VIEWS = frozenset({Kind.RESHAPE, Kind.FLATTEN, Kind.DROPOUT, Kind.CONSTANT})
# Layers with a smaller share of their model's time are too uncertain to tell of the peaks.
_LEAST_SHARE = 0.01
# Billions per second to units per millisecond.
_PER_MS = 1e6


@dataclass(frozen=True, slots=True)
class Work:
    """The floating-point operations of layers, and the bytes of the tensors and weights that they read and write."""

    operations: float
    tensor_bytes: float
    weight_bytes: float

    @property
    def bytes(self) -> float:
        """All bytes."""
        return self.tensor_bytes + self.weight_bytes

    @property
    def intensity(self) -> float:
        """The operations for each byte; infinite if none is moved."""
        return self.operations / self.bytes if self.bytes else math.inf


@dataclass(frozen=True, slots=True)
class Roof:
    """The peaks of a system at a number of threads, in billions per second, and the sizes of its caches."""

    threads: int
    # By instruction set.
    arithmetic: Mapping[str, float]
    memory: float
    # None if it could not be measured.
    shared_cache: float | None
    shared_bytes: int
    private_bytes: int

    @property
    def highest(self) -> float:
        """The highest arithmetic of any instruction set."""
        return max(self.arithmetic.values())

    def least_ms(self, work: Work, weights_in_all: float) -> float:
        """Return the least time for some work in a model that reads so many bytes of weights in an inference.

        Arithmetic and traffic overlap perfectly.
        """
        traffic_ms = self._traffic_ms(work.tensor_bytes, work.tensor_bytes)
        traffic_ms += self._traffic_ms(work.weight_bytes, max(work.weight_bytes, weights_in_all))
        return max(self.arithmetic_ms(work), traffic_ms)

    def arithmetic_ms(self, work: Work) -> float:
        """Return the least time for the arithmetic alone."""
        return work.operations / (self.highest * _PER_MS)

    def reached_by(self, points: Sequence["LayerPoint"]) -> "Roof":
        """Return the roof with the arithmetic that layers of a model have reached, where that is higher.

        Peaks that were measured on a busy host are too low.
        """
        least_ms = _LEAST_SHARE * math.fsum(it.times * it.latency_ms for it in points)
        reached = [it.billions_per_second for it in points if it.times * it.latency_ms >= least_ms]
        higher = max([1.0, *(it / self.highest for it in reached)])
        return replace(self, arithmetic={name: higher * value for name, value in self.arithmetic.items()})

    def _traffic_ms(self, moved: float, working_set: float) -> float:
        if working_set <= self.private_bytes:
            return 0.0
        if working_set > self.shared_bytes:
            return moved / (self.memory * _PER_MS)
        return 0.0 if self.shared_cache is None else moved / (self.shared_cache * _PER_MS)


@dataclass(frozen=True, slots=True)
class LayerPoint:
    """Layers of an execution in the roofline: their work, the time that they take, and the least one."""

    layers: tuple[int, ...]
    kinds: tuple[Kind, ...]
    times: int
    work: Work
    latency_ms: float
    least_ms: float

    @property
    def billions_per_second(self) -> float:
        """The operations per second that they reach."""
        return self.work.operations / (self.latency_ms * _PER_MS) if self.latency_ms else 0.0


def roof_of(peaks: Iterable[Peaks], system: System, threads: int) -> Roof | None:
    """Return the roof of a system at a number of threads; None if its peaks were not measured."""
    found = next((it for it in peaks if it.system == system.id and it.threads == threads), None)
    if found is None:
        return None
    bandwidth = dict(found.bandwidth)
    memory = bandwidth.get(MEMORY)
    if not memory or not any(value > 0 for _, value in found.arithmetic):
        return None
    size = _SIZE.fullmatch(str(dict(system.facts).get("last_level_cache", "")))
    shared = _USUAL_SHARED_BYTES if size is None else int(size[1]) << _UNITS[size[2]]
    return Roof(threads, dict(found.arithmetic), memory, bandwidth.get(SHARED_CACHE), shared, _PRIVATE_BYTES * threads)


def applies_to(identity: str) -> bool:
    """Return whether the peaks, which are those of 32-bit numbers, bound a runtime of this identity."""
    return stated_precision(identity) is Precision.F32


def works_of(one: MeasuredExecution, written: LayerGraph) -> tuple[Work, ...]:
    """Return the work of one run of each part.

    The arithmetic is that of the written layers behind a part, however a runtime fuses them. The bytes are those that
    pass in and out of the part: a runtime moves no tensor between layers that it has fused.
    """
    # The operations of the layer behind each node in an inference, and True if it multiplies.
    by_node: dict[int, tuple[float, bool]] = {}
    for layer, (operations, multiplies) in zip(written.layers, _operations_of_layers(written), strict=True):
        # A layer of several nodes counts once.
        for place, node in enumerate(layer.nodes):
            by_node[node] = (0.0 if place else operations * layer.times, multiplies)
    own: dict[str, float] = {}
    found = []
    for part in one.parts:
        layers = [one.graph.layers[index] for index in part.layers]
        nodes = [node for layer in layers for node in layer.nodes]
        if all(map(is_conversion, layers)):
            computed = 0.0
        elif nodes:
            held = [by_node[node] for node in nodes if node in by_node]
            # Operations beside multiplications are folded into weights, or hidden by them.
            multiplied = math.fsum(operations for operations, multiplies in held if multiplies)
            # A part stands for `times` runs of its layers, and so do its nodes.
            computed = (multiplied or math.fsum(operations for operations, _ in held)) / part.times
        else:
            if part.brick.key not in own:
                own[part.brick.key] = _operations(part.brick.canonical)[0]
            computed = own[part.brick.key]
        found.append(Work(computed, *_bytes(one.graph, part.layers)))
    return tuple(found)


def written_works(written: LayerGraph) -> tuple[Work, ...]:
    """Return the work of each layer of a file in an inference, as if each ran by itself."""
    found = []
    for layer, (operations, _) in zip(written.layers, _operations_of_layers(written), strict=True):
        tensors, weights = _bytes(written, (layer.index,))
        found.append(Work(layer.times * operations, layer.times * tensors, layer.times * weights))
    return tuple(found)


def points_of(one: MeasuredExecution, works: Sequence[Work], roof: Roof) -> tuple[LayerPoint, ...]:
    """Return the parts of an execution that take time and compute or move anything.

    No bound is higher than what was measured: data may have been in nearer caches than the roof has.
    """
    weights, found = float(one.graph.weight_bytes), []
    for part, work in zip(one.parts, works, strict=True):
        latency_ms = part.latency.value_ms
        if part.counts and latency_ms and (work.operations or work.bytes):
            kinds = tuple(one.graph.layers[index].kind for index in part.layers)
            least_ms = min(latency_ms, roof.least_ms(work, weights))
            found.append(LayerPoint(part.layers, kinds, part.times, work, latency_ms, least_ms))
    return tuple(found)


def roofline_ms(
    executions: Sequence[MeasuredExecution], groups: Groups, works: Sequence[Sequence[Work]], roof: Roof
) -> float:
    """Return the sum over the groups of the least time that their work needs, as any of the executions fuses them."""
    weights = float(min(it.graph.weight_bytes for it in executions))
    least = [
        [picoseconds(part.times * roof.least_ms(work, weights)) for part, work in zip(one.parts, held, strict=True)]
        for one, held in zip(executions, works, strict=True)
    ]
    return milliseconds(sum(winner.latency_ps for winner in fastest(groups, least)))


def _operations_of_layers(written: LayerGraph) -> Iterator[tuple[float, bool]]:
    """Yield the operations of each layer in a run of it, and True if it multiplies."""
    known: dict[str, tuple[float, bool]] = {}
    for layer in written.layers:
        brick = brick_of(written, (layer.index,))
        if brick.key not in known:
            known[brick.key] = _operations(brick.canonical)
        yield known[brick.key]


def _operations(canonical: str) -> tuple[float, bool]:
    features = features_of(canonical, "")
    return (0.0, False) if features is None else (features.operations, features.multiplies)


def _bytes(graph: LayerGraph, layers: Sequence[int]) -> tuple[float, float]:
    """Return the bytes of tensors that pass in and out of layers, and of the weights that they read."""
    held = [graph.layers[index] for index in layers]
    if all(layer.kind in _VIEWS for layer in held):
        return 0.0, 0.0
    inside = set(layers)
    read = {
        feed: tensor.size_bytes
        for layer in held
        for feed, tensor in zip(layer.feeds, layer.data, strict=True)
        if feed.layer not in inside
    }
    # A chain passes its last tensor on. Others may leave it too, which the bound leaves out.
    written = sum(tensor.size_bytes for tensor in held[-1].outputs)
    weights = sum(bytes_read(held, times_paid(graph, layers)).values())
    return float(sum(read.values()) + written), float(weights)
