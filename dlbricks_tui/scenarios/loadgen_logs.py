"""Logs of LoadGen: its verdict, the latencies in its trace, and the tests of a search while it logs them."""

import gzip
import os
import re
import shutil
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.regular_files import open_regular
from dlbricks_tui.scenarios.scenario import Kind, ScenarioError

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
class Verdict:
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


def read_verdict(folder: Path) -> Verdict:
    """Return LoadGen's verdict on the test of a folder."""
    text = _text(folder / _SUMMARY)
    found = _VERDICT.search(text)
    if found is None:
        raise ScenarioError(f"LoadGen gave no verdict: its logs are in {folder}, on a disk that may be full")
    reasons = [f"{constraint.lower()} not satisfied" for constraint in _CONSTRAINT.findall(text)]
    if more := _MORE_QUERIES.search(text):
        reasons.append(f"{more[1]} more queries within the bound would be needed to decide")
    valid, errors = found[1] == "VALID", _ERRORS.search(text)
    return Verdict(valid, () if valid else tuple(reasons), int(errors[1]) if errors else 0)


def read_latencies(folder: Path, kind: Kind) -> Latencies:
    """Return the latencies in the trace of a folder, in the order of the queries."""
    dues_ns: dict[int, float] = {}
    answers_ns: dict[int, int] = {}
    delays_ns: dict[int, int] = {}
    try:
        with (folder / _TRACE).open(encoding="utf-8", errors="replace") as trace:
            for sample, line in enumerate(filter(None, map(_SAMPLE.search, trace))):
                query = int(line[2]) if kind is not Kind.OFFLINE else sample
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


def _text(path: Path) -> str:
    try:
        return path.read_text(encoding="utf-8", errors="replace")
    except OSError as error:
        raise ScenarioError(f"{path}, a log of LoadGen, cannot be read: {os.strerror(error.errno or 0)}") from error
