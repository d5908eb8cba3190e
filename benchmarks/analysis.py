"""Time the analysis of a model of 18,000 layers: in two executions, and in several of two files.

usage: python -m benchmarks.analysis [LAYERS [DIFFERENT]]

The layers are a chain of convolutions, DIFFERENT of them. Of two executions, one runs them as they are, the other in
pairs. Several executions add a file of another format, whose layers have the same names, and a batch of eight, whose
size is looked up in a store with results at four sizes. The time is that of the look-up, of all estimates, and of all
that follows: groups, bounds, gap, what-ifs, roofline, and the time of each written layer. The promise: 2 s.
"""

import statistics
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.predicting import chain
from benchmarks.promises import at_most, judge
from dlbricks_tui.analysis.bounds import best_measured, over_best
from dlbricks_tui.analysis.gap import gap_of
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.roofline import Roof, points_of, roofline_ms, works_of
from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.analysis.written_times import written_times
from dlbricks_tui.answers.batch_sizes import measured_batch_sizes
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.traits import ONNX_RUNTIME
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Measurement, Record, utc_now
from dlbricks_tui.store.statistics import summarise

LAYERS, DIFFERENT, TIMES, PROMISED_MS = 18_000, 500, 5, 2000.0
ROOF = Roof(1, {"avx512": 200.0}, 15.0, 30.0, 32 << 20, 2 << 20)
SYSTEM, SIZES = "here", (1, 2, 4, 8)


def main() -> int:
    """Print the times; exit status 1 if the promise is broken."""
    layers = int(sys.argv[1]) if sys.argv[1:] else LAYERS
    different = int(sys.argv[2]) if sys.argv[2:] else DIFFERENT
    graph = with_nodes(chain(layers, different)).with_key("mxnet", Path("chain-symbol.json"))
    one, pairs = (decompose(graph, Cutting(granularity)) for granularity in (1, 2))
    other = decompose(replace(graph, traits=ONNX_RUNTIME).with_key("onnx", Path("chain.onnx")))
    large = {
        size: decompose(with_nodes(chain(layers, different, size)).with_key(f"{size}", graph.file))
        for size in SIZES
        if size > 1
    }

    def two() -> None:
        analyse([executed(one, graph, 1), executed(pairs, graph, 2)])

    with TemporaryDirectory() as folder, ResultsDatabase(Path(folder)) as store:
        store.add(*(record for model in (one, *large.values()) for record in results(model)))

        def several() -> None:
            baseline = executed(one, graph, 1)
            sizes = measured_batch_sizes(store, baseline.found.way, baseline.parts, 1)
            assert sizes == tuple(large)
            files = [executed(pairs, graph, 2), executed(other, other.graph, 1)]
            analyse([baseline, *files, executed(large[sizes[-1]], None, 1)])

        cases = {"two executions": two, "four executions of two files": several}
        promises = [
            at_most(PROMISED_MS, "ms", f"the analysis of {layers:,} layers in {name}", median_ms(case))
            for name, case in cases.items()
        ]
    return judge(promises)


def median_ms(case: Callable[[], None]) -> float:
    """Return the time that a case takes."""
    taken = []
    for _ in range(TIMES):
        began = time.perf_counter()
        with without_cycle_search():
            case()
        taken.append(1000 * (time.perf_counter() - began))
    return statistics.median(taken)


def with_nodes(graph: LayerGraph) -> LayerGraph:
    """Return the graph as that of a file that has a node for each layer."""
    return replace(graph, layers=tuple(replace(it, nodes=(it.index,)) for it in graph.layers))


def runtime_of(decomposition: Decomposition, threads: int) -> Runtime:
    """Return a made-up runtime for the format of a model."""
    traits = decomposition.graph.traits
    return Runtime("made-up", "", traits.framework, "1.9.1", "3.11", Settings(threads))


def results(decomposition: Decomposition) -> Iterator[Record]:
    """Yield a result of each brick at the batch size of the model."""
    samples = (0.1,) * 5
    for brick, context in decomposition.suite:
        yield Measurement(
            brick=brick,
            context=context,
            system=SYSTEM,
            runtime=runtime_of(decomposition, 1).identity,
            level=decomposition.graph.level,
            protocol="inside",
            batch_size=decomposition.graph.batch_size,
            when=utc_now(),
            run="benchmark",
            statistics=summarise(samples),
            samples_ms=samples,
        )


def executed(decomposition: Decomposition, written: LayerGraph | None, threads: int) -> MeasuredExecution:
    """Return an estimate of a model whose bricks all take as long."""
    graph = decomposition.graph
    known = {
        pair: MeasuredLatency(Latency(0.1 / threads, 0.09 / threads, 0.11 / threads), pair, 25)
        for pair in decomposition.suite
    }
    runtime = runtime_of(decomposition, threads)
    found = estimate(decomposition, Knowledge(known))
    way = Way(SYSTEM, runtime.identity, graph.level, "inside")
    size = graph.batch_size if graph.batch_size > 1 else None
    known_as = SystemEstimate(way, found, variant=Variant(threads, graph.batch_size))
    return MeasuredExecution(Execution(runtime, graph.level, size), graph, known_as, written)


def analyse(executions: Sequence[MeasuredExecution]) -> None:
    """Compute all that an analysis shows."""
    baseline, *others = executions
    competing = [it for it in executions if it.graph.batch_size == baseline.graph.batch_size]
    best = best_measured(competing)
    over_best(baseline, best)
    gap_of(baseline, best)
    what_ifs_of(baseline, others)
    works = [works_of(it, it.graph) for it in competing]
    roofline_ms(competing, best.groups, works, ROOF)
    points_of(baseline, works[0], ROOF)
    written_times(executions[1], baseline.graph, baseline, ROOF)


if __name__ == "__main__":
    sys.exit(main())
