"""Time `dlbricks estimate` for known models with a large store, from process start to end.

usage: python -m benchmarks.estimate [RUNS [RESULTS]]

The store holds results of other bricks beside those of the models, which are made up and measured nowhere.
The promise: 0.4 s for one model with 100,000 results in the store.
"""

import os
import random
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory

from benchmarks.promises import at_most, judge
from benchmarks.store_scale import fill
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.identity import whole_model
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import BrickForm, EndToEnd, Measurement, Record, utc_now
from dlbricks_tui.store.statistics import summarise

ONE, MANY = ("table1:14",), ("table1",)
COMMANDS: dict[str, Sequence[str]] = {
    "one model, --json": (*ONE, "--json"),
    "one model, for a person": ONE,
    "one model, four workers": (*ONE, "--workers", "4"),
    "one model, incomplete": ("table1:9", "-g", "2"),
    "the fifty, --json": (*MANY, "--json"),
    "the fifty, for a person": MANY,
}
SAMPLES = 25


def made_up(decomposition: Decomposition, chance: random.Random, system: str, runtime: str) -> Iterator[Record]:
    """Results for every brick of a model, and for the model itself."""
    graph, when = decomposition.graph, utc_now()

    def samples() -> tuple[float, ...]:
        base_ms = chance.uniform(0.01, 3)
        return tuple(base_ms * (1 + abs(chance.gauss(0, 0.02))) for _ in range(SAMPLES))

    bricks = {(it.brick.key, it.context): it.brick for it in decomposition.occurrences}
    for (key, context), brick in bricks.items():
        taken = samples()
        yield BrickForm(key=key, canonical=brick.canonical)
        yield Measurement(
            brick=key,
            context=context,
            system=system,
            runtime=runtime,
            level=graph.level,
            protocol="interleaved",
            when=when,
            run="benchmark",
            statistics=summarise(taken),
            samples_ms=taken,
        )
    taken = samples()
    yield EndToEnd(
        model=whole_model(graph).key,
        name=graph.name,
        system=system,
        runtime=runtime,
        level=graph.level,
        protocol="interleaved",
        when=when,
        run="benchmark",
        statistics=summarise(taken),
        samples_ms=taken,
    )


def prepare(data: DataFolder, results: int) -> int:
    """Fills the store, and loads every model once so that it is known; returns how many results there are."""
    fill(data.store, results)
    runtime = Registry(data.path).default()
    chance, system = random.Random(1), fingerprint().id
    with WorkerFramework(runtime, data.log / "framework.log") as framework, ResultsDatabase(data.store) as store:
        loader = Loader(data.cache, framework)
        for source in Library(SAMPLE_MODELS, data.path).find("table1"):
            decomposition = decompose(loader.load(source, Level.FUSED))
            store.add(*made_up(decomposition, chance, system, runtime.identity))
        return len(store.select(order=()))


def wall_ms(data: DataFolder, arguments: Sequence[str]) -> float:
    """The wall time of one process from start to end, whose modules are compiled as those of an installed one are."""
    environment = {name: value for name, value in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", str(data.path), "estimate", *arguments]
    begin = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, env=environment, check=False)
    return 1000 * (time.perf_counter() - begin)


def main() -> int:
    """Runs the commands in turn, so that a change of the machine's mood meets all of them."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    results = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with TemporaryDirectory() as name:
        data = DataFolder(Path(name))
        stored = prepare(data, results)
        taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
        for arguments in COMMANDS.values():
            wall_ms(data, arguments)
        for _ in range(runs):
            for label, arguments in COMMANDS.items():
                taken[label].append(wall_ms(data, arguments))
    print(f"{stored} results in the store, {runs} runs each, ms      min  median     max")
    for label, times in taken.items():
        print(f"{label:50} {min(times):8.1f}{statistics.median(times):8.1f}{max(times):8.1f}")
    one = statistics.median(taken["one model, --json"])
    return judge([at_most(400, "ms", "the median of one model", one)])


if __name__ == "__main__":
    sys.exit(main())
