"""The progress of jobs in words: proofs, exports, language models, load tests, traces and fleets."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.what_if import Execution
from dlbricks_tui.estimate.comparison import PRICES_FILE, Candidate, cheapest, quickest
from dlbricks_tui.fleet.request import FleetHostState, FleetProgress, HostBrickFailed, HostChanged
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.language.orders import LanguageMessage
from dlbricks_tui.printable import printable
from dlbricks_tui.runs.events import ModelLeftOut
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import (
    SAMPLES_PER_QUERY,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    Scenario,
)
from dlbricks_tui.share.exporting import BricksChecked, ExportNoted, OmittedBrick, SuiteWritten
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.traces.trace import LevelDone, RoundStarted
from dlbricks_tui.wording.answers import combination_words, execution_words, figure_text, what_if_words
from dlbricks_tui.wording.numbers import (
    PARTLY,
    counted,
    duration,
    in_ms,
    milliseconds,
    percent,
    signed_ms,
    signed_percent,
)

if TYPE_CHECKING:
    from dlbricks_tui.analysis.proving import ProofOrder
    from dlbricks_tui.share.results_file import SuiteImport


def proof_line(event: Event, order: ProofOrder) -> str:
    """Return how far a proof is, or its end."""
    # Loaded here: other jobs need no analysis.
    from dlbricks_tui.analysis.proving import ProofDone, RoundsDone
    from dlbricks_tui.measure.stopping import FEWEST_SAMPLES

    if isinstance(event, RoundsDone):
        gain = signed_percent(event.gain.value)
        if event.rounds >= FEWEST_SAMPLES:
            gain += f" +- {50 * (event.gain.high - event.gain.low):.1f} points"
        return f"{what_if_words(event.what_if)}: {gain} after {counted(event.rounds, 'round')}"
    if not isinstance(event, ProofDone):
        return ""
    words = what_if_words(event.what_if)
    if event.gain is None:
        return f"{words}: not proved for {order.source.name}: {event.failure}"
    low, high = map(signed_percent, event.gain.interval)
    predicted = next((signed_percent(it.gain.value) for it in order.what_ifs if it.id == event.what_if), "nothing")
    measured = f"{words}: measured {signed_percent(event.gain.gain)} ({low} to {high}), predicted {predicted}"
    return f"{measured}, in {counted(event.rounds, 'round')}"


def export_line(event: Event) -> str:
    """Return how far an export is, or its end."""
    match event:
        case ExportNoted():
            return event.text
        case BricksChecked():
            return f"{event.done:,} of {event.of:,} bricks checked, about {duration(event.seconds_left)} left"
        case SuiteWritten():
            return f"{suite_contents(event)}; the key is {event.key}: keep it to yourself"
    return ""


def language_line(event: Event) -> str:
    """Return the line of an event of measuring language models; empty if it has none."""
    if isinstance(event, Waiting):
        return f"waiting for {event.holder}"
    return event.line if isinstance(event, LanguageMessage) else ""


def unreadable_in_words(unread: Mapping[str, int]) -> str:
    """Return which events could not be read: `3 events of another version are left out: Flown, Sung`; empty if none."""
    if not unread:
        return ""
    names = ", ".join(sorted(filter(None, unread))) or "torn lines"
    return f"{counted(sum(unread.values()), 'event')} of another version left out: {names}"


_MOST_HOSTS_IN_A_LINE = 4
# States whose reason a user should read.
_TOLD = (
    *(FleetHostState.CONNECTING, FleetHostState.LOST, FleetHostState.REFUSED, FleetHostState.DISTRUSTED),
    *(FleetHostState.FAILED, FleetHostState.WAITING, FleetHostState.CANCELLED),
)
# States in which a host has some time left.
WORKING = (FleetHostState.PROBING, FleetHostState.MEASURING)


def host_line(it: HostChanged) -> str:
    """Return how far a host is."""
    words = [f"{it.host} {it.state.value}"]
    if it.of:
        words.append(f"{it.bricks:,} of {counted(it.of, 'brick')}")
    if it.failed:
        words.append(f"{it.failed:,} failed")
    if it.seconds_left and it.state in WORKING:
        words.append(f"{duration(it.seconds_left)} left")
    return ", ".join(words)


def fleet_line(progress: FleetProgress) -> str:
    """Return how far all hosts are, in one line."""
    rows = list(progress.hosts.values())
    if not rows:
        return "waiting for hosts"
    told = [host_line(it) for it in rows[:_MOST_HOSTS_IN_A_LINE]]
    more = len(rows) - _MOST_HOSTS_IN_A_LINE
    if more > 0:
        told.append(f"and {counted(more, 'more host')}")
    return "; ".join(told)


def settled_line(settled: Iterable[bool]) -> str:
    """Return for how many models the order of hosts is settled."""
    found = list(settled)
    return f"the order of hosts is sure for {sum(found)} of {counted(len(found), 'model')}"


def note_line(event: Event, progress: FleetProgress) -> str:
    """Return the line about an event that a user should know, after all events before it; empty if there is none."""
    match event:
        case ModelLeftOut():
            return f"{event.model} is left out: {event.reason.removeprefix(f'{event.model}: ')}"
        case HostBrickFailed():
            return f"{event.host}: {event.label} failed: {event.reason}"
        case HostChanged(message=message) if message and event.state in _TOLD:
            before = progress.hosts.get(event.host)
            # Each attempt to reach a host again has a message.
            if before is None or before.state is not event.state or not before.message:
                return f"{event.host} {event.state.value}: {message}"
    return ""


def machines_question(model: str) -> str:
    """Return the question about the systems; an empty name stands for no model."""
    return f"Which system is quickest and cheapest for {printable(model) if model else 'a model'}?"


def machines_answer(model: str, found: Sequence[Candidate]) -> str:
    """Return the quickest and the cheapest system of a model as a sentence."""
    if not found:
        return f"{printable(model)} was not measured on any system."
    best, thrifty = quickest(found), cheapest(found)
    if len(found) == 1:
        return f"Only {_figure(found[0])} has results of it."
    if best is None:
        return f"None of {counted(len(found), 'system')} has enough results to tell."
    told = f"{_figure(best)} is the quickest of {counted(len(found), 'system')}"
    if thrifty is None:
        return f"{told}. For costs, write prices into {PRICES_FILE} in the data folder."
    if thrifty is best:
        return f"{told}, and the cheapest: {_cost(thrifty)}."
    return f"{told}; {_figure(thrifty)} is the cheapest: {_cost(thrifty)}."


def _figure(it: Candidate) -> str:
    figure = figure_text(it.estimate) or f"{PARTLY}{in_ms(it.latency_ms)}"
    return f"{printable(it.estimate.way.system)} ({figure}: {combination_words(it.estimate)})"


def _cost(it: Candidate) -> str:
    return f"$ {it.dollars_per_million:.2f} for a million inferences"


def suite_contents(suite: SuiteWritten) -> str:
    """Return the numbers of bricks in a suite: `28 bricks of yours among 67 of 3 decoys`."""
    return f"{counted(suite.bricks, 'brick')} of yours among {suite.decoy_bricks} of {counted(suite.decoys, 'decoy')}"


def untravelled(bricks: Iterable[OmittedBrick]) -> list[str]:
    """Return a line for each brick that a suite cannot hold."""
    return [f"cannot travel: {it.label}: it {it.reason}" for it in bricks]


def import_outcome(found: SuiteImport) -> str:
    """Return what an import has brought: `28 new bricks of yours, 0 known; 0 failed there, 0 not measured`."""
    told = f"{counted(found.new, 'new brick')} of yours, {found.known} known"
    return f"{told}; {found.failed} failed there, {found.missing} not measured"


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


def message_line(message: Event, scenario: Scenario) -> str:
    """Return a message of the process that measures as a line; empty if others say the same."""
    if isinstance(message, Waiting):
        return f"waiting for {message.holder}"
    if isinstance(message, LoadReady):
        loaded = "the model is loaded" if scenario.instances == 1 else f"{scenario.instances} instances are loaded"
        return f"{loaded}: a request takes {in_ms(message.service_ms)}, and passing it {in_ms(message.passing_ms)}"
    if isinstance(message, LoadTestStarted):
        name = _test(message.number, message.rate, message.batch_size)
        return f"{name}, at least {counted(message.queries, _counted_as(scenario))}"
    if isinstance(message, LoadTestDone):
        name = _test(message.number, message.rate, message.batch_size)
        latency = f"{percentile_name(scenario.percentile)} {in_ms(message.percentile_ms)}"
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
