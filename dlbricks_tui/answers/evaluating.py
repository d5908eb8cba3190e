"""An evaluation on this host: read all models, run what the store lacks, and return results.

1. Refuse if something does not match, unless the user accepts that.
2. Read all models, so that nothing is measured for a file that fails later.
3. Measure: runs for models that lack results, then scenarios without a stored test.
4. Compare with the earlier results, if the user asks for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

from dlbricks_tui.answers.checking import MOST_PROCESSES, USUAL_PROCESSES
from dlbricks_tui.answers.evaluation_check import CheckedEvaluation, EvaluationPart, LocatedModel
from dlbricks_tui.answers.evaluation_comparing import comparison, results_in_file
from dlbricks_tui.answers.evaluation_results import (
    ComparedResult,
    EvaluatedLoad,
    EvaluatedResult,
    EvaluationName,
    EvaluationResult,
)
from dlbricks_tui.answers.evaluation_scenarios import MeasureLoad, ready_loads
from dlbricks_tui.answers.recorded_results import FoundResult, found_result, results_in_other_variants, samples_since
from dlbricks_tui.evaluations.change import USUAL_SHARE, timing_of
from dlbricks_tui.evaluations.errors import EvaluationError
from dlbricks_tui.evaluations.evaluation import Evaluation, RecordedResult
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
from dlbricks_tui.runs.request import CalibrationPolicy, RunRequest
from dlbricks_tui.runs.work import KnownGraphs
from dlbricks_tui.runtime.errors import WorkerLostError
from dlbricks_tui.runtime.variant import Variant
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.filters import equal
from dlbricks_tui.store.records import Failure, utc_now
from dlbricks_tui.wording.events import note_of

_LOG = "evaluations.log"
_NOTHING_ASKED = "it states neither bricks nor end_to_end nor a scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions:
    """Options of carrying out an evaluation."""

    # Go on although something does not match, and mark the results.
    anyway: bool = False
    # Measure whole models again, and compare them with the earlier results.
    compare: bool = False
    # The share of a latency up to which a change counts as none.
    by: float = USUAL_SHARE
    # A comparison measures each model in this many processes, one after another.
    processes: int = USUAL_PROCESSES
    # Measure everything again.
    again: bool = False

    def __post_init__(self) -> None:
        if not 0 < self.by < 1:
            raise EvaluationError(f"by {self.by:g}: give more than 0 and less than 1, such as 3%")
        if not 1 <= self.processes <= MOST_PROCESSES:
            raise EvaluationError(f"processes {self.processes}: give a number from 1 to {MOST_PROCESSES}")


@dataclass(frozen=True, slots=True)
class EvaluationSteps:
    """The functions that carry an evaluation out, as a command and the Python API have their own."""

    # Takes a line that a user should know.
    tell: Callable[[str], None]
    # Carries a run out; raises an exception if the user has stopped it.
    run: Callable[[RunRequest], None]
    measure_load: MeasureLoad


@dataclass(frozen=True, slots=True)
class ReadVariant:
    """The models of a part in one variant, read and cut."""

    request: RunRequest
    # With the models of the evaluation that they are.
    models: tuple[tuple[LocatedModel, CutModel], ...]


@dataclass(frozen=True, slots=True)
class ReadPart:
    """A part of an evaluation with the models of each of its variants."""

    part: EvaluationPart
    request: RunRequest
    variants: tuple[ReadVariant, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """A model in one combination, and what the store has of it."""

    part: EvaluationPart
    request: RunRequest
    located: LocatedModel
    model: CutModel
    result: FoundResult


def evaluate(
    checked: CheckedEvaluation, options: EvaluateOptions, data: DataFolder, steps: EvaluationSteps
) -> EvaluationResult:
    """Carry an evaluation out as far as the store lacks results, and return all results of it."""
    if (checked.mismatches and not options.anyway) or not checked.parts:
        return _result(checked, refused=True)
    read, left_out = _read(checked, data, steps.tell)
    if left_out and not options.anyway:
        raise EvaluationError(f"{left_out[0]}; nothing was measured: repair the model, or leave it out with --anyway")
    loads = ready_loads(checked, data, again=options.again)
    if not read and not loads.asked:
        raise EvaluationError(f"{checked.file}: nothing can be measured: {left_out[0] if left_out else _NOTHING_ASKED}")
    began = utc_now()
    earlier: tuple[RecordedResult, ...] = ()
    compared_with: str | None = None
    if options.compare:
        earlier, compared_with = _earlier(checked.evaluation, read, data)
        if not earlier:
            raise EvaluationError(
                f"{checked.file} records no results, and the store has no earlier ones to compare with: run "
                "`dlbricks evaluate` without --compare first"
            )
    for each in read:
        _measure(each, options, data, steps.run, began)
    scenarios = loads.measured(data, steps.measure_load)
    with ResultsDatabase(data.store) as store:
        found = [it for each in read for it in _found(each, store)]
        today = [_today(it, store, began) for it in found]
        failures = [*left_out, *_failures(read, found, store), *(it.failure for it in scenarios if it.failure)]
    return _result(
        checked,
        results=tuple([_evaluated(it, checked.evaluation, began) for it in found]),
        scenarios=scenarios,
        failures=tuple(failures),
        compared_with=compared_with,
        comparison=comparison(today, earlier, options.by) if options.compare else None,
    )


def _read(
    checked: CheckedEvaluation, data: DataFolder, tell: Callable[[str], None]
) -> tuple[list[ReadPart], tuple[str, ...]]:
    """Return the parts with their models, and the models that cannot be read, each with the reason."""
    left_out: dict[str, None] = {}

    def take(event: Event) -> None:
        if isinstance(event, ModelLeftOut):
            left_out[f"{event.model} cannot be read: {event.reason}"] = None
        elif not isinstance(event, ModelLoading) and (note := note_of(event)) is not None:
            tell(note.text)

    found: list[ReadPart] = []
    graphs: KnownGraphs = {}
    for part in checked.parts:
        if part.request is None:
            continue
        variants = tuple(_read_variant(part, request, data, take, graphs) for request in part.request.parts)
        if any(it.models for it in variants):
            found.append(ReadPart(part, part.request, variants))
    return found, tuple(left_out)


def _read_variant(
    part: EvaluationPart, request: RunRequest, data: DataFolder, take: Callable[[Event], None], graphs: KnownGraphs
) -> ReadVariant:
    library = Library(SAMPLE_MODELS, data.path, request.runtime.traits.format)
    located = {it.source.name: it for it in part.models}
    try:
        models = cut_models(request, library, data.cache, data.log / _LOG, take, known=graphs)
    except (ModelError, WorkerLostError):
        # All models have been told as left out.
        models = ()
    return ReadVariant(request, tuple([(located[it.decomposition.graph.name], it) for it in models]))


def _earlier(
    evaluation: Evaluation, read: Sequence[ReadPart], data: DataFolder
) -> tuple[tuple[RecordedResult, ...], str]:
    """Return the results to compare with, and where they come from: the file, or else the store."""
    if evaluation.results:
        return results_in_file(evaluation), "file"
    with ResultsDatabase(data.store) as store:
        # In the same variant there may be an estimate, too.
        same = [it.result.recorded for each in read for it in _found(each, store)]
        others = [
            it
            for each in read
            for variant in each.variants
            for located, model in variant.models
            for it in results_in_other_variants(store, model, located.wanted.name, variant.request.runtime.framework)
        ]
    known = [it for it in same if it.measured_ms is not None or it.estimate_ms is not None]
    return (*known, *others), "store"


def _measure(
    each: ReadPart, options: EvaluateOptions, data: DataFolder, run: Callable[[RunRequest], None], began: str
) -> None:
    """Measure what the store lacks of a part, and for a comparison all whole models in several processes."""
    request = each.request
    # Without whole models, estimates are compared: their bricks are measured again.
    again = options.again or (options.compare and not request.end_to_end)
    with ResultsDatabase(data.store) as store:
        lacks = any(_lacks(variant, store) for variant in each.variants)
    if again or lacks:
        run(replace(request, again=again))
    if options.compare and request.end_to_end:
        for _ in range(options.processes - _processes(each, data, began)):
            run(replace(request, again=True, bricks=False, calibration=CalibrationPolicy.NEVER))


def _processes(each: ReadPart, data: DataFolder, began: str) -> int:
    """Return in how many processes each whole model of a part was measured since the beginning."""
    with ResultsDatabase(data.store) as store:
        return min((len(_samples(it, store, began)) for it in _found(each, store)), default=0)


def _samples(finding: Finding, store: ResultsDatabase, began: str) -> list[tuple[float, ...]]:
    return samples_since(store, finding.model, finding.result.found.way, began)


def _today(finding: Finding, store: ResultsDatabase, began: str) -> RecordedResult:
    """Return a result over all processes since the beginning: processes vary more than the samples of one do."""
    recorded, processes = finding.result.recorded, _samples(finding, store, began)
    if len(processes) < 2:
        return recorded
    found = timing_of(processes)
    return replace(
        recorded, measured_ms=found.value_ms, low_ms=found.low_ms, high_ms=found.high_ms, samples_ms=found.samples_ms
    )


def _lacks(variant: ReadVariant, store: ResultsDatabase) -> bool:
    """Return whether a run would measure anything."""
    return any(variant.request.bricks or job.whole for job in _plan(variant, store).jobs)


def _plan(variant: ReadVariant, store: ResultsDatabase) -> Plan:
    """Return what a run of a variant would measure, and what failed before."""
    request, models = variant.request, [model for _, model in variant.models]
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    known = known_in(store, conditions, keys_of(models, request.end_to_end, request.method))
    return plan(models, known, request.rule, request.end_to_end, method=request.method)


def _found(each: ReadPart, store: ResultsDatabase) -> Iterator[Finding]:
    for variant in each.variants:
        for located, model in variant.models:
            result = found_result(store, variant.request, model, located.wanted.name, located.sha256)
            yield Finding(each.part, variant.request, located, model, result)


def _failures(read: Sequence[ReadPart], found: Sequence[Finding], store: ResultsDatabase) -> Iterator[str]:
    """Yield the models without a result that the evaluation asks for, and the bricks that failed, with the reasons."""
    for it in found:
        lacking, recorded = _lacking(it.result, it.request), it.result.recorded
        if lacking:
            words = Variant(recorded.threads, recorded.batch, recorded.precision).in_words
            reason = _reason(store, it.request, it.model)
            yield f"{recorded.model} by {it.request.runtime.name} ({words}): {lacking}{reason}"
    for variant in (it for each in read for it in each.variants if it.request.bricks):
        for job, why in _plan(variant, store).failed.items():
            if not job.whole:
                yield f"{job.label} by {variant.request.runtime.name}: {why}"


def _lacking(found: FoundResult, request: RunRequest) -> str:
    coverage = found.found.estimate.coverage
    if request.end_to_end and found.timed is None:
        return "the whole model was not timed"
    if request.bricks and coverage.missing:
        return f"{coverage.missing} of {coverage.layers} layers have no result"
    return ""


def _reason(store: ResultsDatabase, request: RunRequest, model: CutModel) -> str:
    """Return the reason why a whole model could not be timed, after a colon; empty if it is not known."""
    conditions = conditions_of(fingerprint().id, request.runtime, request.method)
    failures = store.records(Failure, conditions.query & equal(model=model.key))
    newest = max(failures, key=lambda it: it.when, default=None)
    return "" if newest is None else f": {newest.message or newest.reason}"


def _evaluated(finding: Finding, evaluation: Evaluation, began: str) -> EvaluatedResult:
    result = finding.result
    recorded, timed, estimate = result.recorded, result.timed, result.found
    return EvaluatedResult(
        model=recorded.model,
        framework=recorded.framework,
        version=recorded.version,
        runtime=estimate.way.runtime,
        system=estimate.way.system,
        level=estimate.estimate.level,
        threads=estimate.variant.threads,
        batch=recorded.batch,
        precision=recorded.precision,
        instructions=recorded.instructions,
        optimisation=recorded.optimisation,
        variables=recorded.variables,
        measured_ms=recorded.measured_ms,
        measured_interval_ms=None if timed is None else (timed.low_ms, timed.high_ms),
        samples=len(recorded.samples_ms),
        estimate_ms=recorded.estimate_ms,
        interval_ms=_interval(recorded.estimate_low_ms, recorded.estimate_high_ms),
        coverage=estimate.estimate.coverage,
        when=recorded.when or None,
        run=timed.run if timed is not None else None,
        sha256=recorded.sha256,
        packages=dict(recorded.packages),
        host=dict(recorded.host),
        unmet=_marks(finding, evaluation, began),
    )


def _interval(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)


def _marks(finding: Finding, evaluation: Evaluation, began: str) -> tuple[str, ...]:
    """Return the requirements that were not met when a result was measured."""
    result = finding.result
    is_new = result.recorded.when >= began
    return finding.part.marks_of(finding.located, result.provenance, evaluation, is_new=is_new)


def _result(
    checked: CheckedEvaluation,
    *,
    refused: bool = False,
    results: tuple[EvaluatedResult, ...] = (),
    scenarios: tuple[EvaluatedLoad, ...] = (),
    failures: tuple[str, ...] = (),
    compared_with: str | None = None,
    comparison: tuple[ComparedResult, ...] | None = None,
) -> EvaluationResult:
    evaluation = checked.evaluation
    return EvaluationResult(
        evaluation=EvaluationName(evaluation.name, evaluation.sha256, checked.file),
        same=checked.matches,
        refused=refused,
        results=results,
        scenarios=scenarios,
        failures=failures,
        compared_with=compared_with,
        comparison=comparison,
    )
