"""An evaluation on this host: read all models, run what the store lacks, and return results.

1. Refuse if something does not match, unless the user accepts that.
2. Read all models, so that nothing is measured for a file that fails later.
3. Measure: runs for models that lack results, then scenarios without a stored test.
4. Compare with the earlier results, if the user asks for it.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from pathlib import Path

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.analysis.whole_models import executed_model, job_of
from dlbricks_tui.api.checks import Measured, VerdictOptions, measure_again, verdict_of
from dlbricks_tui.api.documents import OMIT_NONE, taken
from dlbricks_tui.api.from_run import results_in_other_variants, timed_by
from dlbricks_tui.api.loads import LoadProcessError, MeasuredScenario, measured_scenario
from dlbricks_tui.api.preparing import (
    CheckedEvaluation,
    EvaluationPart,
    LocatedModel,
    ReadVariant,
    StoredFinding,
    findings,
    lacks_results,
    plan_of,
    read_variants,
    shared_runs,
)
from dlbricks_tui.api.scenarios import ScenarioOptions, has_rate_of, has_settings_of
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.evaluations.baseline import (
    Baseline,
    Difference,
    baseline_of_one_process,
    baselines_of_evaluation,
    judged,
    nearest,
    timing_of_results,
)
from dlbricks_tui.evaluations.evaluation import Evaluation, EvaluationError
from dlbricks_tui.evaluations.matching import Match
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.measure.results import conditions_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runs.request import RunRequest
from dlbricks_tui.runs.run import RunOutcome
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.variant import Precision, Variant, variant_in_words
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import ScenarioOrder
from dlbricks_tui.settings.loads import ARRIVAL, SERVING
from dlbricks_tui.settings.setting import fields_of
from dlbricks_tui.store.change import Verdict, newest_together
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import EndToEnd, Fact, Failure, LoadTest, utc_now
from dlbricks_tui.store.selections import equal


@dataclass(frozen=True, slots=True)
class EvaluationName:
    """An evaluation by its name, the hash of its file, and the file."""

    name: str
    sha256: str
    file: Path


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedResult(Variant):
    """A model in one combination: measured end to end, estimated from its bricks, or both."""

    model: str
    framework: str
    version: str
    # The identity of the runtime.
    runtime: str
    system: str
    level: Level
    variables: Mapping[str, str]
    measured_ms: float | None
    # The 95 % interval of `measured_ms`.
    measured_interval_ms: tuple[float, float] | None
    samples: int
    # None if not all bricks were measured.
    estimate_ms: float | None
    interval_ms: tuple[float, float] | None
    coverage: Coverage
    # The time of the measurement, and its run; None if nothing was measured.
    when: str | None
    run: str | None
    # The SHA-256 of the model file, unpacked.
    sha256: str
    packages: Mapping[str, Fact]
    host: Mapping[str, Fact]
    # The requirements of the evaluation that were not met.
    unmet: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluatedLoad:
    """A model in a scenario, by a runtime in its first variant."""

    model: str
    runtime: str
    level: Level
    kind: ScenarioKind
    percentile: float
    bound_ms: float | None
    rate: float | None
    batch_sizes: tuple[int, ...]
    instances: int
    # None if it could not be measured, for the reason in `failure`.
    measured: MeasuredScenario | None
    failure: str | None
    unmet: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedResult:
    """Today's latency of a model in one combination beside the nearest earlier one.

    `was_ms` and what follows from it is None if there is no earlier result.
    """

    model: str
    framework: str
    threads: int | None
    batch: int
    precision: Precision
    # `end to end`, or `estimate` if the whole model was not timed both times; None if nothing can be compared.
    of: str | None
    # True if latencies are those of one item, as the batch sizes differ.
    per_item: bool
    was_ms: float | None
    is_ms: float | None
    # The time of the earlier result.
    when: str | None
    change: float | None
    interval: tuple[float, float] | None
    significant: bool
    verdict: Verdict
    # The reason why the verdict is unknown; else empty.
    reason: str
    # The circumstances that were others for the earlier result.
    differences: tuple[Difference, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluationResult:
    """The matches and mismatches of an evaluation, and its results; none if it was refused."""

    evaluation: EvaluationName
    same: tuple[Match, ...]
    # True if nothing was measured because of a mismatch.
    refused: bool
    results: tuple[EvaluatedResult, ...]
    scenarios: tuple[EvaluatedLoad, ...]
    # Models that were left out or could not be measured, with the reason.
    failures: tuple[str, ...]
    # The earlier results: `file` or `store`. These two keys are there if a comparison was asked for.
    compared_with: str | None = field(default=None, metadata=OMIT_NONE)
    comparison: tuple[ComparedResult, ...] | None = field(default=None, metadata=OMIT_NONE)


# Why results have no verdict.
_NO_EARLIER = "there is no earlier result of this model by this framework"
_NOT_COMPARABLE = "it was not measured both times: time whole models, or all bricks, in both"


def comparison(now: Sequence[Baseline], earlier: Sequence[Baseline], by: float) -> tuple[ComparedResult, ...]:
    """Return each of today's results beside the nearest earlier one.

    Changes of up to `by`, a share of the latency, count as none. P-values are corrected for the number of results.
    """
    found: list[ComparedResult] = []
    for each, (was, _, timed, change, differ) in zip(
        now, judged([(nearest(it, earlier), it) for it in now], by), strict=True
    ):
        lacking = _NO_EARLIER if was is None else _NOT_COMPARABLE
        result = taken(
            ComparedResult,
            timed,
            each.result,
            of=None if change is None else "end to end" if timed.end_to_end else "estimate",
            was_ms=None if change is None else change.was_ms,
            is_ms=None if timed.now is None else timed.now.value_ms,
            when=None if was is None else was.result.when,
            **verdict_of(change, lacking),
            differences=differ,
        )
        found.append(result)
    return tuple(found)


_LOG = "scenarios.log"

# Measures a scenario, and returns its test; raises LoadProcessError if that fails.
MeasureLoad = Callable[[ScenarioOrder], LoadTest]


@dataclass(frozen=True, slots=True)
class AskedLoad:
    """A model in a scenario: the order to measure it, and the newest stored test of it."""

    evaluation: Evaluation
    part: EvaluationPart
    model: LocatedModel
    order: ScenarioOrder
    stored: LoadTest | None

    def measured(self, data: DataFolder, measure: MeasureLoad) -> EvaluatedLoad:
        """Return the stored test, or measure the scenario."""
        failure, test, execution = "", self.stored, self.order.execution
        if test is None:
            try:
                test = measure(self.order)
            except LoadProcessError as error:
                failure = f"{self.model.wanted.name}, scenario {self.order.scenario.kind.value}: {error}"
        if self.stored is None:
            unmet = self.order.unmet
        else:
            with ResultsDatabase(data.store) as store:
                origin = store.provenance_of(self.stored.uuid, self.stored.runtime)
            unmet = self.part.marks_of(self.model, origin, self.evaluation, is_new=False)
        return taken(
            EvaluatedLoad,
            self.order.scenario,
            model=self.model.wanted.name,
            runtime=execution.runtime.identity,
            level=execution.level,
            measured=None if test is None else measured_scenario(test, data),
            failure=failure or None,
            unmet=unmet,
        )


def ready_loads(checked: CheckedEvaluation, data: DataFolder, *, again: bool) -> tuple[AskedLoad, ...]:
    """Return the scenarios of an evaluation. All models are read; raise an error if one cannot be measured."""
    asked = tuple(_asked(checked.evaluation, checked.parts, data, again))
    if any(it.stored is None for it in asked):
        # Loaded here: stored tests need no LoadGen.
        from dlbricks_tui.scenarios.loadgen import require_loadgen

        require_loadgen()
    return asked


def _asked(
    evaluation: Evaluation, parts: Sequence[EvaluationPart], data: DataFolder, again: bool
) -> Iterator[AskedLoad]:
    for part in parts if evaluation.scenarios else ():
        execution = Execution(part.runtimes[0], evaluation.measuring.level)
        for model in part.models:
            how = Workplace(data), data.log / _LOG, model.inputs, model.values
            own = job_of(executed_model(model.source, execution, *how))
            if own.graph.batch_size != 1:
                # Load tests are stored under the key of single requests.
                own = job_of(executed_model(model.source, replace(execution, batch_size=1), *how))
            with ResultsDatabase(data.store) as store:
                tests = () if again else store.load_tests_of(own.key.model, fingerprint().id)
            alike = [it for it in tests if (it.runtime, it.level) == (execution.runtime.identity, execution.level)]
            for wanted in evaluation.scenarios:
                options = ScenarioOptions(batch_sizes=wanted.batch, **fields_of(wanted, (*ARRIVAL, *SERVING)))
                order = ScenarioOrder(
                    source=model.source,
                    execution=execution,
                    scenario=options.scenario(),
                    inputs=model.inputs,
                    values=model.values,
                    evaluation=evaluation.label,
                    unmet=part.marks_of(model, None, evaluation, is_new=True),
                )
                # The newest comes first.
                same = (it for it in alike if has_settings_of(it, order.scenario) and has_rate_of(it, order.scenario))
                yield AskedLoad(evaluation, part, model, order, next(same, None))


_NOTHING_ASKED = "it states neither bricks nor end_to_end nor a scenario"


@dataclass(frozen=True, slots=True, kw_only=True)
class EvaluateOptions(VerdictOptions):
    """Options of carrying out an evaluation."""

    # Go on although something does not match, and mark the results.
    anyway: bool = False
    # Measure whole models again, and compare them with the earlier results.
    compare: bool = False
    # Measure everything again.
    again: bool = False


@dataclass(frozen=True, slots=True)
class EvaluationSteps:
    """The functions that carry an evaluation out, as a command and the Python API have their own."""

    # Takes a line that a user should know.
    tell: Callable[[str], None]
    # Carries a run out; raises an exception if the user has stopped it.
    run: Callable[[RunRequest], RunOutcome]
    measure_load: MeasureLoad


def evaluate(
    checked: CheckedEvaluation, options: EvaluateOptions, data: DataFolder, steps: EvaluationSteps
) -> EvaluationResult:
    """Carry an evaluation out as far as the store lacks results, and return all results of it."""
    evaluation, file = checked.evaluation, checked.file
    if (checked.mismatches and not options.anyway) or not checked.parts:
        name = EvaluationName(evaluation.name, evaluation.sha256, file)
        return EvaluationResult(
            evaluation=name, same=checked.matches, refused=True, results=(), scenarios=(), failures=()
        )
    read, left_out = read_variants(checked, data, steps.tell)
    if left_out and not options.anyway:
        raise EvaluationError(f"{left_out[0]}; nothing was measured: repair the model, or leave it out with --anyway")
    loads = ready_loads(checked, data, again=options.again)
    if not read and not loads:
        raise EvaluationError(f"{file}: nothing can be measured: {left_out[0] if left_out else _NOTHING_ASKED}")
    began, end_to_end = utc_now(), evaluation.measuring.end_to_end
    earlier: tuple[Baseline, ...] = ()
    compared_with: str | None = None
    if options.compare:
        earlier, compared_with = _earlier(evaluation, read, data)
        if not earlier:
            raise EvaluationError(
                f"{file} records no results, and the store has no earlier ones to compare with: run "
                "`dlbricks evaluate` without --compare first"
            )
    # Without whole models, estimates are compared: their bricks are measured again.
    again, measured, runs = options.again or (options.compare and not end_to_end), Measured(), shared_runs(read)
    for run in runs:
        with ResultsDatabase(data.store) as store:
            lacks = lacks_results(run, store)
        if again or lacks:
            measured.take(run.timed, steps.run(replace(run.timed.request, again=again)), data)
    if options.compare and end_to_end:
        # The runs above left out what was stored already; below all is measured again, so their reasons do not count.
        measured.reasons.clear()
        whole = [replace(it, request=replace(it.request, again=True, bricks=False)) for _, it in runs]
        measure_again(measured, whole, options.processes, data, steps.run)
    scenarios = tuple([it.measured(data, steps.measure_load) for it in loads])
    with ResultsDatabase(data.store) as store:
        found = findings(read, store)
        today: list[Baseline] = []
        if options.compare:
            today = [_of_processes(it, measured.results[place]) for place, it in enumerate(found)]
            recorded = zip(found, (it.result for it in today), strict=True)
            found = [replace(it, result=replace(it.result, recorded=now)) for it, now in recorded]
        failures = [*left_out, *_failures(read, found, store), *(it.failure for it in scenarios if it.failure)]
    return EvaluationResult(
        evaluation=EvaluationName(evaluation.name, evaluation.sha256, file),
        same=checked.matches,
        refused=False,
        results=tuple([_evaluated(it, evaluation, began) for it in found]),
        scenarios=scenarios,
        failures=tuple(failures),
        compared_with=compared_with,
        comparison=comparison(today, earlier, options.by) if options.compare else None,
    )


def _earlier(evaluation: Evaluation, read: Sequence[ReadVariant], data: DataFolder) -> tuple[tuple[Baseline, ...], str]:
    """Return the results to compare with, and where they come from: the file, or else the store."""
    if evaluation.results:
        return baselines_of_evaluation(evaluation), "file"
    known: list[Baseline] = []
    with ResultsDatabase(data.store) as store:
        # In the same variant there may be an estimate, too.
        for it in findings(read, store):
            recorded = it.result.recorded
            if recorded.measured_ms is not None or recorded.estimate_ms is not None:
                timed = newest_together(timed_by(store, it.model, it.result.found.way))
                results = (store.select(equal(id=each.id)).result(0) for each in timed)
                known.append(_of_processes(it, [each for each in results if isinstance(each, EndToEnd)]))
        others = [
            baseline_of_one_process(it, evaluation.measuring.level)
            for variant in read
            for located, model in variant.models
            for it in results_in_other_variants(store, model, located.wanted.name, variant.request.runtime.framework)
        ]
    return (*known, *others), "store"


def _of_processes(finding: StoredFinding, results: Sequence[EndToEnd]) -> Baseline:
    """Return a result over all processes, if there are any: they vary more than the samples of one do."""
    found = baseline_of_one_process(finding.result.recorded, finding.result.found.estimate.level)
    if not results:
        return found
    it = timing_of_results(results)
    recorded = replace(
        found.result, measured_ms=it.value_ms, low_ms=it.low_ms, high_ms=it.high_ms, samples_ms=it.samples_ms
    )
    return replace(found, result=recorded, timing=it)


def _failures(read: Sequence[ReadVariant], found: Sequence[StoredFinding], store: ResultsDatabase) -> Iterator[str]:
    """Yield the models without a result that the evaluation asks for, and the bricks that failed, with the reasons."""
    for it in found:
        request, recorded, coverage = it.variant.request, it.result.recorded, it.result.found.estimate.coverage
        if request.end_to_end and it.result.timed is None:
            lacking = "the whole model was not timed"
        elif request.bricks and coverage.missing:
            lacking = f"{coverage.missing} of {coverage.layers} layers have no result"
        else:
            continue
        conditions = conditions_of(fingerprint().id, request.runtime, request.method)
        failures = store.records(Failure, conditions.query & equal(model=it.model.key))
        newest = max(failures, key=lambda failure: failure.when, default=None)
        reason = "" if newest is None else f": {newest.message or newest.reason}"
        yield f"{recorded.model} by {request.runtime.name} ({variant_in_words(recorded)}): {lacking}{reason}"
    for variant in (it for it in read if it.request.bricks):
        for job, why in plan_of(variant, store).failed.items():
            if not job.whole:
                yield f"{job.label} by {variant.request.runtime.name}: {why}"


def _evaluated(finding: StoredFinding, evaluation: Evaluation, began: str) -> EvaluatedResult:
    result = finding.result
    recorded, timed, estimate = result.recorded, result.timed, result.found
    is_new = recorded.when >= began
    return taken(
        EvaluatedResult,
        recorded,
        estimate.way,
        estimate.estimate,
        threads=estimate.variant.threads,
        level=estimate.estimate.level,
        measured_interval_ms=_interval(recorded.low_ms, recorded.high_ms),
        samples=len(recorded.samples_ms),
        interval_ms=_interval(recorded.estimate_low_ms, recorded.estimate_high_ms),
        when=recorded.when or None,
        run=timed.run if timed is not None else None,
        packages=dict(recorded.packages),
        host=dict(recorded.host),
        unmet=finding.variant.part.marks_of(finding.located, result.provenance, evaluation, is_new=is_new),
    )


def _interval(low: float | None, high: float | None) -> tuple[float, float] | None:
    return None if low is None or high is None else (low, high)
