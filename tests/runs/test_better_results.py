"""Results that get better: what the next run measures again, with a worker that makes latencies up."""

from pathlib import Path

import pytest

from dlbricks_tui.jobs.events import Event
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure import inside
from dlbricks_tui.measure.known import MOST_TRIES
from dlbricks_tui.measure.method import Method
from dlbricks_tui.measure.stopping import Adaptive
from dlbricks_tui.runs.events import Planned
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.wording.events import note_of
from tests.runs.runs import BRICKS, MODEL, Measured, Site

OTHER_MODEL = "table1:18"
# Noisy programs take long enough with it.
RULE = Adaptive(least=10, most=10, most_of_quick=10)


@pytest.fixture(autouse=True)
def no_patience(monkeypatch: pytest.MonkeyPatch) -> None:
    """Let runs end soon: these hosts never become quiet within one."""
    monkeypatch.setattr(inside, "_MOST_PLAIN_RUNS", 10)
    monkeypatch.setattr(inside, "PATIENCE_SECONDS", 0.0)


def planned_by(site: Site, model: str = MODEL, *, end_to_end: bool = True, again: bool = False) -> Planned:
    """Run a model, and return the plan of that."""
    events: list[Event] = []
    request = site.request(model, method=Method.INSIDE, end_to_end=end_to_end, again=again, rule=RULE)
    assert site.run(request, events.append).state is State.FINISHED
    (found,) = [event for event in events if isinstance(event, Planned)]
    return found


def noisy(monkeypatch: pytest.MonkeyPatch, noise: float = 0.6) -> None:
    monkeypatch.setenv("FAKE_NOISE", str(noise))


def widest_share(site: Site) -> float:
    """Return the widest interval of the newest results that count, relative to their latency."""
    with ResultsDatabase(site.data.store) as store:
        found = store.select("good=true", "of=brick").summaries()
        newest = [it for it in found if it.run == found[0].run and it.trimmed_mean_ms > 0.1]
    return max((it.high_ms - it.low_ms) / 2 / it.trimmed_mean_ms for it in newest)


def told(planned: Planned) -> str:
    note = note_of(planned)
    assert note is not None
    return note.text


def test_results_of_a_noisy_run_are_measured_again_by_the_next_run_until_they_are_precise(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    noisy(monkeypatch)
    assert planned_by(site).bricks_reused == 0
    noisy(monkeypatch, 0.005)
    second = planned_by(site)
    assert second.bricks_imprecise > 0
    assert second.models_reused == 0, "a model and its bricks are timed in the same minutes"
    assert f"{second.bricks_imprecise} again: too imprecise so far" in told(second)
    assert widest_share(site) < 0.05
    third = planned_by(site)
    assert (third.bricks_reused, third.models_reused) == (BRICKS, 1)
    assert told(third) == f"{BRICKS} bricks: {BRICKS} known, 0 to measure; 0 of 1 model to time end to end"


def test_a_host_that_is_always_noisy_is_not_measured_for_ever(site: Site, monkeypatch: pytest.MonkeyPatch) -> None:
    noisy(monkeypatch)
    *tries, last = (BRICKS - planned_by(site, end_to_end=False).bricks_reused for _ in range(MOST_TRIES + 1))
    assert tries[0] == BRICKS
    assert all(tries)
    assert last == 0


def test_bricks_of_a_slower_host_are_measured_again_once_the_host_turns_out_to_be_quicker(
    site: Site, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "2")
    planned_by(site)
    before = site.contents()
    assert planned_by(site).bricks_reused == BRICKS, "nothing says that the host was slow"
    assert site.contents() == before
    monkeypatch.setenv("FAKE_FACTOR", "1")
    planned_by(site, OTHER_MODEL)
    found = planned_by(site)
    assert found.bricks_of_slow_host > 0
    assert "again: measured while the host was slower" in told(found)
    assert planned_by(site).bricks_reused == BRICKS


def test_samples_of_the_slower_host_are_not_mixed_into_the_new_ones(
    site: Site, measured_inside: Measured, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("FAKE_FACTOR", "3")
    noisy(monkeypatch)
    planned_by(site)
    monkeypatch.setenv("FAKE_FACTOR", "1")
    noisy(monkeypatch, 0.005)
    planned_by(site)
    assert longest_ms(site) == pytest.approx(longest_ms(measured_inside.site), rel=0.02)


def longest_ms(site: Site) -> float:
    """Return the longest latency of a brick in the newest run."""
    with ResultsDatabase(site.data.store) as store:
        found = store.select("good=true", "of=brick").summaries()
    return max(it.trimmed_mean_ms for it in found if it.run == found[0].run)


def test_measuring_everything_again_counts_whatever_was_known_before(
    measured_inside: Measured, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    site = measured_inside.copied(tmp_path / "data")
    monkeypatch.setenv("FAKE_FACTOR", "2")
    before_ms = longest_ms(site)
    assert planned_by(site, again=True).bricks_reused == 0
    assert longest_ms(site) == pytest.approx(2 * before_ms, rel=0.02)
