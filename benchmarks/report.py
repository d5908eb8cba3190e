"""Time `dlbricks report` for the fifty models with a large store, from process start to end.

usage: python -m benchmarks.report [RUNS [RESULTS]]

The store holds results of other bricks beside those of the models, which are made up and measured nowhere: at both
levels, by single layers and, at `fused`, by sequences of up to four. The promise: 10 s with 100,000 results stored.
"""

import random
import statistics
import subprocess
import sys
import time
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.made_up_results import made_up
from benchmarks.promises import at_most, judge
from benchmarks.store_scale import fill
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Run, utc_now

GRANULARITIES = {Level.WRITTEN: (1,), Level.FUSED: (1, 2, 4)}


def prepare(data: DataFolder, results: int) -> int:
    """Fills the store, and loads every model once so that it is known; returns how many results there are."""
    fill(data.store, results)
    runtime = Registry(data.path).default()
    chance, system = random.Random(1), fingerprint().id
    sources = {source.path: source for source in Library(SAMPLE_MODELS, data.path).find("table1")}
    with WorkerFramework(runtime, data.log / "framework.log") as framework, ResultsDatabase(data.store) as store:
        loader = Loader(data.cache, framework)
        for level, granularities in GRANULARITIES.items():
            for granularity in granularities:
                store.add(asked(system, runtime.identity, level, granularity))
                for source in sources.values():
                    decomposition = decompose(loader.load(source, level), Cutting(granularity))
                    store.add(*made_up(decomposition, chance, system, runtime.identity))
        return len(store.select(order=()))


def asked(system: str, runtime: str, level: Level, granularity: int) -> Run:
    """A run that has asked for sequences of so many layers."""
    now = utc_now()
    return Run(
        id=f"benchmark-{level.value}-{granularity}",
        started=now,
        when=now,
        state="done",
        system=system,
        runtime=runtime,
        level=level,
        protocol="interleaved",
        granularity=granularity,
        models=("table1",),
    )


def wall_seconds(data: DataFolder, folder: Path) -> float:
    """The wall time of one process from start to end."""
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data.path), "report", "-o", str(folder)]
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return time.perf_counter() - begin


def main() -> int:
    """Prints the times, of which the first makes what later ones find made, and what came out."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 5
    results = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with TemporaryDirectory() as name:
        data, folder = DataFolder(Path(name, "data")), Path(name, "report")
        stored = prepare(data, results)
        first = wall_seconds(data, folder)
        taken = [wall_seconds(data, folder) for _ in range(runs)]
        written = [path for path in folder.rglob("*.*") if path.is_file()]
        size_mib = sum(path.stat().st_size for path in written) / 2**20
    print(f"{stored} results in the store; {len(written)} files, {size_mib:.1f} MiB")
    print(
        f"first {first:.2f} s, then min {min(taken):.2f}, median {statistics.median(taken):.2f}, max {max(taken):.2f} s"
    )
    return judge([at_most(10, "s", "the slowest", max(first, *taken))])


if __name__ == "__main__":
    sys.exit(main())
