"""What the cores on which a worker's threads lie make of a model and of its bricks.

usage: python -m benchmarks.placement [--level LEVEL] [--times N] MODEL ...

MXNet computes in a thread of its own, for another one that asks. On a host of two cores the kernel puts both on one
core or each on its own, and changes its mind now and then. Here each model is measured N times (default: 3) in each
way, in turns: as the kernel likes, on one core, and on two. The columns are what its bricks add up to, without any
constant, and what it takes. The medians come last. Where MXNet computes in more than one thread, one core is not what
anybody has.
"""

import argparse
import os
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from statistics import median
from typing import NamedTuple

from benchmarks.command_line import told
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.process import INSIDE

# How soon a thread that was just created is put where it is to be.
_LOOKS_EVERY_SECONDS = 0.2

# The cores of the thread that asks and of those that compute; None where the kernel chooses.
Placement = tuple[int, int] | None


class Found(NamedTuple):
    """What one run says of a model."""

    bricks_ms: float
    model_ms: float


def main() -> int:
    """Prints a line for each run, and the medians of each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    parser.add_argument("--times", type=int, default=3)
    arguments = parser.parse_args()
    if not hasattr(os, "sched_getaffinity"):
        sys.exit("this system does not let anybody choose the cores of threads")
    cores = sorted(os.sched_getaffinity(0))
    if len(cores) < 2:
        sys.exit("one core is all that may be used here: there is nothing to compare")
    asking, computing = cores[:2]
    ways: dict[str, Placement] = {
        "as the kernel likes": None,
        "on one core": (computing, computing),
        "on two cores": (asking, computing),
    }
    for model in arguments.models:
        found: dict[str, list[Found]] = {way: [] for way in ways}
        for _ in range(arguments.times):
            for way, placement in ways.items():
                with tempfile.TemporaryDirectory() as folder, _placed(placement):
                    found[way].append(_found(Path(folder), model, arguments.level))
                _tell(model, way, found[way][-1])
        for way, runs in found.items():
            _tell(f"{model}, median", way, Found(*(median(column) for column in zip(*runs, strict=True))))
    return 0


def _found(data: Path, model: str, level: str) -> Found:
    said = told(data, "run", model, "--level", level, "--end-to-end", "--calibrate", "never")
    if said is None:
        sys.exit(f"{model} could not be measured")
    (of_model,) = said["models"]
    return Found(of_model["sequential_ms"], of_model["measured_ms"])


@contextmanager
def _placed(placement: Placement) -> Iterator[None]:
    """Meanwhile all threads of workers lie so; those that ask are the first of their processes."""
    if placement is None:
        yield
        return
    over = threading.Event()
    watcher = threading.Thread(target=_place_until, args=(over, *placement))
    watcher.start()
    try:
        yield
    finally:
        over.set()
        watcher.join()


def _place_until(over: threading.Event, asking: int, computing: int) -> None:
    placed: set[int] = set()
    while not over.wait(_LOOKS_EVERY_SECONDS):
        for thread, first in _threads_of_workers():
            if thread not in placed:
                placed.add(thread)
                with suppress(OSError):
                    os.sched_setaffinity(thread, {asking if first else computing})


def _threads_of_workers() -> Iterator[tuple[int, bool]]:
    """All of them, and whether each is the first of its process."""
    for process in Path("/proc").glob("[0-9]*"):
        with suppress(OSError):
            if str(INSIDE).encode() in (process / "cmdline").read_bytes():
                for thread in (process / "task").iterdir():
                    yield int(thread.name), thread.name == process.name


def _tell(model: str, way: str, found: Found) -> None:
    error = found.bricks_ms / found.model_ms - 1
    print(f"{model:40} {way:20} {found.bricks_ms:9.3f} ms {found.model_ms:9.3f} ms {error:+7.1%}", flush=True)


if __name__ == "__main__":
    sys.exit(main())
