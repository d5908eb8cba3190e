"""Single requests before the tests: their service time, what passing them to a worker adds, and what a pause adds."""

import threading
import time
from collections.abc import Callable, Sequence
from contextlib import AbstractContextManager
from statistics import median
from typing import NamedTuple

from dlbricks_tui.scenarios.serving import Answered, Serving

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
