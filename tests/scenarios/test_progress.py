"""What the tests of a search have found, by our own clock."""

import numpy as np
import pytest

from dlbricks_tui.scenarios.progress import latencies_since_due
from dlbricks_tui.scenarios.queueing import unit_schedule
from dlbricks_tui.scenarios.serving import Answered

RATE, BEGAN_NS = 50.0, 7_000_000_000
DUE_NS = BEGAN_NS + np.rint(unit_schedule(100) / RATE * 1e9).astype(np.int64)


def answered(late_ns: int = 0, from_request: int = 50) -> list[Answered]:
    """Return requests that each take 8 ms, of which the later ones arrive late, in no order."""
    received = [int(due) + late_ns * (number >= from_request) for number, due in enumerate(DUE_NS)]
    return [Answered(it, 8_000_000, 7.9) for it in reversed(received)]


def test_requests_that_arrive_when_they_are_due_have_their_own_latencies() -> None:
    found = latencies_since_due(answered(), RATE)
    assert found.latencies_ns == [8_000_000] * 100
    assert found.delays_ns == [0] * 100
    assert found.seconds == pytest.approx((DUE_NS[-1] - BEGAN_NS) / 1e9 + 0.008)


def test_requests_that_arrive_late_have_the_delay_in_their_latencies() -> None:
    found = latencies_since_due(answered(late_ns=3_000_000), RATE)
    assert found.latencies_ns == [8_000_000] * 50 + [11_000_000] * 50
    assert found.delays_ns == [0] * 50 + [3_000_000] * 50
