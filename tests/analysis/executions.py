"""Executions of made-up graphs, and rows of the tables over many models, with made-up latencies."""

from collections.abc import Collection, Mapping
from dataclasses import fields, replace
from pathlib import Path
from typing import Any

from hypothesis import strategies as st

from dlbricks_tui.analysis.bounds import Gap
from dlbricks_tui.analysis.groups import MeasuredExecution
from dlbricks_tui.analysis.what_if import Execution, WhatIfKind
from dlbricks_tui.api.analyses import BestGain, ModelAnalysis, ModelRow
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Layer, LayerGraph, Level
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.runtime.runtime import Runtime, Settings
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import sound_graphs
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


def analysed(name: str = "net", **changed: Any) -> ModelRow:
    """A model that takes 10 ms, of which 2 ms are in slower layers and 2 ms are unexplained."""
    values: dict[str, Any] = {
        "table1_id": None,
        "way": Way("here", "mxnet-1.9.1 python-3.11 threads-1", Level.FUSED, "inside"),
        "variant": Variant(threads=1),
        "measured_ms": 10.0,
        "sequential_ms": 8.0,
        "best_ms": 6.0,
        "best_parallel_ms": 5.0,
        "roofline_ms": None,
        "gap": Gap(2.0, 0.0, 2.0, 4.0),
        "gains": {WhatIfKind.RUNTIME: BestGain("runtime-other", 0.25, 0.24, False)},
    }
    values |= changed
    told = dict.fromkeys([it.name for it in fields(ModelAnalysis)])
    own = {it: values.pop(it) for it in told.keys() & values.keys() - {"gap"}}
    answer = ModelAnalysis(**{**told, **own, "model": name})
    return ModelRow(answer, **values)
