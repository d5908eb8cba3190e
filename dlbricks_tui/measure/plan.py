"""The plan of a run: the jobs that models still need for their estimates, in the best order."""

from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import starmap

from dlbricks_tui.bricks.decomposition import Occurrence
from dlbricks_tui.bricks.identity import times_paid
from dlbricks_tui.measure.jobs import CutModel, Job, JobKey, Use, expected_ms, memory_bytes
from dlbricks_tui.measure.known import Known, Why
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import StoppingRule, half_width_ms
from dlbricks_tui.models.graph import LayerGraph
from dlbricks_tui.store.index import label_of
from dlbricks_tui.store.records import ANY_CONTEXT

# Bricks that another run may improve are measured again if their errors together are a larger share of a model.
_NEGLIGIBLE = 0.01


@dataclass(frozen=True)
class Plan:
    """Jobs in the order in which they remove most uncertainty, whole models last, and everything that needs no job."""

    jobs: tuple[Job, ...]
    reused: frozenset[JobKey]
    # Jobs that failed before under the same conditions, and why.
    failed: Mapping[Job, str]
    # The jobs that have a result to improve, and why.
    again: Mapping[JobKey, Why] = field(default_factory=dict)
    # The expected time, without the limit of a time budget; 0 until it is known how.
    seconds: float = 0.0


def plan(
    models: Sequence[CutModel],
    known: Known,
    rule: StoppingRule,
    end_to_end: bool = False,
    method: Method = Method.ALONE,
    first_number: int = 0,
) -> Plan:
    """Return a job for each brick and model that is not known well enough; equal models need one job.

    Jobs are numbered from `first_number` on.
    """
    jobs = {job.key: job for job in _brick_jobs(models, known, method)}
    jobs.update({job.key: job for job in _model_jobs(_timed_whole(models, end_to_end))})
    again = _again(jobs.values(), known) if method is Method.INSIDE else {}
    satisfied = frozenset(
        key
        for key, job in jobs.items()
        # The carrier of a brick has had all its rounds.
        if key in known.measured and key not in again
        if (method is Method.INSIDE and not job.whole) or rule.stop(known.measured[key], job.share) is not None
    )
    failed = {job: known.failed[key] for key, job in jobs.items() if key in known.failed and key not in known.measured}
    left = [job for key, job in jobs.items() if key not in satisfied and job not in failed]
    ordered = sorted(left, key=lambda job: (job.whole, -job.gain))
    numbered = tuple(replace(job, number=number) for number, job in enumerate(ordered, start=first_number))
    return Plan(numbered, satisfied, failed, again)


def _again(jobs: Iterable[Job], known: Known) -> Mapping[JobKey, Why]:
    """Return the jobs that have a result to improve, and why; none of a model that they hardly change together.

    A model is timed again beside its bricks.
    """
    jobs = tuple(jobs)
    bricks = [job for job in jobs if not job.whole]
    wholes_ms: defaultdict[str, float] = defaultdict(float)
    doubts_ms: defaultdict[str, float] = defaultdict(float)
    for job in bricks:
        for use in job.uses:
            wholes_ms[use.model] += use.times * job.expected_ms
            if job.key in known.again:
                doubts_ms[use.model] += use.times * known.again[job.key].doubt_ms
    doubtful = {model for model, doubt_ms in doubts_ms.items() if doubt_ms > _NEGLIGIBLE * wholes_ms[model]}
    found = {
        job.key: known.again[job.key].why
        for job in bricks
        if job.key in known.again and any(use.model in doubtful for use in job.uses)
    }
    models = {use.model: found[job.key] for job in bricks if job.key in found for use in job.uses}
    for whole in (job for job in jobs if job.whole and job.key in known.measured):
        own = known.again.get(whole.key)
        why = models.get(whole.uses[0].model) if own is None else own.why
        if why is not None:
            found[whole.key] = why
    return found


def keys_of(models: Iterable[CutModel], end_to_end: bool = False, method: Method = Method.ALONE) -> tuple[JobKey, ...]:
    """Return the keys of all bricks and models that the estimates need, each once."""
    found = dict.fromkeys(key for _, _, key in _occurrences(models, method))
    found.update(dict.fromkeys(JobKey(model=model.key) for model in _timed_whole(models, end_to_end)))
    return tuple(found)


def uses_of(models: Iterable[CutModel], method: Method = Method.ALONE) -> dict[str, Counter[JobKey]]:
    """Return how often each model, by name, runs each brick."""
    found: defaultdict[str, Counter[JobKey]] = defaultdict(Counter)
    for model, occurrence, key in _occurrences(models, method):
        found[model.name][key] += times_paid(model.decomposition.graph, occurrence.sequence.layers)
    return found


def _timed_whole(models: Iterable[CutModel], end_to_end: bool) -> Sequence[CutModel]:
    """Return the models to time end to end: those that their layers cannot tell about are always timed."""
    return [model for model in models if end_to_end or model.needs_file]


def _occurrences(models: Iterable[CutModel], method: Method) -> Iterator[tuple[CutModel, Occurrence, JobKey]]:
    """Yield everything that models run.

    Inside of a carrier a brick has its real surroundings: only bricks that are timed alone need contexts.
    """
    for model in models:
        for it in model.decomposition.occurrences:
            if is_run(model.decomposition.graph, it):
                yield model, it, JobKey(it.brick.key, it.context if method is Method.ALONE else ANY_CONTEXT)


def _brick_jobs(models: Sequence[CutModel], known: Known, method: Method) -> Iterable[Job]:
    first: dict[JobKey, tuple[LayerGraph, Occurrence]] = {}
    for model, occurrence, key in _occurrences(models, method):
        first.setdefault(key, (model.decomposition.graph, occurrence))
    by_model = uses_of(models, method)
    expected = {key: expected_ms(occurrence.brick.canonical) for key, (_, occurrence) in first.items()}
    latencies = expected | {key: it.trimmed_mean_ms for key, it in known.measured.items() if key in first}
    wholes = _wholes(by_model, latencies)
    # Shares use expected latencies, also of measured bricks: so the samples that were enough stay enough.
    expected_wholes = _wholes(by_model, expected)
    for key, (graph, occurrence) in first.items():
        uses = {name: times[key] for name, times in by_model.items() if key in times}
        layers = [graph.layers[index] for index in occurrence.sequence.layers]
        # An unmeasured latency is entirely uncertain.
        doubt_ms = half_width_ms(known.measured[key]) if key in known.measured else latencies[key]
        yield Job(
            key,
            label_of(occurrence.brick.canonical),
            occurrence.brick.canonical,
            graph,
            occurrence.sequence.layers,
            tuple(starmap(Use, uses.items())),
            latencies[key],
            memory_bytes(layers),
            # A model whose bricks are too short for the clock has no uncertainty.
            gain=sum(times * doubt_ms / wholes[name] for name, times in uses.items() if wholes[name]),
            share=max(times * expected[key] / expected_wholes[name] for name, times in uses.items()),
        )


def _wholes(by_model: Mapping[str, Mapping[JobKey, int]], latencies: Mapping[JobKey, float]) -> Mapping[str, float]:
    """Return the latency of each model as the sum of its bricks."""
    return {name: sum(times * latencies[key] for key, times in uses.items()) for name, uses in by_model.items()}


def _model_jobs(models: Sequence[CutModel]) -> Iterable[Job]:
    for model in models:
        graph = model.whole
        if not any(layer.operators for layer in graph.layers):
            continue
        yield Job(
            JobKey(model=model.key),
            f"{model.name} end to end",
            "",
            graph,
            tuple(range(len(graph.layers))),
            (Use(model.name, 1),),
            sum(
                expected_ms(it.brick.canonical) * times_paid(graph, it.sequence.layers)
                for it in model.decomposition.occurrences
            ),
            memory_bytes(graph.layers),
            file=model.file,
            needs_file=model.needs_file,
        )


def is_run(graph: LayerGraph, occurrence: Occurrence) -> bool:
    """True if a sequence computes anything, and a runtime can run it."""
    layers = [graph.layers[index] for index in occurrence.sequence.layers]
    return any(layer.operators for layer in layers) and all(layer.unmeasurable is None for layer in layers)
