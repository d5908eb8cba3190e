"""Count wrong verdicts of `dlbricks check`: equal things called slower, and real changes that are not found.

usage: python -m benchmarks.verdicts [FILE ...] [--apart SHARE] [--times N]

FILE is a file of `dlbricks results export`; by default those in docs/.

- Checks are simulated N times. A process differs from others by a random factor with the standard deviation SHARE
  (without it: 1, 2 and 3 %). Its 20 samples vary around that as those of a random whole model in FILE do.
- If FILE has models that were timed in several runs of one system, runtime and method, these are compared, too. Nothing
  has changed between them, so each verdict `slower` or `faster` is wrong. Then the samples of the second run are made
  longer by a known share, which `slower` has to find.
"""

import argparse
import math
import random
from collections import Counter, defaultdict
from collections.abc import Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.archive import committed
from dlbricks_tui.evaluations.baseline import steady_samples_ms
from dlbricks_tui.evaluations.change import FEWEST_SAMPLES, CheckVerdict, Timing, compared, timing_of
from dlbricks_tui.store.importing import read_export
from dlbricks_tui.store.records import EndToEnd, RuntimeRecord, System

LIMITS = (0.03, 0.05, 0.10)
CHANGES = (0.0, 0.05, 0.10)
# The numbers of processes of the baseline and of the check.
PROCESSES = ((1, 1), (1, 3), (3, 3), (1, 5), (5, 5))
APART = (0.01, 0.02, 0.03)
SAMPLES = 20
_SEED = 1127
_TITLES = "SLOWER  SAME  FASTER  UNKNOWN"

Pair = tuple[EndToEnd, EndToEnd]


def main() -> None:
    """Print the verdicts on simulated checks, and on pairs of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    parser.add_argument("--apart", metavar="SHARE", type=float, action="append", help="such as 0.02; repeatable")
    parser.add_argument("--times", metavar="N", type=int, default=500, help="simulated checks per row (default: 500)")
    arguments = parser.parse_args()
    results = [it for file in arguments.files or committed() for it in whole_models(file)]
    shapes = [shape(it) for it in results if len(steady_samples_ms(it)) >= FEWEST_SAMPLES]
    print(f"{len(results)} results of whole models, {len(results) - len(shapes)} with too few samples for a verdict")
    tell_simulated(shapes, arguments.apart or APART, arguments.times)
    if found := pairs(results):
        tell_pairs(found)


def whole_models(file: Path) -> list[EndToEnd]:
    """Return the good results of whole models in a file."""
    records, _ = read_export(file, (EndToEnd, System, RuntimeRecord))
    return [it for it in records if isinstance(it, EndToEnd) and it.good]


def pairs(results: Sequence[EndToEnd]) -> list[Pair]:
    """Return consecutive results of the same model under the same conditions, of different runs."""
    alike: defaultdict[tuple[object, ...], list[EndToEnd]] = defaultdict(list)
    for it in results:
        alike[it.model, it.system, it.runtime, it.level, it.protocol, it.batch_size].append(it)
    ordered = (sorted(those, key=lambda it: it.when) for those in alike.values())
    return [(one, next_one) for those in ordered for one, next_one in pairwise(those) if one.run != next_one.run]


def timing(result: EndToEnd, longer: float = 0.0) -> Timing:
    """Return a result as a timing, with a real change if there is any."""
    return timing_of([[sample * (1 + longer) for sample in steady_samples_ms(result)]])


def tell_pairs(found: Sequence[Pair]) -> None:
    """Print how far runs differ, and the verdicts on them."""
    hours = [apart.total_seconds() / 3600 for apart in (_time(b) - _time(a) for a, b in found)]
    ratios = sorted(abs(math.log(b.statistics.trimmed_mean_ms / a.statistics.trimmed_mean_ms)) for a, b in found)
    samples = [len(steady_samples_ms(it)) for pair in found for it in pair]
    few = sum(min(len(steady_samples_ms(it)) for it in pair) < FEWEST_SAMPLES for pair in found)
    print(
        f"{len(found)} pairs of runs of {len({a.model for a, _ in found})} models, {median(hours):.1f} h apart (median)"
    )
    print(f"{median(samples):.0f} samples (median), {few} pairs with fewer than {FEWEST_SAMPLES} on a side")
    places = ", ".join(
        f"{share:.0%} within {ratios[round(share * (len(ratios) - 1))]:.1%}" for share in (0.5, 0.8, 0.9)
    )
    print(f"they differ: {places}\n")
    print(f"verdicts on pairs of runs, in percent\nLIMIT  CHANGE  {_TITLES}")
    for by in LIMITS:
        for longer in CHANGES:
            verdicts = Counter(compared(timing(a), timing(b, longer), by).verdict for a, b in found)
            print(f"{by:5.0%}  {longer:+6.0%}  {shares(verdicts)}")


def tell_simulated(shapes: Sequence[Sequence[float]], deviations: Sequence[float], times: int) -> None:
    """Print the verdicts on simulated checks."""
    print(f"verdicts on simulated checks, in percent\nAPART  WAS  NOW  LIMIT  CHANGE  {_TITLES}")
    for apart in deviations:
        for was, now in PROCESSES:
            for longer in CHANGES:
                chance = random.Random(_SEED)
                simulated = [check(was, now, longer, apart, shapes, chance) for _ in range(times)]
                for by in LIMITS:
                    verdicts = Counter(compared(*one, by).verdict for one in simulated)
                    print(f"{apart:5.0%}  {was:3}  {now:3}  {by:5.0%}  {longer:+6.0%}  {shares(verdicts)}", flush=True)


def check(
    was: int, now: int, longer: float, apart: float, shapes: Sequence[Sequence[float]], chance: random.Random
) -> tuple[Timing, Timing]:
    """Return the timings of a simulated check with so many processes on both sides, of a model that became longer."""
    one = chance.choice(shapes)

    def process(factor: float) -> list[float]:
        own = factor * math.exp(chance.gauss(0, apart))
        return [own * sample for sample in chance.choices(one, k=SAMPLES)]

    return timing_of([process(10.0) for _ in range(was)]), timing_of(
        [process(10.0 + 10.0 * longer) for _ in range(now)]
    )


def shares(verdicts: Counter[CheckVerdict]) -> str:
    """Return the verdicts as percentages, in the order of the titles."""
    order = (CheckVerdict.SLOWER, CheckVerdict.SAME, CheckVerdict.FASTER, CheckVerdict.UNKNOWN)
    total = sum(verdicts.values())
    widths = (6, 4, 6, 7)
    return "  ".join(f"{100 * verdicts[it] / total:{width}.1f}" for it, width in zip(order, widths, strict=True))


def shape(result: EndToEnd) -> list[float]:
    """Return the samples of a run over their mean."""
    samples = steady_samples_ms(result)
    middle = result.statistics.trimmed_mean_ms
    return [sample / middle for sample in samples]


def _time(result: EndToEnd) -> datetime:
    return datetime.fromisoformat(result.when)


if __name__ == "__main__":
    main()
