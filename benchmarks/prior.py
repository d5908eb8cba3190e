"""Make the prior of predictions from committed results: the files in dlbricks_tui/estimate/priors.

usage: python -m benchmarks.prior [FILE ...]

FILE is a file of `dlbricks results export`, by default the committed ones. For each framework and level, the latencies
of each host are divided by its usual ratio to the mean of all hosts. The intervals are those with which each brick is
predicted on each host without the family of its model. A prior keeps some bricks of each operator, with their mean over
the hosts.
"""

import argparse
import math
import sys
import tempfile
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import fmean, median

import numpy as np

from benchmarks.archive import MADE_UP, committed
from benchmarks.predictions import Host, family_of, needed, read
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.estimate.knowledge import Pair
from dlbricks_tui.estimate.nearest import FEWEST, Example, NearestBricks, train
from dlbricks_tui.estimate.predictors import PRIORS, Trained, write_trained
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level

MOST_OF_AN_OPERATOR = 300
LEAST_MS = 3e-4


def main() -> int:
    """Write a file for each framework and level with results."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*")
    arguments = parser.parse_args()
    by_prior: defaultdict[tuple[str, Level], list[Host]] = defaultdict(list)
    with tempfile.TemporaryDirectory() as folder:
        for host in read(DataFolder(Path(folder)), arguments.files or (*committed(), *committed(MADE_UP)), ()):
            by_prior[host.way.runtime.partition("-")[0], host.way.level].append(host)
    for (framework, level), hosts in by_prior.items():
        path = PRIORS / f"{framework}-{level.value}.npz"
        every = as_one_host(hosts)
        intervals = train(example for host in every for example in host.values())
        kept = list(thinned(means(every)))
        if not kept:
            continue
        write_trained(path, Trained(rounded(train(kept, widths_of=intervals))))
        print(
            f"{path.name}: {len(kept)} bricks of {len(intervals.operators)} operators from {len(hosts)} hosts, "
            f"{path.stat().st_size / 1024:.0f} KiB, shared {intervals.shared:.2f}"
        )
    return 0


def rounded(found: NearestBricks) -> NearestBricks:
    """Return a predictor whose numbers take half of the space."""
    short = {
        name: replace(each, shapes=each.shapes.astype(np.float32), excess=each.excess.astype(np.float32))
        for name, each in found.operators.items()
    }
    return replace(found, operators=short)


def as_one_host(hosts: Sequence[Host]) -> Sequence[Mapping[Pair, Example]]:
    """Return the bricks of each host as if all were equally fast, with the family of a model as their group."""
    held: defaultdict[Pair, list[float]] = defaultdict(list)
    for host in hosts:
        for pair, each in host.examples.items():
            held[pair].append(logarithm(each))
    usual = {pair: fmean(logs) for pair, logs in held.items() if len(logs) > 1}
    found = []
    for host in hosts:
        common = host.examples.keys() & usual
        slower = median(logarithm(host.examples[pair]) - usual[pair] for pair in common) if common else 0.0
        owners = owners_of(host)
        found.append(
            {
                pair: each._replace(latency_ms=math.exp(logarithm(each) - slower), group=owners.get(pair, each.group))
                for pair, each in host.examples.items()
            }
        )
    return found


def owners_of(host: Host) -> Mapping[Pair, str]:
    """Return the family of the first model that uses each brick, by the name of one of its members."""
    uses = {name: needed(model, host.examples) for name, model in host.models.items()}
    families = {name: min(family_of(name, uses)) for name in uses}
    return {pair: families[name] for name in reversed(uses) for pair in uses[name]}


def logarithm(example: Example) -> float:
    """Return the logarithm of a latency."""
    return math.log(max(LEAST_MS, example.latency_ms))


def means(hosts: Sequence[Mapping[Pair, Example]]) -> Iterable[Example]:
    """Yield each brick with its mean over the hosts that have it."""
    held: defaultdict[Pair, list[Example]] = defaultdict(list)
    for host in hosts:
        for pair, each in host.items():
            held[pair].append(each)
    for same in held.values():
        yield same[0]._replace(latency_ms=math.exp(fmean(map(logarithm, same))))


def thinned(examples: Iterable[Example]) -> Iterable[Example]:
    """Yield some bricks of each operator, evenly by shape."""
    held: defaultdict[str, list[tuple[object, Example]]] = defaultdict(list)
    for each in examples:
        features = features_of(each.canonical, each.context)
        if features is not None:
            held[features.operator].append(((sorted(features.traits), features.sizes), each))
    for bricks in held.values():
        if len(bricks) >= FEWEST:
            bricks.sort(key=lambda it: it[0])  # type: ignore[arg-type, return-value]
            step = max(1.0, len(bricks) / MOST_OF_AN_OPERATOR)
            yield from (bricks[int(place * step)][1] for place in range(int(len(bricks) / step)))


if __name__ == "__main__":
    sys.exit(main())
