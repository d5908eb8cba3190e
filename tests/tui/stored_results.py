"""A store with the same content on every host and at every time."""

import random
from typing import Any

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Record
from dlbricks_tui.store.statistics import summarise
from tests.store.samples import end_to_end, form, measurement, runtime, system

OPERATORS = ("conv", "batch_norm", "relu", "max_pool", "linear", "concat")
HERE, THERE = "c5.xlarge", "c6i.large"
BRICKS = 24
SAMPLES = 25
# Results of two days on the first system, of the second day also on the other system, and a model on each.
RESULTS = 3 * BRICKS + 2
RUNTIME = "mxnet-1.9.1"
NOISE = (("load", 0.25), ("steal", None))


def store_results(data: DataFolder) -> None:
    """Fill the store of a data folder."""
    records: list[Record] = [system(HERE), system(THERE, cpu="Xeon 8375C", cores=2), runtime(RUNTIME)]
    for number in range(BRICKS):
        brick = form(number, OPERATORS[number % len(OPERATORS)])
        context = "conv" if number % 3 else "plain"
        what: dict[str, Any] = {"brick": brick.key, "context": context}
        latency_ms = 0.02 * (1 + number)
        records += (
            brick,
            measurement(**what, **_timed(number, latency_ms * 1.1, day=20)),
            measurement(**what, **_timed(100 + number, latency_ms), noise=NOISE),
            measurement(**what, **_timed(200 + number, latency_ms * (1.5 if number % 4 else 1), THERE)),
        )
    records += (end_to_end(**_timed(300, 8.0) | {"run": "r1"}), end_to_end(**_timed(301, 11.0, THERE) | {"run": "r2"}))
    with ResultsDatabase(data.store) as store:
        store.add(*records)


def _timed(number: int, latency_ms: float, on: str = HERE, day: int = 21) -> dict[str, Any]:
    draw = random.Random(number)
    samples = tuple(latency_ms * (1 + 0.03 * draw.random()) for _ in range(SAMPLES))
    when = f"2026-11-{day}T08:{number % 60:02}:00.000000+00:00"
    return {
        "system": on,
        "samples_ms": samples,
        "statistics": summarise(samples),
        "when": when,
        "run": f"202611{day}-080000-0001",
        "uuid": f"{number:032x}",
        "flags": ("drift",) if number == 103 else (),
    }
