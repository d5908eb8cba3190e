"""MLPerf LoadGen: the settings of its tests, and a test in a thread.

LoadGen has no way to end a test early. A test that was cancelled goes on until all of its queries are answered.
"""

import importlib
import math
import shutil
import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.scenarios.scenario import SAMPLES_PER_QUERY, SCHEDULE_SEED, Kind, ScenarioError

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

    kind: Kind
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
        return queries * (SAMPLES_PER_QUERY if self.kind is Kind.MULTI else 1) * (_MOST_TESTS if self.search else 1)


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
            module.StartTestWithLogSettings(sut, library, self.settings, self._log_settings(), audit)
        except Exception as error:  # noqa: BLE001 - the main thread tells it
            self.error = error
        finally:
            module.DestroyQSL(library)
            module.DestroySUT(sut)
            self.ended = True
            self._changed.set()

    def _log_settings(self) -> Any:
        output = self._module.LogOutputSettings()
        output.outdir = str(self.folder)
        found = self._module.LogSettings()
        found.log_output = output
        found.enable_trace = True
        return found


_SCENARIOS = {
    Kind.SINGLE: "SingleStream",
    Kind.MULTI: "MultiStream",
    Kind.SERVER: "Server",
    Kind.OFFLINE: "Offline",
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
