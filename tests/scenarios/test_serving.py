"""Requests that are served by instances without a worker, each batch of which takes until the test lets it go on."""

import threading
from collections.abc import Sequence
from contextlib import nullcontext
from queue import Queue

import pytest

from dlbricks_tui.scenarios.scenario import ScenarioError
from dlbricks_tui.scenarios.serving import Answered, Instance, Serving, SingleRequests, single_requests

PATIENCE_SECONDS = 60.0


class Gated(Instance):
    """An instance that tells the size of each batch, and waits before it answers."""

    def __init__(self, sizes: Sequence[int]) -> None:
        self.sizes = list(sizes)
        self.begun: Queue[int] = Queue()
        self.gate: Queue[float] = Queue()
        self.interrupted = False

    def run(self, size: int, untimed: int = 0, timed: int = 1) -> Sequence[float]:
        self.begun.put(size)
        if (taken_ms := self.gate.get(timeout=PATIENCE_SECONDS)) < 0:
            raise ScenarioError("the worker was lost")
        return [taken_ms]

    def interrupt(self) -> None:
        self.interrupted = True
        self.gate.put(0.0)

    def next_batch(self) -> int:
        return self.begun.get(timeout=PATIENCE_SECONDS)


class Answers:
    """The requests that were answered, in the order of their answers."""

    def __init__(self) -> None:
        self.ids: list[int] = []
        self.told: Queue[int] = Queue()

    def __call__(self, ids: Sequence[int]) -> None:
        self.ids += ids
        self.told.put(len(ids))

    def next_count(self) -> int:
        return self.told.get(timeout=PATIENCE_SECONDS)


@pytest.fixture
def answers() -> Answers:
    return Answers()


def test_requests_that_wait_are_served_in_the_largest_batch_that_they_fill(answers: Answers) -> None:
    instance = Gated([1, 2, 4])
    with Serving([instance], threading.Event()) as serving:
        serving.respond = answers
        serving.issue([0])
        assert instance.next_batch() == 1
        serving.issue(range(1, 8))
        for later in (4, 2, 1):
            instance.gate.put(1.5)
            assert instance.next_batch() == later
        # A smaller limit counts for the batches after it.
        serving.largest = 2
        serving.issue(range(8, 13))
        for later in (2, 2, 1):
            instance.gate.put(1.5)
            assert instance.next_batch() == later
        instance.gate.put(2.5)
        assert [answers.next_count() for _ in range(7)] == [1, 4, 2, 1, 2, 2, 1]
        # An answer arrives before it is noted.
        instance.gate.put(0.5)
        serving.issue([13])
        assert answers.next_count() == 1
        taken = serving.take_answered()
        assert [it.inference_ms for it in taken][:13] == [1.5] * 12 + [2.5]
        assert all(it.latency_ns > 0 for it in taken)
    assert answers.ids == list(range(14))


def test_instances_serve_at_the_same_time_and_what_waits_at_the_end_is_answered_without_them(answers: Answers) -> None:
    instances = [Gated([1]), Gated([1])]
    with Serving(instances, threading.Event()) as serving:
        serving.respond = answers
        serving.issue([0, 1, 2])
        assert [it.next_batch() for it in instances] == [1, 1]
    assert all(it.interrupted for it in instances)
    assert sorted(answers.ids) == [0, 1, 2]
    serving.issue([3, 4])
    assert answers.ids[-2:] == [3, 4]
    serving.raise_failure()


def test_an_instance_that_fails_answers_its_requests_and_leaves_its_reason(answers: Answers) -> None:
    instance, changed = Gated([1]), threading.Event()
    with Serving([instance], changed) as serving:
        serving.respond = answers
        serving.issue([0, 1])
        instance.gate.put(-1.0)
        assert answers.next_count() == 1
        assert changed.wait(PATIENCE_SECONDS)
        with pytest.raises(ScenarioError, match="the worker was lost"):
            serving.raise_failure()
    assert answers.ids == [0, 1]


class Timed(Serving):
    """Answers requests at once, as if each took 9 ms, of which 8 ms are inference, and 5 ms more after a pause."""

    def __init__(self) -> None:
        super().__init__([Gated([1])], threading.Event())
        self.paused_seconds = 0.0
        self.requests = 0

    def issue(self, ids: Sequence[int]) -> None:
        self.requests += len(ids)
        latency_ns = 14_000_000 if self.paused_seconds else 9_000_000
        self._answered.append(Answered(0, latency_ns, 8.0))
        self.respond(ids)


@pytest.mark.parametrize(("seconds", "requests"), [(0.0, 10), (9.5, 20), (1e6, 400)])
def test_single_requests_tell_what_passing_them_and_a_pause_add(
    monkeypatch: pytest.MonkeyPatch, seconds: float, requests: int
) -> None:
    serving = Timed()
    monkeypatch.setattr(
        "dlbricks_tui.scenarios.serving.time.sleep", lambda pause: setattr(serving, "paused_seconds", pause)
    )
    # Each request takes a second.
    found = single_requests(serving, seconds, 0.05, lambda: float(serving.requests), nullcontext)
    assert found == SingleRequests(service_ms=8.0, passing_ms=1.0, wake_up_ms=5.0)
    assert serving.requests == requests
