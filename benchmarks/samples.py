"""Time how long the fifty models of Table 1 take to load and cut: the first time, as delivered, and from the cache.

usage: python -m benchmarks.samples [RUNS]

Models are loaded as commands load them. Each time is taken in a process of its own, so that nothing is remembered but
what is on disk; importing the modules is not counted.
The promises are 30 s the first time and 1 s for models that were seen before. The first time needs MXNet.
"""

import multiprocessing
import statistics
import sys
import tempfile
import time
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

from benchmarks.promises import at_most, judge
from dlbricks_tui.answers.opening import load_all
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.library import TABLE1_PREFIX, Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry

LAYERS = 10_815


def load_and_cut_seconds(data: Path, delivered: bool) -> tuple[float, float]:
    """Seconds to load all fifty, and to cut them, with or without the types that are delivered with them."""
    start = time.perf_counter()
    sources = Library(SAMPLE_MODELS, data).find(TABLE1_PREFIX)
    with WorkerFramework(Registry(data).default(), data / "framework.log") as framework:
        chosen = sources if delivered else [replace(source, types=None) for source in sources]
        models = load_all(chosen, Loader(data / "cache", framework).load).models
    loaded = time.perf_counter()
    decompositions = [decompose(graph) for _, graph in models]
    done = time.perf_counter()
    assert sum(len(it.occurrences) for it in decompositions) == LAYERS
    return loaded - start, done - loaded


def main() -> int:
    """Prints the median of each; the exit status says whether the promises hold."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    print(f"50 models, {LAYERS:,} layers; median of {runs} runs, s    load    cut   both")
    promises = []
    with tempfile.TemporaryDirectory() as folder:
        if find_spec("mxnet"):
            fresh = [Path(folder, f"fresh{run}") for run in range(runs)]
            first = report("first time: MXNet infers every shape", fresh, delivered=False)
            again = report("seen before: shapes from the cache", [fresh[0]] * runs, delivered=False)
            promises += [at_most(30, "s", "the first time", first), at_most(1, "s", "seen before", again)]
        else:
            print("MXNet is not installed: there is no first time")
        delivered = report(
            "as delivered: shapes beside the samples", [Path(folder, "delivered")] * runs, delivered=True
        )
    return judge([*promises, at_most(1, "s", "as delivered", delivered)])


def report(what: str, folders: list[Path], delivered: bool) -> float:
    """Runs once per data folder; the median of the seconds to load and cut."""
    # A new process for each: what is remembered in memory must not help.
    with multiprocessing.get_context("spawn").Pool(1, maxtasksperchild=1) as pool:
        taken = [pool.apply(load_and_cut_seconds, (folder, delivered)) for folder in folders]
    loads, cuts = (statistics.median(times) for times in zip(*taken, strict=True))
    both = statistics.median(sum(times) for times in taken)
    print(f"{what:50}{loads:8.2f}{cuts:7.2f}{both:7.2f}")
    return both


if __name__ == "__main__":
    sys.exit(main())
