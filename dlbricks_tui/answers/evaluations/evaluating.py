"""An evaluation on this host: read all models, run what the store lacks, and return results.

1. Refuse if something does not match, unless the user accepts that.
2. Read all models, so that nothing is measured for a file that fails later.
3. Measure: runs for models that lack results, then scenarios without a stored test.
4. Compare with the earlier results, if the user asks for it.
"""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import datetime

from dlbricks_tui.answers.checks.checking import USUAL_PROCESSES, refuse_impossible
from dlbricks_tui.answers.evaluations.from_run import FoundResult, results_in_other_variants
from dlbricks_tui.answers.evaluations.preparing import (
    CheckedEvaluation,
    ReadVariant,
    StoredFinding,
    findings,
    measure_in_processes,
    measure_lacking,
    plan_of,
    read_variants,
    samples_of,
)
from dlbricks_tui.answers.evaluations.results import (
    ComparedResult,
    EvaluatedLoad,
    EvaluatedResult,
    EvaluationName,
    EvaluationResult,
    comparison,
)
from dlbricks_tui.answers.evaluations.scenarios import MeasureLoad, ready_loads
from dlbricks_tui.evaluations.baseline import (
    Baseline,
    baseline_of_one_process,
    baselines_of_evaluation,
)
from dlbricks_tui.evaluations.evaluation import Evaluation, EvaluationError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.jobs import CutModel
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runtime.variant import variant_in_words
from dlbricks_tui.store.change import TOGETHER, USUAL_SHARE, timing_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Failure, utc_now
from dlbricks_tui.store.selections import equal

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
        refuse_impossible(self.by, self.processes)


@dataclass(frozen=True, slots=True)
class EvaluationSteps:
    """The functions that carry an evaluation out, as a command and the Python API have their own."""

    # Takes a line that a user should know.
    tell: Callable[[str], None]
    # Carries a run out; raises an exception if the user has stopped it.
    run: Callable[[RunRequest], None]
    measure_load: MeasureLoad


def evaluate(
    checked: CheckedEvaluation, options: EvaluateOptions, data: DataFolder, steps: EvaluationSteps
) -> EvaluationResult:
    """Carry an evaluation out as far as the store lacks results, and return all results of it."""
    if (checked.mismatches and not options.anyway) or not checked.parts:
        return _result(checked, refused=True)
    read, left_out = read_variants(checked, data, steps.tell)
    if left_out and not options.anyway:
        raise EvaluationError(f"{left_out[0]}; nothing was measured: repair the model, or leave it out with --anyway")
    loads = ready_loads(checked, data, again=options.again)
    if not read and not loads.asked:
        raise EvaluationError(f"{checked.file}: nothing can be measured: {left_out[0] if left_out else _NOTHING_ASKED}")
    began = utc_now()
    earlier: tuple[Baseline, ...] = ()
    compared_with: str | None = None
    if options.compare:
        earlier, compared_with = _earlier(checked.evaluation, read, data)
        if not earlier:
            raise EvaluationError(
                f"{checked.file} records no results, and the store has no earlier ones to compare with: run "
                "`dlbricks evaluate` without --compare first"
            )
    # Without whole models, estimates are compared: their bricks are measured again.
    again = options.again or (options.compare and not checked.evaluation.measuring.end_to_end)
    measure_lacking(read, data, steps.run, again=again)
    if options.compare and checked.evaluation.measuring.end_to_end:
        measure_in_processes(read, data, steps.run, options.processes, began)
    scenarios = loads.measured(data, steps.measure_load)
    with ResultsDatabase(data.store) as store:
        found = findings(read, store)
        today: list[Baseline] = []
        if options.compare:
            today = [_timed_since(it, store, began) for it in found]
            found = [_of_all_processes(*both) for both in zip(found, today, strict=True)]
        failures = [*left_out, *_failures(read, found, store), *(it.failure for it in scenarios if it.failure)]
    return _result(
        checked,
        results=tuple([_evaluated(it, checked.evaluation, began) for it in found]),
        scenarios=scenarios,
        failures=tuple(failures),
        compared_with=compared_with,
        comparison=comparison(today, earlier, options.by) if options.compare else None,
    )


def _earlier(evaluation: Evaluation, read: Sequence[ReadVariant], data: DataFolder) -> tuple[tuple[Baseline, ...], str]:
    """Return the results to compare with, and where they come from: the file, or else the store."""
    if evaluation.results:
        return baselines_of_evaluation(evaluation), "file"
    with ResultsDatabase(data.store) as store:
        # In the same variant there may be an estimate, too.
        same = [_timed_together(it, store) for it in findings(read, store)]
        others = [
            baseline_of_one_process(it, evaluation.measuring.level)
            for variant in read
            for located, model in variant.models
            for it in results_in_other_variants(store, model, located.wanted.name, variant.request.runtime.framework)
        ]
    known = [it for it in same if it.result.measured_ms is not None or it.result.estimate_ms is not None]
    return (*known, *others), "store"


def _timed_together(finding: StoredFinding, store: ResultsDatabase) -> Baseline:
    """Return a result over the processes of about its time."""
    when = finding.result.recorded.when
    return _timed_since(finding, store, (datetime.fromisoformat(when) - TOGETHER).isoformat() if when else "")


def _timed_since(finding: StoredFinding, store: ResultsDatabase, since: str) -> Baseline:
    """Return a result over all processes since a time: processes vary more than the samples of one do."""
    found = baseline_of_one_process(finding.result.recorded, finding.result.found.estimate.level)
    processes = samples_of(finding, store, since)
    return replace(found, timing=timing_of(processes)) if len(processes) > 1 else found


def _of_all_processes(finding: StoredFinding, timed: Baseline) -> StoredFinding:
    """Return a finding with the latency over all processes."""
    found = timed.timing
    if found is None or found.processes == 1:
        return finding
    recorded = replace(
        timed.result,
        measured_ms=found.value_ms,
        low_ms=found.low_ms,
        high_ms=found.high_ms,
        samples_ms=found.samples_ms,
    )
    return replace(finding, result=replace(finding.result, recorded=recorded))


def _failures(read: Sequence[ReadVariant], found: Sequence[StoredFinding], store: ResultsDatabase) -> Iterator[str]:
    """Yield the models without a result that the evaluation asks for, and the bricks that failed, with the reasons."""
    for it in found:
        request, recorded = it.variant.request, it.result.recorded
        lacking = _lacking(it.result, request)
        if lacking:
            words = variant_in_words(recorded)
            reason = _reason(store, request, it.model)
            yield f"{recorded.model} by {request.runtime.name} ({words}): {lacking}{reason}"
    for variant in (it for it in read if it.request.bricks):
        for job, why in plan_of(variant, store).failed.items():
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


def _evaluated(finding: StoredFinding, evaluation: Evaluation, began: str) -> EvaluatedResult:
    result = finding.result
    recorded, timed, estimate = result.recorded, result.timed, result.found
    return EvaluatedResult(
        model=recorded.model,
        framework=recorded.framework,
        version=recorded.version,
        runtime=estimate.way.runtime,
        system=estimate.way.system,
        level=estimate.estimate.level,
        **(recorded.parts | {"threads": estimate.variant.threads}),
        variables=recorded.variables,
        measured_ms=recorded.measured_ms,
        measured_interval_ms=_interval(recorded.low_ms, recorded.high_ms),
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


def _marks(finding: StoredFinding, evaluation: Evaluation, began: str) -> tuple[str, ...]:
    """Return the requirements that were not met when a result was measured."""
    result = finding.result
    is_new = result.recorded.when >= began
    return finding.variant.part.marks_of(finding.located, result.provenance, evaluation, is_new=is_new)


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
