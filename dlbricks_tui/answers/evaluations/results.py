"""Evaluations as plain values: the JSON document of `dlbricks evaluate`, and the comparison with earlier results."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path

from dlbricks_tui.answers.documents import OMIT_NONE
from dlbricks_tui.answers.scenarios.results import MeasuredScenario
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.evaluations.baseline import Baseline
from dlbricks_tui.evaluations.differences import ComparableTimings, Difference, comparable, differences, nearest
from dlbricks_tui.evaluations.matching import Match
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision, Variant
from dlbricks_tui.scenarios.scenario import ScenarioKind
from dlbricks_tui.store.change import Change, Verdict, changes_from, known_changes
from dlbricks_tui.store.records import Fact


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
    """What matches an evaluation and what does not, and the results; none if it was refused."""

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
    pairs = [(each, nearest(each, earlier)) for each in now]
    timings = [ComparableTimings(None, None) if was is None else comparable(was, each) for each, was in pairs]
    changes = known_changes([(it.was, it.now) for it in timings], changes_from(by))
    return tuple(
        [_compared(each, was, it, change) for (each, was), it, change in zip(pairs, timings, changes, strict=True)]
    )


def _compared(now: Baseline, was: Baseline | None, timings: ComparableTimings, change: Change | None) -> ComparedResult:
    return ComparedResult(
        model=now.result.model,
        framework=now.result.framework,
        threads=now.result.threads,
        batch=now.result.batch,
        precision=now.result.precision,
        of=None if change is None else "end to end" if timings.end_to_end else "estimate",
        per_item=timings.per_item,
        was_ms=None if change is None else change.was_ms,
        is_ms=None if timings.now is None else timings.now.value_ms,
        when=None if was is None else was.result.when,
        change=None if change is None else change.change,
        interval=None if change is None else change.interval,
        significant=change is not None and change.significant,
        verdict=Verdict.UNKNOWN if change is None else change.verdict,
        reason=change.reason if change is not None else _NO_EARLIER if was is None else _NOT_COMPARABLE,
        differences=() if was is None else differences(was.result, now.result),
    )
