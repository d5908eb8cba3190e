"""Compare how long dlbricks takes to start with programs that do nothing, alternating the two.

usage: python -m benchmarks.startup [ROUNDS [RESULTS]]

The figure of a comparison is the median over all rounds of the ratio within a round. The promises: `--help` takes at
most 7 times `python -c pass`; `estimate` of a known model, with 100,000 results in the store, at most 2 times
`python -c "import numpy"`; the first paint at most 1.5 times that of an empty Textual program.
"""

import os
import statistics
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import NamedTuple

from benchmarks.made_up_results import prepare
from benchmarks.promises import at_most, judge
from benchmarks.terminal import Terminal
from dlbricks_tui.folders import DATA_FOLDER_VARIABLE, DataFolder

SIZE = (120, 40)
EMPTY_PROGRAM = """
from textual.app import App
from textual.widgets import Static

class Empty(App):
    def compose(self):
        yield Static("painted")

Empty().run()
"""


class Comparison(NamedTuple):
    """A part of dlbricks, a program to compare it with, and the most that the ratio of their times may be."""

    name: str
    ours: Callable[[], float]
    other: str
    baseline: Callable[[], float]
    most: float


def main() -> int:
    """Print the medians and the ratios."""
    rounds = int(sys.argv[1]) if len(sys.argv) > 1 else 20
    results = int(sys.argv[2]) if len(sys.argv) > 2 else 100_000
    with TemporaryDirectory() as folder:
        os.environ[DATA_FOLDER_VARIABLE] = folder
        prepare(DataFolder(Path(folder)), results)
        dlbricks = ("-m", "dlbricks_tui")
        comparisons = (
            Comparison(
                "--help", lambda: process_ms(*dlbricks, "--help"), "python -c pass", lambda: process_ms("-c", "pass"), 7
            ),
            Comparison(
                "estimate",
                lambda: process_ms(*dlbricks, "estimate", "table1:14", "--json"),
                "import numpy",
                lambda: process_ms("-c", "import numpy"),
                2,
            ),
            Comparison(
                "first paint",
                lambda: paint_ms(dlbricks, "1 Models"),
                "empty Textual",
                lambda: paint_ms(("-c", EMPTY_PROGRAM), "painted"),
                1.5,
            ),
        )
        # The first start after an installation also compiles.
        taken = [[(it.ours(), it.baseline()) for it in comparisons] for _ in range(rounds + 1)][1:]
    print(f"{rounds} rounds, {results:,} results; medians in ms")
    promises = []
    for number, it in enumerate(comparisons):
        pairs = [found[number] for found in taken]
        ours, baseline = (statistics.median(times) for times in zip(*pairs, strict=True))
        print(f"{it.name:12} {ours:8.1f}   {it.other:15} {baseline:8.1f}")
        ratio = statistics.median(one / other for one, other in pairs)
        promises.append(at_most(it.most, f"times {it.other}", it.name, ratio))
    return judge(promises)


def process_ms(*arguments: str) -> float:
    """Return the wall time of a Python process from start to end."""
    start = time.perf_counter()
    subprocess.run([sys.executable, *arguments], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL, check=True)
    return 1000 * (time.perf_counter() - start)


def paint_ms(arguments: Sequence[str], text: str) -> float:
    """Return the time from the start of a program to the moment when it has written a text on its terminal."""
    terminal = Terminal([sys.executable, *arguments], SIZE, {})
    taken = terminal.seconds_until(text)
    terminal.close()
    return 1000 * taken


if __name__ == "__main__":
    sys.exit(main())
