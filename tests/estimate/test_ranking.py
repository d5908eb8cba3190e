import random
import sys
from collections.abc import Sequence
from dataclasses import replace
from importlib.metadata import version

import pytest

from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.estimate.estimate import estimate
from dlbricks_tui.estimate.knowledge import NOTHING_KNOWN, Knowledge, Latency, Unmeasured
from dlbricks_tui.estimate.ranking import Point, Ranking, best_within, ranked, scaling_efficiency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import InstructionSet, Variant
from dlbricks_tui.store.change import Timing, Verdict, timing_by
from dlbricks_tui.store.selections import Way
from tests.bricks.graphs import chain
from tests.estimate.knowledge_of import measured

# A runtime of this interpreter, which the host has.
PYTHON = "python-{}.{}".format(*sys.version_info)
WAY = Way("host", f"onnxruntime-{version('onnxruntime')} {PYTHON} threads-1", Level.WRITTEN, "inside")
UNMEASURED = estimate(decompose(chain("conv", "relu")), NOTHING_KNOWN)


def point(batch_size: int, measured_ms: float | None, threads: int | None = 1) -> Point:
    """A model that was timed end to end, and not by its bricks."""
    timed = None if measured_ms is None else Latency(measured_ms, measured_ms, measured_ms)
    found = SystemEstimate(WAY, UNMEASURED, timed, variant=Variant(threads=threads, batch=batch_size))
    return Point("", threads, found, "dlbricks run net")


def test_the_best_variant_has_the_highest_throughput_within_the_bound() -> None:
    points = [point(1, 10.0), point(4, 30.0), point(8, 70.0), point(16, None)]
    assert best_within(points, 50.0) == points[1]
    assert best_within(points, 100.0) == points[1]
    assert best_within(points, 10.0) == points[0]
    assert best_within(points, 9.0) is None
    assert best_within([], 9.0) is None


def test_efficiency_compares_with_the_fewest_threads_of_the_same_batch() -> None:
    points = [point(1, 10.0, 2), point(1, 8.0, 4), point(8, 60.0, 2), point(1, 5.0, None)]
    assert scaling_efficiency(points[0], points) == 1.0
    assert scaling_efficiency(points[1], points) == pytest.approx(10 * 2 / (8 * 4))
    assert scaling_efficiency(points[2], points) == 1.0
    assert scaling_efficiency(points[3], points) is None
    # Other kernels are not compared.
    quicker = point(1, 5.0, 1)
    variant = replace(quicker.found.variant, instructions=InstructionSet.AVX2)
    limited = replace(quicker, found=replace(quicker.found, variant=variant))
    assert scaling_efficiency(points[0], [*points, limited]) == 1.0


def timed(batch_size: int, latency_ms: float, samples: int = 30) -> Point:
    """A model that was timed end to end with samples that vary by 2 %."""
    chance = random.Random(f"{batch_size} {latency_ms}")
    return by_samples(batch_size, latency_ms, [latency_ms * chance.gauss(1.0, 0.02) for _ in range(samples)])


def by_samples(batch_size: int, latency_ms: float, samples_ms: Sequence[float], processes: int = 1) -> Point:
    """A model that was timed end to end with these samples, in processes that do not differ."""
    return over_runs(point(batch_size, latency_ms), timing_by([(latency_ms,) * 3] * processes, samples_ms))


def over_runs(it: Point, timing: Timing) -> Point:
    """A model with its latency over several runs."""
    return replace(it, found=replace(it.found, timing=timing))


def estimated(share: float) -> Point:
    """A model that was measured by its bricks only, each of which takes this share of a usual latency."""
    decomposition = decompose(chain("conv", "relu"))
    known = {
        pair: it._replace(latency=Latency(*(share * each for each in it.latency)))
        for pair, it in measured(decomposition).measured.items()
    }
    found = estimate(decomposition, Knowledge(known))
    return Point("", 1, SystemEstimate(WAY, found, variant=Variant(threads=1, batch=1)))


def test_the_measured_latency_of_a_variant_counts_before_its_estimate() -> None:
    point = estimated(1.0)
    timed_too = replace(point, found=replace(point.found, end_to_end=Latency(5.0, 4.9, 5.1)))
    assert (timed_too.latency_ms, timed_too.per_second) == (5.0, 200.0)
    assert point.latency_ms == point.estimate_ms == timed_too.estimate_ms != 5.0
    assert best_within([timed_too], 4.0) is None


def verdicts(*combinations: Point) -> list[Verdict | None]:
    return [it.verdict for it in ranked(combinations)]


def test_combinations_are_ordered_by_latency_or_by_throughput_and_those_without_one_come_last() -> None:
    found = ranked([point(1, None), timed(1, 20.0), timed(1, 10.0)])
    assert [(it.point.measured_ms, it.ratio, it.is_best, it.verdict) for it in found] == [
        (10.0, 1.0, True, None),
        (20.0, 2.0, False, Verdict.SLOWER),
        (None, None, False, None),
    ]
    found = ranked([timed(1, 10.0), timed(8, 40.0), timed(4, 30.0)])
    assert [it.point.batch_size for it in found] == [8, 4, 1]
    assert [it.point.per_second for it in found] == [200.0, pytest.approx(400 / 3), 100.0]
    assert [it.ratio for it in found] == [1.0, 1.5, 2.0]


def test_samples_decide_whether_measured_latencies_differ_beyond_noise() -> None:
    assert verdicts(timed(1, 10.0), timed(1, 12.0)) == [None, Verdict.SLOWER]
    # One process of each may differ by as much.
    assert verdicts(timed(1, 10.0), timed(1, 11.0)) == [None, Verdict.UNKNOWN]
    several = [by_samples(1, ms, [ms + number / 1e3 for number in range(30)], 3) for ms in (10.0, 11.0)]
    assert verdicts(*several) == [None, Verdict.SLOWER]
    noisy = [10.0 + number % 7 for number in range(30)]
    assert verdicts(by_samples(1, 10.0, noisy), by_samples(1, 10.5, noisy)) == [None, Verdict.UNKNOWN]


@pytest.mark.parametrize(
    ("newest_ms", "runs_ms", "verdict"),
    [
        (11.0, (11.0, 11.1, 10.9), Verdict.SLOWER),
        (10.05, (11.05, 11.1, 10.9), Verdict.SLOWER),
        (10.05, (8.95, 9.1, 8.9), Verdict.UNKNOWN),
        (10.8, (9.9, 10.0, 10.1), Verdict.UNKNOWN),
        (10.1, (9.9, 10.0, 10.1), Verdict.SAME),
    ],
)
def test_a_verdict_over_several_runs_suits_the_ratio_of_the_newest_ones(
    newest_ms: float, runs_ms: tuple[float, ...], verdict: Verdict
) -> None:
    def of_runs(latency_ms: float, *runs_ms: float) -> Point:
        samples = [ms + number / 1e4 for ms in runs_ms for number in range(30)]
        return over_runs(point(1, latency_ms), timing_by([(ms, ms, ms) for ms in runs_ms], samples))

    _, other = ranked([of_runs(10.0, 10.0, 9.99, 10.01), of_runs(newest_ms, *runs_ms)])
    assert other.verdict is verdict and other.change is not None
    assert other.ratio == pytest.approx(newest_ms / 10.0) == other.change.ratio
    low, high = other.change.interval
    assert low <= other.change.change <= high and (verdict is not Verdict.SLOWER or low > 0.0)


def test_intervals_decide_where_a_combination_was_not_measured_end_to_end() -> None:
    usual_ms = estimated(1.0).estimate_ms
    assert usual_ms is not None
    assert verdicts(estimated(1.0), estimated(2.0)) == [None, Verdict.SLOWER]
    assert verdicts(estimated(1.0), estimated(1.011)) == [None, Verdict.SAME]
    assert verdicts(timed(1, usual_ms / 2), estimated(1.0)) == [None, Verdict.SLOWER]


def predicted(latency_ms: float, low_ms: float, high_ms: float) -> Point:
    """A model whose layers are all predicted."""

    class Predictor:
        shared = 1.0

        def predict(self, bricks: Sequence[Unmeasured]) -> list[Latency | None]:
            number = len(bricks)
            return [Latency(latency_ms / number, low_ms / number, high_ms / number) for _ in bricks]

    found = estimate(decompose(chain("conv", "relu")), Knowledge({}, predictor=Predictor))
    return Point("", 1, SystemEstimate(WAY, found, variant=Variant(threads=1, batch=1)))


def test_only_a_narrow_prediction_may_be_the_best() -> None:
    narrow, wide = predicted(5.0, 4.5, 5.5), predicted(5.0, 2.0, 20.0)
    # What was measured is the best, although less is predicted.
    best, faster = ranked([timed(1, 10.0), narrow])
    assert (best.is_best, best.point.measured_ms, faster.point, faster.is_best) == (True, 10.0, narrow, False)
    assert [it.is_best for it in ranked([narrow, wide])] == [True, False]
    best, uncertain = ranked([wide, timed(1, 10.0)])
    assert (best.point.measured_ms, best.is_best) == (10.0, True)
    assert uncertain.ratio == pytest.approx(0.5, rel=0.01)
    assert uncertain.verdict is Verdict.UNKNOWN
    (only,) = ranked([wide])
    assert (only.is_best, only.ratio, only.verdict) == (False, 1.0, None)


def p_values(*combinations: Point) -> list[float]:
    return [it.change.p_value or 0.0 for it in ranked(combinations) if it.change is not None]


def test_p_values_are_corrected_for_the_number_of_combinations() -> None:
    best, *others = [timed(1, ms) for ms in (10.0, 10.08, 10.12, 10.3)]
    alone = [p_value for other in others for p_value in p_values(best, other)]
    together = p_values(best, *others)
    assert all(corrected >= p_value for corrected, p_value in zip(sorted(together), sorted(alone), strict=True))
    assert together != alone


def ranking_of(*combinations: Point) -> Ranking:
    return Ranking("net", "host", ranked(combinations))


def test_the_rival_of_the_best_is_measured_again_where_it_is_unknown_which_is_faster() -> None:
    noisy = [10.0 + number % 7 for number in range(30)]
    rival = by_samples(1, 10.5, noisy)
    found = ranking_of(by_samples(1, 10.0, noisy), predicted(10.2, 9.0, 12.0), rival).rival
    assert found is not None and found.point is rival
    for others in ([timed(1, 20.0)], [predicted(10.2, 9.0, 12.0)], []):
        assert ranking_of(timed(1, 10.0), *others).rival is None
    assert ranking_of(predicted(5.0, 2.0, 20.0)).rival is None


def test_a_bound_leaves_out_slower_combinations_and_the_best_of_the_others_is_first() -> None:
    ranking = ranking_of(timed(1, 10.0), timed(8, 40.0), timed(4, 30.0), point(2, None))
    assert [it.point.batch_size for it in ranking.combinations] == [8, 4, 1, 2]
    within = ranking.within(35.0).combinations
    assert [(it.point.batch_size, it.is_best, it.ratio is None) for it in within] == [
        (4, True, False),
        (1, False, False),
        (8, False, True),
        (2, False, True),
    ]
