"""Today's results of an evaluation beside the earlier ones: those in its file, or else those in the store."""

from collections.abc import Sequence
from dataclasses import replace

from dlbricks_tui.answers.evaluations.results import ComparedResult
from dlbricks_tui.evaluations.change import Change, Timing, Verdict, compared, corrected
from dlbricks_tui.evaluations.differences import ComparableTimings, comparable, differences, nearest
from dlbricks_tui.evaluations.evaluation import Evaluation, RecordedResult
from dlbricks_tui.wording.checks import reason_for_doubt

# Why results have no verdict.
_NO_EARLIER = "there is no earlier result of this model by this framework"
_NOT_COMPARABLE = "it was not measured both times: time whole models, or all bricks, in both"


def results_in_file(evaluation: Evaluation) -> tuple[RecordedResult, ...]:
    """Return the results that an evaluation records, each with the content of its model."""
    contents = {it.name: it.sha256 for it in evaluation.models}
    return tuple([replace(it, sha256=it.sha256 or contents.get(it.model, "")) for it in evaluation.results])


def comparison(
    now: Sequence[RecordedResult], earlier: Sequence[RecordedResult], by: float
) -> tuple[ComparedResult, ...]:
    """Return each of today's results beside the nearest earlier one.

    Changes of up to `by`, a share of the latency, count as none. P-values are corrected for the number of results.
    """
    pairs = [(each, nearest(each, earlier)) for each in now]
    timings = [ComparableTimings(None, None) if was is None else comparable(was, each) for each, was in pairs]
    found = [_change(it.was, it.now, by) for it in timings]
    judged = iter(corrected([it for it in found if it is not None], by))
    changes = [None if it is None else next(judged) for it in found]
    return tuple(
        [_compared(each, was, it, change, by) for (each, was), it, change in zip(pairs, timings, changes, strict=True)]
    )


def _change(was: Timing | None, now: Timing | None, by: float) -> Change | None:
    return None if was is None or now is None else compared(was, now, by)


def _reason(was: RecordedResult | None, change: Change | None, by: float) -> str:
    if was is None:
        return _NO_EARLIER
    return _NOT_COMPARABLE if change is None else reason_for_doubt(change, by)


def _compared(
    now: RecordedResult, was: RecordedResult | None, timings: ComparableTimings, change: Change | None, by: float
) -> ComparedResult:
    return ComparedResult(
        model=now.model,
        framework=now.framework,
        threads=now.threads,
        batch=now.batch,
        precision=now.precision,
        of=None if change is None else "end to end" if timings.end_to_end else "estimate",
        per_item=timings.per_item,
        was_ms=None if change is None else change.was_ms,
        is_ms=None if timings.now is None else timings.now.value_ms,
        when=None if was is None else was.when,
        change=None if change is None else change.change,
        interval=None if change is None else (change.low, change.high),
        significant=change is not None and change.significant,
        verdict=Verdict.UNKNOWN if change is None else change.verdict,
        reason=_reason(was, change, by),
        differences=() if was is None else differences(was, now),
    )
