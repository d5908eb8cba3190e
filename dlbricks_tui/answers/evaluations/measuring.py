"""The models of an evaluation in each variant, and the runs that measure what the store lacks of them."""

from collections import Counter, defaultdict
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.answers.evaluations.preparing import CheckedEvaluation, EvaluationPart, LocatedModel
from dlbricks_tui.answers.evaluations.recorded_results import FoundResult, found_result, samples_since
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.events import Event
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.known import known_in
from dlbricks_tui.measure.plan import Plan, keys_of, plan
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.library import Library
from dlbricks_tui.runs.events import ModelLeftOut, ModelLoading
from dlbricks_tui.runs.planning import cut_models
from dlbricks_tui.runs.request import RunRequest, RuntimeChoice
from dlbricks_tui.runs.work import KnownGraphs
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.events import note_of

_LOG = "evaluations.log"


@dataclass(frozen=True, slots=True)
class ReadVariant:
    """The models of a part in one variant, read and cut, and the request that measures them."""

    part: EvaluationPart
    request: RunRequest
    # With the models of the evaluation that they are.
    models: tuple[tuple[LocatedModel, CutModel], ...]

    @property
    def plan_models(self) -> list[CutModel]:
        """The models as a run plans them."""
        return [model for _, model in self.models]


@dataclass(frozen=True, slots=True)
class Finding:
    """A model in one combination, and the result that the store has of it."""

    variant: ReadVariant
    located: LocatedModel
    model: CutModel
    result: FoundResult


def read_variants(
    checked: CheckedEvaluation, data: DataFolder, tell: Callable[[str], None]
) -> tuple[tuple[ReadVariant, ...], tuple[str, ...]]:
    """Return each variant with its models, and the models that cannot be read, each with the reason."""
    left_out: dict[str, None] = {}

    def take(event: Event) -> None:
        if isinstance(event, ModelLeftOut):
            left_out[f"{event.model} cannot be read: {event.reason}"] = None
        elif not isinstance(event, ModelLoading) and (note := note_of(event)) is not None:
            tell(note.text)

    # Runtimes that a file states twice are measured once.
    stated = {request: part for part in checked.parts if part.request is not None for request in part.request.parts}
    graphs: KnownGraphs = {}
    read = [_read(part, request, data, take, graphs) for request, part in stated.items()]
    return tuple([it for it in read if it.models]), tuple(left_out)


def _read(
    part: EvaluationPart, request: RunRequest, data: DataFolder, take: Callable[[Event], None], graphs: KnownGraphs
) -> ReadVariant:
    library = Library(SAMPLE_MODELS, data.path, request.runtime.traits.format)
    located = {it.source.name: it for it in part.models}
    try:
        models = cut_models(request, library, data.cache, data.log / _LOG, take, known=graphs)
    except (ModelError, WorkerLostError):
        # All models have been told as left out.
        models = ()
    return ReadVariant(part, request, tuple([(located[it.decomposition.graph.name], it) for it in models]))


def measure_lacking(
    read: Sequence[ReadVariant], data: DataFolder, run: Callable[[RunRequest], None], *, again: bool
) -> None:
    """Measure what the store lacks, or everything again. Variants with equal requests share a run."""
    for together in _sharing_a_run(read):
        with ResultsDatabase(data.store) as store:
            lacks = any(_lacks(it, store) for it in together)
        if again or lacks:
            run(replace(_request_for(together), again=again))


def measure_in_processes(
    read: Sequence[ReadVariant], data: DataFolder, run: Callable[[RunRequest], None], processes: int, since: str
) -> None:
    """Time whole models again, one run after another, until each has results of so many processes since a time."""
    for together in _sharing_a_run(read):
        for number in range(processes):
            with ResultsDatabase(data.store) as store:
                # The first run may have timed some of them. A model that always fails is tried in each round.
                short = [it for it in together if _processes(it, store, since) <= number]
            if short:
                run(replace(_request_for(short), again=True, bricks=False))


def _sharing_a_run(read: Sequence[ReadVariant]) -> Iterator[list[ReadVariant]]:
    """Yield the variants of each run. Their requests differ in the runtime and its models only.

    A run has each runtime once, as its results come from one file of each name.
    """
    alike: defaultdict[tuple[RunRequest, int], list[ReadVariant]] = defaultdict(list)
    taken: Counter[tuple[RunRequest, str]] = Counter()
    for it in read:
        first, identity = read[0].request, it.request.runtime.identity
        shared = replace(it.request, runtime=first.runtime, models=first.models, method=first.method)
        alike[shared, taken[shared, identity]].append(it)
        taken[shared, identity] += 1
    yield from alike.values()


def _request_for(variants: Sequence[ReadVariant]) -> RunRequest:
    """Return the request of one run for all of these variants."""
    first, *others = [it.request for it in variants]
    return replace(first, others=tuple([RuntimeChoice(it.runtime, it.models, it.method) for it in others]))


def findings(read: Sequence[ReadVariant], store: ResultsDatabase) -> list[Finding]:
    """Return what the store has of each model in each combination."""
    return [it for variant in read for it in _findings(variant, store)]


def _findings(variant: ReadVariant, store: ResultsDatabase) -> Iterator[Finding]:
    for located, model in variant.models:
        result = found_result(store, variant.request, model, located.wanted.name, located.sha256)
        yield Finding(variant, located, model, result)


def _processes(variant: ReadVariant, store: ResultsDatabase, since: str) -> int:
    """Return in how many processes each whole model of a variant was timed since a time."""
    return min((len(samples_of(it, store, since)) for it in _findings(variant, store)), default=0)


def samples_of(finding: Finding, store: ResultsDatabase, since: str) -> list[tuple[float, ...]]:
    """Return the samples of a whole model since a time, by processes."""
    return samples_since(store, finding.model, finding.result.found.way, since)


def _lacks(variant: ReadVariant, store: ResultsDatabase) -> bool:
    """Return whether a run would measure anything."""
    return any(variant.request.bricks or job.whole for job in plan_of(variant, store).jobs)


def plan_of(variant: ReadVariant, store: ResultsDatabase) -> Plan:
    """Return what a run of a variant would measure, and what failed before."""
    request = variant.request
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    known = known_in(store, conditions, keys_of(variant.plan_models, request.end_to_end, request.method))
    return plan(variant.plan_models, known, request.rule, request.end_to_end, method=request.method)
