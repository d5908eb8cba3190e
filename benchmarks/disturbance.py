"""Compare the latencies of bricks with the run screen open and closed.

usage: python -m benchmarks.disturbance [MODEL [SECONDS]]

One run goes on all the time. In turns the workbench shows it, on a terminal of 120x40 whose output is read, and stands
still as if it were not there; what each brick took in both kinds of turns is compared. The promise: within 1 % for the
median brick.
"""

import argparse
import os
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections import defaultdict
from collections.abc import Iterable, Iterator
from datetime import datetime, timezone
from pathlib import Path
from typing import NamedTuple

from benchmarks.terminal import Terminal
from dlbricks_tui.jobs.folder import RunFolder, RunFolders
from dlbricks_tui.measure.events import RoundDone
from dlbricks_tui.runs.events import RunEvents

SIZE = (120, 40)
TURN_SECONDS = 2.5
# What follows a change of turns belongs to neither: the workbench catches up with what it has missed.
CHANGE_SECONDS = 0.75
ROUNDS = 100_000
MOST_APART = 0.01
DLBRICKS = [sys.executable, "-m", "dlbricks_tui"]


class Turn(NamedTuple):
    """A stretch of time, and whether the run was looked at."""

    watched: bool
    start: datetime
    end: datetime


def main() -> int:
    """Run a model, look at it in turns, and print what that changed; return 1 if it is too much."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("model", nargs="?", default="squeezenet1.1")
    parser.add_argument("seconds", nargs="?", type=float, default=120.0)
    arguments = parser.parse_args()
    model, seconds = arguments.model, arguments.seconds
    with tempfile.TemporaryDirectory() as data:
        folder = started(Path(data), model)
        terminal = Terminal([*DLBRICKS, "--data-dir", data], SIZE, {})
        try:
            terminal.seconds_until("running")
            terminal.send("w")
            terminal.seconds_until("Notes")
            terminal.read_for(5.0)
            turns, busy_seconds = _take_turns(terminal, seconds)
        finally:
            terminal.close()
            folder.cancel()
            wait_for_end(folder)
        ratios = ratios_of(samples_in(folder, turns))
    watched = sum((turn.end - turn.start).total_seconds() for turn in turns if turn.watched)
    print(f"{model}, {len(turns)} turns of {TURN_SECONDS:g} s, {len(ratios)} bricks and models")
    middle = statistics.median(ratios)
    low, high = statistics.quantiles(ratios, n=10)[0], statistics.quantiles(ratios, n=10)[-1]
    print(f"brick latency watched over unwatched   {100 * (middle - 1):+6.2f} % for the median brick")
    print(f"                                       {100 * (low - 1):+6.2f} to {100 * (high - 1):+.2f} % for 8 in 10")
    print(f"processor time of the workbench        {100 * busy_seconds / watched:6.2f} % of one core")
    return 0 if abs(middle - 1) <= MOST_APART else 1


def started(data: Path, model: str) -> RunFolder:
    """Start a run that goes on until it is cancelled, and return it once it measures bricks."""
    environment = {**os.environ, "DLBRICKS_HOST_LOCK": str(data / "host.lock")}
    words = ["--fixed-runs", f"{ROUNDS}", "--detach", "--data-dir", str(data)]
    command = [*DLBRICKS, "run", model, *words]
    subprocess.run(command, check=True, env=environment, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
    folder = RunFolders(data / "runs").find("last")
    events = RunEvents(folder.events_file)
    while not any(isinstance(event, RoundDone) for event in events.new()):
        time.sleep(0.2)
    return folder


def _take_turns(terminal: Terminal, seconds: float) -> tuple[list[Turn], float]:
    """The turns, and the processor time that the workbench took in those in which it was awake."""
    turns: list[Turn] = []
    before, end = processor_seconds(terminal.pid), time.monotonic() + seconds
    while time.monotonic() < end:
        for watched in (True, False):
            os.kill(terminal.pid, signal.SIGCONT if watched else signal.SIGSTOP)
            (terminal.read_for if watched else time.sleep)(CHANGE_SECONDS)
            start = datetime.now(timezone.utc)
            (terminal.read_for if watched else time.sleep)(TURN_SECONDS)
            turns.append(Turn(watched, start, datetime.now(timezone.utc)))
    os.kill(terminal.pid, signal.SIGCONT)
    # What it did while turns changed is in it too, and so the figure is rather too high.
    return turns, processor_seconds(terminal.pid) - before


def samples_in(folder: RunFolder, turns: Iterable[Turn]) -> Iterator[tuple[int, bool, float]]:
    """Return which brick took how long, watched or not; a round belongs to the turn in which it ended."""
    turns = list(turns)
    for event in RunEvents(folder.events_file).new():
        if isinstance(event, RoundDone):
            when = datetime.fromisoformat(event.when)
            turn = next((it for it in turns if it.start <= when <= it.end), None)
            if turn is not None:
                for program, samples_ms in event.samples_ms:
                    for sample_ms in samples_ms:
                        yield program, turn.watched, sample_ms


def ratios_of(samples: Iterable[tuple[int, bool, float]]) -> list[float]:
    """Return the median latency of each brick in turns that were watched, over that in the others."""
    by_kind: defaultdict[int, dict[bool, list[float]]] = defaultdict(lambda: {True: [], False: []})
    for program, watched, sample_ms in samples:
        by_kind[program][watched].append(sample_ms)
    return [statistics.median(it[True]) / statistics.median(it[False]) for it in by_kind.values()]


def processor_seconds(pid: int) -> float:
    """Return the processor time that a process has taken."""
    fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def wait_for_end(folder: RunFolder) -> None:
    """Wait until a run has ended."""
    while folder.state().active:
        time.sleep(0.2)


if __name__ == "__main__":
    sys.exit(main())
