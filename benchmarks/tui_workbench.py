"""Measure the workbench with all models and 100,000 results: first paint, keys, idling, memory.

usage: python -m benchmarks.tui_workbench [RESULTS]

The promises: first paint in 0.5 s, a key repainted in 50 ms at the 95th percentile, at most 2 KB/s written while idle,
200 MB of memory.
"""

import statistics
import sys
import tempfile
from pathlib import Path

from benchmarks.promises import at_most, judge
from benchmarks.store_scale import fill
from benchmarks.terminal import Terminal

SIZE = (120, 40)
STARTS = 10
KEYS = 100
IDLE_SECONDS = 10.0
# What stands on the first screen, and what follows when the library has been read.
FIRST, LISTED = "1 Models", "84"


def main() -> int:
    """Fills a store, starts the workbench several times, and works in the last one."""
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "store", results)
        painted, listed = [], []
        for _ in range(STARTS):
            terminal = _started(folder)
            painted.append(terminal.seconds_until(FIRST))
            listed.append(painted[-1] + terminal.seconds_until(LISTED))
            terminal.close()
        terminal = _started(folder)
        terminal.seconds_until(LISTED)
        terminal.read_for(5.0)
        keys = [_repaint(terminal, "j" if number % 40 < 20 else "k") for number in range(KEYS)]
        idle = terminal.read_for(IDLE_SECONDS)
        memory = terminal.memory_bytes()
        terminal.close()
    print(f"{results:,} results; models listed after {1000 * statistics.median(listed):.0f} ms")
    print(f"first paint of {STARTS} at worst {1000 * max(painted):.0f} ms")
    return judge(
        [
            at_most(500, "ms", "first paint, the median", 1000 * statistics.median(painted)),
            at_most(50, "ms", "a key repainted, 95th percentile", 1000 * statistics.quantiles(keys, n=20)[-1]),
            at_most(2000, "bytes/s", "written while idle", idle / IDLE_SECONDS),
            at_most(200, "MB", "memory", memory / 2**20),
        ]
    )


def _started(folder: str) -> Terminal:
    return Terminal([sys.executable, "-m", "dlbricks_tui", "--data-dir", folder], SIZE, {})


def _repaint(terminal: Terminal, key: str) -> float:
    terminal.send(key)
    return terminal.seconds_until_quiet()


if __name__ == "__main__":
    sys.exit(main())
