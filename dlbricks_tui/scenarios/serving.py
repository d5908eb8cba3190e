"""Instances of a model that answer requests: each is a worker with the model loaded, and a thread that asks it."""

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from statistics import median
from types import TracebackType
from typing import NamedTuple, NoReturn

from dlbricks_tui.host.noise import Contention
from dlbricks_tui.measure.supervised_worker import SupervisedWorker
from dlbricks_tui.runtime.protocol import Program
from dlbricks_tui.scenarios.scenario import ScenarioError

_MS_PER_SECOND = 1e3


class _Request(NamedTuple):
    """A request by LoadGen's number, and when we received it."""

    id: int
    received_ns: int


class _Batch(NamedTuple):
    """Requests that are answered together, by the program of a batch size that may be larger."""

    requests: Sequence[_Request]
    size: int


class Answered(NamedTuple):
    """A request that was answered: when we received it, the time to its answer, and the inference of its batch."""

    received_ns: int
    latency_ns: int
    inference_ms: float


class Instance:
    """A worker that has the model loaded at one or more batch sizes."""

    def __init__(self, worker: SupervisedWorker) -> None:
        self.sizes: list[int] = []
        self._worker = worker

    def load(self, size: int, program: Program, expected_ms: float) -> float:
        """Load the model at a batch size, and return the milliseconds of its first run."""
        loaded = self._worker.load(_name(size), program, expected_ms)
        if loaded is None:
            self._raise_loss(size)
        self.sizes.append(size)
        return loaded.first_run_seconds * _MS_PER_SECOND

    def run(self, size: int, untimed: int = 0, timed: int = 1) -> Sequence[float]:
        """Run a batch some times, and return the milliseconds of timed runs."""
        taken = self._worker.sample([_name(size)], untimed, timed)
        if _name(size) not in taken:
            self._raise_loss(size)
        return taken[_name(size)]

    def contention(self) -> Contention | None:
        """Return the contention counts of the worker so far; None where there are none."""
        return self._worker.contention()

    def interrupt(self) -> None:
        """End the worker, also while it computes."""
        self._worker.interrupt()

    def _raise_loss(self, size: int) -> NoReturn:
        loss = self._worker.take_losses().get(_name(size))
        raise ScenarioError("the worker was lost" if loss is None else loss.message)


def _name(size: int) -> str:
    return f"batch {size}"


class Serving:
    """Requests that wait, and a thread for each instance that answers them in their order.

    A free instance takes the largest batch that waiting requests fill. `respond` is called in its thread with the
    requests that it has answered. When serving has ended, further requests are answered at once, without inference.
    """

    def __init__(self, instances: Sequence[Instance], changed: threading.Event) -> None:
        self.respond: Callable[[Sequence[int]], None] = lambda _: None
        self.largest = max(instances[0].sizes)
        # The first reason why an instance cannot answer any more.
        self.failure: Exception | None = None
        self._instances = instances
        # Set when an instance fails.
        self._changed = changed
        self._waiting: deque[_Request] = deque()
        self._answered: list[Answered] = []
        self._ended = False
        self._lock = threading.Condition()
        self._threads = [
            threading.Thread(target=self._serve, args=(instance,), name=f"instance {number}", daemon=True)
            for number, instance in enumerate(instances, start=1)
        ]

    def __enter__(self) -> "Serving":
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        with self._lock:
            self._ended = True
            left = [self._waiting.popleft().id for _ in range(len(self._waiting))]
            self._lock.notify_all()
        for instance in self._instances:
            instance.interrupt()
        for thread in self._threads:
            thread.join()
        # LoadGen ends when all queries are answered.
        self.respond(left)

    def issue(self, ids: Sequence[int]) -> None:
        """Take requests; an instance answers them as soon as one is free."""
        now = time.perf_counter_ns()
        with self._lock:
            if not self._ended:
                self._waiting.extend(_Request(it, now) for it in ids)
                self._lock.notify(len(ids))
                return
        self.respond(ids)

    def raise_failure(self) -> None:
        """Raise the reason why an instance cannot answer any more, if there is one."""
        if self.failure is not None:
            raise self.failure

    def contention(self) -> Sequence[Contention | None]:
        """Return the contention counts of each instance so far."""
        return [it.contention() for it in self._instances]

    def take_answered(self) -> Sequence[Answered]:
        """Return the requests that were answered since the last call."""
        with self._lock:
            taken, self._answered = self._answered, []
        return taken

    def _serve(self, instance: Instance) -> None:
        while (batch := self._next(instance)) is not None:
            try:
                (inference_ms,) = instance.run(batch.size)
            except Exception as error:  # noqa: BLE001 - the main thread raises it
                with self._lock:
                    if self.failure is None and not self._ended:
                        self.failure = error
                self._changed.set()
                # The requests in hand have to be answered too, so that LoadGen ends.
                self.respond([it.id for it in batch.requests])
                return
            now = time.perf_counter_ns()
            self.respond([it.id for it in batch.requests])
            with self._lock:
                self._answered += [
                    Answered(it.received_ns, now - it.received_ns, inference_ms) for it in batch.requests
                ]

    def _next(self, instance: Instance) -> _Batch | None:
        """Return the next batch for an instance; None at the end."""
        with self._lock:
            while not self._waiting and not self._ended:
                self._lock.wait()
            if self._ended:
                return None
            most = min(len(self._waiting), self.largest)
            size = max((it for it in instance.sizes if it <= most), default=instance.sizes[0])
            return _Batch([self._waiting.popleft() for _ in range(min(size, most))], size)


_NS_PER_MS = 1e6
_FEWEST, _MOST = 5, 200


class SingleRequests(NamedTuple):
    """Medians of single requests, in milliseconds."""

    # Of the inference alone.
    service_ms: float
    passing_ms: float
    wake_up_ms: float


def single_requests(
    serving: Serving,
    seconds: float,
    pause_seconds: float,
    clock: Callable[[], float],
    waiting: Callable[[], AbstractContextManager[None]],
) -> SingleRequests:
    """Send requests one after another for some seconds, and then others after pauses."""
    taken = _sent(serving, seconds, 0.0, clock, waiting)
    paused = _sent(serving, seconds, pause_seconds, clock, waiting)
    latency_ms, after_pause_ms = (median(it.latency_ns for it in each) / _NS_PER_MS for each in (taken, paused))
    return SingleRequests(
        service_ms=median(it.inference_ms for it in taken),
        passing_ms=median(it.latency_ns / _NS_PER_MS - it.inference_ms for it in taken),
        wake_up_ms=max(0.0, after_pause_ms - latency_ms),
    )


def _sent(
    serving: Serving,
    seconds: float,
    pause_seconds: float,
    clock: Callable[[], float],
    waiting: Callable[[], AbstractContextManager[None]],
) -> Sequence[Answered]:
    """Send requests one after another, each after a pause, and return them with their answers."""
    answered = threading.Event()
    serving.respond = lambda _: answered.set()
    began = clock()
    for number in range(_MOST):
        if number >= _FEWEST and clock() - began > seconds:
            break
        with waiting():
            time.sleep(pause_seconds)
        answered.clear()
        serving.issue([number])
        with waiting():
            answered.wait()
        serving.raise_failure()
    return serving.take_answered()
