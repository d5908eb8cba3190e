"""The estimate of a model's latency from the latencies of its bricks."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from functools import cached_property

from dlbricks_tui.bricks.cutting import LayerSequence, sequence_edges
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
from dlbricks_tui.estimate.calibration import Correction, density_of
from dlbricks_tui.estimate.compositions import Task, critical_path, milliseconds, sequential_ps
from dlbricks_tui.estimate.coverage import Coverage, Remaining, coverage_of, obstacle_in, remaining_of
from dlbricks_tui.estimate.intervals import Doubt, Interval, doubt_about
from dlbricks_tui.estimate.knowledge import Knowledge
from dlbricks_tui.estimate.parts import Part, parts_of
from dlbricks_tui.estimate.rules import NO_RULES, Rules
from dlbricks_tui.estimate.scheduling import schedule
from dlbricks_tui.models.graph import LayerGraph, Level


@dataclass(frozen=True, slots=True)
class Options:
    """Options: a composition for some workers, rules for parallel layers, and predictions for missing bricks."""

    workers: int | None = None
    rules: Rules = NO_RULES
    bridge: bool = False


@dataclass(frozen=True, slots=True)
class Composed:
    """The latency by each composition, with one call of the runtime; the interval is the sequential one's."""

    sequential_ms: float
    parallel_ms: float
    workers_ms: float | None
    call_ms: float
    interval: Interval
    doubt: Doubt
    # The numbers of the parts on the longest path through the model.
    critical_path: tuple[int, ...]
    # True if the system is not calibrated: constants of other systems are used.
    by_prior: bool = False


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
    # None if no part has a latency, or if no estimate is possible.
    composed: Composed | None
    # The reason why no estimate is possible, even after a run; empty if one is.
    obstacle: str = ""

    @cached_property
    def is_partial(self) -> bool:
        """True if its sums leave layers out. Such a sum is no bound: its layers may be too slow."""
        return any(not part.counts for part in self.parts)

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
    def remaining(self) -> Remaining:
        """The bricks that would complete it."""
        return remaining_of(self.parts)


def estimate(decomposition: Decomposition, knowledge: Knowledge, options: Options | None = None) -> Estimate:
    """Compose a model's latency from the measurements of its bricks."""
    options = options or Options()
    graph = decomposition.graph
    parts = parts_of(decomposition, knowledge, options.bridge)
    edges = sequence_edges(graph, [LayerSequence(number, part.layers) for number, part in enumerate(parts)])
    obstacle = obstacle_in(graph, parts)
    numbered = all(part.counts for part in parts) or any(part.counts and not part.free for part in parts)
    composed = _compose(graph, parts, edges, knowledge.correction, options) if numbered and not obstacle else None
    coverage = coverage_of(parts, graph)
    return Estimate(graph.name, graph.level, decomposition.cutting, options, parts, edges, coverage, composed, obstacle)


def _compose(
    graph: LayerGraph,
    parts: Sequence[Part],
    edges: Iterable[tuple[int, int]],
    correction: Correction,
    options: Options,
) -> Composed:
    after: list[list[int]] = [[] for _ in parts]
    for source, reader in edges:
        after[reader].append(source)
    tasks = [
        Task(part.paid_ps, tuple(sources), options.rules.sharing_of([graph.layers[index] for index in part.layers]))
        for part, sources in zip(parts, after, strict=True)
    ]
    # A model that computes nothing needs no call.
    call_ms = correction.call_ms if any(part.counts and not part.free for part in parts) else 0.0
    sequential_ms = milliseconds(sequential_ps(tasks)) + call_ms
    path = critical_path(tasks)
    # Without rules unlimited workers take exactly the critical path, which is faster to find.
    parallel_ps = schedule(tasks).latency_ps if options.rules.rules else path.latency_ps
    density = density_of((part.times, part.latency.value_ms) for part in parts if part.counts)
    doubt = doubt_about(parts, sequential_ms, correction.relative_doubt(density))
    return Composed(
        sequential_ms,
        milliseconds(parallel_ps) + call_ms,
        None if options.workers is None else milliseconds(schedule(tasks, options.workers).latency_ps) + call_ms,
        call_ms,
        doubt.around(sequential_ms),
        doubt,
        path.tasks,
        correction.is_prior,
    )
