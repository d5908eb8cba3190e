"""Time the results screen with 100,000 results: opening, sorting, filtering, scrolling.

usage: python -m benchmarks.tui_results [RESULTS]

The promises: first rows within 300 ms of opening the screen, each sort and filter within 100 ms, a key that scrolls
repainted in 50 ms at the 95th percentile.
"""

import statistics
import sys
import tempfile
import time
from collections.abc import Callable
from functools import partial
from pathlib import Path

from benchmarks.promises import Promise, at_most, judge
from benchmarks.store_scale import fill
from benchmarks.terminal import Terminal
from dlbricks_tui.api.stored_results import queries_of
from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.widgets.rows import CURSOR_SIGN

SIZE = (120, 40)
TIMES = 5
KEYS = 100
# What stands on the workbench when it has read its library, and in every row of the table.
LISTED, IN_ROWS = "1 Models 9", "c5.xlarge"
SOUGHT = ("c", "conv", "kind=convolution 1x64", "trimmed_mean_ms>5", "2026-11-21", "nosuchthing", "brick=a good=yes")


def main() -> int:
    """Fills a store, sorts and filters it, and works with it in a terminal."""
    results = int(sys.argv[1]) if len(sys.argv) > 1 else 100_000
    with tempfile.TemporaryDirectory() as folder:
        fill(Path(folder) / "store", results)
        print(f"{results:,} results")
        promises = [*_sort_and_filter(Path(folder) / "store"), *_work(folder)]
    return judge(promises)


def _sort_and_filter(store_folder: Path) -> list[Promise]:
    with ResultsDatabase(store_folder) as store:
        sorts = {name: _milliseconds(partial(store.select, order=(name,))) for name in COLUMNS}
        filters = {text: _milliseconds(partial(_filtered, store, text)) for text in SOUGHT}
    _tell("slowest sort", sorts)
    _tell("slowest filter", filters)
    return [
        at_most(100, "ms", "the slowest sort", max(sorts.values())),
        at_most(100, "ms", "the slowest filter", max(filters.values())),
    ]


def _filtered(store: ResultsDatabase, text: str) -> object:
    return store.select(*queries_of(text), order=("when",))


def _work(folder: str) -> list[Promise]:
    command = [sys.executable, "-m", "dlbricks_tui", "--data-dir", folder]
    opened, typed = [], []
    for _ in range(TIMES):
        terminal = Terminal(command, SIZE, {})
        terminal.seconds_until(LISTED)
        terminal.read_for(3.0)
        terminal.send("R")
        opened.append(terminal.seconds_until(IN_ROWS))
        terminal.read_for(1.0)
        terminal.send("/")
        terminal.read_for(0.5)
        typed.append(_repaint(terminal, "r"))
        terminal.close()
    terminal = Terminal(command, SIZE, {})
    terminal.seconds_until(LISTED)
    terminal.read_for(3.0)
    terminal.send("R")
    terminal.read_for(2.0)
    lines = [_scrolled(terminal, "j") for _ in range(KEYS)]
    pages = [_scrolled(terminal, "\x04") for _ in range(KEYS)]
    terminal.close()
    print(f"first rows       {_median(opened):7.0f} ms (worst of {TIMES}: {1000 * max(opened):.0f})")
    print(f"filter on screen {_median(typed):7.0f} ms from the key to the last cell")
    at_worst = {
        name: 1000 * statistics.quantiles(seconds, n=20)[-1] for name, seconds in (("line", lines), ("page", pages))
    }
    return [
        at_most(300, "ms", "first rows, the median", _median(opened)),
        *(at_most(50, "ms", f"a {name} down, 95th percentile of {KEYS}", found) for name, found in at_worst.items()),
    ]


def _milliseconds(work: Callable[[], object]) -> float:
    taken = []
    for _ in range(TIMES):
        start = time.perf_counter()
        work()
        taken.append(1000 * (time.perf_counter() - start))
    # The first time a column is sorted, its texts are put in order.
    return max(taken)


def _tell(what: str, found: dict[str, float]) -> None:
    slowest = max(found, key=found.__getitem__)
    middle = statistics.median(found.values())
    print(f"{what:16} {found[slowest]:7.1f} ms ({slowest}; the median of {len(found)} is {middle:.1f})")


def _scrolled(terminal: Terminal, key: str) -> float:
    """Return the seconds until the cursor is drawn on its new row; what is read about that row follows later."""
    terminal.send(key)
    seconds = terminal.seconds_until(CURSOR_SIGN)
    terminal.seconds_until_quiet()
    return seconds


def _repaint(terminal: Terminal, key: str) -> float:
    terminal.send(key)
    return terminal.seconds_until_quiet()


def _median(seconds: list[float]) -> float:
    return 1000 * statistics.median(seconds)


if __name__ == "__main__":
    sys.exit(main())
