"""A scenario beside its measurement: the load, the test in progress, and one of the stored tests."""

from __future__ import annotations

from bisect import bisect_right
from functools import lru_cache
from typing import TYPE_CHECKING

from dlbricks_tui.documents.load_pictures import (
    FAILED,
    PASSED,
    LoadCurve,
    histogram_plot,
    load_plot,
    percentiles_plot,
    progress_plot,
    throughput_rows,
)
from dlbricks_tui.documents.parts import MarkedSentence, Sentence
from dlbricks_tui.documents.scenario import outcome_table
from dlbricks_tui.scenarios.scenario import ScenarioKind, latencies_ms, measured_load, percentile_of
from dlbricks_tui.wording.scenarios import message_line, progress_line

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.api.followed_jobs import LoadJob
    from dlbricks_tui.api.scenarios import ScenarioOfModel
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.documents.pictures import Picture, Plot
    from dlbricks_tui.scenarios.scenario import PredictedLoad, Scenario
    from dlbricks_tui.store.records import LoadTest


def load_picture(found: ScenarioOfModel, job: LoadJob | None, test: LoadTest | None) -> Picture | None:
    """Return a prediction with the tests of a measurement, or with a stored one; None if nothing is known."""
    answer = found.answer
    if answer.scenario.kind is ScenarioKind.SERVER:
        curve = curve_of(found, job)
        return load_plot(curve, answer.scenario) if curve.points else None
    if answer.scenario.kind is not ScenarioKind.OFFLINE:
        measured = None if test is None else measured_load(test)
        return percentiles_plot(answer.prediction, measured, answer.scenario.bound_ms)
    predicted = answer.prediction
    expected = {} if predicted is None else {predicted.batch_size: predicted.per_second.value}
    rates = {it.batch_size: it.per_second for it in (job.ended if job is not None else ())}
    if test is not None:
        rates.setdefault(test.batch_size, test.per_second)
    return throughput_rows(sorted(answer.scenario.batch_sizes), expected, rates)


def curve_of(found: ScenarioOfModel, job: LoadJob | None) -> LoadCurve:
    """Return what is known about the latencies of a server: its prediction, and the tests of a measurement."""
    running = None
    if job is not None and job.test is not None and job.test.rate is not None and job.ordered_ms:
        running = (job.test.rate, percentile_of(job.ordered_ms, found.answer.scenario.percentile))
    return LoadCurve.of(found.answer, found.curve, None if job is None else job.ended, running)


def load_parts(found: ScenarioOfModel, job: LoadJob | None) -> Iterator[Part]:
    """Yield what is predicted, and what the tests of a measurement have found."""
    if found.answer.prediction is not None:
        yield outcome_table(found.answer.scenario, found.answer.prediction)
    if job is not None:
        yield from _ended(job, found.answer.scenario)


def progress_picture(job: LoadJob) -> Plot | None:
    """Return the latencies of the test in progress."""
    if not job.latencies_ms or job.test is None:
        return None
    return progress_plot(job.latencies_ms, job.ordered_ms, job.test.queries, job.order.scenario)


def progress_parts(job: LoadJob) -> Iterator[Part]:
    """Yield how far a measurement is."""
    if job.ready is not None and job.test is None:
        yield Sentence(message_line(job.ready, job.order.scenario), "muted")
    yield from _ended(job, job.order.scenario)


def progress_words(job: LoadJob) -> str:
    """Return how far the test in progress is; empty if there is none."""
    if job.test is None:
        return ""
    answered, bound_ms = job.ordered_ms, job.order.scenario.bound_ms
    slower = 0 if bound_ms is None else len(answered) - bisect_right(answered, bound_ms)
    return progress_line(job.test, job.order.scenario, len(answered), slower, job.seconds)


@lru_cache(maxsize=8)
def histogram(test: LoadTest, predicted: PredictedLoad | None) -> Plot | None:
    """Return the latencies of a stored test."""
    return histogram_plot(test, latencies_ms(test), predicted)


def _ended(job: LoadJob, scenario: Scenario) -> Iterator[Part]:
    """Yield what the tests of a measurement have found, the newest first."""
    for test in reversed(job.ended):
        sign, style = (PASSED, "good") if test.passed else (FAILED, "bad")
        yield MarkedSentence(sign, style, message_line(test, scenario))
