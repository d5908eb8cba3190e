"""Time the engine and the decisions of fleets at growing sizes.

usage: python -m benchmarks.fleet [--tasks N] [--workers 1,2,4] [--hosts 10,100,1000] [--bricks 100,1000,10000]

engine     N tasks that end at once, on each of several workers of a real dask scheduler over TLS on this machine: the
           milliseconds from one task of a host to its next, the processor time of driver and scheduler for each task,
           and the memory of the driver. The promise: 20 ms
decisions  which of HOSTS hosts is fastest for a model of BRICKS bricks, with hosts that sleep in virtual time: the
           processor time of all decisions, for each host and brick, and the virtual time until the order is settled.
           Hosts differ in speed by up to 4 times. Each begins with predictions that are up to 30 % wrong

Sizes grow along one axis while the other is small. `exponent` fits the processor time by the size; 1 is linear.
"""

import argparse
import heapq
import json
import math
import os
import queue
import random
import resource
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from statistics import linear_regression
from typing import NamedTuple

from benchmarks.command_line import ROOT
from dlbricks_tui.fleet.certificates import Certificates
from dlbricks_tui.fleet.deciding.choosing import ModelOnHost, Unmeasured, Work, plan_for
from dlbricks_tui.fleet.deciding.orders import Comparison, HostLatency
from dlbricks_tui.fleet.engine.engine import Engine
from dlbricks_tui.fleet.engine.events import Answered, HostJoined
from dlbricks_tui.fleet.engine.scheduler import SchedulerProcess
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE

# A worker whose host sleeps instead of measuring; the rest of it is real.
_WORKER = (sys.executable, "-m", "tests.fleet.sleeping_host")
_SECONDS_TO_JOIN = 120.0
_FEW_HOSTS, _FEW_BRICKS = 10, 100
_BRICKS_OF_A_PARCEL, _SECONDS_OF_A_TASK, _SECONDS_BETWEEN_LOOKS, _MODEL = 100, 40.0, 1.0, "model"
_WRONG, _MEASURED, _SHARED = 0.3, 0.03, 0.5
_SLOWEST, _SEED = 4.0, 1127


class Decided(NamedTuple):
    """A simulated search for the fastest host."""

    hosts: int
    bricks: int
    processor_seconds: float
    virtual_seconds: float
    measured: float
    right: bool


def main() -> None:
    """Print one line for each size."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--tasks", type=int, default=100)
    parser.add_argument("--workers", type=_numbers, default=(1, 2, 4))
    parser.add_argument("--hosts", type=_numbers, default=(10, 30, 100, 300, 1000))
    parser.add_argument("--bricks", type=_numbers, default=(100, 300, 1000, 3000, 10_000))
    args = parser.parse_args()
    print("ENGINE   WORKERS  TASKS  MS A TASK  CPU MS A TASK  DRIVER MIB")
    for workers in args.workers:
        seconds, processor, mebibytes = engine(workers, args.tasks)
        tasks = workers * args.tasks
        # Hosts take turns on this machine, so that each waits for the others.
        print(
            f"         {workers:7}  {tasks:5}  {1000 * seconds / tasks:9.2f}  {1000 * processor / tasks:13.2f}"
            f"  {mebibytes:10.0f}",
            flush=True,
        )
    print("DECISIONS  HOSTS  BRICKS  CPU S  CPU MS A HOST AND BRICK  SETTLED AFTER  MEASURED")
    by_hosts = [_told(decide(hosts, _FEW_BRICKS)) for hosts in args.hosts]
    print(f"exponent by hosts: {_exponent([(it.hosts, it.processor_seconds) for it in by_hosts]):.2f}")
    by_bricks = [_told(decide(_FEW_HOSTS, bricks)) for bricks in args.bricks]
    print(f"exponent by bricks: {_exponent([(it.bricks, it.processor_seconds) for it in by_bricks]):.2f}")


def engine(workers: int, tasks: int) -> tuple[float, float, float]:
    """Return the seconds and the processor seconds of all tasks, and the memory of this process in MiB."""
    with tempfile.TemporaryDirectory() as folder, _cluster(Path(folder), workers) as (found, scheduler_pid):
        left = dict.fromkeys(found.names, tasks)
        for host in found.names:
            found.engine.carry_out(host, json.dumps({"id": f"{host}-0"}))
        began, before = time.monotonic(), _processor_seconds(scheduler_pid)
        while any(left.values()):
            event = found.engine.events.get(timeout=_SECONDS_TO_JOIN)
            if isinstance(event, Answered):
                if event.error:
                    raise SystemExit(f"a task failed: {event.error}")
                left[event.host] -= 1
                if left[event.host]:
                    found.engine.carry_out(event.host, json.dumps({"id": f"{event.host}-{left[event.host]}"}))
        taken = time.monotonic() - began
        processor = _processor_seconds(scheduler_pid) - before
    return taken, processor, resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024


class _Found(NamedTuple):
    engine: Engine
    names: list[str]


@contextmanager
def _cluster(folder: Path, workers: int) -> Iterator[tuple[_Found, int]]:
    certificates = Certificates(folder / "certificates")
    certificates.create()
    scheduler = SchedulerProcess(certificates, folder / "scheduler.log")
    address, processes = scheduler.start(), []
    found = Engine(address, certificates.for_driver())
    try:
        for number in range(workers):
            data = folder / f"host{number}"
            data.mkdir()
            with (folder / "worker.log").open("ab") as log:
                command = [*_WORKER, address, "--name", f"host{number}", "--certificates", str(certificates.folder)]
                variables = {**os.environ, DATA_FOLDER_VARIABLE: str(data)}
                processes.append(subprocess.Popen(command, cwd=ROOT, env=variables, stdout=log, stderr=log))
        found.start()
        names: list[str] = []
        while len(names) < workers:
            try:
                event = found.events.get(timeout=_SECONDS_TO_JOIN)
            except queue.Empty:
                raise SystemExit(f"no worker joined: {(folder / 'worker.log').read_text()[-500:]}") from None
            if isinstance(event, HostJoined):
                names.append(event.host)
        yield _Found(found, names), _scheduler_pid()
    finally:
        found.close()
        for process in processes:
            process.kill()
            process.wait()
        scheduler.close()


def _scheduler_pid() -> int:
    """Return the process of the scheduler that this process has started."""
    for stat in Path("/proc").glob("[0-9]*/stat"):
        with suppress(OSError):
            is_child = int(stat.read_text().rpartition(")")[2].split()[1]) == os.getpid()
            if is_child and b"engine.scheduler" in (stat.parent / "cmdline").read_bytes():
                return int(stat.parent.name)
    raise SystemExit("the scheduler is not there")


def _processor_seconds(pid: int) -> float:
    """Return the processor time of this process and of another one."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return time.process_time() + (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def decide(hosts: int, bricks: int) -> Decided:
    """Search for the order of hosts with tasks that take virtual time."""
    chance = random.Random(_SEED)
    speeds = [_SLOWEST ** (number / max(1, hosts - 1)) for number in range(hosts)]
    parts_ms = [chance.uniform(0.05, 1.0) for _ in range(bricks)]
    true_ms = [[ms * speed * chance.uniform(0.9, 1.1) for ms in parts_ms] for speed in speeds]
    keys = [f"{number:x}" for number in range(bricks)]
    models = [_predicted(f"host{number:04}", keys, its, chance) for number, its in enumerate(true_ms)]
    free_at, virtual, processor, measured = [0.0] * hosts, 0.0, 0.0, 0
    works = [
        [Work(f"{first}", tuple(keys[first : first + _BRICKS_OF_A_PARCEL]), 10.0) for first in _parcels(bricks)]
        for _ in range(hosts)
    ]
    plans: list[list[Work]] = [[] for _ in range(hosts)]
    # Hosts that wait for tasks, the first one first.
    waiting = [(0.0, number) for number in range(hosts)]
    look_at, comparison = 0.0, Comparison([it.latency for it in models])
    while True:
        if not waiting or waiting[0][0] >= look_at:
            began = time.process_time()
            comparison = Comparison([it.latency for it in models])
            order = comparison.order
            processor += time.process_time() - began
            # The driver looks at what came in the meantime all at once.
            look_at = (waiting[0][0] if waiting else 0.0) + _SECONDS_BETWEEN_LOOKS
            if order.settled or not waiting:
                break
        _, host = heapq.heappop(waiting)
        began = time.process_time()
        plan = plans[host] or list(plan_for([models[host]], {_MODEL: comparison}, works[host]))
        processor += time.process_time() - began
        if not plan:
            # Nothing on this host can decide anything.
            continue
        task = plan[: max(1, int(_SECONDS_OF_A_TASK / plan[0].seconds))]
        plans[host] = plan[len(task) :]
        free_at[host] += sum(work.seconds for work in task)
        virtual = max(virtual, free_at[host])
        done = {brick for work in task for brick in work.bricks}
        works[host] = [work for work in works[host] if work not in task]
        measured += len(done)
        models[host] = _measured(models[host], done, dict(zip(keys, true_ms[host], strict=True)))
        if works[host]:
            heapq.heappush(waiting, (free_at[host], host))
    ranked = [host for rank in Comparison([it.latency for it in models]).order.ranks for host in rank]
    right = ranked == [f"host{number:04}" for number in sorted(range(hosts), key=lambda it: sum(true_ms[it]))]
    return Decided(hosts, bricks, processor, virtual, measured / (hosts * bricks), right)


def _parcels(bricks: int) -> range:
    return range(0, bricks, _BRICKS_OF_A_PARCEL)


def _predicted(host: str, keys: Sequence[str], true_ms: Sequence[float], chance: random.Random) -> ModelOnHost:
    wrong = {key: ms * chance.uniform(1 - _WRONG, 1 + _WRONG) for key, ms in zip(keys, true_ms, strict=True)}
    unmeasured = {key: Unmeasured(ms, _WRONG * ms) for key, ms in wrong.items()}
    return _with_latency(ModelOnHost(_MODEL, HostLatency(host, None), unmeasured, _SHARED), 0.0)


def _measured(model: ModelOnHost, done: set[str], true_ms: dict[str, float]) -> ModelOnHost:
    left = {key: it for key, it in model.unmeasured.items() if key not in done}
    known_ms = sum(ms for key, ms in true_ms.items() if key not in left)
    return _with_latency(replace(model, unmeasured=left), known_ms)


def _with_latency(model: ModelOnHost, known_ms: float) -> ModelOnHost:
    value_ms = known_ms + sum(it.ms for it in model.unmeasured.values())
    together = sum(it.half_ms for it in model.unmeasured.values())
    apart = math.sqrt(sum(it.half_ms**2 for it in model.unmeasured.values()))
    half_ms = math.hypot(_SHARED * together, math.sqrt(1 - _SHARED**2) * apart, _MEASURED * known_ms / 3)
    return replace(
        model, latency=HostLatency(model.latency.host, value_ms, max(value_ms - half_ms, 1e-9), value_ms + half_ms)
    )


def _told(it: Decided) -> Decided:
    each, after = 1000 * it.processor_seconds / (it.hosts * it.bricks), it.virtual_seconds
    verdict = "right" if it.right else "with equal hosts in another order"
    print(
        f"           {it.hosts:5}  {it.bricks:6}  {it.processor_seconds:5.2f}  {each:23.4f}  {after:11.0f} s"
        f"  {100 * it.measured:7.0f}%  {verdict}",
        flush=True,
    )
    return it


def _exponent(points: Sequence[tuple[int, float]]) -> float:
    """Return the exponent of the time by the size; not a number for a single size."""
    if len(points) < 2:
        return math.nan
    logs = [(math.log(size), math.log(max(seconds, 1e-6))) for size, seconds in points]
    return linear_regression([size for size, _ in logs], [seconds for _, seconds in logs]).slope


def _numbers(text: str) -> tuple[int, ...]:
    return tuple(int(number) for number in text.split(","))


if __name__ == "__main__":
    main()
