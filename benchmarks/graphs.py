"""The graph algorithms of dlbricks beside those of networkx.

usage: python -m benchmarks.graphs [--layers N]

A line for each algorithm and graph has the time of our own code and that of networkx, in milliseconds. The graphs are
all sample models together, an unrolled LSTM, and an unrolled attention, in which each late layer reads the last step of
a long chain and an earlier one. docs/log/program.md says what follows from the times.
"""

import argparse
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import networkx as nx

from benchmarks.unrolled_lstm import unrolled_lstm
from dlbricks_tui.answers.opening import loader_from_cache
from dlbricks_tui.bricks.ordering import DominatorTree
from dlbricks_tui.bricks.series_parallel import decompose
from dlbricks_tui.estimate.compositions import Task, critical_path
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models.digraphs import digraph_of
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.mxnet.symbol_file import parse_symbol

Sources = Sequence[Sequence[int]]
ENTRY = -1


class Pair(NamedTuple):
    """An algorithm of ours, and the same with networkx."""

    name: str
    own: Callable[[Sources], object]
    other: Callable[[Any], object]


def main() -> int:
    """Print the times."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--layers", type=int, default=18_000)
    args = parser.parse_args()
    print(f"import networkx: {1000 * (_interpreter('import networkx') - _interpreter('pass')):.0f} ms")
    pairs = [
        Pair("dominators", _own_dominators, lambda graph: nx.immediate_dominators(graph, ENTRY)),
        Pair("critical path", _own_critical_path, lambda graph: nx.dag_longest_path(graph, weight="latency")),
        Pair("series-parallel regions", decompose, contracted),
    ]
    graphs = {
        "samples": list(_samples()),
        f"LSTM, {args.layers} layers": [_lstm(args.layers)],
        f"attention, {args.layers} layers": [_attention(args.layers)],
    }
    for pair in pairs:
        for title, found in graphs.items():
            own = sum(_taken(pair.own, sources) for sources in found)
            other = sum(_taken(pair.other, _from_an_entry(sources)) for sources in found)
            print(f"{pair.name:24} {title:24} own {1000 * own:8.1f} ms   networkx {1000 * other:8.1f} ms", flush=True)
    return 0


def contracted(graph: Any) -> Any:
    """Return a graph of networkx after all parts in series and in parallel have become edges."""
    left = nx.MultiDiGraph(graph)
    ends = [node for node in left if not left.out_degree(node)]
    left.add_edges_from((node, "exit") for node in ends)
    waiting = [node for node in left if node not in (ENTRY, "exit")]
    while waiting:
        node = waiting.pop()
        if node not in left or len(left.pred[node]) != 1 or len(left.succ[node]) != 1:
            continue
        (source,), (reader,) = left.pred[node], left.succ[node]
        left.remove_node(node)
        left.add_edge(source, reader)
        waiting += [end for end in (source, reader) if end not in (ENTRY, "exit")]
    return left


def _from_an_entry(sources: Sources) -> Any:
    graph = digraph_of(sources)
    graph.add_edges_from((ENTRY, layer) for layer, read in enumerate(sources) if not read)
    nx.set_edge_attributes(graph, 1, "latency")
    return graph


def _own_dominators(sources: Sources) -> object:
    tree = DominatorTree(len(sources))
    return [tree.add(layer, read) for layer, read in enumerate(sources)]


def _own_critical_path(sources: Sources) -> object:
    return critical_path([Task(1, tuple(read)) for read in sources])


def _samples() -> Iterator[Sources]:
    with tempfile.TemporaryDirectory() as folder:
        loader = loader_from_cache(DataFolder(Path(folder)))
        for source in Library(SAMPLE_MODELS, Path(folder)).samples():
            yield loader.load(source).predecessors


def _lstm(layers: int) -> Sources:
    file = parse_symbol(unrolled_lstm(layers), "an unrolled LSTM")
    operators = [number for number, node in enumerate(file.nodes) if not node.is_variable]
    place = {number: layer for layer, number in enumerate(operators)}
    read = [[place[entry.node] for entry in file.nodes[number].inputs if entry.node in place] for number in operators]
    return [tuple(dict.fromkeys(sources)) for sources in read]


def _attention(layers: int) -> Sources:
    half = layers // 2
    return [(), *((step - 1,) for step in range(1, half)), *((half - 1, step) for step in range(half - 1))]


def _taken(work: Callable[[Any], object], graph: object) -> float:
    began = time.perf_counter()
    work(graph)
    return time.perf_counter() - began


def _interpreter(program: str) -> float:
    return min(_taken(lambda it: subprocess.run([sys.executable, "-c", it], check=True), program) for _ in range(5))


if __name__ == "__main__":
    sys.exit(main())
