"""Scenarios: what is predicted of a load and was measured, the test in progress, and stored tests."""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.load_pictures import (
    FAILED,
    PASSED,
    percentiles_of,
    percentiles_plot,
    progress_plot,
    server_plot,
    throughput_rows,
)
from dlbricks_tui.documents.parts import (
    BLANK_LINE,
    CellKind,
    Column,
    Heading,
    MarkedSentence,
    Part,
    Sentence,
    Table,
    name_column,
)
from dlbricks_tui.documents.results import histogram_parts
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import (
    CONFIDENCE,
    PERCENTILES,
    PredictedLoad,
    Range,
    Scenario,
    best_of,
    fewest_queries,
    is_positive,
    latencies_ms,
    measured_load,
    meets_bound,
    percentile_ms,
    percentile_of,
)
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.answers import execution_words
from dlbricks_tui.wording.jobs import (
    execution_line,
    message_line,
    percentile_name,
    progress_line,
    rate_in_words,
    scenario_line,
    scenario_of,
)
from dlbricks_tui.wording.numbers import (
    PREDICTED,
    ago,
    counted,
    duration,
    in_ms,
    milliseconds,
    minute_of,
    or_dash,
    percent,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.api.followed_jobs import LoadJob
    from dlbricks_tui.api.scenarios import ScenarioAnswer, ScenarioOfModel
    from dlbricks_tui.documents.pictures import Picture, Plot


# Stored tests in a table.
_MOST_STORED = 20
# LoadGen's reasons against a test.
_REASONS = {
    "performance constraints not satisfied": "too many requests took longer than the bound",
    "min duration not satisfied": "the test was too short",
    "min queries not satisfied": "the test had too few requests",
    "early stopping not satisfied": "the test had too few requests to be sure",
}


def scenario_parts(
    answer: ScenarioAnswer, predicted: PredictedLoad | None, test: LoadTest | None, *, is_new: bool, logs: str
) -> Iterator[Part]:
    """Yield what is predicted of a scenario, and what a test has found; `is_new` tells that the test has just ended."""
    scenario = answer.scenario
    yield Heading(answer.source.name)
    for phrase in load_answer(scenario, None if test is None else best_of([test]), predicted):
        yield Sentence(phrase, "strong")
    yield Sentence(execution_line(answer.system, answer.execution))
    yield Sentence(scenario_line(scenario))
    if predicted is not None or test is not None:
        yield BLANK_LINE
        yield outcome_table(scenario, predicted, test)
        yield BLANK_LINE
    if predicted is not None:
        yield prediction_sentence(scenario, predicted)
    if test is not None:
        if not is_new:
            yield Sentence(f"measured before, {minute_of(test.when)} UTC:")
        yield from verdict_parts(test, logs)


def stored_parts(answer: ScenarioAnswer) -> Iterator[Part]:
    """Yield the stored tests of a scenario, if there are others than the one that is shown."""
    stored = answer.stored_tests
    if len(stored) > 1 or answer.load_tests_at_rates:
        more = f", the newest {_MOST_STORED}" if len(stored) > _MOST_STORED else ""
        yield BLANK_LINE
        yield Sentence(f"{counted(len(stored), 'stored test')} of this scenario{more}:")
        yield Table(load_test_columns(answer.scenario), stored[:_MOST_STORED])


def load_test_parts(test: LoadTest) -> Iterator[Part]:
    """Yield everything about a stored load test but its latencies: where it ran, its scenario, figures and verdict."""
    scenario = scenario_of(test)
    yield Heading(test.name)
    yield Sentence(f"{execution_words(test.runtime, test.level)}, on {test.system}, {minute_of(test.when)} UTC")
    yield Sentence(scenario_line(scenario))
    yield BLANK_LINE
    yield outcome_table(scenario, None, test)
    yield BLANK_LINE
    yield from verdict_parts(test)


def latency_parts(test: LoadTest) -> Iterator[Part]:
    """Yield the latencies of a test; those of an offline one only say when its samples had their turn."""
    if test.kind != ScenarioKind.OFFLINE.value:
        yield BLANK_LINE
        yield from histogram_parts(latencies_ms(test), test.bound_ms)


def load_test_columns(scenario: Scenario | None = None) -> tuple[Column[LoadTest], ...]:
    """Return the columns of stored load tests: of one scenario, or of several."""
    own: tuple[Column[LoadTest], ...]

    def role(test: LoadTest) -> str:
        # What it has decided: about the highest rate, a given rate or a batch size.
        return "highest" if test.sought else f"batch {test.batch_size}" if test.rate is None else "at rate"

    if scenario is None:
        latency = "ms"
        own = (
            Column("when", lambda it: it.when[5:10], CellKind.NAME, is_key=True),
            name_column("scenario", lambda it: scenario_line(scenario_of(it))),
        )
    else:
        latency = f"{percentile_name(scenario.percentile)} (ms)"
        own = name_column("when (UTC)", lambda it: minute_of(it.when)), name_column("test", role)
    return (
        *own,
        Column("per second", lambda it: milliseconds(it.found_per_second), style="strong"),
        Column(latency, lambda it: in_ms(percentile_ms(it)).removesuffix(" ms"), is_named=True),
        Column("requests", lambda it: f"{it.queries:,}", is_optional=True),
        Column("verdict", verdict_of, CellKind.NAME, lambda it: "good" if is_positive(it) else "bad", is_key=True),
        Column("id", lambda it: it.uuid[:8], CellKind.NAME, is_optional=True, is_key=True),
    )


def verdict_of(test: LoadTest) -> str:
    """Return whether the test keeps the bound, of which LoadGen has none for streams, and LoadGen calls it valid."""
    return "passed" if is_positive(test) else "failed"


def load_question(model: str) -> str:
    """Return the question that a scenario answers."""
    return f"How much load can {model} serve?"


def load_answer(scenario: Scenario, tested: LoadTest | None, predicted: PredictedLoad | None) -> list[str]:
    """Return the answer to a scenario in up to two phrases; none if it was neither tested nor predicted.

    A tested figure comes first, with its age: `38.04 requests/s with p99 within 50 ms, measured 4 min ago`, `predicted
    ~48.63/s (40.12 to 55.20)`.
    """
    name, phrases = percentile_name(scenario.percentile), list[str]()
    if tested is not None:
        reached = (tested.rate or 0.0) if scenario.seeks_rate else tested.per_second
        latency = f"{name} {_latency(percentile_ms(tested))}"
        told = _figure(scenario, reached, tested.batch_size, latency, is_met=is_positive(tested))
        phrases.append(f"{told}, measured {ago(tested.when)}")
    if predicted is None:
        return phrases
    found, size = predicted.at(scenario.percentile), predicted.batch_size
    latency = f"median {_latency(predicted.p50_ms)}" if found is None else _latency(found)
    if tested is None:
        named = latency if found is None else f"{name} {latency}"
        return [_figure(scenario, predicted.per_second, size, named, is_met=predicted.valid)]
    if scenario.seeks_rate or scenario.kind is ScenarioKind.OFFLINE:
        is_other = not scenario.seeks_rate and size != tested.batch_size
        latency = _rate(predicted.per_second, "/s") + f" at batch size {size}" * is_other
    return [*phrases, f"predicted {latency}"]


def _figure(scenario: Scenario, rate: Range | float, batch_size: int, latency: str, *, is_met: bool) -> str:
    """Return the figure that answers a scenario: the highest rate, the throughput, or a latency and what it means."""
    bound = "" if scenario.bound_ms is None else f" within {scenario.bound_ms:g} ms"
    if scenario.seeks_rate:
        return f"{_rate(rate, ' requests/s')} with {percentile_name(scenario.percentile)}{bound}"
    if scenario.kind is ScenarioKind.OFFLINE:
        return f"{_rate(rate, ' samples/s')} at batch size {batch_size}"
    at = "" if scenario.rate is None else f" at {rate_in_words(scenario.rate)}"
    verdict = f",{'' if is_met else ' not'}{bound}" if bound else ""
    return f"{latency}{at}{verdict}"


def _rate(found: Range | float, unit: str) -> str:
    if not isinstance(found, Range):
        return f"{rate_in_words(found).removesuffix('/s')}{unit}"
    value, low, high = (rate_in_words(it).removesuffix("/s") for it in (found.value, found.low, found.high))
    return f"{PREDICTED}{value}{unit} ({low} to {high})"


def _latency(found: Range | float) -> str:
    if not isinstance(found, Range):
        return in_ms(found)
    low, high = (in_ms(it).removesuffix(" ms") for it in (found.low, found.high))
    return f"{PREDICTED}{in_ms(found.value)} ({low} to {high})"


class _Row(NamedTuple):
    """A figure of an outcome, with a function that writes it."""

    name: str
    predicted: Range | None
    measured: float | None
    is_latency: bool = True

    def written(self, value: float) -> str:
        return in_ms(value) if self.is_latency else rate_in_words(value)


def outcome_table(scenario: Scenario, predicted: PredictedLoad | None, test: LoadTest | None = None) -> Table[_Row]:
    """Return percentiles and throughput: predicted, measured, or both with their difference."""

    def value(it: _Row) -> str:
        return "-" if it.predicted is None else f"{PREDICTED}{it.written(it.predicted.value)}"

    def interval(it: _Row) -> str:
        unit, found = " ms" if it.is_latency else "/s", it.predicted
        ends = () if found is None else (it.written(each).removesuffix(unit) for each in (found.low, found.high))
        return " to ".join(ends) or "-"

    def difference(it: _Row) -> str:
        if it.predicted is None or not it.measured:
            return "-"
        return signed_percent(it.predicted.value / it.measured - 1)

    columns: list[Column[_Row]] = [Column("", lambda it: it.name, CellKind.NAME, is_key=True)]
    if predicted is not None:
        columns += [Column("predicted", value), Column("95 %", interval, is_optional=True)]
    if test is not None:
        columns.append(Column("measured", lambda it: or_dash(it.written, it.measured)))
    if predicted is not None and test is not None:
        columns.append(Column("difference", difference))
    throughput = "samples/s" if scenario.kind in (ScenarioKind.MULTI, ScenarioKind.OFFLINE) else "requests/s"
    if scenario.seeks_rate:
        throughput = "highest rate"
    measured = None if test is None else measured_load(test)
    reached = {} if measured is None else dict(zip(PERCENTILES, percentiles_of(measured), strict=True))
    if test is not None:
        reached.setdefault(scenario.percentile, percentile_ms(test))
    rate = None if predicted is None else predicted.per_second
    rows = [_Row(throughput, rate, None if measured is None else measured.per_second, is_latency=False)]
    for each in sorted({*PERCENTILES, *reached}):
        rows.append(_Row(percentile_name(each), None if predicted is None else predicted.at(each), reached.get(each)))
    return Table(tuple(columns), rows)


def prediction_sentence(scenario: Scenario, predicted: PredictedLoad) -> Sentence:
    """Return the verdict of a prediction, and the number of simulated queries."""
    queries = f"{counted(predicted.queries, 'simulated request')}, batch {predicted.batch_size}"
    if scenario.bound_ms is None:
        return Sentence(f"predicted from {queries}")
    verdict = "is met" if predicted.valid else "is not met"
    return Sentence(f"predicted: the bound {verdict}; from {queries}")


def verdict_parts(test: LoadTest, logs: str = "") -> Iterator[Sentence]:
    """Yield LoadGen's verdict with its reasons, whether the bound is met, and what the verdict rests on."""
    own, is_offline = "valid" if test.valid else "invalid", test.kind == ScenarioKind.OFFLINE.value
    evidence = f"{counted(test.queries, 'sample' if is_offline else 'request')} in {duration(test.seconds)}"
    # An offline test has no percentile, and a negative verdict has its reasons.
    if test.valid and not is_offline:
        needed, name = fewest_queries(test.percentile), percentile_name(test.percentile)
        if test.queries < needed:
            evidence += f", too few for {percent(CONFIDENCE)} confidence in {name}, which needs {needed:,}"
        else:
            evidence += f", enough for {percent(CONFIDENCE)} confidence in {name}"
    yield Sentence(f"{verdict_of(test)} (LoadGen: {own}), {evidence}")
    yield from (Sentence(f"  {_REASONS.get(reason, reason)}") for reason in test.reasons)
    if test.bound_ms is not None:
        verdict, name = "is met" if meets_bound(test) else "is not met", percentile_name(test.percentile)
        yield Sentence(f"the bound of {test.bound_ms:g} ms {verdict}: {name} is {in_ms(percentile_ms(test))}")
    if test.rate is not None:
        yield Sentence(f"{rate_in_words(test.rate)} were sent, {rate_in_words(test.per_second)} answered")
    instances = f" on {counted(test.instances, 'instance')}" if test.instances > 1 else ""
    passing = f"passing a request to the worker and back costs {in_ms(test.passing_ms)}"
    yield Sentence(f"batch {test.batch_size}{instances}; {passing}")
    if test.wake_up_ms:
        yield Sentence(f"after a pause a request takes {in_ms(test.wake_up_ms)} longer")
    if logs:
        yield Sentence(f"the logs of LoadGen are in {logs}")


def load_picture(found: ScenarioOfModel, job: LoadJob | None, test: LoadTest | None) -> Picture | None:
    """Return a prediction with the tests of a measurement, or with a stored one; None if nothing is known."""
    answer = found.answer
    if answer.scenario.kind is ScenarioKind.SERVER:
        running = None
        if job is not None and job.test is not None and job.test.rate is not None and job.ordered_ms:
            running = (job.test.rate, percentile_of(job.ordered_ms, answer.scenario.percentile))
        return server_plot(answer, found.curve, None if job is None else job.ended, running)
    if answer.scenario.kind is not ScenarioKind.OFFLINE:
        measured = None if test is None else measured_load(test)
        return percentiles_plot(answer.prediction, measured, answer.scenario.bound_ms)
    predicted = answer.prediction
    expected = {} if predicted is None else {predicted.batch_size: predicted.per_second.value}
    rates = {it.batch_size: it.per_second for it in (job.ended if job is not None else ())}
    if test is not None:
        rates.setdefault(test.batch_size, test.per_second)
    return throughput_rows(sorted(answer.scenario.batch_sizes), expected, rates)


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


def _ended(job: LoadJob, scenario: Scenario) -> Iterator[Part]:
    """Yield what the tests of a measurement have found, the newest first."""
    for test in reversed(job.ended):
        sign, style = (PASSED, "good") if test.passed else (FAILED, "bad")
        yield MarkedSentence(sign, style, message_line(test, scenario))
