"""Replay runs with a target over committed results: how many bricks and seconds they save.

usage: python -m benchmarks.targets [--target SHARE] [FILE ...]

Each sample model that was measured in full is left out with its family, as in `benchmarks.predictions`, and measured
anew in the order of `dlbricks run --target`, until half of its interval is within the target (by default 5 %). A run
without a target measures all bricks that were left out. The seconds are those that a run by method alone expects.
"""

import argparse
import math
import sys
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from benchmarks.archive import committed
from benchmarks.predictions import Host, compared, estimated, family_of, needed, only_in, read
from dlbricks_tui.estimate.choice import needed_for
from dlbricks_tui.estimate.nearest import train
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.measure.jobs import cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.plan import plan
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.measure.time_left import expected_seconds

PART, FEWEST = 1 / 3, 8


class Replayed(NamedTuple):
    """A model as a run with a target measures it."""

    bricks: int
    measured: int
    seconds: float
    seconds_taken: float
    error: float
    holds: bool


def main() -> int:
    """Print what is saved on each host."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--target", type=float, default=0.05)
    arguments = parser.parse_args()
    every: list[Replayed] = []
    with tempfile.TemporaryDirectory() as folder:
        for host in read(DataFolder(Path(folder)), arguments.files or committed()[:1], ()):
            found = list(replayed(host, arguments.target))
            if found:
                framework = host.way.runtime.partition("-")[0]
                tell(f"{host.way.system}, {framework}, {host.way.level.value}", found)
                every += found
    tell("all", every)
    return 0


def replayed(host: Host, target: float) -> Iterator[Replayed]:
    """Yield each model of a host that has bricks to measure once it and its family are left out."""
    uses = {name: needed(model, host.examples) for name, model in host.models.items()}
    for name, model in host.models.items():
        gone = only_in(family_of(name, uses), uses)
        lacking = gone & uses[name].keys()
        if not lacking:
            continue
        predictor = train([each for pair, each in host.examples.items() if pair not in gone])
        left = set(gone)
        while True:
            found = estimated(host, name, left, predictor)
            wanted = needed_for(found, predictor.shared, target).pairs
            step = set(wanted[: max(FEWEST, math.ceil(PART * len(wanted)))])
            keys = {brick for brick, _ in step}
            before = len(left)
            left = {pair for pair in left if pair not in step and not (pair[0] in keys and pair in uses[name])}
            if len(left) == before:
                break
        jobs = plan([cut_model(model)], Known({}, {}), Adaptive(), method=Method.ALONE).jobs
        bricks, still = {brick for brick, _ in lacking}, {brick for brick, _ in left & lacking}
        new = [job for job in jobs if job.key.brick in bricks]
        taken = [job for job in new if job.key.brick not in still]
        whole = estimated(host, name)
        outcome = compared(name, whole, found)
        yield Replayed(
            len(lacking),
            len(lacking - left),
            expected_seconds(Method.ALONE, Adaptive(), new),
            expected_seconds(Method.ALONE, Adaptive(), taken) if taken else 0.0,
            abs(outcome.error),
            outcome.holds,
        )


def tell(where: str, found: Sequence[Replayed]) -> None:
    """Print a line about some models."""
    bricks, seconds = sum(it.bricks for it in found), sum(it.seconds for it in found)
    measured, taken = sum(it.measured for it in found), sum(it.seconds_taken for it in found)
    error, within = median(it.error for it in found), fmean(it.error <= 0.05 for it in found)
    print(
        f"{where:45} {len(found):4} models: {measured:,} of {bricks:,} bricks ({measured / bricks:.0%}), "
        f"{taken:,.0f} of {seconds:,.0f} s ({taken / seconds:.0%}); errors: median {error:.1%}, "
        f"within 5 % {within:.0%}; intervals hold {fmean(it.holds for it in found):.0%}",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
