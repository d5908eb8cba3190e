"""MLPerf LoadGen: the settings of its tests, and a test in a thread.

LoadGen has no way to end a test early. A test that was cancelled goes on until all of its queries are answered.
"""

import gzip
import importlib
import math
import os
import re
import shutil
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.files import open_regular
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.scenario import SAMPLES_PER_QUERY, SCHEDULE_SEED, ScenarioError

# The logs of a test, and what its trace has for each sample.
_LOG_BYTES, _BYTES_PER_SAMPLE = 64 << 20, 1500
# Of a search.
_MOST_TESTS = 10
_NS_PER_MS = 1e6
# A server without a bound is never too slow.
_NO_BOUND_MS = 1e7


@dataclass(frozen=True, slots=True)
class Search:
    """A search for the highest rate within the bound."""

    # The share by which the next rate is higher, until one fails.
    step: float
    # Of requests per second.
    decimals: int
    # Of the latencies: a rate passes if it is within the bound.
    percentile: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadSettings:
    """A test, or a search that consists of several."""

    kind: ScenarioKind
    percentile: float
    # At least so many, for at least so long.
    queries: int
    seconds: float
    # Of a query: LoadGen prepares enough queries for the least duration.
    expected_ms: float
    # Of a server.
    bound_ms: float | None = None
    rate: float | None = None
    search: Search | None = None

    @property
    def samples(self) -> int:
        """About how many samples are sent, at most."""
        per_second = self.rate or 1000 / self.expected_ms
        queries = max(self.queries, math.ceil(self.seconds * per_second))
        queries *= SAMPLES_PER_QUERY if self.kind is ScenarioKind.MULTI else 1
        return queries * (_MOST_TESTS if self.search else 1)


class LoadGenTest:
    """A test in a thread. Queries go to `issue`, and `changed` is set when LoadGen has returned."""

    def __init__(
        self, settings: LoadSettings, folder: Path, issue: Callable[[Sequence[int]], None], changed: threading.Event
    ) -> None:
        self.folder = folder
        self.ended = False
        # What LoadGen has raised.
        self.error: Exception | None = None
        self._module = require_loadgen()
        self._settings = settings
        self._issue = issue
        self._changed = changed
        # A daemon: the process may end while LoadGen still waits for the times of its queries.
        self._thread = threading.Thread(target=self._run, name="LoadGen", daemon=True)

    def start(self) -> None:
        """Start the test; raise ScenarioError if its logs cannot be kept."""
        try:
            self.folder.mkdir(parents=True, exist_ok=True)
            free = shutil.disk_usage(self.folder).free
        except OSError as error:
            raise ScenarioError(f"the logs of LoadGen cannot be kept in {self.folder}: {error.strerror}") from error
        needed = _LOG_BYTES + _BYTES_PER_SAMPLE * self._settings.samples
        if free < needed:
            raise ScenarioError(
                f"the logs of LoadGen need up to {needed >> 20:,} MiB in {self.folder}, and {free >> 20:,} MiB are "
                "free there: make room, or choose another data folder"
            )
        self._thread.start()

    def complete(self, queries: Sequence[int]) -> None:
        """Tell LoadGen that these queries are answered."""
        if queries:
            response = self._module.QuerySampleResponse
            self._module.QuerySamplesComplete([response(query, 0, 0) for query in queries])

    @property
    def settings(self) -> Any:
        """The settings of the test as LoadGen takes them."""
        asked, module = self._settings, self._module
        found = module.TestSettings()
        found.scenario = getattr(module.TestScenario, _SCENARIOS[asked.kind])
        found.mode = module.TestMode.FindPeakPerformance if asked.search else module.TestMode.PerformanceOnly
        found.min_query_count = asked.queries
        found.min_duration_ms = round(asked.seconds * 1000)
        share, expected_ns = asked.percentile / 100, asked.expected_ms * _NS_PER_MS
        found.single_stream_target_latency_percentile = share
        found.single_stream_expected_latency_ns = expected_ns
        found.multi_stream_target_latency_percentile = share
        found.multi_stream_expected_latency_ns = expected_ns
        found.multi_stream_samples_per_query = SAMPLES_PER_QUERY
        found.offline_expected_qps = 1000 / asked.expected_ms
        found.server_target_latency_percentile = (asked.search or asked).percentile / 100
        found.server_target_latency_ns = round((asked.bound_ms or _NO_BOUND_MS) * _NS_PER_MS)
        if asked.rate is not None:
            found.server_target_qps = asked.rate
        if asked.search is not None:
            found.server_find_peak_qps_boundary_step_size = asked.search.step
            found.server_find_peak_qps_decimals_of_precision = asked.search.decimals
        # A prediction simulates the same arrivals. LoadGen's other seeds never change.
        found.schedule_rng_seed = SCHEDULE_SEED
        return found

    def _run(self) -> None:
        module = self._module
        sut = module.ConstructFastSUT(lambda ids, _: self._issue(ids), _ignore)
        library = module.ConstructQSL(1, 1, _ignore, _ignore)
        try:
            # LoadGen would read an audit.config in the working folder: name one that does not exist.
            audit = str(self.folder / "no-audit.config")
            logs, output = module.LogSettings(), module.LogOutputSettings()
            output.outdir, logs.enable_trace = str(self.folder), True
            logs.log_output = output
            module.StartTestWithLogSettings(sut, library, self.settings, logs, audit)
        except Exception as error:  # noqa: BLE001 - the main thread tells it
            self.error = error
        finally:
            module.DestroyQSL(library)
            module.DestroySUT(sut)
            self.ended = True
            self._changed.set()


_SCENARIOS = {
    ScenarioKind.SINGLE: "SingleStream",
    ScenarioKind.MULTI: "MultiStream",
    ScenarioKind.SERVER: "Server",
    ScenarioKind.OFFLINE: "Offline",
}


def require_loadgen() -> Any:
    """Return the module of LoadGen; raise ScenarioError if it is not installed."""
    try:
        return importlib.import_module("mlperf_loadgen")
    except ImportError as error:
        raise ScenarioError(
            "measuring a scenario needs MLPerf LoadGen, which is not installed: pip install 'dlbricks-tui[scenarios]'"
        ) from error


def _ignore(*_: object) -> None:
    pass


_SUMMARY, _DETAIL, _TRACE = "mlperf_log_summary.txt", "mlperf_log_detail.txt", "mlperf_log_trace.json"
_NS_PER_SECOND, _NS_PER_US = 1e9, 1e3

_VERDICT = re.compile(r"^Result is : (VALID|INVALID)$", re.MULTILINE)
_CONSTRAINT = re.compile(r"^  (\w[\w ]*?) satisfied ?: NO$", re.MULTILINE)
_MORE_QUERIES = re.compile(r"Would need to run at least (\d+)")
_ERRORS = re.compile(r"^(\d+) ERRORS? encountered", re.MULTILINE)
# The trace is no valid JSON. It has one event in each line.
_SAMPLE = re.compile(
    r'"name":"Sample","cat":"default","ph":"b",.*"ts":([\d.]+),.*"query_seq":(\d+),.*'
    r'"issue_start_ns":(\d+),"complete_ns":(\d+)'
)
_LOGGED = re.compile(
    r'"key": "(generated_query_count|generated_samples_per_query|generic_message|error_runtime)", '
    r'"value": "?([^"]*?)"?, "time_ms"'
)
_FIRST_RATE = re.compile(r"Check validity of the base settings field: ([\d.]+)")
_WIDER = re.compile(r"FindBoundaries: Checking fields \[([\d.]+), ([\d.]+)\)")
_BETWEEN = re.compile(r"Testing the mid value of bounds \[([\d.]+), ([\d.]+)\): ([\d.]+)")
_BOUNDARIES = re.compile(r"Found boundaries: \[([\d.]+), ([\d.]+)\)")
_HIGHEST = re.compile(r"Found peak performance field: ([\d.]+)")
_FIRST_FAILS = "Initial lower bound does not satisfy"


@dataclass(frozen=True, slots=True)
class LoadgenVerdict:
    """LoadGen's verdict on a test, why it is negative, and how many errors LoadGen met."""

    valid: bool
    reasons: tuple[str, ...]
    errors: int


@dataclass(slots=True)
class LoggedTest:
    """A test of a search, as far as LoadGen has logged it."""

    rate: float | None
    queries: int
    # Of each query.
    samples: int = 1
    # None: LoadGen has not decided yet.
    passed: bool | None = None


@dataclass(frozen=True, slots=True)
class Latencies:
    """The latencies of a test by LoadGen's trace: of each query, or offline of each sample, since it was due."""

    latencies_ns: Sequence[int]
    # How much later than due queries were sent to us.
    delays_ns: Sequence[int]
    # From the first query to the last answer.
    seconds: float


def read_verdict(folder: Path) -> LoadgenVerdict:
    """Return LoadGen's verdict on the test of a folder."""
    path = folder / _SUMMARY
    try:
        text = path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ScenarioError(f"{path}, a log of LoadGen, cannot be read: {os.strerror(error.errno or 0)}") from error
    found = _VERDICT.search(text)
    if found is None:
        raise ScenarioError(f"LoadGen gave no verdict: its logs are in {folder}, on a disk that may be full")
    reasons = [f"{constraint.lower()} not satisfied" for constraint in _CONSTRAINT.findall(text)]
    if more := _MORE_QUERIES.search(text):
        reasons.append(f"{more[1]} more requests within the bound would be needed to decide")
    valid, errors = found[1] == "VALID", _ERRORS.search(text)
    return LoadgenVerdict(valid, () if valid else tuple(reasons), int(errors[1]) if errors else 0)


def read_latencies(folder: Path, kind: ScenarioKind) -> Latencies:
    """Return the latencies in the trace of a folder, in the order of the queries."""
    dues_ns: dict[int, float] = {}
    answers_ns: dict[int, int] = {}
    delays_ns: dict[int, int] = {}
    try:
        with (folder / _TRACE).open(encoding="utf-8", errors="replace") as trace:
            for sample, line in enumerate(filter(None, map(_SAMPLE.search, trace))):
                query = int(line[2]) if kind is not ScenarioKind.OFFLINE else sample
                dues_ns[query] = float(line[1]) * _NS_PER_US
                delays_ns[query] = int(line[3])
                answers_ns[query] = max(answers_ns.get(query, 0), int(line[4]))
    except OSError as error:
        raise ScenarioError(f"the trace of LoadGen cannot be read in {folder}: {error.strerror}") from error
    if not answers_ns:
        raise ScenarioError(f"LoadGen traced no queries: its logs are in {folder}, on a disk that may be full")
    ends_ns = [dues_ns[query] + answer for query, answer in answers_ns.items()]
    numbers = sorted(answers_ns)
    return Latencies(
        [answers_ns[query] for query in numbers],
        [delays_ns[query] for query in numbers],
        (max(ends_ns) - min(dues_ns.values())) / _NS_PER_SECOND,
    )


def compress_trace(folder: Path) -> None:
    """Replace the trace of a folder by a compressed one, which viewers of traces open as well."""
    trace, small = folder / _TRACE, folder / f"{_TRACE}.gz"
    try:
        with trace.open("rb") as plain, gzip.open(small, "wb", compresslevel=6) as packed:
            shutil.copyfileobj(plain, packed)
        trace.unlink()
    except OSError:
        # A full disk keeps the large one.
        small.unlink(missing_ok=True)


def delete_traces(folder: Path) -> bool:
    """Delete the traces below a folder, which are the largest logs; return whether there were any."""
    deleted = False
    for trace in folder.glob(f"*/{_TRACE}*"):
        with suppress(OSError):
            # LoadGen may still have it open: only an empty file takes no room.
            os.truncate(trace, 0)
            trace.unlink()
            deleted = True
    return deleted


class LoadGenLog:
    """Follows the detailed log of LoadGen: which tests it has started, and which of them passed."""

    def __init__(self, folder: Path, rate: float | None) -> None:
        self.tests: list[LoggedTest] = []
        self._path = folder / _DETAIL
        self._rate = rate
        self._read = 0

    @property
    def highest(self) -> LoggedTest | None:
        """The test of the highest rate that passed."""
        passed = [it for it in self.tests if it.passed]
        return max(passed, key=lambda it: it.rate or 0.0, default=None)

    def first_query_of(self, test: LoggedTest) -> int:
        """Return the number of the first query of a test: LoadGen counts on from test to test."""
        return sum(it.queries for it in self.tests[: self.tests.index(test)])

    def follow(self) -> None:
        """Read what LoadGen has logged since the last call."""
        try:
            with open_regular(self._path) as log:
                log.seek(self._read)
                written = log.read()
        except OSError:
            return
        whole = written[: written.rfind(b"\n") + 1]
        self._read += len(whole)
        for key, value in _LOGGED.findall(whole.decode(errors="replace")):
            if key == "generated_query_count":
                self.tests.append(LoggedTest(self._rate, int(value)))
            elif key == "generated_samples_per_query":
                self.tests[-1].samples = int(value)
            else:
                self._take(value)

    def _take(self, message: str) -> None:
        if found := _FIRST_RATE.search(message):
            self._rate = float(found[1])
        elif found := _WIDER.search(message):
            self._decide(passed=True)
            self._rate = float(found[2])
        elif found := _BETWEEN.search(message):
            self._decide_by_lower_bound(found[1])
            self._rate = float(found[3])
        elif _BOUNDARIES.search(message) or _FIRST_FAILS in message:
            self._decide(passed=False)
        elif found := _HIGHEST.search(message):
            self._decide_by_lower_bound(found[1])

    def _decide_by_lower_bound(self, bound: str) -> None:
        """The rate that was tested last is the lower bound now if it passed."""
        self._decide(passed=bool(self.tests) and self.tests[-1].rate == float(bound))

    def _decide(self, *, passed: bool) -> None:
        if self.tests and self.tests[-1].passed is None:
            self.tests[-1].passed = passed
