"""Time the analysis of a model of 18,000 layers that was measured in two executions.

usage: python -m benchmarks.analysis [LAYERS [DIFFERENT]]

The layers are a chain of convolutions, DIFFERENT of them. One execution runs them as they are, the other in pairs. The
time is that of both estimates and of all that follows: groups, bounds, gap, what-ifs, roofline, and the time of each
written layer. The promise: 2 s.
"""

import statistics
import sys
import time
from dataclasses import replace

from benchmarks.predicting import chain
from benchmarks.promises import at_most, judge
from dlbricks_tui.analysis.bounds import best_measured, over_best
from dlbricks_tui.analysis.gap import gap_of
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.roofline import Roof, points_of, roofline_ms, works_of
from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.analysis.written_times import written_times
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.runtime import Runtime, Settings

LAYERS, DIFFERENT, TIMES, PROMISED_MS = 18_000, 500, 5, 2000.0
ROOF = Roof(1, {"avx512": 200.0}, 15.0, 30.0, 32 << 20, 2 << 20)


def main() -> int:
    """Print the time; exit status 1 if the promise is broken."""
    layers = int(sys.argv[1]) if sys.argv[1:] else LAYERS
    different = int(sys.argv[2]) if sys.argv[2:] else DIFFERENT
    graph = with_nodes(chain(layers, different))
    cut = [(decompose(graph, Cutting(granularity)), granularity) for granularity in (1, 2)]
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        analyse(graph, [executed(decomposition, threads) for decomposition, threads in cut])
        taken.append(1000 * (time.perf_counter() - began))
    median_ms = statistics.median(taken)
    print(f"{layers} layers, {different} different: {median_ms:.0f} ms")
    return judge([at_most(PROMISED_MS, "ms", f"the analysis of {layers:,} layers", median_ms)])


def with_nodes(graph: LayerGraph) -> LayerGraph:
    """Return the graph as that of a file that has a node for each layer."""
    return replace(graph, layers=tuple(replace(it, nodes=(it.index,)) for it in graph.layers))


def executed(decomposition: Decomposition, threads: int) -> MeasuredExecution:
    """Return an estimate of a model whose bricks all take as long."""
    known = {
        pair: MeasuredLatency(Latency(0.1 / threads, 0.09 / threads, 0.11 / threads), pair, 25)
        for pair in decomposition.suite
    }
    runtime = Runtime("made-up", "", "mxnet", "1.9.1", "3.11", Settings(threads))
    found = estimate(decomposition, Knowledge(known))
    way = Way("here", runtime.identity, decomposition.graph.level, "inside")
    execution = Execution(runtime, decomposition.graph.level)
    return MeasuredExecution(execution, decomposition.graph, SystemEstimate(way, found))


def analyse(graph: LayerGraph, executions: list[MeasuredExecution]) -> None:
    """Compute all that an analysis shows."""
    baseline, *others = executions
    best = best_measured(executions)
    over_best(baseline, best)
    gap_of(baseline, best)
    what_ifs_of(baseline, others)
    works = [works_of(it, graph) for it in executions]
    roofline_ms(executions, best.groups, works, ROOF)
    points_of(baseline, works[0], ROOF)
    written_times(executions[1], graph, baseline, ROOF)


if __name__ == "__main__":
    sys.exit(main())
