"""Whether latencies follow the reference when a host becomes slower or quicker: of what was measured more than once.

usage: python -m benchmarks.host_changes DATA-DIR

Takes bricks in their contexts that a data folder has several results of, by one runtime on one host, and compares each
result with the one before it (`dlbricks run --again` makes such results). Printed is, by how much the reference had
changed, how much of that change the latencies show (all of it would be 1), and by how much results differ before and
after they are divided by the change.
"""

import argparse
import math
import sys
from collections import defaultdict
from collections.abc import Iterator
from itertools import pairwise
from pathlib import Path
from statistics import median
from typing import NamedTuple

from dlbricks_tui.settings import DataFolder
from dlbricks_tui.store.conditions import where
from dlbricks_tui.store.queries import select
from dlbricks_tui.store.store import Store

# Shorter ones are known by some percent only, and tell nothing.
LEAST_MS = 0.05
MOVES = (0.0, 0.03, 0.06, 0.1, 0.15, 0.3, math.inf)
FEWEST = 10


class Result(NamedTuple):
    """What a brick took, and what the reference did beside it."""

    when: str
    brick_ms: float
    reference_ms: float


def main() -> int:
    """Prints a line for each size of change, host by host."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA-DIR")
    folder = DataFolder(parser.parse_args().data.absolute())
    found: defaultdict[str, defaultdict[tuple[str, ...], list[Result]]] = defaultdict(lambda: defaultdict(list))
    with Store(folder.store) as store:
        good = select(store.generation, where(of="brick", good=True))
        what = zip(*map(good.values, ("runtime", "level", "brick", "context")), strict=True)
        results = map(Result, *map(good.values, ("when", "trimmed_mean_ms", "reference_ms")))
        for system, key, result in zip(good.values("system"), what, results, strict=True):
            if result.reference_ms and result.brick_ms >= LEAST_MS:
                found[system][key].append(result)
    for system, of_each in found.items():
        changes = [change for each in of_each.values() for change in changes_of(sorted(each))]
        print(f"{system}: {len(changes)} results with one before them")
        for low, high in pairwise(MOVES):
            told([(moved, took) for moved, took in changes if low <= abs(moved) < high], low)
    return 0


def changes_of(results: list[Result]) -> Iterator[tuple[float, float]]:
    """From one result to the next, as logarithms: what the reference changed by, and the latency."""
    for before, after in pairwise(results):
        yield math.log(after.reference_ms / before.reference_ms), math.log(after.brick_ms / before.brick_ms)


def told(changes: list[tuple[float, float]], low: float) -> None:
    """A line about changes of one size."""
    if len(changes) < FEWEST:
        return
    followed = math.fsum(moved * took for moved, took in changes) / math.fsum(moved * moved for moved, _ in changes)
    apart = median(abs(took) for _, took in changes)
    left = median(abs(took - moved) for moved, took in changes)
    print(
        f"  reference changed by {low:4.0%} and more: {len(changes):5} results, {followed:+.2f} of it followed, "
        f"{apart:.1%} apart, {left:.1%} when that is taken off"
    )


if __name__ == "__main__":
    sys.exit(main())
