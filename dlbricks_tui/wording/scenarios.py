"""Scenarios and traces in words: what is asked, latencies and rates, and the progress of load tests and traces."""

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.printable import printable
from dlbricks_tui.scenarios.scenario import (
    SAMPLES_PER_QUERY,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    Scenario,
    ScenarioKind,
    latencies_ms,
)
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.traces.trace import LevelDone, RoundStarted
from dlbricks_tui.wording.answers import execution_words
from dlbricks_tui.wording.numbers import counted, duration, in_ms, milliseconds, percent, signed_ms
from dlbricks_tui.wording.plain_text import histogram_lines

_WIDEST_HISTOGRAM = 100
_KINDS = {
    ScenarioKind.SINGLE: "single stream",
    ScenarioKind.MULTI: f"multi stream, {SAMPLES_PER_QUERY} samples a request",
    ScenarioKind.SERVER: "server",
    ScenarioKind.OFFLINE: "offline",
}


def kind_in_words(kind: ScenarioKind) -> str:
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
    """Return where a model runs: `ONNX Runtime 1.20, 2 threads, fused layers, on c5.xlarge`."""
    if execution is None:
        return f"on {system}"
    return f"{execution_words(execution.runtime.identity, execution.level)}, on {system}"


def scenario_line(scenario: Scenario) -> str:
    """Return a scenario as a sentence: `server: the highest rate with p99 within 50 ms, batches of up to 4`."""
    latency = percentile_name(scenario.percentile)
    if scenario.bound_ms is not None:
        latency += f" within {scenario.bound_ms:g} ms"
    if scenario.kind is ScenarioKind.SERVER:
        asked = "the highest rate with" if scenario.rate is None else f"{rate_in_words(scenario.rate)},"
        words = [f"server: {asked} {latency}"]
    elif scenario.kind is ScenarioKind.OFFLINE:
        words = ["offline: the highest throughput"]
    else:
        words = [f"{kind_in_words(scenario.kind)}: {latency}"]
    sizes = scenario.batch_sizes
    if scenario.kind is ScenarioKind.SERVER and max(sizes) > 1:
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
        kind=ScenarioKind(test.kind),
        percentile=test.percentile,
        bound_ms=test.bound_ms,
        rate=None if test.sought else test.rate,
        batch_sizes=(test.batch_size,),
        instances=test.instances,
    )


def histogram_below(test: LoadTest, width: int) -> list[str]:
    """Return a blank line, and latencies as a histogram with the bound as a line; nothing for offline tests.

    Latencies of an offline test only say when its samples had their turn.
    """
    if test.kind == ScenarioKind.OFFLINE.value:
        return []
    return ["", *histogram_lines(latencies_ms(test), min(width, _WIDEST_HISTOGRAM), bound_ms=test.bound_ms)]


def message_line(message: Event, scenario: Scenario) -> str:
    """Return a message of the process that measures as a line; empty if others say the same."""
    if isinstance(message, Waiting):
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


class LoadWords:
    """Words the events of a load test, and adds up the requests of the test in progress."""

    def __init__(self, scenario: Scenario) -> None:
        self._scenario = scenario
        self._test: LoadTestStarted | None = None
        self._slower = 0

    def __call__(self, event: Event) -> str:
        """Return an event as a line; empty if others say the same."""
        if isinstance(event, LoadTestStarted):
            self._test, self._slower = event, 0
        if not isinstance(event, LoadProgress):
            return message_line(event, self._scenario)
        if self._scenario.bound_ms is not None:
            self._slower += sum(it > self._scenario.bound_ms for it in event.latencies_ms)
        if self._test is None:
            return ""
        return progress_line(self._test, self._scenario, event.queries, self._slower, event.seconds)


def progress_line(message: LoadTestStarted, scenario: Scenario, answered: int, slower: int, seconds: float) -> str:
    """Return how far all tests are: `test 3 of about 7: 41.25/s, 212 of 662 requests, 0.94 % over 50 ms, 2 min left`.

    `seconds` have passed since the test in progress began. The time is that of all tests.
    """
    words = [_test(message.number, message.rate, message.batch_size, message.tests)]
    words.append(f"{answered:,} of {counted(max(answered, message.queries), _counted_as(scenario))}")
    if scenario.bound_ms is not None and answered:
        words.append(f"{percent(slower / answered, 2)} over {scenario.bound_ms:g} ms")
    left = max(0.0, (message.seconds_left or 0.0) - seconds)
    if 0 < answered <= message.queries:
        # The tests after this one take about as long as this one.
        whole = seconds * message.queries / answered
        left = whole - seconds + whole * max(0, message.tests - message.number)
    return ", ".join([*words, f"about {duration(left)} left"] if left else words)


def _counted_as(scenario: Scenario) -> str:
    """Return what the messages of a test count."""
    return "sample" if scenario.kind in (ScenarioKind.MULTI, ScenarioKind.OFFLINE) else "request"


def _test(number: int, rate: float | None, batch_size: int, tests: int = 1) -> str:
    of = f" of about {tests}" if tests > 1 else ""
    return f"test {number}{of}: {f'batch {batch_size}' if rate is None else rate_in_words(rate)}"


def trace_question(model: str) -> str:
    """Return the question that a trace answers."""
    return f"Where does the time of {printable(model)} go, layer by layer?"


def trace_line(message: Event) -> str:
    """Return a message of the process that traces as a line; empty if others say the same.

    `layer level: 3.600 ms per inference, +0.2000 ms`
    """
    if isinstance(message, Waiting):
        return f"waiting for {message.holder}"
    if isinstance(message, RoundStarted):
        return f"round {message.number} of {message.rounds}" if message.rounds > 1 else ""
    if not isinstance(message, LevelDone):
        return ""
    level = f"{message.level.value} level"
    if message.inference_ms is None:
        return f"{level}: not traced: {message.missing}"
    added = "" if message.overhead_ms is None else f", {signed_ms(message.overhead_ms)}"
    return f"{level}: {in_ms(message.inference_ms)} per inference{added}"
