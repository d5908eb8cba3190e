"""What the store knows of some models: the estimates that all figures are made of."""

from collections import defaultdict
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.bricks.corpus import Corpus, compare, model_bricks
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition, decompose
from dlbricks_tui.bricks.whole_model import whole_model
from dlbricks_tui.estimate.accuracy import Accuracy, accuracy
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.lookup import BrickResults, end_to_end_result
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.models.allocation import without_cycle_search
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.report.published import SYSTEMS
from dlbricks_tui.report.subjects import Subject, subject_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.queries import combinations, records_of, runtimes, systems
from dlbricks_tui.store.records import Run


@dataclass(frozen=True, slots=True)
class Finding:
    """A model in one way of measuring at one granularity, as far as anything of it is known."""

    subject: Subject
    decomposition: Decomposition
    found: SystemEstimate
    # The id of the end-to-end result, empty where there is none.
    result: str

    @property
    def granularity(self) -> int:
        """The most layers of a sequence."""
        return self.decomposition.cutting.granularity

    @property
    def judged(self) -> bool:
        """Whether the whole model is known both by its bricks and end to end."""
        return self.found.ratio is not None and self.found.estimate.coverage.complete


@dataclass(frozen=True, slots=True)
class Series:
    """All that was measured in one way, under the name that figures give it."""

    way: Way
    title: str
    # Told apart from all others in file names.
    slug: str
    # How the system is called in the paper, if it is one of its own.
    paper_system: str
    findings: tuple[Finding, ...]

    @property
    def granularities(self) -> tuple[int, ...]:
        """Those at which any model is judged, ascending."""
        return tuple(sorted({it.granularity for it in self.findings if it.judged}))

    def at(self, granularity: int) -> tuple[Finding, ...]:
        """The findings of one granularity, in the order of the models."""
        return tuple(it for it in self.findings if it.granularity == granularity)

    def accuracy(self, granularity: int) -> Accuracy | None:
        """How close the estimates of one granularity come, and what they save."""
        return accuracy([it.found for it in self.at(granularity)])


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that a report is about; `corpus` has the subjects in their order, at level `written`."""

    subjects: tuple[Subject, ...]
    graphs: Mapping[Subject, LayerGraph]
    corpus: Corpus
    series: tuple[Series, ...]
    # Models that cannot be read, each with the reason.
    left_out: tuple[str, ...]


@without_cycle_search()
def evaluate(
    generation: Generation,
    loader: Loader,
    sources: Sequence[ModelSource],
    host: str,
    only: Collection[str] | None = None,
) -> Evaluation:
    """Looks all models up in every way in which anything was measured, on all systems or on some; this host first.

    Where no model can be read, raises what is wrong with the first.
    """
    written = _Models(loader, sources, Level.WRITTEN)
    if written.refusals and not written.by_subject:
        raise written.refusals[0]
    ways = [way for way in _ways(generation) if only is None or way.system in only]
    ways.sort(key=lambda way: (way.system != host, _place_in_paper(way.system), way))
    models = {Level.WRITTEN: written}
    by_way: defaultdict[Way, list[Finding]] = defaultdict(list)
    for level in sorted({way.level for way in ways}):
        if level not in models:
            models[level] = _Models(loader, sources, level)
        for granularity in _granularities(generation, level):
            for finding in _findings(generation, models[level], granularity, [it for it in ways if it.level is level]):
                by_way[finding.found.way].append(finding)
    unlike = _Names(generation, [way for way in ways if by_way[way]])
    return Evaluation(
        tuple(written.by_subject),
        written.by_subject,
        compare(
            [
                replace(model_bricks(written.cut(graph, Cutting())), name=it.name)
                for it, graph in written.by_subject.items()
            ]
        ),
        tuple(unlike.series(way, by_way[way]) for way in ways if by_way[way]),
        tuple(str(refusal) for refusal in written.refusals),
    )


class _Models:
    """Models at one level; those that are the same network share one graph, and are cut once."""

    def __init__(self, loader: Loader, sources: Sequence[ModelSource], level: Level) -> None:
        self.by_subject: dict[Subject, LayerGraph] = {}
        self.refusals: list[ModelError] = []
        self._cut: dict[tuple[int, Cutting], Decomposition] = {}
        known: dict[object, LayerGraph] = {}
        for source in sources:
            network = (source.path, *source.inputs.items())
            try:
                graph = known.get(network) or loader.load(source, level)
            except ModelError as refusal:
                # What cannot be fused has no results at `fused` either.
                self.refusals.append(refusal)
            else:
                known[network] = self.by_subject[subject_of(source)] = graph

    def networks(self) -> Iterator[tuple[LayerGraph, list[Subject]]]:
        """Each graph with the models that it is."""
        alike: dict[int, list[Subject]] = {}
        for subject, graph in self.by_subject.items():
            alike.setdefault(id(graph), []).append(subject)
        for subjects in alike.values():
            yield self.by_subject[subjects[0]], subjects

    def cut(self, graph: LayerGraph, cutting: Cutting) -> Decomposition:
        """One of the graphs, cut."""
        known = self._cut.get((id(graph), cutting))
        if known is None:
            known = self._cut[id(graph), cutting] = decompose(graph, cutting)
        return known


def _findings(generation: Generation, models: _Models, granularity: int, ways: Iterable[Way]) -> Iterator[Finding]:
    ways = list(ways)
    found: dict[Subject, list[Finding]] = {}
    for graph, subjects in models.networks():
        decomposition = models.cut(graph, Cutting(granularity))
        results = BrickResults(generation, decomposition)
        whole = whole_model(graph).key
        for way in ways:
            composed = estimate(decomposition, results.knowledge(way))
            for subject in subjects:
                finding = _finding(generation, subject, decomposition, whole, composed, way)
                if finding is not None:
                    found.setdefault(subject, []).append(finding)
    for subject in models.by_subject:
        yield from found.get(subject, ())


def _finding(
    generation: Generation, subject: Subject, decomposition: Decomposition, whole: str, composed: Estimate, way: Way
) -> Finding | None:
    timed = end_to_end_result(generation, whole, subject.name, way)
    if timed is None and composed.composed is None:
        return None
    latency = None if timed is None else Latency(timed.trimmed_mean_ms, timed.low_ms, timed.high_ms)
    found = SystemEstimate(way, replace(composed, model=subject.name), latency)
    return Finding(subject, decomposition, found, "" if timed is None else timed.id)


def _ways(generation: Generation) -> list[Way]:
    return [Way(it.system, it.runtime, it.level, it.protocol) for it in combinations(generation)]


def _granularities(generation: Generation, level: Level) -> list[int]:
    """Single layers, and whatever runs at this level were asked for."""
    return sorted({1} | {run.granularity for run in records_of(generation, Run) if run.level is level})


def _place_in_paper(system: str) -> int:
    return SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS)


class _Names:
    """What ways of measuring are called: no longer than it takes to tell them apart."""

    def __init__(self, generation: Generation, ways: Sequence[Way]) -> None:
        self._systems, self._runtimes = systems(generation), runtimes(generation)
        self._ways = ways

    def series(self, way: Way, findings: Sequence[Finding]) -> Series:
        system = self._systems.get(way.system)
        name = way.system if system is None else system.name
        words = [name, way.level.value]
        on_system = [it for it in self._ways if it.system == way.system and it.level is way.level]
        if len({it.runtime for it in on_system}) > 1:
            runtime = self._runtimes.get(way.runtime)
            words.append(way.runtime if runtime is None else runtime.name)
        if len({it.protocol for it in on_system if it.runtime == way.runtime}) > 1:
            words.append(way.protocol)
        number = on_system.index(way) + 1
        slug = f"{_file_name(way.system)}-{way.level.value}" + (f"-{number}" if len(on_system) > 1 else "")
        instance = "" if system is None else system.instance_type
        return Series(way, ", ".join(words), slug, instance or way.system, tuple(findings))


def _file_name(text: str) -> str:
    return "".join(char if char.isascii() and (char.isalnum() or char in ".-") else "-" for char in text)
