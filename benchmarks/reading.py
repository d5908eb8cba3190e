"""Time how long models take to load and cut at G=1: the fifty of Table 1, and unrolled LSTMs of growing size.

usage: python -m benchmarks.reading [RUNS]

"first" asks the installed framework for all types, with the start of its process; "again" finds them on disk.
"""

import sys
import time
from collections.abc import Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.unrolled_lstm import unrolled_lstm
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry

LSTM_NODES = (2_000, 6_000, 18_000)


def seconds_to_load_and_cut(sources: Sequence[ModelSource], level: Level, cache: Path) -> tuple[float, int]:
    """Wall time for all the models, and how many layers they have."""
    begin = time.perf_counter()
    with WorkerFramework(Registry(cache).default(), cache / "framework.log") as framework:
        loader = Loader(cache, framework)
        layers = sum(len(decompose(loader.load(source, level)).graph.layers) for source in sources)
    return time.perf_counter() - begin, layers


def report(what: str, sources: Sequence[ModelSource], level: Level, folder: Path, runs: int) -> None:
    first, layers = seconds_to_load_and_cut(sources, level, folder)
    again = min(seconds_to_load_and_cut(sources, level, folder)[0] for _ in range(runs))
    print(f"{what:24}{level.value:9}{layers:8}{first:9.2f}{again:9.2f}{1e6 * again / layers:12.1f}")


def main() -> None:
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{'':24}{'level':9}{'layers':>8}{'first s':>9}{'again s':>9}{'us a layer':>12}")
    with TemporaryDirectory() as name:
        folder = Path(name)
        # Without the types that are delivered with them, as if they were the user's own.
        table1 = [
            ModelSource(source.name, source.path, inputs=source.inputs)
            for source in Library(SAMPLE_MODELS, folder).find("table1")
        ]
        for level in Level:
            report("the fifty of Table 1", table1, level, folder, runs)
        for nodes in LSTM_NODES:
            path = folder / f"lstm{nodes}-symbol.json"
            path.write_bytes(unrolled_lstm(nodes))
            for level in Level:
                report(f"LSTM of {nodes} nodes", [source_of(path)], level, folder, runs)


if __name__ == "__main__":
    main()
