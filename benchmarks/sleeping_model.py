"""Compare simulated with real queues: LoadGen sends requests to instances that sleep in place of a model.

usage: python -m benchmarks.sleeping_model

This shows how well the queue is simulated, apart from what a framework does. A batch of requests takes 10 ms, and 10 ms
for each request. The samples of the prediction are the times that the instances slept. The promise: p99 within 15 %. It
takes two minutes of a host that is not busy: otherwise LoadGen and the instances wake up late.
"""

import sys
import tempfile
import threading
import time
from collections import defaultdict
from collections.abc import Sequence
from contextlib import nullcontext
from pathlib import Path

from benchmarks.promises import at_most, judge
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.scenarios.load_tests import Clocks, LoadTests
from dlbricks_tui.scenarios.loadgen import LoadSettings
from dlbricks_tui.scenarios.outcome import percentile_of
from dlbricks_tui.scenarios.predicting import predict
from dlbricks_tui.scenarios.scenario import Kind, Scenario, batch_sizes_up_to, fewest_queries
from dlbricks_tui.scenarios.service import ServiceSource, ServiceTime, ServiceTimes
from dlbricks_tui.scenarios.serving import Instance, Serving
from dlbricks_tui.store.statistics import trimmed_mean

ONCE_MS, EACH_MS, PERCENTILE, PROMISED = 10.0, 10.0, 99.0, 0.15
# The largest batch, the instances, and the requests per second.
TESTS = ((1, 1, 17.0), (1, 1, 35.0), (1, 2, 75.0), (4, 1, 50.0), (4, 2, 90.0))


class SleepingInstance(Instance):
    """An instance without a worker."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.slept_ms: defaultdict[int, list[float]] = defaultdict(list)

    def run(self, size: int, untimed: int = 0, timed: int = 1) -> Sequence[float]:
        began = time.perf_counter()
        time.sleep((ONCE_MS + EACH_MS * size) / 1000)
        self.slept_ms[size].append(1000 * (time.perf_counter() - began))
        return self.slept_ms[size][-1:]

    def contention(self) -> None:
        return None

    def interrupt(self) -> None:
        pass


def main() -> int:
    """Print measured and predicted percentiles; exit status 1 if the promise is broken."""
    print("| largest batch | instances | rate | p50 | predicted | p90 | predicted | p99 | predicted | error |")
    print("|--:|--:|--:|--:|--:|--:|--:|--:|--:|--:|")
    errors = [shown_error(*test) for test in TESTS]
    return judge([at_most(100 * PROMISED, "%", "the largest error of p99", 100 * max(map(abs, errors)))])


def shown_error(largest: int, instances: int, rate: float) -> float:
    """Print a row, and return the error of p99."""
    sleeping = [SleepingInstance(batch_sizes_up_to(largest)) for _ in range(instances)]
    measured = sorted(latencies_ms(sleeping, largest, rate))
    scenario = Scenario(
        kind=Kind.SERVER, percentile=PERCENTILE, rate=rate, batch_sizes=batch_sizes_up_to(largest), instances=instances
    )
    found = predict(scenario, ServiceTimes(tuple(slept(sleeping, size) for size in scenario.batch_sizes)))
    figures = [
        (percentile_of(measured, percentile), predicted.value)
        for percentile, predicted in ((50.0, found.p50_ms), (90.0, found.p90_ms), (99.0, found.p99_ms))
    ]
    error = figures[-1][1] / figures[-1][0] - 1
    cells = [f"{value:.1f} ms" for pair in figures for value in pair]
    print(f"| {largest} | {instances} | {rate:g}/s | {' | '.join(cells)} | {error:+.1%} |", flush=True)
    return error


def latencies_ms(instances: Sequence[SleepingInstance], largest: int, rate: float) -> list[float]:
    """Return the latencies that LoadGen measures at a rate."""
    changed = threading.Event()
    settings = LoadSettings(
        kind=Kind.SERVER,
        percentile=PERCENTILE,
        queries=fewest_queries(PERCENTILE),
        seconds=0.0,
        expected_ms=ONCE_MS + EACH_MS,
        rate=rate,
    )
    with tempfile.TemporaryDirectory() as folder, Serving(instances, changed) as serving:
        tests = LoadTests(serving, Path(folder), changed, lambda _: None, nullcontext, Clocks())
        found = tests.run(settings, largest)
    return [latency_ns / 1e6 for latency_ns in found.latencies.latencies_ns]


def slept(instances: Sequence[SleepingInstance], size: int) -> ServiceTime:
    """Return the times for which instances slept for batches of a size."""
    taken = [ms for each in instances for ms in each.slept_ms[size]] or [ONCE_MS + EACH_MS * size]
    mean = trimmed_mean(taken)
    return ServiceTime(size, Latency(mean, mean, mean), tuple(taken), ServiceSource.END_TO_END)


if __name__ == "__main__":
    sys.exit(main())
