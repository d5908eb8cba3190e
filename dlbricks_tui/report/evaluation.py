"""What the store knows of some models: the estimates that all figures are made of."""

from collections import defaultdict
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.bricks.corpus import Corpus, compare, model_bricks
from dlbricks_tui.bricks.decomposition import Cutting, Decomposition
from dlbricks_tui.bricks.whole_model import end_to_end_keys
from dlbricks_tui.estimate.accuracy import Accuracy, accuracy
from dlbricks_tui.estimate.estimate import Estimate, estimate
from dlbricks_tui.estimate.lookup import BrickResults, beside, end_to_end
from dlbricks_tui.estimate.system_estimate import SystemEstimate, Way
from dlbricks_tui.models.allocation import without_cycle_search
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.report.naming import Names
from dlbricks_tui.report.networks import Networks
from dlbricks_tui.report.published import SYSTEMS
from dlbricks_tui.report.subjects import Subject, subject_of
from dlbricks_tui.store.generation import Generation
from dlbricks_tui.store.queries import combinations, records_of
from dlbricks_tui.store.records import Run


# Equal only to themselves, as are series: whether two are equal in all that they hold takes long to find out.
@dataclass(frozen=True, slots=True, eq=False)
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
    def measured(self) -> bool:
        """Whether the whole model was timed, or every brick of it that the runtime can run."""
        return self.found.end_to_end is not None or not self.found.estimate.coverage.missing

    @property
    def judged(self) -> bool:
        """Whether the whole model is known both by its bricks and end to end."""
        return self.found.ratio is not None and self.found.estimate.coverage.complete


@dataclass(frozen=True, slots=True, eq=False)
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

    @property
    def measured(self) -> frozenset[Subject]:
        """The models that were measured, and not only some of their bricks."""
        return frozenset(it.subject for it in self.findings if it.measured)

    def at(self, granularity: int) -> tuple[Finding, ...]:
        """The findings of one granularity, in the order of the models."""
        return tuple(it for it in self.findings if it.granularity == granularity)

    def accuracy(self, granularity: int) -> Accuracy | None:
        """How close the estimates of one granularity come, and what they save."""
        return accuracy([it.found for it in self.at(granularity)])


@dataclass(frozen=True, slots=True)
class Evaluation:
    """All that a report is about; `corpus` has the subjects in their order, at level `written`."""

    # As commands name the models.
    asked: tuple[str, ...]
    subjects: tuple[Subject, ...]
    graphs: Mapping[Subject, LayerGraph]
    corpus: Corpus
    series: tuple[Series, ...]
    # Models that cannot be read, each with the reason.
    left_out: tuple[str, ...]


@without_cycle_search()
def evaluate(
    generation: Generation,
    loader_of: Callable[[str], Loader],
    sources: Sequence[ModelSource],
    asked: Sequence[str],
    host: str,
    only: Collection[str] | None = None,
    given: Mapping[str, Shape] | None = None,
) -> Evaluation:
    """Look all models up in every way in which anything was measured, on all systems or on some; this host first.

    `loader_of` returns the loader of a runtime, which fuses as that runtime does, and for "" any loader. `given` are
    input shapes by name, for files that do not say them. Where no model can be read at all, raise what is wrong with
    the first.
    """
    written = Networks(loader_of(""), sources, Level.WRITTEN, given)
    if written.left_out.first is not None and not written.by_subject:
        raise written.left_out.first
    ways = [way for way in _ways(generation) if only is None or way.system in only]
    ways.sort(key=lambda way: (way.system != host, _place_in_paper(way.system), way))
    by_loader: defaultdict[tuple[Level, Loader], list[Way]] = defaultdict(list)
    for way in ways:
        by_loader[way.level, loader_of(way.runtime if way.level is Level.FUSED else "")].append(way)
    found: defaultdict[Way, list[Finding]] = defaultdict(list)
    left_out = written.left_out.lines
    for (level, loader), alike in by_loader.items():
        readable = list(_sources(written, sources))
        networks = written if level is Level.WRITTEN else Networks(loader, readable, level, given)
        left_out += [f"from level {level.value}: {it}" for it in networks.left_out.lines if networks is not written]
        for granularity in _granularities(generation, level):
            for finding in _findings(generation, networks, granularity, alike):
                found[finding.found.way].append(finding)
    names = Names(generation, [way for way in ways if found[way]])
    series = [
        Series(way, names.title(way), names.slug(way), names.instance(way), tuple(found[way]))
        for way in ways
        if found[way]
    ]
    bricks = ((it, written.cut(graph, Cutting())) for it, graph in written.by_subject.items())
    corpus = compare([replace(model_bricks(cut), name=subject.name) for subject, cut in bricks])
    return Evaluation(
        tuple(asked), tuple(written.by_subject), written.by_subject, corpus, tuple(series), tuple(left_out)
    )


def _sources(written: Networks, sources: Iterable[ModelSource]) -> Iterator[ModelSource]:
    """Those that can be read: what is wrong with the others is said once."""
    return (source for source in sources if subject_of(source) in written.by_subject)


def _findings(generation: Generation, networks: Networks, granularity: int, ways: Iterable[Way]) -> Iterator[Finding]:
    ways = list(ways)
    found: dict[Subject, list[Finding]] = {}
    for graph, subjects in networks.alike():
        decomposition = networks.cut(graph, Cutting(granularity))
        results = BrickResults(generation, decomposition)
        keys = end_to_end_keys(graph)
        for way in ways:
            composed = estimate(decomposition, results.knowledge(way))
            for subject in subjects:
                finding = _finding(generation, subject, decomposition, keys, composed, way)
                if finding is not None:
                    found.setdefault(subject, []).append(finding)
    for subject in networks.by_subject:
        yield from found.get(subject, ())


def _finding(
    generation: Generation,
    subject: Subject,
    decomposition: Decomposition,
    keys: Mapping[Level, str],
    composed: Estimate,
    way: Way,
) -> Finding | None:
    timed = end_to_end(generation, keys, subject.name, way)
    if timed is None and composed.composed is None:
        return None
    found = SystemEstimate(way, replace(composed, model=subject.name))
    return Finding(subject, decomposition, beside(found, timed), "" if timed is None else timed.id)


def _ways(generation: Generation) -> list[Way]:
    return [Way(it.system, it.runtime, it.level, it.protocol) for it in combinations(generation)]


def _granularities(generation: Generation, level: Level) -> list[int]:
    """Single layers, and whatever runs at this level were asked for."""
    return sorted({1} | {run.granularity for run in records_of(generation, Run) if run.level is level})


def _place_in_paper(system: str) -> int:
    return SYSTEMS.index(system) if system in SYSTEMS else len(SYSTEMS)
