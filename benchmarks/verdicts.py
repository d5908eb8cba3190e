"""Count wrong verdicts of `dlbricks check`: equal things called slower, and real changes that are not found.

usage: python -m benchmarks.verdicts [FILE ...] [--times N]

FILE is a file of `dlbricks results export`; by default those in docs/. Two tables are printed:

1. Pairs of runs. Whole models that were timed in two runs of the same system, runtime and method, one after the other.
   Nothing has changed between them, so each verdict `slower` or `faster` is wrong. Then the samples of the second run
   are made longer by a known share, which `slower` has to find.
2. Several processes. Baseline and check are drawn N times: a process differs from others as the runs of the first table
   do, and its samples vary around it as those of a random run do.
"""

import argparse
import math
import random
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.command_line import ROOT
from dlbricks_tui.evaluations.baseline import steady_samples_ms
from dlbricks_tui.evaluations.change import FEWEST_SAMPLES, Timing, Verdict, compared, timing_of
from dlbricks_tui.store.importing import read_export
from dlbricks_tui.store.records import EndToEnd, Runtime, System

COMMITTED = (ROOT / "docs" / "accuracy-results.json.gz", ROOT / "docs" / "accuracy-results-onnx.json.gz")
LIMITS = (0.01, 0.02, 0.03, 0.05, 0.10)
CHANGES = (0.0, 0.03, 0.05, 0.10, 0.20)
PROCESSES = (1, 2, 3, 5)
# The median of absolute deviations is this share of the standard deviation of normal numbers.
_MAD_OF_DEVIATION = 0.6745
_SEED = 1127

Pair = tuple[EndToEnd, EndToEnd]


def main() -> None:
    """Print both tables."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path, default=COMMITTED)
    parser.add_argument("--times", metavar="N", type=int, default=1000, help="simulated checks per row (default: 1000)")
    arguments = parser.parse_args()
    results = [it for file in arguments.files for it in whole_models(file)]
    found = pairs(results)
    if not found:
        print(f"{len(results)} results of whole models, none of them timed twice: no pairs")
        return
    tell_pairs(found)
    tell_processes(found, arguments.times)


def whole_models(file: Path) -> list[EndToEnd]:
    """Return the good results of whole models that have enough samples for a verdict."""
    records, _ = read_export(file, (EndToEnd, System, Runtime))
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
    print("verdicts on pairs of runs, in percent\nLIMIT  CHANGE  SLOWER  SAME  FASTER  UNKNOWN")
    for by in LIMITS:
        for longer in CHANGES:
            if longer in (0.0, 0.05, 0.10):
                verdicts = Counter(compared(timing(a), timing(b, longer), by).verdict for a, b in found)
                print(f"{by:5.0%}  {longer:+6.0%}  {shares(verdicts)}")
    print()


def tell_processes(found: Sequence[Pair], times: int) -> None:
    """Print the verdicts on simulated checks with several processes."""
    ratios = [math.log(b.statistics.trimmed_mean_ms / a.statistics.trimmed_mean_ms) for a, b in found]
    apart = median(abs(ratio) for ratio in ratios) / _MAD_OF_DEVIATION / math.sqrt(2)
    shapes = [_shape(it) for pair in found for it in pair if len(steady_samples_ms(it)) >= FEWEST_SAMPLES]
    print(f"simulated checks: a process differs from the mean of all by {apart:.1%} (standard deviation)")
    print("WAS  NOW  LIMIT  CHANGE  SLOWER  SAME  FASTER  UNKNOWN")
    for was, now in [(1, 1), *((1, many) for many in PROCESSES[1:]), *((many, many) for many in PROCESSES[1:])]:
        for by in (0.03, 0.05):
            for longer in CHANGES:
                chance = random.Random(_SEED)
                verdicts = Counter(
                    compared(
                        timing_of(list(processes(was, 0.0, apart, shapes, chance))),
                        timing_of(list(processes(now, longer, apart, shapes, chance))),
                        by,
                    ).verdict
                    for _ in range(times)
                )
                print(f"{was:3}  {now:3}  {by:5.0%}  {longer:+6.0%}  {shares(verdicts)}")


def processes(
    count: int, longer: float, apart: float, shapes: Sequence[Sequence[float]], chance: random.Random
) -> Iterator[list[float]]:
    """Yield the samples of several processes; all have the shape of one random run."""
    shape = chance.choice(shapes)
    for _ in range(count):
        own = (1 + longer) * math.exp(chance.gauss(0, apart))
        yield [10.0 * own * chance.choice(shape) for _ in shape]


def shares(verdicts: Counter[Verdict]) -> str:
    """Return the verdicts as percentages, in the order of the titles."""
    order = (Verdict.SLOWER, Verdict.SAME, Verdict.FASTER, Verdict.UNKNOWN)
    total = sum(verdicts.values())
    widths = (6, 4, 6, 7)
    return "  ".join(f"{100 * verdicts[it] / total:{width}.1f}" for it, width in zip(order, widths, strict=True))


def _shape(result: EndToEnd) -> list[float]:
    """Return the samples of a run over their mean."""
    samples = steady_samples_ms(result)
    middle = result.statistics.trimmed_mean_ms
    return [sample / middle for sample in samples]


def _time(result: EndToEnd) -> datetime:
    return datetime.fromisoformat(result.when)


if __name__ == "__main__":
    main()
