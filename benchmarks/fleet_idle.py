"""Compare the latencies of bricks with a dask worker on the host and without it.

usage: python -m benchmarks.fleet_idle [MODEL [SECONDS]]

One run goes on all the time. In turns a worker runs beside it and is stopped (SIGSTOP); the latencies of each brick in
both kinds of turns are compared. The scheduler runs in all turns, as it belongs to another machine. The promise: at
most 1 % for the median brick. Four cases, SECONDS each:

- no worker: turns that do not differ, which show the noise of the comparison
- idle: the worker of a fleet that has nothing to do
- in a task: the worker of a fleet while a run measures for it
- dask: the worker that `dask worker` starts, with its own settings
"""

import argparse
import asyncio
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from datetime import datetime, timezone
from pathlib import Path
from typing import Any, NamedTuple

from benchmarks.disturbance import (
    CHANGE_SECONDS,
    MOST_APART,
    TURN_SECONDS,
    Turn,
    processor_seconds,
    ratios_of,
    samples_in,
    started,
    wait_for_end,
)
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.engine import dask_settings
from dlbricks_tui.fleet.engine.quiet_worker import quiet
from dlbricks_tui.fleet.engine.scheduler import SchedulerProcess

NO_WORKER, IDLE, IN_TASK, DASK = "no worker", "idle", "in a task", "dask"
NAME = "host"
SECONDS_TO_SETTLE = 5.0


class Found(NamedTuple):
    """A case: the ratio of each brick's latencies, and what the worker's processes did in a second."""

    ratios: list[float]
    processor_seconds: float
    wakes: float


def main() -> int:
    """Print the disturbance of each case; exit status 1 if a worker of a fleet disturbs too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="squeezenet1.1")
    parser.add_argument("seconds", nargs="?", type=float, default=120.0)
    given = parser.parse_args()
    passed = True
    print(f"{given.model}, turns of {TURN_SECONDS:g} s; latency with a worker over that without it")
    print(f"{'':10} {'median brick':>13} {'8 in 10 bricks':>22} {'processor':>10} {'wakes':>8}")
    with tempfile.TemporaryDirectory() as name:
        data = Path(name)
        folder = started(data, given.model)
        try:
            for case in (NO_WORKER, IDLE, IN_TASK, DASK):
                with worker_of(case, data / case.replace(" ", "-")) as pids:
                    turns, seconds, wakes = turns_of(pids, given.seconds)
                found = Found(ratios_of(samples_in(folder, turns)), seconds, wakes)
                print(line(case, found), flush=True)
                passed &= case == DASK or abs(statistics.median(found.ratios) - 1) <= MOST_APART
        finally:
            folder.cancel()
            wait_for_end(folder)
    return 0 if passed else 1


def line(case: str, found: Found) -> str:
    """Return a line of the table."""
    tenths = statistics.quantiles(found.ratios, n=10)
    middle, low, high = (100 * (it - 1) for it in (statistics.median(found.ratios), tenths[0], tenths[-1]))
    spread = f"{low:+.2f} to {high:+.2f} %"
    return f"{case:10} {middle:+11.2f} % {spread:>22} {100 * found.processor_seconds:8.2f} % {found.wakes:6.1f}/s"


@contextmanager
def worker_of(case: str, folder: Path) -> Iterator[list[int]]:
    """Run a scheduler and the worker of a case, and yield the worker's processes."""
    if case == NO_WORKER:
        yield []
        return
    certificates = Certificates(folder / "certificates")
    certificates.create()
    scheduler = SchedulerProcess(certificates, folder / "scheduler.log")
    address = scheduler.start()
    secure = [str(path) for path in certificates.of_hosts]
    if case == DASK:
        words = ["distributed.cli.dask_worker", address, "--name", NAME, "--nthreads", "1", "--no-dashboard"]
        words += [f"--tls-{kind}={path}" for kind, path in zip(("ca-file", "cert", "key"), secure, strict=True)]
    else:
        words = [
            "dlbricks_tui.fleet.engine.worker_process",
            address,
            "--name",
            NAME,
            "--certificates",
            str(certificates.folder),
        ]
    with (folder / "worker.log").open("wb") as log:
        worker = subprocess.Popen([sys.executable, "-m", *words], stdout=log, stderr=log, start_new_session=True)
    try:
        asyncio.run(_settled(address, certificates, case))
        yield _processes(worker.pid)
    finally:
        os.killpg(worker.pid, signal.SIGCONT)
        os.killpg(worker.pid, signal.SIGKILL)
        worker.wait()
        scheduler.close()


async def _settled(address: str, certificates: Certificates, case: str) -> None:
    """Wait for the worker, and give it a task that lasts beyond this connection if the case has one."""
    from distributed import Client, fire_and_forget

    dask_settings.set_up()
    async with Client(address, security=certificates.for_driver(), asynchronous=True, set_as_default=False) as client:
        await client.wait_for_workers(1)
        if case == IN_TASK:
            fire_and_forget(client.submit(rest, pure=False))
            await asyncio.sleep(1.0)
    await asyncio.sleep(SECONDS_TO_SETTLE)


def rest() -> None:
    """Wait on a worker as a task of a fleet does while its run measures: a look in a second, forever."""
    from distributed import get_worker

    with quiet(get_worker()):
        while True:
            time.sleep(1.0)


def turns_of(pids: list[int], seconds: float) -> tuple[list[Turn], float, float]:
    """Return turns with and without processes, and the processor time and the wakes of these in a second."""
    turns: list[Turn] = []
    busy, wakes = sum(map(processor_seconds, pids)), sum(map(_wakes, pids))
    end, with_worker = time.monotonic() + seconds, 0.0
    while time.monotonic() < end:
        for watched in (True, False):
            for pid in pids:
                os.kill(pid, signal.SIGCONT if watched else signal.SIGSTOP)
            time.sleep(CHANGE_SECONDS)
            start = datetime.now(timezone.utc)
            time.sleep(TURN_SECONDS)
            turns.append(Turn(watched, start, datetime.now(timezone.utc)))
            with_worker += watched * (CHANGE_SECONDS + TURN_SECONDS)
    for pid in pids:
        os.kill(pid, signal.SIGCONT)
    busy, wakes = sum(map(processor_seconds, pids)) - busy, sum(map(_wakes, pids)) - wakes
    return turns, busy / with_worker, wakes / with_worker


def _processes(leader: int) -> list[int]:
    """Return the processes of a session: `dask worker` has one that watches, and one that works."""
    found = []
    for stat in Path("/proc").glob("[0-9]*/stat"):
        fields: list[Any] = stat.read_text().rpartition(")")[2].split()
        if int(fields[3]) == leader:
            found.append(int(stat.parent.name))
    return found


def _wakes(pid: int) -> int:
    """Return how many times the threads of a process have gone to sleep."""
    found = 0
    for status in Path(f"/proc/{pid}/task").glob("*/status"):
        found += int(status.read_text().partition("\nvoluntary_ctxt_switches:")[2].split()[0])
    return found


if __name__ == "__main__":
    sys.exit(main())
