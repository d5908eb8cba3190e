"""The process that proves what-ifs, by the fake worker."""

import pickle
from pathlib import Path

import pytest

from dlbricks_tui.analysis.proving import ProofProgress, ProofRule
from dlbricks_tui.analysis.what_if import Gain
from dlbricks_tui.answers.analysis.analysing import MeasuredGain
from dlbricks_tui.answers.analysis.proof_process import (
    ProofDone,
    ProofLines,
    ProofMessage,
    ProofOrder,
    ProofWaits,
    RoundsDone,
    decode,
    encode,
    execute,
)
from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.library import Library
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.records import Proof
from tests.analysis.test_proving import faster, what_if
from tests.runs.runs import MODEL, Site

GAIN = Gain(0.25, 0.2, 0.3)
MEASURED = MeasuredGain(3.0, 0.25, (0.2, 0.3), 4.0, "2026-11-27T00:00:00+00:00")
MESSAGES = (
    ProofWaits("run r1 of a colleague"),
    RoundsDone("threads-1", 12, GAIN, 3.5),
    RoundsDone("threads-1", 1, GAIN, None),
    ProofDone("threads-1", MEASURED, ""),
    ProofDone("threads-1", None, "the worker was lost"),
)


@pytest.mark.parametrize("message", MESSAGES)
def test_a_message_arrives_as_it_was_written(message: ProofMessage) -> None:
    line = encode(message)
    assert line.endswith(b"\n") and line.count(b"\n") == 1
    assert decode(line) == message


def test_an_order_proves_its_what_ifs_and_tells_their_gains(tmp_path: Path) -> None:
    site = Site(tmp_path / "data")
    site.path.mkdir()
    (source,) = Library(SAMPLE_MODELS, tmp_path).find(MODEL)
    order = ProofOrder(source, (what_if(None), what_if(faster())))
    assert pickle.loads(order.encoded()) == order
    told: list[ProofMessage] = []
    execute(order, site.place, told.append)
    refused, first, *_, done = told
    assert refused == ProofDone("threads-1", None, "no runtime can run it: it is a bound")
    assert isinstance(first, RoundsDone) and first.rounds == 1
    with ResultsDatabase(site.data.store) as store:
        (stored,) = store.records(Proof)
    assert isinstance(done, ProofDone) and done.gain is not None
    assert (done.gain.gain, done.gain.measured_ms) == (stored.gain, stored.after.trimmed_mean_ms)
    assert stored.gain == pytest.approx(0.5, abs=0.02)


def test_rounds_are_told_at_most_once_a_second() -> None:
    told: list[ProofMessage] = []
    times = iter([10.0, 10.3, 10.6, 11.2, 11.3, 20.0])
    lines = ProofLines(told.append, lambda: next(times))
    for rounds in (1, 2, 3, 4, 5):
        lines.progress(ProofProgress("threads-1", rounds, GAIN, 3.0 if rounds > 1 else None))
    lines.progress(ProofProgress("batch-8", 1, GAIN))
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
