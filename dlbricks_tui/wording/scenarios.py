"""Scenarios in words: their outcomes as tables, histograms of latencies, and the progress of a load test."""

from collections.abc import Sequence
from typing import NamedTuple

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.scenarios.messages import (
    LoadMessage,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    LoadWaits,
)
from dlbricks_tui.scenarios.outcome import (
    PERCENTILES,
    MeasuredLoad,
    PredictedLoad,
    Range,
    latencies_ms,
    measured_load,
    meets_bound,
    percentile_ms,
)
from dlbricks_tui.scenarios.scenario import CONFIDENCE, SAMPLES_PER_QUERY, Kind, Scenario, fewest_queries
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.wording.histogram import histogram_lines
from dlbricks_tui.wording.numbers import PREDICTED, counted, duration, milliseconds, percent, signed_percent
from dlbricks_tui.wording.tables import Column, justified, or_dash

_WIDEST_HISTOGRAM = 100
_KINDS = {
    Kind.SINGLE: "single stream",
    Kind.MULTI: f"multi stream, {SAMPLES_PER_QUERY} samples a request",
    Kind.SERVER: "server",
    Kind.OFFLINE: "offline",
}


def kind_in_words(kind: Kind) -> str:
    """Return how requests arrive: `single stream`, `server`."""
    return _KINDS[kind]


def percentile_name(percentile: float) -> str:
    """Return the name of a percentile: `p99`, `p99.9`."""
    return f"p{percentile:g}"


def in_us(latency_ms: float) -> str:
    """Return a latency to the microsecond: `12.345 ms`."""
    return f"{latency_ms:,.3f} ms"


def rate_in_words(rate: float) -> str:
    """Return a rate of requests: `41.25/s`."""
    return f"{milliseconds(rate, precise=rate < 1000)}/s"


def execution_line(system: str, execution: Execution | None) -> str:
    """Return where a model runs: `onnxruntime-1.20 threads-2, fused, on c5.xlarge`."""
    if execution is None:
        return f"on {system}"
    return f"{execution.runtime.identity}, {execution.level.value}, on {system}"


def scenario_line(scenario: Scenario) -> str:
    """Return a scenario as a sentence: `server: the highest rate with p99 within 50 ms, batches of up to 4`."""
    latency = percentile_name(scenario.percentile)
    if scenario.bound_ms is not None:
        latency += f" within {scenario.bound_ms:g} ms"
    if scenario.kind is Kind.SERVER:
        asked = "the highest rate with" if scenario.rate is None else f"{rate_in_words(scenario.rate)},"
        words = [f"server: {asked} {latency}"]
    elif scenario.kind is Kind.OFFLINE:
        words = ["offline: the highest throughput"]
    else:
        words = [f"{kind_in_words(scenario.kind)}: {latency}"]
    sizes = scenario.batch_sizes
    if scenario.kind is Kind.SERVER and max(sizes) > 1:
        words.append(f"batches of up to {max(sizes)}")
    elif sizes != (1,):
        words.append(f"batch {' or '.join(map(str, sizes))}")
    if scenario.instances > 1:
        words.append(f"{scenario.instances} instances")
    if scenario.full:
        words.append("as long as MLPerf asks")
    return ", ".join(words)


def scenario_of(test: LoadTest) -> Scenario:
    """Return the scenario of a stored load test."""
    return Scenario(
        kind=Kind(test.kind),
        percentile=test.percentile,
        bound_ms=test.bound_ms,
        rate=None if test.sought else test.rate,
        batch_sizes=(test.batch_size,),
        instances=test.instances,
    )


class _Row(NamedTuple):
    """A figure of an outcome, with a function that writes it."""

    name: str
    predicted: Range | None
    measured: float | None
    is_latency: bool = True

    def written(self, value: float) -> str:
        return in_us(value) if self.is_latency else rate_in_words(value)


def outcome_lines(
    scenario: Scenario, predicted: PredictedLoad | None, measured: MeasuredLoad | None, test: LoadTest | None = None
) -> list[str]:
    """Return percentiles and throughput as a table: predicted, measured, or both with their difference."""
    columns: list[Column[_Row]] = [Column("", lambda it: it.name, holds_names=True)]
    if predicted is not None:
        columns += [Column("PREDICTED", _predicted), Column("95 %", _interval)]
    if measured is not None:
        columns.append(Column("MEASURED", lambda it: or_dash(it.written, it.measured)))
    if predicted is not None and measured is not None:
        columns.append(Column("DIFFERENCE", _difference))
    rows = _rows(scenario, predicted, measured, test)
    cells = [[it.title for it in columns], *([it.cell(row) for it in columns] for row in rows)]
    return [line.rstrip() for line in justified(columns, cells)]


def _rows(
    scenario: Scenario, predicted: PredictedLoad | None, measured: MeasuredLoad | None, test: LoadTest | None
) -> list[_Row]:
    def row(name: str, field: str, is_latency: bool = True) -> _Row:
        found = None if measured is None else getattr(measured, field)
        return _Row(name, None if predicted is None else getattr(predicted, field), found, is_latency)

    throughput = "samples/s" if scenario.kind in (Kind.MULTI, Kind.OFFLINE) else "requests/s"
    if scenario.seeks_rate:
        throughput = "highest rate"
    latencies = {
        each: row(percentile_name(each), f"{percentile_name(each).replace('.', '')}_ms") for each in PERCENTILES
    }
    if test is not None:
        own = _Row(percentile_name(scenario.percentile), None, percentile_ms(test))
        latencies.setdefault(scenario.percentile, own)
    return [row(throughput, "per_second", is_latency=False), *(latencies[each] for each in sorted(latencies))]


def _predicted(row: _Row) -> str:
    return "-" if row.predicted is None else f"{PREDICTED}{row.written(row.predicted.value)}"


def _interval(row: _Row) -> str:
    if row.predicted is None:
        return "-"
    unit = " ms" if row.is_latency else "/s"
    low, high = (row.written(it).removesuffix(unit) for it in (row.predicted.low, row.predicted.high))
    return f"{low} to {high}"


def _difference(row: _Row) -> str:
    if row.predicted is None or not row.measured:
        return "-"
    return signed_percent(row.predicted.value / row.measured - 1)


def prediction_line(scenario: Scenario, predicted: PredictedLoad) -> str:
    """Return the verdict of a prediction, and the number of simulated queries."""
    queries = f"{counted(predicted.queries, 'simulated request')}, batch {predicted.batch_size}"
    if scenario.bound_ms is None:
        return f"predicted from {queries}"
    verdict = "is met" if predicted.valid else "is not met"
    return f"predicted: the bound {verdict}; from {queries}"


def verdict_lines(test: LoadTest) -> list[str]:
    """Return LoadGen's verdict with its reasons, whether the bound is met, and what the verdict rests on."""
    lines = [f"LoadGen: {'VALID' if test.valid else 'INVALID'}, {_evidence(test)}"]
    lines += [f"  {reason}" for reason in test.reasons]
    if test.bound_ms is not None:
        verdict, name = "is met" if meets_bound(test) else "is not met", percentile_name(test.percentile)
        lines.append(f"the bound of {test.bound_ms:g} ms {verdict}: {name} is {in_us(percentile_ms(test))}")
    if test.rate is not None:
        lines.append(f"{rate_in_words(test.rate)} were sent, {rate_in_words(test.per_second)} answered")
    instances = f" on {counted(test.instances, 'instance')}" if test.instances > 1 else ""
    batch = f"batch {test.batch_size}{instances}"
    lines.append(f"{batch}; passing a request to the worker and back costs {in_us(test.passing_ms)}")
    if test.wake_up_ms:
        lines.append(f"after a pause a request takes {in_us(test.wake_up_ms)} longer")
    return lines


def _evidence(test: LoadTest) -> str:
    """Return the number of requests and the confidence of the verdict."""
    what = "sample" if test.kind == Kind.OFFLINE.value else "request"
    told = f"{counted(test.queries, what)} in {duration(test.seconds)}"
    # An offline test has no percentile, and a negative verdict has its reasons.
    if test.kind == Kind.OFFLINE.value or not test.valid:
        return told
    needed, name = fewest_queries(test.percentile), percentile_name(test.percentile)
    if test.queries < needed:
        return f"{told}, too few for {percent(CONFIDENCE)} confidence in {name}, which needs {needed:,}"
    return f"{told}, enough for {percent(CONFIDENCE)} confidence in {name}"


def histogram_below(test: LoadTest, width: int) -> list[str]:
    """Return a blank line, and latencies as a histogram with the bound as a line; nothing for offline tests.

    Latencies of an offline test only say when its samples had their turn.
    """
    if test.kind == Kind.OFFLINE.value:
        return []
    return ["", *histogram_lines(latencies_ms(test), min(width, _WIDEST_HISTOGRAM), bound_ms=test.bound_ms)]


def load_test_details(test: LoadTest, width: int) -> list[str]:
    """Return everything about a stored load test: where it ran, its scenario, percentiles, verdict and histogram."""
    scenario = scenario_of(test)
    return [
        test.name,
        f"{test.runtime}, {test.level.value}, on {test.system}, {test.when[:16].replace('T', ' ')} UTC",
        scenario_line(scenario),
        "",
        *outcome_lines(scenario, None, measured_load(test), test),
        "",
        *verdict_lines(test),
        *histogram_below(test, width),
    ]


def load_test_lines(tests: Sequence[LoadTest]) -> list[str]:
    """Return stored load tests of one scenario as a table with a line for each."""
    latency = f"{percentile_name(tests[0].percentile)} (ms)"
    columns: list[Column[LoadTest]] = [
        Column("WHEN (UTC)", lambda it: it.when[:16].replace("T", " "), holds_names=True),
        Column("TEST", _role, holds_names=True),
        Column("PER SECOND", lambda it: milliseconds(it.found_per_second)),
        Column(latency, lambda it: in_us(percentile_ms(it)).removesuffix(" ms")),
        Column("REQUESTS", lambda it: f"{it.queries:,}"),
        Column("VERDICT", lambda it: "VALID" if it.valid else "INVALID", holds_names=True),
        Column("ID", lambda it: it.uuid[:8], holds_names=True),
    ]
    cells = [[it.title for it in columns], *([it.cell(test) for it in columns] for test in tests)]
    return [line.rstrip() for line in justified(columns, cells)]


def _role(test: LoadTest) -> str:
    """Return what a test has decided: about the highest rate, a given rate or a batch size."""
    if test.sought:
        return "highest"
    return f"batch {test.batch_size}" if test.rate is None else "at rate"


def message_line(message: LoadMessage, scenario: Scenario) -> str:
    """Return a message of the process that measures as a line; empty if others say the same."""
    if isinstance(message, LoadWaits):
        return f"waiting for {message.holder}"
    if isinstance(message, LoadReady):
        loaded = "the model is loaded" if scenario.instances == 1 else f"{scenario.instances} instances are loaded"
        return f"{loaded}: a request takes {in_us(message.service_ms)}, and passing it {in_us(message.passing_ms)}"
    if isinstance(message, LoadTestStarted):
        name = _test(message.number, message.rate, message.batch_size)
        return f"{name}, at least {counted(message.queries, _counted_as(scenario))}"
    if isinstance(message, LoadTestDone):
        name = _test(message.number, message.rate, message.batch_size)
        latency = f"{percentile_name(scenario.percentile)} {in_us(message.percentile_ms)}"
        verdict = "passed" if message.passed else "failed"
        return f"{name}, {latency}, {rate_in_words(message.per_second)} served, {verdict}"
    if isinstance(message, LoadTestsKept):
        return f"stored {counted(message.tests, 'test')} that had ended"
    return ""


def progress_line(message: LoadTestStarted, scenario: Scenario, answered: int, slower: int, seconds: float) -> str:
    """Return how far a test is: `test 3: 41.25/s, 212 of 662 requests, 0.94 % over 50 ms, about 12 s left`.

    `seconds` have passed since it began.
    """
    words = [_test(message.number, message.rate, message.batch_size)]
    words.append(f"{answered:,} of {counted(max(answered, message.queries), _counted_as(scenario))}")
    if scenario.bound_ms is not None and answered:
        words.append(f"{percent(slower / answered, 2)} over {scenario.bound_ms:g} ms")
    if 0 < answered < message.queries:
        words.append(f"about {duration(seconds * (message.queries - answered) / answered)} left")
    return ", ".join(words)


def _counted_as(scenario: Scenario) -> str:
    """Return what the messages of a test count."""
    return "sample" if scenario.kind in (Kind.MULTI, Kind.OFFLINE) else "request"


def _test(number: int, rate: float | None, batch_size: int) -> str:
    return f"test {number}: {f'batch {batch_size}' if rate is None else rate_in_words(rate)}"
