"""The process that proves what-ifs, by the fake worker."""

from pathlib import Path

import pytest

from dlbricks_tui.analysis.proving import ProofDone, ProofOrder, ProofRule, RoundsDone, prove, thinned
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.jobs.control import StopSignals
from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import store_request, stored_request
from dlbricks_tui.models.library import Library
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Proof
from tests.analysis.test_proving import faster, what_if
from tests.runs.runs import MODEL, Site

GAIN = Gain(0.25, 0.2, 0.3)


def test_an_order_proves_its_what_ifs_and_tells_their_gains(tmp_path: Path) -> None:
    site = Site(tmp_path / "data")
    site.path.mkdir()
    (source,) = Library(SAMPLE_MODELS, tmp_path).find(MODEL)
    order = ProofOrder(source, (what_if(None), what_if(faster())))
    store_request(tmp_path / "request.json", order)
    assert stored_request(tmp_path / "request.json", ProofOrder) == order
    told: list[Event] = []
    with StopSignals(ignore_hangup=False) as signals:
        prove(order, site.place, signals, told.append)
    refused, first, *_, done = told
    assert refused == ProofDone("threads-1", None, "no runtime can run it: it is a bound")
    assert isinstance(first, RoundsDone) and first.rounds == 1
    with ResultsDatabase(site.data.store) as store:
        (stored,) = store.records(Proof)
    assert isinstance(done, ProofDone) and done.gain is not None
    assert (done.gain.gain, done.gain.measured_ms) == (stored.gain, stored.after.trimmed_mean_ms)
    assert stored.gain == pytest.approx(0.5, abs=0.02)


def test_rounds_are_told_at_most_once_a_second() -> None:
    told: list[Event] = []
    times = iter([10.0, 10.3, 10.6, 11.2, 11.3, 20.0])
    tell = thinned(told.append, lambda: next(times))
    for rounds in (1, 2, 3, 4, 5):
        tell(RoundsDone("threads-1", rounds, GAIN, 3.0 if rounds > 1 else None))
    tell(RoundsDone("batch-8", 1, GAIN))
    assert [(it.what_if, it.rounds) for it in told if isinstance(it, RoundsDone)] == [
        ("threads-1", 1),
        ("threads-1", 4),
        ("batch-8", 1),
    ]
    assert [it.seconds_left for it in told if isinstance(it, RoundsDone)] == [None, 3.0, None]


@pytest.mark.parametrize(
    ("rounds", "seconds", "half", "expected"),
    [
        # The least number of rounds, half of them done.
        (6, 6.0, 0.01, 6.0),
        # Twice as wide as it should be: four times as many rounds.
        (12, 6.0, 0.04, 18.0),
        # At most so many rounds, and at most so long.
        (50, 10.0, 0.5, 10.0),
        (12, 24.0, 0.5, 36.0),
        # A slow model gets fewer rounds.
        (3, 30.0, 0.01, 0.0),
        (20, 10.0, 0.02, 0.0),
    ],
)
def test_the_time_left_follows_from_the_interval_so_far(
    rounds: int, seconds: float, half: float, expected: float
) -> None:
    gain = Gain(0.2, 0.2 - half, 0.2 + half)
    assert ProofRule().seconds_left(rounds, seconds, gain) == pytest.approx(expected)
