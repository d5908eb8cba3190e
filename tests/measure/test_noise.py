import random
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace

import pytest

from dlbricks_tui.host.noise import Contention
from dlbricks_tui.measure import inside
from dlbricks_tui.measure.events import RoundDone, RoundRepeated
from dlbricks_tui.measure.jobs import Earlier
from dlbricks_tui.measure.noise import HostTrack, NoiseMonitor, Round, counting, quick_mode
from dlbricks_tui.measure.results import LESS_KNOWN, CarrierOccurrence, renewed
from dlbricks_tui.measure.stopping import Adaptive, samples_of
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.protocol import Profiled
from dlbricks_tui.store.records import Facts, Measurement
from tests.bricks.graphs import chain
from tests.measure.simulated_host import Notes, SimulatedHost, estimated, measured_inside


def a_round(seconds: float, runs: int, contention: Contention | None, reference_ms: float | None) -> Round:
    return Round(seconds, runs, contention, () if reference_ms is None else (reference_ms,))


QUIET = a_round(1.0, 400, Contention(0.01, 17), 0.5)
CONTENDED = a_round(1.0, 400, Contention(0.3, 1500), 0.5)
SLOW = a_round(1.0, 400, Contention(0.0, 0), 0.7)


@pytest.mark.parametrize(
    ("seconds", "runs", "counts", "is_disturbed"),
    [
        # Threads that share the remaining cores preempt one another about once per run.
        (1.0, 404, Contention(0.09, 404), True),
        (1.0, 404, Contention(0.09, 150), False),
        (1.0, 404, Contention(0.001, 404), False),
        # Thirty-seven programs that take no time to speak of, each run four times: the threads of a worker among them.
        (0.015, 148, Contention(0.004, 148), False),
        (0.15, 148, Contention(0.004, 148), True),
        # Threads that share a core of an idle host, and beside a program that uses all of the other core.
        (1.0, 200, Contention(0.05, 190, 0.15), False),
        (0.06, 200, Contention(0.003, 190, 0.03), False),
        (1.0, 200, Contention(0.05, 190, 1.0), True),
        (0.06, 200, Contention(0.003, 190, 0.06), True),
    ],
)
def test_preemptions_disturb_a_round_where_other_programs_take_the_processor(
    seconds: float, runs: int, counts: Contention, is_disturbed: bool
) -> None:
    told = f"others took the processor {counts.preemptions} times in {seconds:.2f} s" if is_disturbed else None
    assert NoiseMonitor().disturbance(a_round(seconds, runs, counts, 0.5)) == told


def test_a_slow_reference_shows_noise_that_the_kernel_does_not_count() -> None:
    monitor = NoiseMonitor()
    assert monitor.disturbance(SLOW) is None
    for _ in range(9):
        monitor.disturbance(QUIET)
    assert monitor.disturbance(SLOW) == "the host was 1.40 times slower than usual"
    assert monitor.disturbance(a_round(1.0, 400, None, 0.7)) == "the host was 1.40 times slower than usual"


def test_disturbed_rounds_do_not_change_the_usual_reference() -> None:
    monitor = NoiseMonitor()
    for _ in range(9):
        monitor.disturbance(QUIET)
    for _ in range(50):
        monitor.disturbance(a_round(0.01, 20, None, 0.9))
    assert monitor.usual_reference_ms == 0.5


def test_on_a_busy_host_rounds_count_as_they_are_until_it_is_quiet_again() -> None:
    monitor = NoiseMonitor()
    rounds = 0
    while monitor.worth_repeating:
        monitor.disturbance(CONTENDED)
        rounds += 1
    assert 30 <= rounds <= 120
    for _ in range(4):
        monitor.disturbance(QUIET)
    assert not monitor.worth_repeating
    monitor.disturbance(QUIET)
    assert monitor.worth_repeating


def test_a_run_with_little_time_repeats_few_rounds_however_often_the_host_becomes_quiet() -> None:
    monitor = NoiseMonitor(most_seconds=3.0)
    for _ in range(3):
        assert monitor.worth_repeating
        assert monitor.disturbance(CONTENDED) is not None
        monitor.repeat(CONTENDED.seconds)
        for _ in range(9):
            assert monitor.disturbance(QUIET) is None
    assert not monitor.worth_repeating


def told(monitor: NoiseMonitor, rounds: Iterable[Round]) -> list[tuple[float, int]]:
    """The changes that these rounds show: how many times as fast the machine is, and in how many rounds it was."""
    changes = []
    for round_ in rounds:
        monitor.disturbance(round_)
        if (change := monitor.take_change()) is not None:
            changes.append((round(change.times_as_fast, 2), change.rounds))
    return changes


def test_a_speed_up_of_the_host_is_reported_once_and_sets_the_usual_reference() -> None:
    monitor = NoiseMonitor()
    assert told(monitor, [SLOW] * 10) == []
    assert told(monitor, [QUIET] * 4) == []
    assert told(monitor, [QUIET] * 20) == [(1.4, 5)]
    assert monitor.usual_reference_ms == QUIET.reference_ms
    assert monitor.disturbance(SLOW) == "the host was 1.40 times slower than usual"


def test_a_short_speed_up_of_the_host_is_no_change() -> None:
    assert told(NoiseMonitor(), [SLOW if number % 5 == 0 else QUIET for number in range(100)]) == []
    moment = replace(QUIET, seconds=0.06)
    assert told(NoiseMonitor(), [*[SLOW] * 10, *[moment] * 20, SLOW]) == []
    assert told(NoiseMonitor(), [*[SLOW] * 10, *[moment] * 60]) == [(1.4, 50)]


def test_a_lasting_slow_down_of_the_host_sets_the_usual_reference() -> None:
    monitor = NoiseMonitor()
    assert told(monitor, [QUIET] * 10) == []
    assert told(monitor, [SLOW] * 59) == []
    assert told(monitor, [SLOW]) == [(0.71, 0)]
    assert monitor.disturbance(SLOW) is None
    assert told(monitor, [QUIET] * 5) == [(1.4, 5)]


def test_a_mostly_slower_host_is_slower_and_a_contended_one_is_not() -> None:
    monitor = NoiseMonitor()
    assert told(monitor, [QUIET] * 10) == []
    assert told(monitor, [QUIET if number % 4 == 0 else SLOW for number in range(90)]) == [(0.71, 0)]
    contended = NoiseMonitor()
    assert told(contended, [*[QUIET] * 10, *[replace(CONTENDED, references_ms=(0.7,))] * 100]) == []


def test_repeated_rounds_take_a_few_seconds_and_half_as_long_as_those_that_count_at_most() -> None:
    monitor = NoiseMonitor()
    assert (monitor.most_repeated(), monitor.most_repeated(100.0)) == (5.0, 55.0)
    monitor.repeat(5.0)
    assert not monitor.worth_repeating
    monitor.count(10.0)
    assert (monitor.worth_repeating, monitor.most_repeated()) == (True, 5.0)
    monitor.repeat(6.0)
    assert (monitor.worth_repeating, monitor.most_repeated()) == (False, 0.0)


CHANCE = random.Random(7)
QUIET_MS, SLOW_MS = 3.0, 4.08
USUAL_MS = 0.64
# The latency of the reference on the simulated host.
REFERENCE_MS = 0.05


def around(middle_ms: float, count: int, noise: float = 0.01) -> list[float]:
    """Return so many samples around a latency."""
    return [middle_ms * CHANCE.lognormvariate(0, noise) for _ in range(count)]


def tracked(references_ms: Sequence[float], usual_ms: float | None = None) -> HostTrack:
    """A host with these readings of the reference, each at the beginning of a moment."""
    track = HostTrack(usual_ms)
    for reading in references_ms:
        track.read(reading)
    return track


def mixed(one: Sequence[float], other: Sequence[float]) -> list[float]:
    both = [*one, *other]
    CHANCE.shuffle(both)
    return both


def test_of_two_modes_the_quick_one_counts() -> None:
    samples_ms = mixed(around(0.100, 20), around(0.136, 30))
    places = quick_mode(samples_ms)
    assert len(places) == 20
    assert max(samples_ms[place] for place in places) < 0.11


@pytest.mark.parametrize("noise", [0.005, 0.02, 0.1, 0.3])
def test_samples_of_one_mode_all_count_however_noisy_they_are(noise: float) -> None:
    kept = [len(quick_mode(around(2.0, 40, noise))) for _ in range(50)]
    assert sum(it == 40 for it in kept) >= 49


def test_a_few_slow_or_quick_samples_are_no_mode() -> None:
    assert len(quick_mode(mixed(around(1.0, 46), around(3.0, 4)))) == 50
    assert len(quick_mode(mixed(around(1.0, 4), around(1.5, 46)))) == 50


def test_samples_of_a_slow_phase_in_the_middle_do_not_count() -> None:
    references_ms = [*around(USUAL_MS, 15), *around(0.77, 15), *around(USUAL_MS, 15)]
    samples_ms = [*around(QUIET_MS, 15), *around(SLOW_MS, 15), *around(QUIET_MS, 15)]
    found = counting(samples_ms, range(45), tracked(references_ms))
    assert found.doubt == 0.0
    assert max(found.of(samples_ms)) < 1.1 * QUIET_MS
    # The moments at both ends of the phase have one reading of it each.
    assert len(found.places) >= 28
    assert dict(found.facts(45))["repeated_rounds"] == 45 - len(found.places)


def test_samples_of_a_slow_phase_count_beside_a_program_that_runs_through_quick_and_slow_ones() -> None:
    track = HostTrack(counts_all=True)
    for reading in [*around(USUAL_MS, 15), *around(0.77, 16)]:
        track.read(reading)
    found = counting([*around(QUIET_MS, 15), *around(SLOW_MS, 15)], range(30), track)
    assert len(found.places) == 30
    assert found.doubt > 0.1 and found.disturbed > 10


def test_a_host_that_was_always_slower_than_in_earlier_runs_widens_the_interval() -> None:
    found = counting(around(SLOW_MS, 30), range(30), tracked(around(0.77, 31), USUAL_MS))
    assert len(found.places) == 30
    assert found.doubt == pytest.approx(0.2, abs=0.03)
    assert found.disturbed == 30


def test_a_first_run_beside_a_busy_program_is_in_doubt_and_a_later_one_goes_by_the_reference() -> None:
    busy = Round(1.0, 100, Contention(0.0, 0, 1.0), ())
    for usual_ms, doubted in ((None, True), (USUAL_MS, False)):
        track = HostTrack(usual_ms, processors=2)
        for reading in around(USUAL_MS, 21):
            track.read(reading, busy)
        assert bool(counting(around(QUIET_MS, 20), range(20), track).doubt) is doubted
    alone = HostTrack(None, processors=2)
    for reading in around(USUAL_MS, 21):
        # It is this process that computes.
        alone.read(reading, busy, own_seconds=0.9)
    assert counting(around(QUIET_MS, 20), range(20), alone).doubt == 0.0


@dataclass
class ChangingHost(SimulatedHost):
    """A host whose speed depends on the number of the round."""

    factor: Callable[[int], float] = lambda _: 1.0
    shows: bool = True
    rounds: int = 0

    def null_calls(self, count: int) -> tuple[float, ...]:
        self.rounds += 1
        return super().null_calls(count)

    def sample(self, names: Sequence[str], warm: int, repeat: int) -> dict[str, tuple[float, ...]]:
        taken = super().sample(names, warm, repeat)
        slower = self.factor(self.rounds)
        return {
            name: runs if name == "reference" and not self.shows else tuple(slower * run for run in runs)
            for name, runs in taken.items()
        }

    def profile(self, name: str, warm: int, repeat: int) -> Profiled | None:
        found, slower = super().profile(name, warm, repeat), self.factor(self.rounds)
        assert found is not None
        rows = tuple(tuple(round(slower * it) for it in row) for row in found.durations_ns)
        return replace(found, durations_ns=rows)


def changing(factor: Callable[[int], float], *, shows: bool = True) -> ChangingHost:
    return ChangingHost({"conv": 2.0, "pool": 1.0}, 1, 0.01, 0.0, placement=0.0, factor=factor, shows=shows)


def latency_ms(notes: Notes) -> float:
    composed = estimated(chain("conv", "pool"), notes).composed
    assert composed is not None
    return composed.sequential_ms


@pytest.mark.parametrize("shows", [True, False])
def test_a_model_comes_out_as_fast_as_on_the_quiet_host(shows: bool) -> None:
    host = changing(lambda number: 1.36 if number % 20 < 10 else 1.0, shows=shows)
    assert latency_ms(measured_inside(host, [chain("conv", "pool")])) == pytest.approx(3.0, rel=0.03)


def test_a_run_that_begins_in_a_slow_phase_goes_on_until_the_host_is_as_quick_as_usual() -> None:
    host = changing(lambda number: 1.36 if number < 150 else 1.0)
    notes = measured_inside(host, [chain("conv", "pool")], usual_reference_ms=REFERENCE_MS)
    assert latency_ms(notes) == pytest.approx(3.0, rel=0.03)
    assert any(isinstance(event, RoundRepeated) for event in notes.events)


def test_a_quiet_host_takes_no_more_rounds_than_a_narrow_interval_needs() -> None:
    notes = measured_inside(changing(lambda _: 1.0), [chain("conv", "pool")])
    assert sum(isinstance(event, RoundDone) for event in notes.events) <= 30
    assert not any(isinstance(event, RoundRepeated) for event in notes.events)


def test_on_a_host_that_stays_slow_the_run_ends_and_the_results_say_so(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(inside, "PATIENCE_SECONDS", 0.05)
    notes = measured_inside(changing(lambda _: 2.0), [chain("conv", "pool")], usual_reference_ms=REFERENCE_MS)
    facts = dict(next(iter(notes.kept.values()))[0].noise)
    assert latency_ms(notes) == pytest.approx(6.0, rel=0.03)
    assert float(facts["shared"] or 0) > 0.9
    assert facts["disturbed_rounds"] == sum(isinstance(event, RoundDone) for event in notes.events)


def test_a_noisy_host_ends_the_run_after_a_limited_number_of_rounds(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.measure.carriers.MOST_TIMES_LONGER", 1)
    noise = random.Random(3)
    notes = measured_inside(changing(lambda _: noise.lognormvariate(0, 0.5)), [chain("conv", "pool")])
    assert sum(isinstance(event, RoundDone) for event in notes.events) == 50


def places(samples_ms: Sequence[float], reference_ms: float, shared: float = 0.03) -> list[CarrierOccurrence]:
    """The only place of a brick with these samples."""
    facts: Facts = (("reference_ms", reference_ms), ("shared", shared))
    return [CarrierOccurrence((("layer", "conv0"),), samples_of(samples_ms, Adaptive()), facts)]


def earlier(found: Sequence[CarrierOccurrence]) -> Earlier:
    """The same as a result of an earlier run."""
    (it,) = found
    noise = (("warm_up", it.samples.warm_up), *it.noise)
    result = Measurement(
        system="host",
        runtime="r",
        level=Level.FUSED,
        protocol="inside",
        run="one",
        when="2026-01-01T00:00:00+00:00",
        statistics=it.samples.statistics,
        samples_ms=it.samples.samples_ms,
        noise=noise,
        brick="b",
        context="",
        occurrence=it.where,
    )
    return Earlier(it.samples.samples_ms, float(dict(it.noise)["reference_ms"] or 0), (result,))


def test_precise_new_samples_replace_those_of_a_slower_host() -> None:
    new = places(around(QUIET_MS, 24), USUAL_MS)
    before = earlier(places(around(8.0, 50, 0.5), 1.5, shared=0.3))
    assert renewed(before, new, Adaptive(), USUAL_MS) == new


def test_imprecise_samples_of_a_host_as_fast_as_before_are_joined() -> None:
    before, new = places(around(3.0, 30, 0.3), 0.64, shared=0.1), places(around(3.0, 40, 0.3), 0.66, shared=0.1)
    (both,) = renewed(earlier(before), new, Adaptive(), USUAL_MS)
    warm_up = before[0].samples.warm_up + new[0].samples.warm_up
    assert len(both.samples.samples_ms) == 70 - warm_up
    assert float(dict(both.noise)["shared"] or 0) == pytest.approx(0.071, abs=0.002)
    assert not both.samples.flags


def test_imprecise_samples_of_a_slower_host_are_kept_apart_and_do_not_count() -> None:
    before, new = places(around(3.0, 30, 0.3), 0.64, shared=0.08), places(around(6.0, 30, 0.3), 1.3, shared=0.3)
    (kept,) = renewed(earlier(before), new, Adaptive(), USUAL_MS)
    assert kept.samples.flags == (LESS_KNOWN,)
    assert kept.samples.samples_ms == new[0].samples.samples_ms


def test_imprecise_samples_of_a_quicker_host_count_without_the_earlier_ones() -> None:
    before, new = places(around(6.0, 30, 0.3), 1.3, shared=0.3), places(around(3.0, 30, 0.3), 0.64, shared=0.08)
    assert renewed(earlier(before), new, Adaptive(), USUAL_MS) == new
