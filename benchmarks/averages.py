"""Compare the errors of estimates for other averages of the samples, and for fewer samples.

usage: python -m benchmarks.averages [--level LEVEL] DATA-DIR MODEL ...

DATA-DIR has what runs have measured of these models on this host, by their bricks and end to end; nothing is measured
now. MODEL is a path, a name that `dlbricks models` lists, or table1:ID. Bricks and models are averaged alike, and for
each way the calibration is fitted anew, for each model on all others. Fewer samples are those that a run would have
taken that gives up after so many of what varies.
"""

import argparse
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from statistics import mean, median
from typing import NamedTuple

import numpy as np

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.calibration import Example, fitted
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.jobs import CutModel, JobKey, cut_model
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.noise import NULL_CALL_MS
from dlbricks_tui.measure.plan import keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.measure.stopping import Adaptive, Samples, outliers, samples_of
from dlbricks_tui.models.frameworks import WorkerFramework
from dlbricks_tui.models.graph import Level
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runs.calibration import example_of
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.traits import MXNET
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, Measurement, Result
from dlbricks_tui.store.statistics import trimmed_mean

Latencies = Sequence[float]
Found = Mapping[JobKey, Latencies]

FEWER = (100, 50, 30, 20)
# Each is left out of the fit in turn.
FEWEST = 3
NAMES = MXNET.calibration_constants


class Network(NamedTuple):
    """A model that is known in both ways: its samples, those of its bricks, and what a call took in its rounds."""

    model: CutModel
    samples: Found
    call_ms: float


def lower_quartile(samples_ms: Latencies) -> float:
    """What a quarter of them is below."""
    return float(np.quantile(samples_ms, 0.25))


def mean_without_outliers(samples_ms: Latencies) -> float:
    """The mean of those that are not far from all others."""
    apart = set(outliers(samples_ms))
    return mean(sample for place, sample in enumerate(samples_ms) if place not in apart)


AVERAGES: Mapping[str, Callable[[Latencies], float]] = {
    "trimmed mean": trimmed_mean,
    "mean": mean,
    "mean without outliers": mean_without_outliers,
    "median": median,
    "lower quartile": lower_quartile,
}


def main() -> int:
    """Prints a line for each way."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("data", type=Path, metavar="DATA-DIR")
    parser.add_argument("models", nargs="+", metavar="MODEL")
    parser.add_argument("--level", choices=[level.value for level in Level], default=Level.FUSED.value)
    arguments = parser.parse_args()
    data, level = DataFolder(arguments.data.absolute()), Level(arguments.level)
    known = list(networks_in(data, arguments.models, level))
    if len(known) < FEWEST:
        sys.exit(f"{data.path} knows {len(known)} of these models in both ways, and {FEWEST} are needed")
    for name, average in AVERAGES.items():
        tell(name, [example(each, average) for each in known])
    for most in FEWER:
        rule = replace(Adaptive(), most=most, most_of_quick=most)
        tell(f"{most} samples at most", [example(taken(each, rule)) for each in known])
    return 0


def networks_in(data: DataFolder, models: Sequence[str], level: Level, system: str | None = None) -> Iterator[Network]:
    """Those of the models that a data folder knows in both ways, by the newest results of a system, or of this one."""
    results = results_in(data, level, system)
    measured = {target: result.samples_ms for target, result in results.items()}
    for model in cut_models(data, models, level):
        samples = latencies_of(model, measured)
        if samples:
            noise = dict(results[JobKey(model=model.key)].noise)
            yield Network(model, samples, float(noise.get(NULL_CALL_MS) or 0.0))


def results_in(data: DataFolder, level: Level, system: str | None) -> Mapping[JobKey, Result]:
    """The newest of each brick and each model on a system, or here."""
    here = conditions_of(system or fingerprint().id, Registry(data.path).default(), Method.ALONE)
    with ResultsDatabase(data.store) as store:
        records: Sequence[Result] = [
            *store.records(Measurement),
            *store.records(EndToEnd),
        ]
    good = (it for it in records if it.good)
    of_here = [it for it in good if (it.system, it.runtime, it.level) == (here.system, here.runtime, level)]
    return {
        JobKey(model=it.model) if isinstance(it, EndToEnd) else JobKey(it.brick, it.context): it
        for it in sorted(of_here, key=lambda result: result.when)
    }


def cut_models(data: DataFolder, models: Sequence[str], level: Level) -> Iterator[CutModel]:
    """The models, taken apart."""
    with WorkerFramework(Registry(data.path).default(), data.path / "log") as framework:
        loader = Loader(data.cache, framework, framework)
        for source in sources_of(data, models):
            yield cut_model(decompose(loader.load(source, level)))


def sources_of(data: DataFolder, models: Sequence[str]) -> Iterator[ModelSource]:
    """Where the models are."""
    library = Library(SAMPLE_MODELS, data.path)
    for model in models:
        yield from [source_of(Path(model))] if Path(model).is_file() else library.find_all([model])


def latencies_of(model: CutModel, measured: Found) -> Found:
    """Those of a model and its bricks; none if any has none."""
    targets = keys_of((model,), end_to_end=True)
    samples = {target: measured[target] for target in targets if measured.get(target)}
    return samples if len(samples) == len(targets) else {}


def taken(network: Network, rule: Adaptive) -> Network:
    """With those samples that a run by that rule would have taken."""
    jobs = plan((network.model,), Known(), rule, end_to_end=True).jobs
    timed = [job for job in jobs if job.key in network.samples]
    samples = {job.key: until_enough(network.samples[job.key], rule, job.share) for job in timed}
    return network._replace(samples=samples)


def until_enough(samples_ms: Latencies, rule: Adaptive, share: float) -> Latencies:
    """The first of them that are enough for what is such a share of a model."""
    for count in range(1, len(samples_ms)):
        if rule.looks_at(count):
            so_far = samples_ms[:count]
            if rule.stop(samples_of(so_far, rule).statistics, share) is not None:
                return so_far
    return samples_ms


def example(network: Network, average: Callable[[Latencies], float] = trimmed_mean) -> Example:
    """A model by the averages of its bricks and of its own samples."""
    series = {target: samples_of(samples_ms, Adaptive()) for target, samples_ms in network.samples.items()}
    averaged = {target: replace(it.statistics, trimmed_mean_ms=average(steady(it))) for target, it in series.items()}
    return example_of(network.model, averaged, NAMES, network.call_ms)


def steady(series: Samples) -> Latencies:
    """Its samples after the warm-up."""
    return series.samples_ms[series.warm_up :]


def tell(way: str, examples: Sequence[Example]) -> None:
    """Prints how far off the estimates are, each by a calibration on the other models."""
    errors = fitted(examples, NAMES).residuals
    within = sum(abs(error) <= 0.05 for error in errors) / len(errors)
    print(
        f"{way:24} {len(errors):3} models, mean absolute error {mean(map(abs, errors)):5.2%}, "
        f"worst {max(errors, key=abs):+6.1%}, {within:4.0%} within 5 %",
        flush=True,
    )


if __name__ == "__main__":
    sys.exit(main())
