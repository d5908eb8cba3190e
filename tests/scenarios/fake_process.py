"""A process that pretends to measure a scenario: `python fake_process.py DATA_FOLDER MANNER`.

It reads the order from standard input, and writes the messages of a search of two tests. MANNER says how it ends:
`done`, `invalid`, `fails`, `dies`, `nothing`, or `waits`, which goes on until a signal ends it.
"""

import os
import pickle
import signal
import sys
import time
from dataclasses import replace
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).resolve().parents[2]))

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.scenarios.messages import (
    LoadDone,
    LoadFailed,
    LoadMessage,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    LoadWaits,
    ScenarioOrder,
    encode,
)
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, utc_now
from tests.store.samples import load_test


def main(folder: str, manner: str) -> None:
    order: ScenarioOrder = pickle.load(sys.stdin.buffer)
    data = DataFolder(Path(folder))
    told(
        LoadWaits(holder="another run"),
        LoadReady(service_ms=8.0, passing_ms=0.15, wake_up_ms=0.9, logs=str(data.path / "logs")),
    )
    for number, (rate, latency_ms) in enumerate(((40.0, 12.0), (44.0, 24.0)), start=1):
        told(
            LoadTestStarted(number=number, rate=rate, batch_size=1, queries=700, seconds_left=12.0),
            LoadProgress(number=number, queries=4, seconds=1.0, latencies_ms=(8.0, 9.0, latency_ms, latency_ms)),
        )
        if manner == "waits":
            wait_for_a_signal(data)
        told(
            LoadTestDone(
                number=number,
                rate=rate,
                batch_size=1,
                passed=latency_ms < 20,
                percentile_ms=latency_ms,
                per_second=rate,
            )
        )
    if manner == "fails":
        told(LoadFailed(reason="the worker was lost: killed by signal 9"))
        sys.exit(1)
    if manner == "dies":
        sys.exit("there is no room for the model")
    if manner != "nothing":
        test = of_order(order, manner)
        with ResultsDatabase(data.store) as store:
            store.add(test)
        (data.scenarios / test.uuid).mkdir(parents=True)
        told(LoadDone(uuid=test.uuid, warnings=("the clock was set while the test ran",)))


def told(*messages: LoadMessage) -> None:
    for message in messages:
        sys.stdout.buffer.write(encode(message))
    sys.stdout.flush()


def of_order(order: ScenarioOrder, manner: str) -> LoadTest:
    scenario = order.scenario
    sent: dict[str, Any] = {"rate": scenario.rate or 40.0, "sought": scenario.rate is None}
    if scenario.kind.value != "server":
        sent = {"rate": None, "sought": False}
    reasons = ("min queries not satisfied",) if manner == "invalid" else ()
    return replace(
        load_test(when=utc_now(), valid=not reasons, reasons=reasons),
        name=order.source.name,
        kind=scenario.kind.value,
        percentile=scenario.percentile,
        bound_ms=scenario.bound_ms,
        batch_size=max(scenario.batch_sizes),
        instances=scenario.instances,
        runtime=order.execution.runtime.identity,
        level=order.execution.level,
        **sent,
    )


def wait_for_a_signal(data: DataFolder) -> None:
    def end(*_: object) -> None:
        told(LoadTestsKept(tests=1), LoadFailed(reason="it was cancelled"))
        (data.path / "ended").touch()
        sys.exit(1)

    signal.signal(signal.SIGTERM, end)
    (data.path / "fake.pid").write_text(str(os.getpid()))
    while True:
        time.sleep(60)


if __name__ == "__main__":
    main(*sys.argv[1:])
