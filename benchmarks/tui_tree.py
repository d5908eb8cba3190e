"""Time the tree of a model with 18,000 layers: keys, and the rows of one screen.

usage: python -m benchmarks.tui_tree [NODES]

The promise: each of these within 50 ms.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from pathlib import Path

from benchmarks.promises import at_most, judge
from benchmarks.unrolled_lstm import unrolled_lstm
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.tui.open_model import ModelSpec, OpenModel
from dlbricks_tui.tui.workbench.details import details
from dlbricks_tui.tui.workbench.nesting import Nesting
from dlbricks_tui.tui.workbench.outline import Outline
from dlbricks_tui.tui.workbench.parts import PartLatencies, part_details
from dlbricks_tui.tui.workbench.tree import TreeRows

TIMES = 9
WIDTH, HEIGHT = 86, 46


def main() -> int:
    """Reads a long recurrent network and times what keys do."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 18_000
    with tempfile.TemporaryDirectory() as folder:
        opened = _opened(Path(folder), nodes)
    known = _estimated(opened)
    print(f"{len(opened.graph.layers):,} layers, the slowest of {TIMES} times and the median")
    outline, latencies = Outline(opened), PartLatencies(opened, known)
    middle = opened.nesting.leaf(len(opened.decomposition.occurrences) // 2)
    steps: dict[str, Callable[[Outline], int]] = {
        "open the model": lambda it: Outline(opened).expand(0),
        "open the largest part": lambda it: it.expand(_largest(it)),
        "expand all": lambda it: it.expand_below(0),
        "reveal a layer": lambda it: it.reveal(middle),
        "next that is the same": lambda it: it.next_equal(it.reveal(middle), 1),
        "next on the path": lambda it: it.next_of(it.reveal(middle), latencies.critical, 1),
        "search": lambda it: it.seek("mul", 0),
        "search by name": lambda it: it.seek(f"t{nodes // 26}_ mul", 0),
        "search and end it": lambda it: it.seek("", it.seek("mul", 0)),
        "expand, collapse all": lambda it: it.collapse(it.expand_below(0)) + it.collapse_all(),
    }
    slowest = [_timed(name, _drawing(opened, latencies, step)) for name, step in steps.items()]
    slowest.append(_timed("details of the model", lambda: _described(opened, outline, latencies, 0)))
    slowest.append(_timed("details of a layer", lambda: _described(opened, outline, latencies, outline.reveal(middle))))
    return judge([at_most(50, "ms", "the slowest of all", 1000 * max(slowest))])


def _opened(folder: Path, nodes: int) -> OpenModel:
    path = folder / "lstm-symbol.json"
    path.write_bytes(unrolled_lstm(nodes))
    source = source_of(path)
    framework = WorkerFramework(Registry(folder).default(), folder / "framework.log")
    graph = Loader(folder, framework).load(source)
    decomposition = decompose(graph)
    wish = ModelSpec(source, graph.level, decomposition.cutting)
    return OpenModel(wish, graph, decomposition, Nesting(decomposition.regions))


def _estimated(opened: OpenModel) -> Estimate:
    suite = sorted(opened.decomposition.suite)
    measured = {pair: MeasuredLatency(Latency(0.02, 0.019, 0.021), pair, 25) for pair in suite[: len(suite) * 2 // 3]}
    return estimate(opened.decomposition, Knowledge(measured))


def _largest(outline: Outline) -> int:
    return max(range(1, len(outline.rows)), key=lambda index: outline.rows[index].region.size)


def _drawing(opened: OpenModel, latencies: PartLatencies, step: Callable[[Outline], int]) -> Callable[[], None]:
    """The step, and the lines of one screen from where it leads to."""

    def stepped() -> None:
        outline = Outline(opened)
        first = step(outline)
        rows = TreeRows()
        rows.outline, rows.latencies = outline, latencies
        for index in range(first, min(first + HEIGHT, len(outline.rows))):
            rows.row(index, WIDTH)

    return stepped


def _described(opened: OpenModel, outline: Outline, latencies: PartLatencies, index: int) -> None:
    list(details(part_details(outline.rows[index], outline, latencies), None, ["another model"], WIDTH))


def _timed(name: str, step: Callable[[], None]) -> float:
    seconds = []
    for _ in range(TIMES):
        start = time.perf_counter()
        step()
        seconds.append(time.perf_counter() - start)
    print(f"{name:24} {1000 * max(seconds):7.1f} ms {1000 * statistics.median(seconds):7.1f} ms")
    return max(seconds)


if __name__ == "__main__":
    sys.exit(main())
