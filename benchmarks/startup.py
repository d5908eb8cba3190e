"""Compare the time of `dlbricks --help` with that of a Python program that does nothing.

usage: python -m benchmarks.startup [RUNS]

The promise: 150 ms for the median.
"""

import statistics
import subprocess
import sys
import time
from collections.abc import Sequence

from benchmarks.promises import at_most, judge

COMMANDS = {
    "python -c pass": [sys.executable, "-c", "pass"],
    "dlbricks --help": [sys.executable, "-m", "dlbricks_tui", "--help"],
}


def wall_ms(command: Sequence[str]) -> float:
    """The wall time of one process from start to end."""
    start = time.perf_counter()
    subprocess.run(command, stdout=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - start)


def main() -> int:
    """Runs the commands in turn, so that a change of the machine's mood meets both."""
    runs = int(sys.argv[1]) if len(sys.argv) > 1 else 30
    taken: dict[str, list[float]] = {name: [] for name in COMMANDS}
    for _ in range(runs):
        for name, command in COMMANDS.items():
            taken[name].append(wall_ms(command))
    print(f"{runs} runs each, ms      min  median     max")
    for name, times in taken.items():
        print(f"{name:20} {min(times):8.1f}{statistics.median(times):8.1f}{max(times):8.1f}")
    return judge([at_most(150, "ms", "dlbricks --help", statistics.median(taken["dlbricks --help"]))])


if __name__ == "__main__":
    sys.exit(main())
