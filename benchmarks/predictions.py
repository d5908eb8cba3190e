"""Compare ways to predict the latencies of models that were never measured, by leaving models out.

usage: python -m benchmarks.predictions [--checkout DIR ...] [--confidence SHARE] [--models] [--operators] [FILE ...]

FILE is a file of `dlbricks results export` (by default the committed one of three hosts), and DIR a checkout of the
published measurements of 2019. Each sample model that was measured in full is left out: by itself, or with its
family, which is each model that shares 90 % of its layers. Bricks that other models have stay known. The estimate
with predictions is compared with the estimate from measurements.

`benchmarks.predictors` describes the predictors that are compared. `--operators` leaves each operator out instead, and
predicts its bricks by all others.
"""

import argparse
import math
import sys
import tempfile
from collections import Counter, defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence, Set
from dataclasses import dataclass, replace
from functools import partial
from importlib.util import find_spec
from pathlib import Path
from statistics import fmean, median
from typing import NamedTuple

from benchmarks.archive import committed
from benchmarks.predictors import NO_LATENCY_MS, OURS, PREDICTORS, TREES
from dlbricks_tui.api.opening import ModelLoaders, library
from dlbricks_tui.api.session import SILENT
from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.estimate.knowledge import Knowledge, Latency, MeasuredLatency, Pair, Predictor, Unmeasured
from dlbricks_tui.estimate.nearest import LEAST_MS, Example, train
from dlbricks_tui.estimate.predictors import examples_of, results_of
from dlbricks_tui.estimate.system_estimate import format_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.loading import UNLOADABLE
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.exchange import import_file
from dlbricks_tui.store.published import PublishedModels, import_checkout
from dlbricks_tui.store.records import ANY_CONTEXT
from dlbricks_tui.store.selections import Way, by_id, combinations

ONE, WITH_FAMILY = "one", "with family"
# The models of a family share so much of their layers.
FAMILY = 0.9
# Older results distinguish more states of the caches.
WARM = ("", "resident", "primed")


class Host(NamedTuple):
    """The results of one way of measuring: bricks in their contexts, and the models that were measured in full."""

    way: Way
    examples: Mapping[Pair, Example]
    models: Mapping[str, Decomposition]


@dataclass(frozen=True)
class LeftOut:
    """A model whose own bricks are predicted; errors are shares of its latency."""

    model: str
    error: float
    holds: bool
    # Half of the interval.
    half: float
    # The errors of the single bricks.
    bricks: Sequence[float]
    # The share of the latency of layers that could not be predicted. The errors are of the others.
    refused: float


def main() -> int:
    """Print the errors of each predictor on each host; exit status 1 if a target is missed."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("files", type=Path, nargs="*")
    parser.add_argument("--checkout", type=Path, action="append", default=[])
    parser.add_argument("--confidence", type=float, default=0.9)
    parser.add_argument("--only", action="append", choices=PREDICTORS, help="compare these predictors only")
    parser.add_argument("--models", action="store_true", help="print each model")
    parser.add_argument("--operators", action="store_true", help="leave operators out, not models")
    arguments = parser.parse_args()
    files = arguments.files or ([] if arguments.checkout else committed()[: None if arguments.operators else 1])
    with tempfile.TemporaryDirectory() as folder:
        hosts = list(read(DataFolder(Path(folder)), files, arguments.checkout))
    if arguments.operators:
        for host in hosts:
            tell_operators(host)
        return 0
    every: defaultdict[tuple[str, str], list[LeftOut]] = defaultdict(list)
    for name in arguments.only or [name for name in PREDICTORS if name != TREES or find_spec("sklearn")]:
        for host in hosts:
            for together in (ONE, WITH_FAMILY):
                found = leave_out(host, together, partial(PREDICTORS[name], confidence=arguments.confidence))
                every[name, together] += found
                framework = host.way.runtime.partition("-")[0]
                tell(f"{host.way.system}, {framework}, {host.way.level.value}", name, together, found)
                if arguments.models:
                    for each in sorted(found, key=lambda it: -abs(it.error)):
                        print(f"    {each.error:+7.1%} ±{each.half:5.1%} refused {each.refused:4.0%} {each.model}")
    for (name, together), found in every.items():
        tell("all", name, together, found)
    return 0


def read(data: DataFolder, files: Iterable[Path], checkouts: Iterable[Path]) -> Iterator[Host]:
    """Import the files, and yield each way of measuring, with the models that were measured in full."""
    with ResultsDatabase(data.store) as store, ModelLoaders(data, SILENT) as loaders:
        loader = loaders.loader()
        for file in files:
            import_file(store, file)
        for checkout in checkouts:
            for _ in import_checkout(store, checkout, PublishedModels(library(data).samples(), loader.load)):
                pass
        runtimes = by_id(store.runtimes())
        for it in combinations(store.select(order=())):
            way = Way(it.system, it.runtime, it.level, it.protocol)
            examples = {each.pair: each for each in map(as_today, examples_of(store, results_of(store, way)))}
            models: dict[str, Decomposition] = {}
            for source in library(data).samples():
                form = format_of(runtimes.get(way.runtime))
                if form not in source.formats:
                    continue
                try:
                    graph = loader.load(source.in_format(form), way.level)
                except UNLOADABLE:
                    continue
                decomposition = decompose(graph.named(source.name), None, loader.cache)
                if all(pair in examples for pair in needed(decomposition, examples)):
                    models[source.name] = decomposition
            yield Host(way, examples, models)


def as_today(example: Example) -> Example:
    """Return an example in a context as today's contexts are written."""
    inputs, _, caches = example.context.partition(";")
    return example._replace(context=inputs if caches in WARM else f"{inputs};cold")


def needed(decomposition: Decomposition, examples: Mapping[Pair, Example]) -> Counter[Pair]:
    """Return the bricks that compute something, by the contexts that were measured, with the number of their uses."""
    found: Counter[Pair] = Counter()
    for it in decomposition.occurrences:
        layers = [decomposition.graph.layers[index] for index in it.sequence.layers]
        if any(layer.operators for layer in layers):
            found[measured_as((it.brick.key, it.context), examples)] += layers[0].times
    return found


def measured_as(pair: Pair, examples: Mapping[Pair, Example]) -> Pair:
    """Return the brick in the context in which it was measured: the same one, else with other caches, else in any."""
    brick, context = pair
    inputs = context.partition(";")[0]
    tried = (context, f"{inputs};cold", inputs, ANY_CONTEXT)
    return next(((brick, each) for each in tried if (brick, each) in examples), pair)


def leave_out(host: Host, together: str, train_on: Callable[[Sequence[Example]], Predictor]) -> list[LeftOut]:
    """Return each model that has bricks to predict once it, and its family if so asked, is left out."""
    uses = {name: needed(model, host.examples) for name, model in host.models.items()}
    trained: dict[Set[Pair], Predictor] = {}
    found: list[LeftOut] = []
    for name in host.models:
        gone = only_in(family_of(name, uses) if together == WITH_FAMILY else {name}, uses)
        if not gone & uses[name].keys():
            continue
        if gone not in trained:
            trained[gone] = train_on([each for pair, each in host.examples.items() if pair not in gone])
        predicted = estimated(host, name, gone, trained[gone])
        if any(part.predicted for part in predicted.parts):
            found.append(compared(name, estimated(host, name), predicted))
    return found


def family_of(name: str, uses: Mapping[str, Counter[Pair]]) -> Set[str]:
    """Return a model and those that share most of its layers, or have most of theirs from it."""

    def shared(one: str, other: str) -> float:
        return sum(count for pair, count in uses[one].items() if pair in uses[other]) / uses[one].total()

    return {other for other in uses if max(shared(name, other), shared(other, name)) >= FAMILY}


def only_in(models: Set[str], uses: Mapping[str, Counter[Pair]]) -> frozenset[Pair]:
    """Return the bricks that no other model has."""
    others = {pair for name, used in uses.items() if name not in models for pair in used}
    return frozenset(pair for name in models for pair in uses[name] if pair not in others)


def estimated(host: Host, name: str, without: Set[Pair] = frozenset(), predictor: Predictor | None = None) -> Estimate:
    """Return the estimate of a model by the results of a host, some of which are left out."""
    model = host.models[name]
    measured: dict[Pair, MeasuredLatency] = {}
    for it in model.occurrences:
        pair = measured_as((it.brick.key, it.context), host.examples)
        if pair in host.examples and pair not in without:
            latency_ms = host.examples[pair].latency_ms
            measured[it.brick.key, it.context] = MeasuredLatency(Latency(latency_ms, latency_ms, latency_ms), pair, 1)
    return estimate(model, Knowledge(measured, predictor=None if predictor is None else lambda: predictor))


def compared(name: str, whole: Estimate, predicted: Estimate) -> LeftOut:
    """Return how far an estimate with predictions is from the measured one, without what could not be predicted."""
    assert whole.composed is not None
    assert predicted.composed is not None
    places = [place for place, part in enumerate(predicted.parts) if part.counts]
    real_ms = sum(whole.parts[place].paid_ps for place in places) / 1e9
    guess_ms = predicted.composed.sequential_ms
    interval = predicted.composed.doubt._replace(lacking_ms=0.0).around(guess_ms)
    bricks = {part.pair: place for place, part in enumerate(predicted.parts) if part.predicted}
    errors = [
        predicted.parts[place].latency.value_ms / max(NO_LATENCY_MS, whole.parts[place].latency.value_ms) - 1
        for place in bricks.values()
    ]
    return LeftOut(
        name,
        guess_ms / real_ms - 1,
        interval.low_ms <= real_ms <= interval.high_ms,
        (interval.high_ms - interval.low_ms) / 2 / guess_ms,
        errors,
        1 - real_ms / whole.composed.sequential_ms,
    )


def tell(where: str, name: str, together: str, found: Sequence[LeftOut]) -> None:
    """Print a line about the models that were left out."""
    if not found:
        return
    errors = [abs(it.error) for it in found]
    bricks = [abs(error) for it in found for error in it.bricks]
    holds = f"intervals hold {fmean(it.holds for it in found):4.0%}, half {median(it.half for it in found):5.1%}"
    print(
        f"{where:45} {name:10} {together:11} {len(found):4} models: median {median(errors):5.1%}, within 20 % "
        f"{fmean(error <= 0.2 for error in errors):4.0%}, worst {max(errors):4.0%}; {holds if name == OURS else '':38}"
        f"bricks: median {median(bricks):5.1%}; refused {fmean(it.refused for it in found):4.1%}",
        flush=True,
    )


def tell_operators(host: Host) -> None:
    """Print how far the bricks of an operator are from what all other operators tell of them."""
    trained = train(host.examples.values())
    bricks: defaultdict[str, list[Example]] = defaultdict(list)
    for each in host.examples.values():
        features = features_of(each.canonical, each.context)
        if features is not None and features.operator in trained.operators:
            bricks[features.operator].append(each)
    factors, holds = [], []
    for operator, held in bricks.items():
        others = replace(trained, operators={name: it for name, it in trained.operators.items() if name != operator})
        found = others.from_all([Unmeasured(each.canonical, each.context) for each in held])
        pairs = [(max(LEAST_MS, each.latency_ms), it) for each, it in zip(held, found, strict=True) if it is not None]
        if pairs:
            factors.append(math.exp(abs(median(math.log(real_ms / it.value_ms) for real_ms, it in pairs))))
            holds.append(fmean(it.low_ms <= real_ms <= it.high_ms for real_ms, it in pairs))
    if factors:
        where = f"{host.way.system}, {host.way.runtime.partition(' ')[0]}, {host.way.level.value}"
        print(
            f"{where:60} {len(factors):3} operators: median factor {median(factors):.2f}, in range {fmean(holds):.0%}"
        )


if __name__ == "__main__":
    sys.exit(main())
