"""Leave each system of some results out, and estimate models on it from other systems and a few of its bricks.

usage: python -m benchmarks.probe [--checkout DIR ...] [--bricks N] [--predictor NAME] [--choose] [--fifty] [FILE ...]

FILE is a file of `dlbricks results export` (by default the committed ones), and DIR a checkout of the published
measurements of 2019. The bricks that a probe would choose have their measured latency, and all others a predicted one.
The estimate is compared with the one from measured bricks only, for each sample model whose bricks were all measured
both on the system and on others.

A line for each system has the median of the errors, the error that nine of ten models do not exceed, the share of
models within 10 %, the largest error, and the share of 95 % intervals that hold. The same follows with a single known
system, as the mean over all of them. The exit status is 1 if a target is missed.

common      one factor for all bricks: the median of the measured ones
ridge       a ridge regression of log latencies on those of the known systems
neighbours  the four measured bricks that are nearest in the log latencies of the known systems, within their kind
process     what dlbricks does: a Gaussian process

With --fifty, only the models of the paper's Table 1 count. With --choose, the variances of the process for each system
are those that fit the other systems best: then no figure of a system depends on its own results.
"""

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import product
from pathlib import Path
from statistics import fmean

import numpy as np

from benchmarks.archive import committed
from benchmarks.predictions import Host, estimated, measured_as, needed, read
from benchmarks.predictors import NEAR
from dlbricks_tui.api.opening import library
from dlbricks_tui.estimate.choice import Limit, Trial, most_informative
from dlbricks_tui.estimate.knowledge import Latency, Pair, Unmeasured
from dlbricks_tui.estimate.nearest import Example, Numbers
from dlbricks_tui.estimate.transfer import (
    SHARED,
    USUAL,
    Deviations,
    Law,
    deviations,
    known_brick,
)
from dlbricks_tui.folders import DataFolder

# The targets for the fifty: with several known systems, and with a single one.
MEDIAN, WITHIN_TEN, MEDIAN_OF_ONE = 0.03, 0.9, 0.06
LAWS = tuple(
    Law(kind=kind, near=near, like_known=like_known, own=own)
    for kind, near, like_known, own in product((0.1, 0.3), (0.03, 0.1), (0.1, 0.3), (0.008, 0.016, 0.03))
)
RIDGE = 1.0


@dataclass(frozen=True)
class Outcome:
    """The errors of the estimates of models, and whether their intervals hold."""

    errors: Sequence[float]
    holds: Sequence[bool]

    @property
    def median(self) -> float:
        """The error that half of the models do not exceed."""
        return float(np.median(np.abs(self.errors)))

    @property
    def nine_in_ten(self) -> float:
        """The error that nine of ten models do not exceed."""
        return float(np.quantile(np.abs(self.errors), 0.9))

    @property
    def within_ten(self) -> float:
        """The share of models within 10 %."""
        return fmean(abs(error) <= 0.1 for error in self.errors)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--checkout", type=Path, action="append", default=[])
    parser.add_argument("--bricks", type=int, default=30)
    parser.add_argument("--predictor", choices=PREDICTORS, default=OURS)
    parser.add_argument("--choose", action="store_true")
    parser.add_argument("--fifty", action="store_true")
    arguments = parser.parse_args()
    files = arguments.files or ([] if arguments.checkout else committed())
    alike: defaultdict[tuple[str, str, str], list[Host]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        data = DataFolder(Path(folder))
        fifty = {source.name for source in library(data).samples() if source.table1_id}
        for host in read(data, files, arguments.checkout):
            if arguments.fifty:
                host = host._replace(models={name: it for name, it in host.models.items() if name in fifty})
            alike[host.way.runtime, host.way.level.value, host.way.protocol].append(host)
    several = {way: hosts for way, hosts in alike.items() if len(hosts) > 1}
    if not several:
        sys.exit("no two systems have results by one runtime and method")
    kept = True
    for way, hosts in several.items():
        print(f"{', '.join(way)}: {arguments.bricks} bricks of the system that is left out, by {arguments.predictor}")
        outcome_of = partial(left_out, count=arguments.bricks, predictor=PREDICTORS[arguments.predictor])
        kept &= tell(hosts, outcome_of, choose=arguments.choose)
    return 0 if kept else 1


def tell(hosts: Sequence[Host], outcome_of: Callable[..., Outcome | None], *, choose: bool) -> bool:
    """Print a line for each system that is left out, and return True if all targets are met."""
    print(f"{'':24} models  median   9 in 10  in 10 %   worst  in interval | one known: median   9 in 10  in interval")
    kept = True
    for host in hosts:
        others = [other for other in hosts if other is not host]
        law = best_for(others, outcome_of) if choose else USUAL
        many = outcome_of(host, others, law=law)
        singles = [one for other in others if (one := outcome_of(host, [other], law=law)) is not None]
        if many is None:
            continue
        of_one = [fmean(getattr(it, name) for it in singles) for name in ("median", "nine_in_ten")]
        kept &= many.median <= MEDIAN and many.within_ten >= WITHIN_TEN and of_one[0] <= MEDIAN_OF_ONE
        print(
            f"{host.way.system[:24]:24} {len(many.errors):6} {many.median:7.1%} {many.nine_in_ten:9.1%} "
            f"{many.within_ten:8.0%} {max(map(abs, many.errors)):7.1%} {fmean(many.holds):12.0%} | "
            f"{of_one[0]:17.1%} {of_one[1]:9.1%} {fmean(fmean(it.holds) for it in singles):12.0%}",
            flush=True,
        )
    return kept


def best_for(hosts: Sequence[Host], outcome_of: Callable[..., Outcome | None]) -> Law:
    """Return the law with the least errors on some systems, each left out in turn."""

    def errors(law: Law) -> float:
        found = [outcome_of(host, [other for other in hosts if other is not host], law=law) for host in hosts]
        return fmean(it.median + it.nine_in_ten for it in found if it is not None)

    return min(LAWS, key=errors)


def left_out(
    host: Host, others: Sequence[Host], count: int, predictor: Callable[[Deviations], Numbers] | None, law: Law = USUAL
) -> Outcome | None:
    """Estimate the models of a system from others, and from those bricks of it that a probe would measure.

    None if no model was measured on both.
    """
    elsewhere = {pair for other in others for pair in other.examples}
    every = {name: needed(model, host.examples) for name, model in host.models.items()}
    uses = {name: used for name, used in every.items() if used and used.keys() <= elsewhere}
    if not uses:
        return None
    pairs = sorted({pair for used in uses.values() for pair in used})
    bricks = [
        known_brick(
            pair,
            host.examples[pair].canonical,
            {it.way.system: it.examples[pair].latency_ms for it in others if pair in it.examples},
        )
        for pair in pairs
    ]
    before = deviations(bricks, law)
    trials = [Trial((pair,), 0.0) for pair in pairs]
    chosen = most_informative(before, list(uses.values()), trials, Limit(count, math.inf))
    measured = {pair for trial in chosen for pair in trial.pairs}
    after = before.given({pair: host.examples[pair].latency_ms for pair in measured})
    without = frozenset(pairs) - measured
    transferred = Transferred(after, host.examples, None if predictor is None else predictor(after))
    errors, holds = [], []
    for name in uses:
        truth = estimated(host, name).composed
        found = estimated(host, name, without, transferred).composed
        assert truth is not None
        assert found is not None
        errors.append(found.sequential_ms / truth.sequential_ms - 1)
        holds.append(found.latency.low_ms <= truth.sequential_ms <= found.latency.high_ms)
    return Outcome(errors, holds)


@dataclass(frozen=True)
class Transferred:
    """Predicts the bricks that other systems have measured."""

    system: Deviations
    examples: Mapping[Pair, Example]
    # Deviations by another predictor, which has no intervals; None: those of the process.
    instead: Numbers | None
    shared: float = SHARED

    def predict(self, bricks: Sequence[Unmeasured]) -> Sequence[Latency | None]:
        """Return the latency of each brick."""
        pairs = [measured_as((brick.key, brick.context), self.examples) for brick in bricks]
        if self.instead is None:
            return self.system.predict(pairs)
        places = [self.system.places[pair] for pair in pairs]
        values_ms = np.exp(self.system.means[places] + self.instead[places]).tolist()
        return [Latency(value_ms, value_ms, value_ms) for value_ms in values_ms]


def common(system: Deviations) -> Numbers:
    """Return one deviation for all bricks."""
    return np.full(len(system.pairs), np.median(system.found))


def ridge(system: Deviations) -> Numbers:
    """Return the deviations that are linear in the log latencies of the known systems."""
    logs = np.column_stack([system.means, system.differences])
    middle, spread = logs[system.measured].mean(axis=0), logs[system.measured].std(axis=0) + 1e-9
    columns = (logs - middle) / spread
    measured, mean = columns[system.measured], float(system.found.mean())
    weights = np.linalg.solve(
        measured.T @ measured + RIDGE * np.eye(columns.shape[1]), measured.T @ (system.found - mean)
    )
    return np.asarray(mean + columns @ weights)


def neighbours(system: Deviations) -> Numbers:
    """Return the mean deviation of the nearest measured bricks; those of another kind are far."""
    logs = np.column_stack([system.means, system.differences])
    apart = np.linalg.norm(logs[:, None] - logs[system.measured], axis=2)
    apart += 100.0 * (system.kinds[:, None] != system.kinds[system.measured])
    near = np.argsort(apart, axis=1)[:, :NEAR]
    weights = 1.0 / (np.take_along_axis(apart, near, axis=1) + 0.1) ** 2
    return np.asarray((weights * system.found[near]).sum(axis=1) / weights.sum(axis=1))


OURS = "process"
PREDICTORS: Mapping[str, Callable[[Deviations], Numbers] | None] = {
    "common": common,
    "ridge": ridge,
    "neighbours": neighbours,
    OURS: None,
}


if __name__ == "__main__":
    sys.exit(main())
