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
from dlbricks_tui.documents.layout import laid_out
from dlbricks_tui.documents.outline import Outline
from dlbricks_tui.documents.part_details import PartDetails, PartLatencies
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.library import source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.tui.workbench.tree import TreeRows
from dlbricks_tui.tui.workbench.unfolded import Unfolded

TIMES = 9
WIDTH, HEIGHT = 86, 46


def main() -> int:
    """Reads a long recurrent network and times what keys do."""
    nodes = int(sys.argv[1]) if len(sys.argv) > 1 else 18_000
    with tempfile.TemporaryDirectory() as folder:
        outline = _outline(Path(folder), nodes)
    latencies = PartLatencies(outline, _estimated(outline))
    print(f"{len(outline.layers):,} layers, the slowest of {TIMES} times and the median")
    middle = outline.leaf(len(outline.decomposition.occurrences) // 2)
    steps: dict[str, Callable[[Unfolded], int]] = {
        "open the model": lambda it: Unfolded(outline).expand(0),
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
    slowest = [_timed(name, _drawing(outline, latencies, step)) for name, step in steps.items()]
    unfolded = Unfolded(outline)
    slowest.append(_timed("details of the model", lambda: _described(unfolded, latencies, 0)))
    slowest.append(_timed("details of a layer", lambda: _described(unfolded, latencies, unfolded.reveal(middle))))
    return judge([at_most(50, "ms", "the slowest of all", 1000 * max(slowest))])


def _outline(folder: Path, nodes: int) -> Outline:
    path = folder / "lstm-symbol.json"
    path.write_bytes(unrolled_lstm(nodes))
    framework = WorkerFramework(Registry(folder).default(), folder / "framework.log")
    return Outline(decompose(Loader(folder, framework).load(source_of(path))))


def _estimated(outline: Outline) -> Estimate:
    suite = sorted(outline.decomposition.pairs)
    measured = {pair: MeasuredLatency(Latency(0.02, 0.019, 0.021), pair, 25) for pair in suite[: len(suite) * 2 // 3]}
    return estimate(outline.decomposition, Knowledge(measured))


def _largest(unfolded: Unfolded) -> int:
    return max(range(1, len(unfolded.rows)), key=lambda index: unfolded.rows[index].region.size)


def _drawing(outline: Outline, latencies: PartLatencies, step: Callable[[Unfolded], int]) -> Callable[[], None]:
    """The step, and the lines of one screen from where it leads to."""

    def stepped() -> None:
        unfolded = Unfolded(outline)
        first = step(unfolded)
        rows = TreeRows()
        rows.unfolded, rows.latencies = unfolded, latencies
        for index in range(first, min(first + HEIGHT, len(unfolded.rows))):
            rows.row(index, WIDTH)

    return stepped


def _described(unfolded: Unfolded, latencies: PartLatencies, index: int) -> None:
    list(laid_out(PartDetails(unfolded.rows[index], latencies).whole(None, ["another model"]), WIDTH))


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
