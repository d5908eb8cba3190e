"""What still has to be measured so that models can be estimated, and in which order."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from dlbricks_tui.bricks.coldness import Caches
from dlbricks_tui.bricks.contexts import caches_in
from dlbricks_tui.bricks.decomposition import Occurrence
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.measure.jobs import Job, Subject, Target, Use, expected_ms, memory_bytes
from dlbricks_tui.measure.known import Known
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import StoppingRule
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.store.labels import label_of
from dlbricks_tui.store.records import ANY_CONTEXT, Statistics


class Unmeasurable(NamedTuple):
    """A layer that no runtime can run."""

    model: str
    layer: str
    reason: str


@dataclass(frozen=True)
class Plan:
    """Jobs in the order in which they take away most doubt, whole models after the bricks; and what needs no job."""

    jobs: tuple[Job, ...]
    reused: frozenset[Target]
    # Tried before under the same conditions, and why that failed.
    failed: Mapping[Job, str]
    unmeasurable: tuple[Unmeasurable, ...]

    @property
    def total(self) -> int:
        """How many targets there are, measured or not."""
        return len(self.jobs) + len(self.reused) + len(self.failed)


def plan(
    subjects: Sequence[Subject],
    known: Known,
    rule: StoppingRule,
    end_to_end: bool = False,
    bricks: Iterable[Job] = (),
    method: Method = Method.ALONE,
) -> Plan:
    """All that the rule is not satisfied with yet; end to end every model once, however many are alike.

    `bricks` are those of no model, which come last in the order in which they are given.
    """
    jobs = {job.target: job for job in (*bricks, *_brick_jobs(subjects, known, method))}
    if end_to_end:
        jobs.update({job.target: job for job in _model_jobs(subjects)})
    satisfied = frozenset(
        target
        for target, job in jobs.items()
        if target in known.measured and _is_enough(known.measured[target], job, rule, method)
    )
    failed = {
        job: known.failed[target]
        for target, job in jobs.items()
        if target in known.failed and target not in known.measured
    }
    left = [job for target, job in jobs.items() if target not in satisfied and job not in failed]
    ordered = sorted(left, key=lambda job: (job.whole, -job.gain))
    return Plan(tuple(ordered), satisfied, failed, _unmeasurable(subjects))


def _is_enough(measured: Statistics, job: Job, rule: StoppingRule, method: Method) -> bool:
    """True if the stored samples of a target are enough."""
    if method is Method.INSIDE and not job.whole:
        # Its carrier had as many rounds as it gets.
        return True
    return rule.satisfied_by(measured, job.share)


def targets_of(
    subjects: Iterable[Subject], end_to_end: bool = False, method: Method = Method.ALONE
) -> tuple[Target, ...]:
    """Everything that the estimates of these models are made of, each once."""
    found = dict.fromkeys(
        Target(it.brick.key, context)
        for subject in subjects
        for it in subject.decomposition.occurrences
        if _is_run(subject.decomposition.graph, it)
        for context in _contexts(it, method)
    )
    if end_to_end:
        found.update(dict.fromkeys(Target(model=subject.key) for subject in subjects))
    return tuple(found)


@dataclass(slots=True)
class _Place:
    """Where a brick in a context stands first, and how often each model pays for it, or might."""

    graph: LayerGraph
    occurrence: Occurrence
    # What the caches hold of it; None: as the graph shows.
    caches: Caches | None = None
    uses: Counter[str] = field(default_factory=Counter)
    might_use: Counter[str] = field(default_factory=Counter)

    @property
    def label(self) -> str:
        """The brick, and what the caches hold of it where it is timed in two ways."""
        brick = label_of(self.occurrence.brick.canonical)
        return brick if self.caches is None else f"{brick}, {self.caches.value}"

    @property
    def all_uses(self) -> Counter[str]:
        """How often it matters to each model."""
        return self.uses + self.might_use


def _contexts(occurrence: Occurrence, method: Method) -> tuple[str, ...]:
    """Inside of a network a brick has its real surroundings: only bricks that are timed alone need contexts."""
    return occurrence.contexts if method is Method.ALONE else (ANY_CONTEXT,)


def _brick_jobs(subjects: Sequence[Subject], known: Known, method: Method) -> Iterable[Job]:
    places: dict[Target, _Place] = {}
    for subject in subjects:
        graph = subject.decomposition.graph
        for occurrence in subject.decomposition.occurrences:
            if _is_run(graph, occurrence):
                times = times_paid(graph, occurrence.sequence.layers)
                own, *others = _contexts(occurrence, method)
                target = Target(occurrence.brick.key, own)
                places.setdefault(target, _Place(graph, occurrence)).uses[subject.name] += times
                for context in others:
                    twin = _Place(graph, occurrence, caches_in(context))
                    place = places.setdefault(Target(occurrence.brick.key, context), twin)
                    place.might_use[subject.name] += times
    expected = {target: expected_ms(place.occurrence.brick.canonical) for target, place in places.items()}
    latencies = expected | {target: it.trimmed_mean_ms for target, it in known.measured.items() if target in places}
    wholes = _wholes(places, latencies)
    # By what is expected, before and after it is measured: so what was enough then is enough now.
    expected_wholes = _wholes(places, expected)
    for target, place in places.items():
        layers = [place.graph.layers[index] for index in place.occurrence.sequence.layers]
        doubt_ms = _doubt_ms(latencies[target], known.measured.get(target))
        yield Job(
            target,
            place.label,
            place.occurrence.brick.canonical,
            place.graph,
            place.occurrence.sequence.layers,
            tuple(Use(model, times) for model, times in place.all_uses.items()),
            latencies[target],
            memory_bytes(layers),
            # A model whose bricks all take no time that a clock could tell leaves nothing in doubt.
            gain=sum(times * doubt_ms / wholes[model] for model, times in place.all_uses.items() if wholes[model]),
            share=max(times * expected[target] / expected_wholes[model] for model, times in place.all_uses.items()),
            caches=place.caches,
        )


def _wholes(places: Mapping[Target, _Place], latencies: Mapping[Target, float]) -> Mapping[str, float]:
    """What each model takes by the latencies of its bricks."""
    found: defaultdict[str, float] = defaultdict(float)
    for target, place in places.items():
        for model, times in place.uses.items():
            found[model] += times * latencies[target]
    return found


def _model_jobs(subjects: Sequence[Subject]) -> Iterable[Job]:
    for subject in subjects:
        decomposition = subject.decomposition
        graph = subject.whole
        if not any(layer.operators for layer in graph.layers):
            continue
        yield Job(
            Target(model=subject.key),
            f"{subject.name} end to end",
            "",
            graph,
            tuple(range(len(graph.layers))),
            (Use(subject.name, 1),),
            sum(
                expected_ms(it.brick.canonical) * times_paid(graph, it.sequence.layers)
                for it in decomposition.occurrences
            ),
            memory_bytes(graph.layers),
            file=subject.file,
            from_file=subject.optimised_from_file,
        )


def _is_run(graph: LayerGraph, occurrence: Occurrence) -> bool:
    """Whether there is anything in it to compute, and a runtime that can."""
    layers = [graph.layers[index] for index in occurrence.sequence.layers]
    return any(layer.operators for layer in layers) and all(layer.unmeasurable is None for layer in layers)


def _doubt_ms(latency_ms: float, measured: Statistics | None) -> float:
    # Of what nobody has measured, everything is in doubt.
    return latency_ms if measured is None else (measured.high_ms - measured.low_ms) / 2


def _unmeasurable(subjects: Iterable[Subject]) -> tuple[Unmeasurable, ...]:
    return tuple(
        Unmeasurable(subject.name, layer.name, layer.unmeasurable)
        for subject in subjects
        for layer in subject.decomposition.graph.layers
        if layer.unmeasurable is not None
    )
