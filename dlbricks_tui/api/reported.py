"""The contents of a report: estimates, measurements, and what the paper has published of the same models."""

import csv
import math
from collections import defaultdict
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, replace
from functools import cache
from importlib.resources import files
from typing import Any

from dlbricks_tui.api.analyses import Analysis
from dlbricks_tui.api.analysing import Analyser
from dlbricks_tui.api.documents import attributes_of
from dlbricks_tui.api.estimating import measured_models, open_estimator
from dlbricks_tui.api.opening import InputOptions, ModelLoaders, library
from dlbricks_tui.api.scope import EstimateOptions, named_runtime
from dlbricks_tui.api.session import Remarks
from dlbricks_tui.bricks.decomposition import Corpus, Cutting, Decomposition, corpus_of_bricks, decompose, model_bricks
from dlbricks_tui.bricks.identity import end_to_end_keys
from dlbricks_tui.estimate.comparison import Accuracy, accuracy
from dlbricks_tui.estimate.compositions import EstimateError
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.lookup import BrickResults, beside, end_to_end
from dlbricks_tui.estimate.system_estimate import SystemEstimate, find_system, format_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import TABLE1_PREFIX, ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader, UnloadedModels
from dlbricks_tui.printable import printable
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format, runtime_title
from dlbricks_tui.runtime.variant import Precision, stated_kernels, stated_precision, stated_variant, threads_in_words
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import LoadTest, Provenance, Run
from dlbricks_tui.store.selections import Way, by_id, combinations
from dlbricks_tui.wording.numbers import counted, model_label

LONGEST_LABEL = 40
# Returns the loader of models as a runtime has them, by its identity.
LoaderOf = Callable[[str], Loader]
_NO_INPUTS = InputOptions()


@dataclass(frozen=True, slots=True)
class ReportedModel:
    """A model of a report; those of Table 1 have their number and task."""

    name: str
    table1_id: str | None = None
    task: str | None = None

    @property
    def label(self) -> str:
        """The number and a short name, for the axes of figures."""
        return model_label(self.name, self.table1_id, LONGEST_LABEL)


def reported_model(source: ModelSource) -> ReportedModel:
    """Return a model of the library for a report."""
    return ReportedModel(source.name, source.table1_id, source.task)


def file_name(text: str) -> str:
    """Return a text as a part of file names."""
    return "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "-" for char in text)


class Networks:
    """The models at one level, loaded and cut once each. Equal models share one graph."""

    def __init__(
        self,
        loader: Loader,
        sources: Sequence[ModelSource],
        level: Level,
        inputs: InputOptions,
        tell: Callable[[str], None],
    ) -> None:
        self.by_reported_model: dict[ReportedModel, LayerGraph] = {}
        # The models that cannot be loaded at this level, with the reason.
        self.left_out = UnloadedModels()
        self._cache = loader.cache
        self._cut: dict[tuple[int, Cutting], Decomposition] = {}
        known: dict[object, LayerGraph] = {}
        for number, source in enumerate(sources, start=1):
            tell(f"reading {source.name}, {level.value} layers ({number} of {len(sources)})")
            network = (source.path, *source.inputs.items())
            try:
                graph = known.get(network) or loader.load(source, level, inputs.inputs, inputs.values)
            except UNLOADABLE as refusal:
                self.left_out.add(source, refusal)
            else:
                known[network] = self.by_reported_model[reported_model(source)] = graph

    def alike(self) -> Iterator[tuple[LayerGraph, list[ReportedModel]]]:
        """Yield each graph with its models."""
        found: dict[int, list[ReportedModel]] = {}
        for reported, graph in self.by_reported_model.items():
            found.setdefault(id(graph), []).append(reported)
        for reported_models in found.values():
            yield self.by_reported_model[reported_models[0]], reported_models

    def cut(self, graph: LayerGraph, cutting: Cutting) -> Decomposition:
        """Return the decomposition of one of the graphs."""
        known = self._cut.get((id(graph), cutting))
        if known is None:
            known = self._cut[id(graph), cutting] = decompose(graph, cutting, self._cache)
        return known


# Compared by identity, like series: comparing all their contents takes long.
@dataclass(frozen=True, slots=True, eq=False)
class ModelResult:
    """The estimate and end-to-end latency of a model, by one way of measuring and at one granularity."""

    reported: ReportedModel
    decomposition: Decomposition
    found: SystemEstimate
    # The id of the end-to-end result, empty where there is none.
    result_id: str

    @property
    def granularity(self) -> int:
        """The largest number of layers in a sequence."""
        return self.decomposition.cutting.granularity

    @property
    def measured(self) -> bool:
        """True if the model was timed end to end, or all of its bricks that the runtime can run."""
        return self.found.end_to_end is not None or not self.found.estimate.coverage.missing

    @property
    def judged(self) -> bool:
        """True if the model was measured both by all of its bricks and end to end."""
        return self.found.ratio is not None and self.found.estimate.coverage.complete


@dataclass(frozen=True, slots=True, eq=False)
class ReportedSeries:
    """The results of one way of measuring, with its name in figures."""

    way: Way
    title: str
    # Unique, for file names.
    slug: str
    # The system's name in the paper, if the paper has it.
    paper_system: str
    results: tuple[ModelResult, ...]

    @property
    def granularities(self) -> tuple[int, ...]:
        """The granularities with judged models, ascending."""
        return tuple(sorted({it.granularity for it in self.results if it.judged}))

    @property
    def measured(self) -> frozenset[ReportedModel]:
        """The measured models."""
        return frozenset(it.reported for it in self.results if it.measured)

    def at(self, granularity: int) -> tuple[ModelResult, ...]:
        """Return the results of one granularity, in the order of the models."""
        return tuple(it for it in self.results if it.granularity == granularity)

    def accuracy(self, granularity: int) -> Accuracy | None:
        """Return the accuracy and speed-up of one granularity."""
        return accuracy([it.found for it in self.at(granularity)])


@dataclass(frozen=True, slots=True)
class ReportContents:
    """The contents of a report; `corpus` has the reported models in order, at level `written`."""

    # The models as the user named them.
    asked: tuple[str, ...]
    reported_models: tuple[ReportedModel, ...]
    graphs: Mapping[ReportedModel, LayerGraph]
    corpus: Corpus
    series: tuple[ReportedSeries, ...]
    # Models that cannot be read, each with the reason.
    left_out: tuple[str, ...]
    # The measured scenarios of the models, oldest first.
    load_tests: tuple[LoadTest, ...] = ()
    # Where the results come from.
    origins: tuple[Provenance, ...] = ()


def _series(store: ResultsDatabase, found: Mapping[Way, Sequence[ModelResult]]) -> Iterator[ReportedSeries]:
    """Yield the results of each way of measuring with a short name that tells it apart."""
    systems, runtimes = by_id(store.systems()), by_id(store.runtimes())
    for way, results in found.items():
        system, runtime = systems.get(way.system), runtimes.get(way.runtime)
        beside = [it for it in found if (it.system, it.level) == (way.system, way.level)]
        words = [way.system if system is None else system.name, way.level.value]
        if len({it.runtime for it in beside}) > 1:
            words += _variant_words(way.runtime)
        elif (precision := stated_precision(way.runtime)) is not Precision.F32:
            words.append(precision.in_words)
        if len({it.runtime for it in beside if _variant_words(it.runtime) == _variant_words(way.runtime)}) > 1:
            words.append(way.runtime if runtime is None else runtime.name)
        if len({it.protocol for it in beside if it.runtime == way.runtime}) > 1:
            words.append(way.protocol)
        number = f"-{beside.index(way) + 1}" if len(beside) > 1 else ""
        slug = f"{file_name(way.system)}-{way.level.value}{number}"
        # The paper names its systems by instance type.
        instance = (system.instance_type if system else "") or way.system
        yield ReportedSeries(way, printable(", ".join(words)), slug, instance, tuple(results))


def _variant_words(runtime: str) -> list[str]:
    """Return a runtime, by its identity, and the variant in which it measures: `MXNet 1.9.1`, `2 threads`."""
    variant = stated_variant(runtime)
    precision = [variant.precision.in_words] * (variant.precision is not Precision.F32)
    return [runtime_title(runtime), threads_in_words(variant.threads), *precision, *variant.kernels.words]


@without_cycle_search()
def find_contents(
    store: ResultsDatabase,
    loader_of: LoaderOf,
    sources: Sequence[ModelSource],
    asked: Sequence[str],
    host: str,
    counts: Callable[[Way | LoadTest], bool] = lambda _: True,
    inputs: InputOptions = _NO_INPUTS,
    tell: Callable[[str], None] = lambda _: None,
) -> ReportContents:
    """Look up all models by every way of measuring that has results and `counts`; this host first.

    Each way has the files of the models that its runtime reads. `loader_of` returns the loader of a runtime, which
    fuses as that runtime does, and any loader for "". `tell` is called before each part of the work. If no model can be
    read, raise the error of the first.
    """
    usual = loader_of("")
    written = Networks(usual, sources, Level.WRITTEN, inputs, tell)
    if written.left_out.first is not None and not written.by_reported_model:
        raise written.left_out.first
    places = {system: place for place, system in enumerate(SYSTEMS)}
    ways = [it.way for it in combinations(store.select(order=())) if counts(it.way)]
    ways.sort(key=lambda way: (way.system != host, places.get(way.system, len(SYSTEMS)), way))
    runtimes_by_id = by_id(store.runtimes())
    by_loader: defaultdict[tuple[Level, Format, Loader], list[Way]] = defaultdict(list)
    for way in ways:
        is_copy = stated_precision(way.runtime) is Precision.INT8
        loader = loader_of(way.runtime) if way.level is Level.FUSED or is_copy else usual
        by_loader[way.level, format_of(runtimes_by_id.get(way.runtime)), loader].append(way)
    found: defaultdict[Way, list[ModelResult]] = defaultdict(list)
    left_out = written.left_out.lines
    for (level, form, loader), alike in by_loader.items():
        read = (it for it in sources if reported_model(it) in written.by_reported_model)
        readable = [it.in_format(form) for it in read if form in it.formats]
        same_files = {it.path for it in readable} == {it.path for it in sources}
        known = level is Level.WRITTEN and loader is usual and same_files
        networks = written if known else Networks(loader, readable, level, inputs, tell)
        left_out += [f"from level {level.value}: {it}" for it in networks.left_out.lines if networks is not written]
        for granularity in sorted({1} | {run.granularity for run in store.records(Run) if run.level is level}):
            for result in _model_results(store, networks, granularity, alike, tell):
                found[result.found.way].append(result)
    series = tuple(_series(store, {way: found[way] for way in ways if found[way]}))
    bricks = ((it, written.cut(graph, Cutting())) for it, graph in written.by_reported_model.items())
    corpus = corpus_of_bricks([replace(model_bricks(cut), name=reported.name) for reported, cut in bricks])
    graphs, names = written.by_reported_model, {it.name for it in written.by_reported_model}
    measured = {(it.way.system, it.way.runtime) for it in series}
    return ReportContents(
        tuple(asked),
        tuple(graphs),
        graphs,
        corpus,
        series,
        tuple(left_out),
        tuple([it for it in store.least_first(LoadTest) if it.name in names and counts(it)]),
        tuple([it for it in store.records(Provenance) if (it.system, it.runtime) in measured]),
    )


@contextmanager
def open_loaders(data: DataFolder, remarks: Remarks) -> Iterator[LoaderOf]:
    """Open a loader for each runtime; one that is not of this host gets one of its framework and variant."""
    runtimes = Registry(data.path).known()
    with ModelLoaders(data, remarks) as loaders:
        yield lambda identity: loaders.loader(_graphs_of(identity, runtimes))


def _graphs_of(identity: str, runtimes: Sequence[Runtime]) -> Runtime | None:
    """Return the first runtime that has the graphs of the one of this identity, or is like it; None without any."""
    here = next((it for it in runtimes if it.identity == identity), None)
    if here is not None:
        return here
    precision, kernels = stated_precision(identity), stated_kernels(identity)
    for it in runtimes:
        if it.framework == identity.partition("-")[0] and it.computes_in(precision) and it.traits.has_kernels(kernels):
            return it.with_precision(precision).with_kernels(kernels)
    return None


@dataclass(frozen=True, slots=True, kw_only=True)
class ReportOptions(InputOptions):
    """The models of a report, by their names, and the systems and the runtime whose results count; none: all."""

    models: Sequence[str]
    systems: Sequence[str] = ()
    runtime: str | None = None


def reported(
    options: ReportOptions,
    asked: Sequence[str],
    data: DataFolder,
    loader_of: LoaderOf,
    store: ResultsDatabase,
    tell: Callable[[str], None],
) -> tuple[ReportContents, tuple[ModelSource, ...]]:
    """Look up all that a report shows, and the models; `asked` are the words of the command that repeat it."""
    named = None if options.runtime is None else named_runtime(options.runtime, data, store)
    sources = library(data, named and named.format).find_all(options.models)
    systems, runtimes = by_id(store.systems()), named and named.all_in(store)
    wanted = frozenset(find_system(name, systems) for name in options.systems) if options.systems else None

    def counts(it: Way | LoadTest) -> bool:
        return (wanted is None or it.system in wanted) and (runtimes is None or it.runtime in runtimes)

    return find_contents(store, loader_of, sources, asked, fingerprint().id, counts, options, tell), sources


def analysed_on(
    systems: Iterable[str],
    usual: EstimateOptions,
    options: ReportOptions,
    sources: Sequence[ModelSource],
    data: DataFolder,
    tell: Callable[[str], None],
    refused: Callable[[str], None],
) -> list[Analysis]:
    """Return the models as analysed on each system, in the runtime that the options name, or that counts there."""
    found: list[Analysis] = []
    for system in systems:
        try:
            # Models left out of the contents are told of by them.
            with open_estimator(replace(usual, system=system), data) as estimator:
                for number, analysis in enumerate(Analyser(estimator, options.models).analyses(sources), start=1):
                    tell(f"analysed {number} of {counted(len(sources), 'model')} on {system}")
                    found.append(analysis)
        except (EstimateError, *UNLOADABLE) as error:
            refused(f"no analysis on {system}: {error.in_command}")
    return found


def models_with_results(data: DataFolder) -> list[str]:
    """Return the names of the models of the library that have results."""
    found = (f"{TABLE1_PREFIX}:{it.table1_id}" if it.table1_id else it.name for it in measured_models(data))
    return list(dict.fromkeys(found))


def series_documents(contents: ReportContents) -> list[dict[str, Any]]:
    """Return the ways of measuring of a report as JSON documents."""
    return [
        {
            "title": series.title,
            **attributes_of(series.way, "system", "runtime", "level", "protocol"),
            "granularities": series.granularities,
        }
        for series in contents.series
    ]


def _model_results(
    store: ResultsDatabase, networks: Networks, granularity: int, ways: Iterable[Way], tell: Callable[[str], None]
) -> Iterator[ModelResult]:
    ways = list(ways)
    found: dict[ReportedModel, list[ModelResult]] = {}
    for graph, reported_models in networks.alike():
        tell(f"looking up {reported_models[0].name}, G={granularity}")
        decomposition = networks.cut(graph, Cutting(granularity))
        results = BrickResults(store, decomposition)
        keys = end_to_end_keys(graph)
        for way in ways:
            composed = estimate(decomposition, results.knowledge(way))
            has_bricks = any(part.measured is not None for part in composed.parts)
            for reported in reported_models:
                timed = end_to_end(store, keys, reported.name, way)
                if timed is not None or has_bricks:
                    one = beside(SystemEstimate(way, replace(composed, model=reported.name)), timed)
                    result = ModelResult(reported, decomposition, one, "" if timed is None else timed.id)
                    found.setdefault(reported, []).append(result)
    for reported in networks.by_reported_model:
        yield from found.get(reported, ())


# The paper's four systems in its order.
SYSTEMS = ("c4.xlarge", "c4.2xlarge", "c5.xlarge", "c5.2xlarge")
# The system of the sequential and parallel sums.
COMPOSED_SYSTEM = "c5.2xlarge"

LAYERS = 10_815
UNIQUE_LAYERS = 1_529
# The paper's words about its accuracy and speed-up.
CLOSENESS = "within 5 % to 11 % of the end-to-end latency"
BEST_SPEEDUP = "up to 4.4 on c5.xlarge"
# The sum of all end-to-end latencies over that of the distinct layers (by kind, parameters and input shape) in the
# authors' files, over the models that have both.
SPEEDUP: Mapping[str, float] = {"c4.xlarge": 3.89, "c4.2xlarge": 4.22, "c5.xlarge": 4.43, "c5.2xlarge": 4.17}


@dataclass(frozen=True, slots=True)
class PublishedModel:
    """The published values of a model in Table 1; latencies are by system."""

    table1_id: str
    layers: int
    unique_layers: int
    end_to_end_ms: Mapping[str, float]
    layers_ms: Mapping[str, float]
    sequential_ms: float
    parallel_ms: float

    def ratio(self, system: str) -> float | None:
        """Return the sum of single layers over the end-to-end latency."""
        layers_ms, end_to_end_ms = self.layers_ms.get(system), self.end_to_end_ms.get(system)
        return layers_ms / end_to_end_ms if layers_ms and end_to_end_ms else None

    @property
    def sequential_ratio(self) -> float:
        """The sequential sum over the end-to-end latency, on c5.2xlarge."""
        return self.sequential_ms / self.end_to_end_ms[COMPOSED_SYSTEM]

    @property
    def parallel_ratio(self) -> float:
        """The parallel sum over the end-to-end latency, on c5.2xlarge."""
        return self.parallel_ms / self.end_to_end_ms[COMPOSED_SYSTEM]


@cache
def published_models() -> Mapping[str, PublishedModel]:
    """Return the models of Table 1 by number."""
    text = files("dlbricks_tui.api").joinpath("published_2019.csv").read_text(encoding="utf-8")
    return {
        row["table1_id"]: PublishedModel(
            row["table1_id"],
            int(row["layers"]),
            int(row["unique_layers"]),
            _by_system(row, "end_to_end_ms"),
            _by_system(row, "layers_ms"),
            float(row["sequential_ms"]),
            float(row["parallel_ms"]),
        )
        for row in csv.DictReader(text.splitlines())
    }


def published_model(table1_id: str | None) -> PublishedModel | None:
    """Return a model of Table 1, None for any other."""
    return None if table1_id is None else published_models().get(table1_id)


def geometric_mean(system: str) -> float | None:
    """Return the geometric mean of the ratios of all models; None for a system that the paper does not have."""
    ratios = [ratio for model in published_models().values() if (ratio := model.ratio(system)) is not None]
    return math.exp(math.fsum(map(math.log, ratios)) / len(ratios)) if ratios else None


def _by_system(row: Mapping[str, str], column: str) -> Mapping[str, float]:
    found = {system: row[f"{column} {system}"] for system in SYSTEMS}
    return {system: float(text) for system, text in found.items() if text}
