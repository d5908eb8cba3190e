"""Time how long models take to load and cut: the fifty of Table 1, and an unrolled LSTM of 18,000 nodes.

usage: python -m benchmarks.samples [RUNS]

Models are loaded as commands load them: the first time, from the cache, and the fifty as delivered. Each time is taken
in a process of its own, so that nothing is remembered but what is on disk; importing the modules is not counted.
The promises for the fifty are 30 s the first time and 1 s afterwards. The first time needs MXNet.
"""

import multiprocessing
import statistics
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.promises import at_most, judge
from benchmarks.unrolled_lstm import unrolled_lstm
from dlbricks_tui.api.opening import load_all
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.library import TABLE1_PREFIX, Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry

LSTM_NODES = 18_000


def load_and_cut_seconds(data: Path, sources: Sequence[ModelSource]) -> tuple[float, float]:
    """Return the seconds to load these models, and to cut them."""
    start = time.perf_counter()
    with WorkerFramework(Registry(data).default(), data / "framework.log") as framework:
        models = load_all(sources, Loader(data / "cache", framework).load)
    loaded = time.perf_counter()
    for _, graph in models:
        decompose(graph)
    done = time.perf_counter()
    assert len(models) == len(sources)
    return loaded - start, done - loaded


def main() -> int:
    """Print the median of each; the exit status says whether the promises hold."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"{f'median of {runs} runs, s':50}{'load':>8}{'cut':>7}{'both':>7}")
    promises = []
    with tempfile.TemporaryDirectory() as name:
        folder = Path(name)
        delivered = Library(SAMPLE_MODELS, folder).find(TABLE1_PREFIX)
        if find_spec("mxnet"):
            untyped = [replace(source, types=None) for source in delivered]
            fresh = [folder / f"fresh{run}" for run in range(runs)]
            first = report("the fifty, first time: MXNet infers every shape", fresh, untyped)
            again = report("the fifty, seen before: shapes from the cache", [fresh[0]] * runs, untyped)
            promises += [at_most(30, "s", "the first time", first), at_most(1, "s", "seen before", again)]
            lstm = folder / "lstm-symbol.json"
            lstm.write_bytes(unrolled_lstm(LSTM_NODES))
            report(f"LSTM of {LSTM_NODES:,} nodes, first time", fresh, [source_of(lstm)])
            report(f"LSTM of {LSTM_NODES:,} nodes, seen before", [fresh[0]] * runs, [source_of(lstm)])
        else:
            print("MXNet is not installed: there is no first time")
        known = report("the fifty, as delivered: shapes beside the samples", [folder / "delivered"] * runs, delivered)
    return judge([*promises, at_most(1, "s", "as delivered", known)])


def report(what: str, folders: Sequence[Path], sources: Sequence[ModelSource]) -> float:
    """Load and cut once per data folder; return the median of the seconds."""
    # A new process for each: what is remembered in memory must not help.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        taken = [pool.apply(load_and_cut_seconds, (folder, sources)) for folder in folders]
    loads, cuts = (statistics.median(times) for times in zip(*taken, strict=True))
    both = statistics.median(sum(times) for times in taken)
    print(f"{what:50}{loads:8.2f}{cuts:7.2f}{both:7.2f}")
    return both


if __name__ == "__main__":
    sys.exit(main())
