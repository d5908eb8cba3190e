"""A scenario, measured by MLPerf LoadGen from its order to its record in the store.

1. Read the model at each batch size.
2. Wait for the turn on this host, and load the model into a worker for each instance.
3. Run it until it is warm, and measure what passing a request to a worker costs, and what a pause before it costs.
4. Let LoadGen carry out its tests, each in a folder of its own.
5. Store the latencies of the test that counts; if the measurement ends before it, those of all tests that have ended.
"""

import os
import sys
import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, contextmanager, nullcontext
from dataclasses import dataclass, field, replace
from statistics import median
from typing import NoReturn

from dlbricks_tui.analysis.whole_models import executed_model, execution_worker, job_of, load_whole, turn_on_host
from dlbricks_tui.errors import UserError
from dlbricks_tui.host.fingerprint import fingerprint
from dlbricks_tui.host.queue import HostQueue, Ticket, WorkKind, arrival, host_queue, queued
from dlbricks_tui.jobs.control import StopSignals
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.jobs.process import JobAtWork, work_in_process
from dlbricks_tui.measure.jobs import Job, untimed_runs
from dlbricks_tui.measure.results import runtime_record
from dlbricks_tui.measure.supervised_worker import TimeLimits
from dlbricks_tui.runs.results import model_digests, provenance, with_onednn
from dlbricks_tui.runs.work import Workplace
from dlbricks_tui.runtime.protocol import Described, Program
from dlbricks_tui.scenarios.kinds import ScenarioKind
from dlbricks_tui.scenarios.load_tests import Clocks, LoadFinding, LoadTests, RateSearch
from dlbricks_tui.scenarios.loadgen import LoadSettings, delete_traces, require_loadgen
from dlbricks_tui.scenarios.scenario import (
    LOAD_TEST,
    SAMPLES_PER_QUERY,
    LoadDone,
    LoadProgress,
    LoadReady,
    LoadTestDone,
    LoadTestsKept,
    LoadTestStarted,
    Scenario,
    ScenarioError,
    ScenarioOrder,
    fewest_queries,
)
from dlbricks_tui.scenarios.serving import Instance, Serving, SingleRequests, single_requests
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.documents import NoRoomError
from dlbricks_tui.store.records import LoadTest, Provenance, System, new_uuid
from dlbricks_tui.store.statistics import pack_latencies

_LOG = "scenarios.log"
# Of the memory of the host, all instances together may take this share.
_MOST_MEMORY = 0.9
_TIMED_BATCHES = 3
# A test that takes longer than expected is not at its end yet.
_MOST_SHARE = 0.99
# As many as most searches for the highest rate take.
_TESTS_OF_A_SEARCH = 7
# LoadGen prepares queries for the expected latency, and the model may be faster.
_FASTER, _SLACK = 1.25, 1.15
# Of an offline test for each instance.
_FEWEST_BATCHES = 4
# An offline test that ends before its least duration is invalid, and is repeated with more samples.
_MOST_OFFLINE_TESTS = 4


@dataclass(frozen=True, slots=True)
class LoadRule:
    """The least durations of tests and of the single requests before them, and the time after which a model hangs."""

    # Of each test, and the samples of an offline test.
    seconds: float
    offline_samples: int = 24
    warm_seconds: float = 1.0
    # After a pause of this length, a request takes about as long as after any longer one.
    pause_seconds: float = 0.05
    limits: TimeLimits = field(default_factory=TimeLimits)

    @classmethod
    def of(cls, scenario: Scenario) -> "LoadRule":
        """Return the rule of a scenario: that of MLPerf if it asks for it."""
        return cls(scenario.least_seconds, 24_576) if scenario.full else cls(scenario.least_seconds)


def measure_scenario(
    order: ScenarioOrder,
    place: Workplace,
    signals: StopSignals,
    write: Callable[[Event], None],
    queue: HostQueue,
    rule: LoadRule | None = None,
    clocks: Clocks | None = None,
) -> None:
    """Measure a scenario and store its record; raise a UserError if it cannot be measured.

    `JobStopped` ends it. All workers have ended when it returns. LoadGen may go on in its thread after an error.
    """
    require_loadgen()
    _Measuring(order, place, signals, write, rule or LoadRule.of(order.scenario), clocks or Clocks()).measure(queue)


@dataclass
class _Measuring:
    """The measurement of a scenario."""

    order: ScenarioOrder
    place: Workplace
    signals: StopSignals
    tell: Callable[[Event], None]
    rule: LoadRule
    clocks: Clocks

    def __post_init__(self) -> None:
        self._scenario, self._uuid = self.order.scenario, new_uuid()
        self._ticket: Ticket | None = None
        self._seconds_left: float | None = None
        self._test: LoadTestStarted | None = None
        # Of LoadGen's logs.
        self._folder = self.place.data.scenarios / self._uuid
        self._warnings: list[str] = []
        self._log = self.place.data.log / _LOG
        # Milliseconds of a batch by its size.
        self._batch_ms: dict[int, float] = {}
        self._single = SingleRequests(0.0, 0.0, 0.0)
        # Where the results come from: the same for all workers, which are of one runtime.
        self._origin: Provenance | None = None

    def measure(self, queue: HostQueue) -> None:
        """Read the model, and carry out the scenario once it is its turn on this host."""
        system, arrived = fingerprint(), arrival()
        # Before the turn: models and inputs that are no good are refused at once.
        with self.signals.waiting():
            jobs = self._jobs()
        needed = self._scenario.instances * sum(job.memory_bytes for job in jobs.values())
        if needed > _MOST_MEMORY * system.memory_bytes:
            raise ScenarioError(
                f"{self._scenario.instances} instances, each with the model at {len(jobs)} batch sizes, need "
                f"{needed / 2**30:.1f} GiB, and this host has {system.memory_bytes / 2**30:.1f} GiB: choose fewer "
                "instances, or a smaller largest batch"
            )
        task = queued(WorkKind.LOAD_TEST, [self.order.source.name], self.place.data.path)
        with turn_on_host(queue, task, self.signals, lambda it: self._write(Waiting(holder=it)), arrived) as ticket:
            self._ticket = ticket
            self._measure(jobs, system)

    def _measure(self, jobs: Mapping[int, Job], system: System) -> None:
        """Carry out the scenario, and store its record."""
        changed, job = threading.Event(), next(iter(jobs.values()))
        with ExitStack() as workers:
            instances = [workers.enter_context(self._instance(jobs, system)) for _ in range(self._scenario.instances)]
            for size, first_run_ms in self._batch_ms.items():
                untimed = untimed_runs(first_run_ms, whole=True)
                self._batch_ms[size] = max(median(it.run(size, untimed, _TIMED_BATCHES)) for it in instances)
            with Serving(instances, changed) as serving:
                seconds = self.rule.warm_seconds, self.rule.pause_seconds
                single = single_requests(serving, *seconds, self.clocks.steady, self.signals.waiting)
                self._single, self._batch_ms[1] = single, single.service_ms
                self._write(LoadReady(**single._asdict(), logs=str(self._folder)))
                tests = LoadTests(serving, self._folder, changed, self._write, self.signals.waiting, self.clocks)
                try:
                    found = self._carry_out(tests)
                except Exception as error:
                    self._keep(tests.findings, job, system, error)
                    raise
                record = self._record(found, job, system)
                self._store(system, replace(record, uuid=self._uuid, sought=self._scenario.seeks_rate))
        self._write(LoadDone(uuid=self._uuid, warnings=tuple(dict.fromkeys([*tests.all_warnings, *self._warnings]))))

    def _write(self, message: Event) -> None:
        """Write a message, and tell other processes of the host how far all tests are."""
        if isinstance(message, LoadTestStarted):
            message = self._with_all_tests(message)
            self._seconds_left, self._test = message.seconds_left, message
        self.tell(message)
        if self._ticket is not None and self._test is not None and self._seconds_left:
            # As many seconds for each test.
            tests_left = self._test.tests - self._test.number + 1
            seconds = {
                LoadProgress: getattr(message, "seconds", 0.0),
                LoadTestDone: self._seconds_left / tests_left,
                LoadDone: self._seconds_left,
            }.get(type(message), 0.0)
            left = max(0.0, self._seconds_left - seconds)
            share = 1 - left * tests_left / (self._seconds_left * self._test.tests)
            self._ticket.progress(min(share, _MOST_SHARE), left)

    def _with_all_tests(self, message: LoadTestStarted) -> LoadTestStarted:
        """Return the message with the number of all tests that are expected, and the seconds that they still take."""
        tests = message.number
        if self._scenario.seeks_rate:
            # One more at least, as the search goes on until a test fails.
            tests = max(_TESTS_OF_A_SEARCH, message.number + 1)
        elif self._scenario.kind is ScenarioKind.OFFLINE:
            sizes = self._scenario.batch_sizes
            tests += len(sizes) - 1 - sizes.index(message.batch_size)
        seconds = message.seconds_left
        left = None if seconds is None else seconds * (tests - message.number + 1)
        return replace(message, tests=tests, seconds_left=left)

    def _keep(self, findings: Sequence[LoadFinding], job: Job, system: System, error: Exception) -> None:
        """Store the tests that have ended before the measurement did."""
        if not findings:
            return
        tried = {it.batch_size for it in findings}
        left = [size for size in self._scenario.batch_sizes if size not in tried]
        records = [self._record(it, job, system) for it in findings]
        if self._scenario.kind is ScenarioKind.OFFLINE and left:
            # The best batch size is asked for.
            untried = f"the measurement ended before it tested batch size {', '.join(map(str, left))}"
            records = [replace(it, valid=False, reasons=(*it.reasons, untried)) for it in records]
        counted = "the test that had ended" if len(records) == 1 else f"the {len(records)} tests that had ended"
        # The folder of LoadGen's logs has the id of the measurement.
        records[-1] = replace(records[-1], uuid=self._uuid)
        try:
            self._store(system, *records)
        except UserError as lost:
            raise ScenarioError(f"{error}; {counted} could not be stored: {lost}") from error
        self._write(LoadTestsKept(tests=len(records)))

    def _store(self, system: System, *records: LoadTest) -> None:
        """Store tests; where the disk is full, LoadGen's traces make room for them."""
        try:
            self._add(system, *records)
        except NoRoomError:
            if not delete_traces(self._folder):
                raise
            self._add(system, *records)
            self._warnings.append("the disk is full: LoadGen's traces were deleted to store the result")

    def _add(self, system: System, *records: LoadTest) -> None:
        with ResultsDatabase(self.place.data.store) as store:
            runtime = runtime_record(self.order.execution.runtime, system)
            # They belong to no run.
            told = [(self._origin, it) for it in records] if self._origin is not None else []
            origins = (replace(origin, run=it.uuid, uuid=new_uuid(), when=it.when) for origin, it in told)
            store.add(system, runtime, *records, *origins)

    def _jobs(self) -> Mapping[int, Job]:
        """Return the model at each batch size, the smallest first."""
        # Single requests are measured too, and the last ones may not fill a batch.
        sizes = sorted({1, *self._scenario.batch_sizes})
        # The file's own batch size is not a choice: the results of plain runs have it.
        order, execution = self.order, self.order.execution
        how = self.place, self._log, order.inputs, order.values
        own = job_of(executed_model(order.source, execution, *how))
        found = {}
        for size in sizes:
            of_size = replace(execution, batch_size=size)
            is_own = size == own.graph.batch_size
            found[size] = own if is_own else job_of(executed_model(order.source, of_size, *how))
        return found

    @contextmanager
    def _instance(self, jobs: Mapping[int, Job], system: System) -> Iterator[Instance]:
        """Start a worker, and load the model at each batch size."""

        def give_up(reason: str) -> NoReturn:
            # Requests cannot wait until another worker has loaded the model.
            raise ScenarioError(reason)

        execution, limits = self.order.execution, self.rule.limits
        how = self.place, self._log, self._waiting, system.memory_bytes, limits, give_up
        with execution_worker(execution, *how) as worker:
            if self._origin is None:
                self._origin = self._provenance(worker.describe(), jobs, system)
            instance = Instance(worker)
            for size, job in jobs.items():

                def load(program: Program, size: int = size, job: Job = job) -> float:
                    return instance.load(size, program, job.expected_ms)

                self._batch_ms[size] = load_whole(job, execution, load)
            yield instance

    def _waiting(self) -> AbstractContextManager[None]:
        """Let a signal interrupt the main thread where it waits for a worker."""
        is_main = threading.current_thread() is threading.main_thread()
        return self.signals.waiting() if is_main else nullcontext()

    def _carry_out(self, tests: LoadTests) -> LoadFinding:
        kind, largest = self._scenario.kind, max(self._scenario.batch_sizes)
        if kind is ScenarioKind.OFFLINE:
            return self._offline(tests)
        if kind is ScenarioKind.SERVER:
            settings = self._settings(self._batch_ms[1])
            if self._scenario.rate is None:
                return RateSearch(tests, settings, largest, self._capacity, self._single.passing_ms).find(
                    self.order.first_rate
                )
            return tests.run(replace(settings, rate=self._scenario.rate), largest)
        expected_ms = self._batch_ms[1] if kind is ScenarioKind.SINGLE else SAMPLES_PER_QUERY * 1000 / self._capacity
        return tests.run(self._settings(expected_ms / _FASTER), largest)

    def _offline(self, tests: LoadTests) -> LoadFinding:
        """Measure the throughput of each batch size, and return the best."""
        found = []
        for size in self._scenario.batch_sizes:
            # A tiny model takes less time than passing its requests.
            ms = self._batch_ms[size] + max(0.0, self._single.passing_ms)
            per_second = self._scenario.instances * size * 1000 / ms
            for attempt in range(1, _MOST_OFFLINE_TESTS + 1):
                settings = replace(
                    self._settings(1000 / per_second / _SLACK**attempt),
                    queries=max(self.rule.offline_samples, _FEWEST_BATCHES * size * self._scenario.instances),
                )
                tested = tests.run(settings, size)
                if tested.verdict.valid or tested.latencies.seconds >= settings.seconds:
                    break
                # The host has become faster since the warm-up.
                per_second = tested.per_second
            found.append(tested)
        return max(found, key=lambda it: (it.verdict.valid, it.per_second))

    @property
    def _capacity(self) -> float:
        """Requests per second that the instances can serve in the long run."""
        return self._scenario.instances * max(size * 1000 / ms for size, ms in self._batch_ms.items())

    def _settings(self, expected_ms: float) -> LoadSettings:
        scenario = self._scenario
        return LoadSettings(
            kind=scenario.kind,
            percentile=scenario.percentile,
            queries=fewest_queries(scenario.percentile),
            seconds=self.rule.seconds,
            expected_ms=expected_ms,
            bound_ms=scenario.bound_ms,
        )

    def _provenance(self, described: Described, jobs: Mapping[int, Job], system: System) -> Provenance:
        """Return where the results will come from. The first measurement of a framework asks for its oneDNN."""
        order, runtime, place = self.order, self.order.execution.runtime, self.place
        path = order.source.in_format(runtime.traits.format).path
        digests = model_digests((job.key.model, path) for job in jobs.values())
        found = provenance(
            self._uuid, system, runtime, described, digests, evaluation=order.evaluation, unmet=order.unmet
        )
        with self._waiting():
            return with_onednn(found, runtime, place.data.cache, self._log, place.worker_program)

    def _record(self, found: LoadFinding, job: Job, system: System) -> LoadTest:
        """Return a test as a record of its own."""
        scenario, settings = self._scenario, found.settings
        return LoadTest(
            when=found.when,
            model=job.key.model,
            name=job.graph.name,
            system=system.id,
            runtime=self.order.execution.runtime.identity,
            level=job.graph.level,
            kind=scenario.kind.value,
            percentile=scenario.percentile,
            bound_ms=scenario.bound_ms,
            rate=settings.rate,
            sought=False,
            batch_size=found.batch_size,
            instances=scenario.instances,
            per_second=found.per_second,
            valid=found.verdict.valid,
            reasons=found.verdict.reasons,
            queries=len(found.latencies.latencies_ns),
            seconds=found.latencies.seconds,
            passing_ms=max(0.0, self._single.passing_ms),
            wake_up_ms=self._single.wake_up_ms,
            latencies=pack_latencies(found.latencies.latencies_ns),
        )


_SWITCH_SECONDS = 0.0005


def main(folder: str, data: str) -> None:
    """Measure the scenario of the order; the entry point of the process."""
    # A thread that passes a request on must not wait until the main thread has read logs.
    sys.setswitchinterval(_SWITCH_SECONDS)

    def work(job: JobAtWork[ScenarioOrder]) -> None:
        measure_scenario(job.request, Workplace(job.data), job.signals, job.tell, host_queue())

    status = work_in_process(LOAD_TEST, folder, data, work)
    # LoadGen may still wait for the times of its queries in its thread.
    sys.stderr.flush()
    os._exit(status)
