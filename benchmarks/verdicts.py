"""Count wrong verdicts of every command that compares: equal things called slower, and real changes not found.

usage: python -m benchmarks.verdicts [FILE ...] [--apart SHARE] [--times N]

FILE is a file of `dlbricks results export`; by default those in docs/.

- Comparisons are simulated N times, by the functions of each command. A process differs from others by a random factor
  with the standard deviation SHARE (without it: 1, 2 and 3 %). Its 20 samples vary around that as those of a random
  whole model in FILE do.
- If FILE has models that were timed in several runs of one system, runtime and method, these are compared, too. Nothing
  has changed between them, so each verdict `slower` or `faster` is wrong. Then the samples of the second run are made
  longer by a known share, which `slower` has to find.
"""

import argparse
import math
import random
from array import array
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from datetime import datetime
from itertools import pairwise
from pathlib import Path
from statistics import median

from benchmarks.archive import committed
from dlbricks_tui.api.changes import compare, overall
from dlbricks_tui.api.evaluating import comparison
from dlbricks_tui.api.sides import Found, ResultExecution, Side, Subject
from dlbricks_tui.evaluations.baseline import baseline_of_one_process
from dlbricks_tui.evaluations.evaluation import RecordedResult
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Kernels, Precision
from dlbricks_tui.store.change import (
    BESIDE_BEST,
    FEWEST_SAMPLES,
    USUAL_SHARE,
    Timing,
    Verdict,
    changes_from,
    compared,
    timing_of,
)
from dlbricks_tui.store.exchange import read_export
from dlbricks_tui.store.records import EndToEnd, RuntimeRecord, System
from dlbricks_tui.store.statistics import summarise

LIMITS = (0.03, 0.05, 0.10)
CHANGES = (0.0, 0.05)
# The numbers of processes of both sides.
PROCESSES = ((1, 1), (1, 3), (3, 3), (5, 5))
APART = (0.01, 0.02, 0.03)
SAMPLES = 20
_SEED = 1127
_TITLES = "SLOWER  SAME  FASTER  UNKNOWN"

Pair = tuple[EndToEnd, EndToEnd]


def main() -> None:
    """Print the verdicts on simulated comparisons, and on pairs of runs."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", metavar="FILE", nargs="*", type=Path)
    parser.add_argument("--apart", metavar="SHARE", type=float, action="append", help="such as 0.02; repeatable")
    parser.add_argument(
        "--times", metavar="N", type=int, default=500, help="simulated comparisons per row (default: 500)"
    )
    arguments = parser.parse_args()
    results = [it for file in arguments.files or committed() for it in whole_models(file)]
    shapes = [shape(it) for it in results if len(it.steady_ms) >= FEWEST_SAMPLES]
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
    return timing_of([[sample * (1 + longer) for sample in result.steady_ms]])


def tell_pairs(found: Sequence[Pair]) -> None:
    """Print how far runs differ, and the verdicts on them."""
    hours = [apart.total_seconds() / 3600 for apart in (_time(b) - _time(a) for a, b in found)]
    ratios = sorted(abs(math.log(b.statistics.trimmed_mean_ms / a.statistics.trimmed_mean_ms)) for a, b in found)
    samples = [len(it.steady_ms) for pair in found for it in pair]
    few = sum(min(len(it.steady_ms) for it in pair) < FEWEST_SAMPLES for pair in found)
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
            verdicts = Counter(compared(timing(a), timing(b, longer), changes_from(by)).verdict for a, b in found)
            print(f"{by:5.0%}  {longer:+6.0%}  {shares(verdicts)}")


def tell_simulated(shapes: Sequence[Sequence[float]], deviations: Sequence[float], times: int) -> None:
    """Print how often each command calls equal things slower, and how often it finds real changes."""
    print(f"verdicts on simulated comparisons, in percent\n{'COMMAND':34}  APART  WAS  NOW  CHANGE  {_TITLES}")
    for command, verdict in COMMANDS.items():
        for was, now in PROCESSES:
            for apart in deviations:
                for longer in CHANGES:
                    chance = random.Random(_SEED)
                    verdicts = Counter(verdict(*pair(was, now, longer, apart, shapes, chance)) for _ in range(times))
                    where = f"{command:34}  {apart:5.0%}  {was:3}  {now:3}  {longer:+6.0%}"
                    print(f"{where}  {shares(verdicts)}", flush=True)


Processes = Sequence[Sequence[float]]


def pair(
    was: int, now: int, longer: float, apart: float, shapes: Sequence[Sequence[float]], chance: random.Random
) -> tuple[Processes, Processes]:
    """Return the samples of so many processes before and after a model became longer."""
    one = chance.choice(shapes)

    def process(factor: float) -> list[float]:
        own = factor * math.exp(chance.gauss(0, apart))
        return [own * sample for sample in chance.choices(one, k=SAMPLES)]

    return [process(10.0) for _ in range(was)], [process(10.0 + 10.0 * longer) for _ in range(now)]


def by_check(was: Processes, now: Processes) -> Verdict:
    """Return the verdict of `dlbricks check`."""
    return compared(timing_of(was), timing_of(now), changes_from(USUAL_SHARE)).verdict


def by_evaluation(was: Processes, now: Processes) -> Verdict:
    """Return the verdict of `dlbricks evaluate --compare`."""
    earlier, today = (
        replace(
            baseline_of_one_process(RecordedResult(model="m", framework="f", version="1", when=""), Level.FUSED),
            timing=timing_of(it),
        )
        for it in (was, now)
    )
    (found,) = comparison([today], [earlier], USUAL_SHARE)
    return found.verdict


def by_results(was: Processes, now: Processes) -> Verdict:
    """Return the verdict on a model in two sides, each with a result of each process."""
    (found,) = compare(*(Side(name="", results=tuple(_results(it))) for it in (was, now))).models
    return found.change.verdict


def by_all_results(was: Processes, now: Processes) -> Verdict:
    """Return the verdict on two sides as a whole."""
    found = overall(compare(*(Side(name="", results=tuple(_results(it))) for it in (was, now))).models)
    return Verdict.UNKNOWN if found is None else found.verdict


def _results(processes: Processes) -> Iterator[Found]:
    execution = ResultExecution("here", "f", "1", "3", 1, 1, Precision.F32, Kernels(), (), Level.FUSED, "inside")
    for number, samples in enumerate(processes):
        when = f"2026-11-27T08:0{number}:00+00:00"
        about = (Subject(True, "m"), "m", execution, "", "f", f"run {number}", when)
        yield Found(str(number), *about, summarise(samples), array("d", samples))


def by_ranking(was: Processes, now: Processes) -> Verdict:
    """Return the verdict on one of two combinations, or systems, against the best by the newest process of each."""
    best, other = sorted((was, now), key=newest_ms)
    change = compared(timing_of(best), timing_of(other), BESIDE_BEST)
    return change.around(newest_ms(other) / newest_ms(best)).verdict


def newest_ms(processes: Processes) -> float:
    """Return the latency of the newest process, by which commands order and show combinations."""
    return timing_of(processes[-1:]).value_ms


COMMANDS = {
    "check": by_check,
    "evaluate --compare": by_evaluation,
    "results compare, report --compare": by_results,
    "compare A B, V, --fail-above": by_all_results,
    "compare MODEL, systems compare": by_ranking,
}


def shares(verdicts: Counter[Verdict]) -> str:
    """Return the verdicts as percentages, in the order of the titles."""
    order = (Verdict.SLOWER, Verdict.SAME, Verdict.FASTER, Verdict.UNKNOWN)
    total = sum(verdicts.values())
    widths = (6, 4, 6, 7)
    return "  ".join(f"{100 * verdicts[it] / total:{width}.1f}" for it, width in zip(order, widths, strict=True))


def shape(result: EndToEnd) -> list[float]:
    """Return the samples of a run over their mean."""
    samples = result.steady_ms
    middle = result.statistics.trimmed_mean_ms
    return [sample / middle for sample in samples]


def _time(result: EndToEnd) -> datetime:
    return datetime.fromisoformat(result.when)


if __name__ == "__main__":
    main()
