"""Compare the time left that runs announce with the time that they then take.

usage: python -m benchmarks.time_left [--fifty] [RUN_FOLDER ...]

A small run, one that ends at its time budget, and with --fifty one of the fifty models (10 to 20 minutes) are made from
nothing; of the folders of earlier runs the events are read. The promise: at any moment between 10 and 90 % of a run,
what is announced is within a factor of 1.5 of what it takes. Exit status 1 if it is broken.
"""

import argparse
import sys
import tempfile
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

from benchmarks.command_line import dlbricks
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import RunFolder
from dlbricks_tui.runs.events import RunEvents, RunProgress

RUNS = {
    "a small run": ("squeezenet1.1", "--end-to-end"),
    "a time budget": ("resnet18_v1", "mobilenet1.0", "inceptionv3", "--end-to-end", "--time-budget", "40"),
}
FIFTY = ("table1", "--end-to-end")
FIRST, LAST, FACTOR = 0.1, 0.9, 1.5
_STEPS = 200


def main() -> int:
    """Make the runs, and compare."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument(
        "folders", nargs="*", type=Path, metavar="RUN_FOLDER", help="earlier runs, in place of new ones"
    )
    parser.add_argument("--fifty", action="store_true", help="run the fifty models, too")
    arguments = parser.parse_args()
    found = [reported(folder.name, folder) for folder in arguments.folders] or list(_of_new_runs(arguments.fifty))
    return 0 if all(found) else 1


def _of_new_runs(fifty: bool) -> Iterator[bool]:
    for name, what in {**RUNS, **({"the fifty": FIFTY} if fifty else {})}.items():
        with tempfile.TemporaryDirectory() as data:
            dlbricks(Path(data), "run", *what)
            (folder,) = DataFolder(Path(data)).runs.iterdir()
            yield reported(name, folder)


def reported(name: str, folder: Path) -> bool:
    """Print how far off a run was; return whether it kept the promise."""
    seconds, ratios = announced(folder)
    kept = [it for it in ratios if 1 / FACTOR <= it <= FACTOR]
    worst = max(ratios, key=lambda it: max(it, 1 / it if it else float("inf")), default=0.0)
    share = len(kept) / len(ratios) if ratios else 0.0
    print(
        f"{name:<24}{seconds:>7.0f} s  {share:>5.0%} of its middle within a factor of {FACTOR}, worst {worst:.2f} times"
    )
    return share == 1


def announced(folder: Path) -> tuple[float, list[float]]:
    """Return the seconds of a run, and at evenly spread moments of its middle what it announced over what it took."""
    progress, told = RunProgress(), list[tuple[float, float | None]]()
    events = RunEvents(RunFolder(folder).events_file).new()
    began, ended = (datetime.fromisoformat(events[place].when) for place in (0, -1))
    for event in events:
        progress.take(event)
        told.append(((datetime.fromisoformat(event.when) - began).total_seconds(), progress.seconds_left))
    whole, ratios, place = (ended - began).total_seconds(), list[float](), 0
    for step in range(_STEPS + 1):
        now = whole * (FIRST + (LAST - FIRST) * step / _STEPS)
        while place + 1 < len(told) and told[place + 1][0] <= now:
            place += 1
        when, left = told[place]
        if left is not None:
            ratios.append(max(0.0, left - (now - when)) / (whole - now))
    return whole, ratios


if __name__ == "__main__":
    sys.exit(main())
