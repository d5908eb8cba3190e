"""Executions of made-up graphs, and rows of the tables over many models, with made-up latencies."""

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import Gap, best_measured, gap_of, over_best
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Execution, MeasuredGain, WhatIfKind
from dlbricks_tui.analysis.what_ifs import what_ifs_of
from dlbricks_tui.api.analyses import Analysis, ModelAnalysis, ModelWhatIf
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Layer, LayerGraph
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import chain, sound_graphs
from tests.estimate.knowledge_of import latency_of

RUNTIME = Runtime("made-up", "python", "mxnet", "1.9.1", "3.11.7", Settings(1))


def with_nodes(graph: LayerGraph, without: Collection[int] = ()) -> LayerGraph:
    """The graph as that of a file that has a node for each layer, but for inserted ones."""
    layers = [replace(it, nodes=() if it.index in without else (it.index,)) for it in graph.layers]
    return replace(graph, layers=tuple(layers))


def as_conversion(layer: Layer) -> Layer:
    """The layer as one that converts a layout."""
    return replace(layer, nodes=(), kind=Kind.TRANSPOSE, op="made_up.Reorder")


def with_conversion(graph: LayerGraph, index: int) -> LayerGraph:
    """The graph in which a layer converts a layout."""
    layers = [as_conversion(it) if it.index == index else it for it in graph.layers]
    return replace(graph, layers=tuple(layers))


def knowing(decomposition: Decomposition, times: Mapping[int, float]) -> Knowledge:
    """The bricks of a model measured; the time of a sequence by its first layer, or else some time."""
    found = {}
    for it in decomposition.occurrences:
        pair = it.brick.key, it.context
        value_ms = times.get(it.sequence.layers[0], latency_of(pair).value_ms)
        found[pair] = MeasuredLatency(Latency(value_ms, 0.99 * value_ms, 1.01 * value_ms), pair, 25)
    return Knowledge(found)


def executed(
    graph: LayerGraph,
    times: Mapping[int, float] | None = None,
    *,
    granularity: int = 1,
    runtime: Runtime = RUNTIME,
    threads: int = 1,
    end_to_end: Latency | None = None,
) -> MeasuredExecution:
    """The graph measured in an execution, with the times of sequences by their first layers."""
    decomposition = decompose(graph, Cutting(granularity))
    runtime = runtime.with_threads(threads)
    found = estimate(decomposition, knowing(decomposition, times or {}))
    way = Way("here", runtime.identity, graph.level, "inside")
    variant = Variant(threads=threads, batch=graph.batch_size, precision=runtime.settings.precision)
    return MeasuredExecution(
        Execution(runtime, graph.level), graph, SystemEstimate(way, found, end_to_end, variant=variant)
    )


def in_file(one: MeasuredExecution, name: str, written: LayerGraph | None = None) -> MeasuredExecution:
    """The execution as one that runs a file with these layers, by default its own."""
    return replace(one, graph=one.graph.with_key(name, Path(name)), written=written)


def renamed(graph: LayerGraph, layers: Collection[int]) -> LayerGraph:
    """The graph with other names of some layers."""
    changed = [replace(it, name=f"other{it.index}") if it.index in layers else it for it in graph.layers]
    return replace(graph, layers=tuple(changed))


@st.composite
def some_executions(draw: st.DrawFn) -> list[MeasuredExecution]:
    """One to four executions of two files, whose runtimes fuse other layers, insert layers and convert layouts.

    The files have some names of layers in common.
    """
    plain = draw(sound_graphs())
    some_layers = st.sets(st.integers(0, len(plain.layers) - 1))
    files = {"one.onnx": with_nodes(plain), "other.json": with_nodes(renamed(plain, draw(some_layers)))}
    found = []
    for threads in range(1, draw(st.integers(1, 4)) + 1):
        file = draw(st.sampled_from(sorted(files)))
        graph = with_nodes(files[file], draw(st.sets(st.integers(0, len(plain.layers) - 1), max_size=2)))
        converting = draw(st.sets(st.integers(0, len(plain.layers) - 1), max_size=2))
        layers = [as_conversion(it) if it.index in converting and it.operators else it for it in graph.layers]
        times = {index: draw(st.floats(0.001, 10.0)) for index in range(len(layers))}
        end_to_end = draw(st.none() | st.floats(0.01, 100.0).map(lambda ms: Latency(ms, 0.9 * ms, 1.1 * ms)))
        one = executed(
            replace(graph, layers=tuple(layers)),
            times,
            granularity=draw(st.integers(1, 3)),
            threads=threads,
            end_to_end=end_to_end,
        )
        found.append(in_file(one, file, files[file]))
    return found


def what_if(
    name: str, kind: WhatIfKind, gain: float, proved: float | None = None, possible: bool = True
) -> ModelWhatIf:
    """A change with this gain."""
    proof = None if proved is None else MeasuredGain(1.0, proved, (proved, proved), 1.0, "2026-11-27T00:00:00+00:00")
    return ModelWhatIf(name, kind, 1.0, gain, (gain, gain), (), "", possible, proof)


def analysis_of(baseline: MeasuredExecution, *others: MeasuredExecution, **changed: Any) -> Analysis:
    """The analysis of a model, with the best of these executions."""
    best = best_measured([baseline, *others])
    values: dict[str, Any] = {
        "source": ModelSource("model", Path("model.onnx")),
        "system": "here",
        "baseline": baseline,
        "executions": (baseline, *others),
        "best": best,
        "over_best": over_best(baseline, best),
        "gap": gap_of(baseline, best),
        "roof": None,
        "roofline_ms": None,
        "points": (),
        "what_ifs": what_ifs_of(baseline, others),
        "written": None,
        "missing": (),
    }
    return Analysis(**(values | changed))


def analysed(
    name: str = "net", baseline: MeasuredExecution | None = None, table1_id: str | None = None, **changed: Any
) -> Analysis:
    """A model that takes 10 ms, of which 2 ms are in slower layers and 2 ms are unexplained, with a made-up answer."""
    answer: dict[str, Any] = {
        **dict.fromkeys(it.name for it in fields(ModelAnalysis)),
        "model": name,
        "measured_ms": 10.0,
        "sequential_ms": 8.0,
        "best_ms": 6.0,
        "best_parallel_ms": 5.0,
        "what_ifs": (what_if("runtime-other", WhatIfKind.RUNTIME, 0.25, 0.24),),
    }
    told = {it: changed.pop(it) for it in changed.keys() & answer.keys() - {"gap"}}
    source = ModelSource(name, Path(f"{name}.onnx"), table1_id=table1_id)
    values = {"source": source, "gap": Gap(2.0, 0.0, 2.0, 4.0), **changed}
    found = analysis_of(baseline or executed(with_nodes(chain("conv")), {0: 8.0}), **values)
    vars(found)["answer"] = ModelAnalysis(**(answer | told))
    return found
