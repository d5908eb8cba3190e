"""Made-up results of the fifty models of Table 1, in a store with results of other bricks."""

import random
from collections.abc import Iterator
from typing import Any

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

SAMPLES = 25


def made_up(decomposition: Decomposition, chance: random.Random, system: str, runtime: str) -> Iterator[Record]:
    """Yield results for each brick of a model, and for the model itself."""
    graph = decomposition.graph
    shared: dict[str, Any] = {
        "system": system,
        "runtime": runtime,
        "level": graph.level,
        "protocol": "interleaved",
        "when": utc_now(),
        "run": "benchmark",
    }

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
            **shared,
            statistics=summarise(taken),
            samples_ms=taken,
        )
    taken = samples()
    yield EndToEnd(
        model=whole_model(graph).key,
        name=graph.name,
        **shared,
        statistics=summarise(taken),
        samples_ms=taken,
    )


def prepare(data: DataFolder, results: int) -> int:
    """Fill the store, and load each model once so that it is known; return the number of results."""
    fill(data.store, results)
    runtime = Registry(data.path).default()
    chance, system = random.Random(1), fingerprint().id
    with WorkerFramework(runtime, data.log / "framework.log") as framework, ResultsDatabase(data.store) as store:
        loader = Loader(data.cache, framework)
        for source in Library(SAMPLE_MODELS, data.path).find("table1"):
            decomposition = decompose(loader.load(source, Level.FUSED))
            store.add(*made_up(decomposition, chance, system, runtime.identity))
        return len(store.select(order=()))
