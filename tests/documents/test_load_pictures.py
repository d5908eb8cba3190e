"""The pictures of load and the sentences about them."""

from dlbricks_tui.documents.load_pictures import histogram_plot, percentiles_plot, progress_plot, throughput_rows
from dlbricks_tui.scenarios.scenario import MeasuredLoad, PredictedLoad, Range, Scenario, ScenarioKind
from tests.documents.snapshots import check
from tests.store.samples import load_test

SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=50.0)
MEASURED = MeasuredLoad(
    p50_ms=10.0, p90_ms=12.0, p99_ms=15.0, p999_ms=20.0, per_second=50.0, valid=True, queries=662, batch_size=1
)
PREDICTED = PredictedLoad(
    p50_ms=Range(11.0, 10.0, 12.0),
    p90_ms=Range(12.0, 11.0, 13.0),
    p99_ms=Range(14.0, 12.0, 16.0),
    p999_ms=Range(18.0, 15.0, 22.0),
    per_second=Range(60.0, 50.0, 70.0),
    valid=True,
    queries=1000,
    batch_size=1,
)


def test_percentiles_and_throughputs_are_predicted_beside_measured() -> None:
    check(
        "load-pictures",
        {
            "percentiles": percentiles_plot(PREDICTED, MEASURED, 16.0),
            "percentiles measured": percentiles_plot(None, MEASURED, None),
            "percentiles predicted within a high bound": percentiles_plot(PREDICTED, None, 30.0),
            "no percentiles": percentiles_plot(None, None, 16.0),
            "throughput": throughput_rows((1, 2, 4), {1: 60.0, 4: 90.0}, {1: 55.0}),
            "no throughput": throughput_rows((1, 2), {}, {}),
            "histogram": histogram_plot(load_test(bound_ms=3.5), [1.0, 1.0, 2.0, 4.0], PREDICTED),
            "histogram without a bound": histogram_plot(load_test(bound_ms=None), [1.0, 2.0], None),
            "no histogram": histogram_plot(load_test(kind="offline"), [1.0], None),
            "nothing in it": histogram_plot(load_test(), [], None),
            "in progress": progress_plot([1.0, 2.0, 2.0, 9.0], [1.0, 2.0, 2.0, 9.0], 8, SERVER),
            "in progress without a bound": progress_plot(
                [1.0] * 3, [1.0] * 3, 1, Scenario(kind=ScenarioKind.SINGLE, percentile=90.0)
            ),
        },
    )


def test_the_picture_of_a_test_in_progress_fills_from_the_left() -> None:
    def filled(answered: int) -> float:
        latencies = [10.0 + each % 7 for each in range(answered)]
        found = progress_plot(latencies, sorted(latencies), 662, SERVER)
        return max(x for it in found.series for x, _ in it.points) / found.across.high

    assert filled(100) < filled(300) < filled(662) <= 1.0
    # More requests than expected do not leave the picture.
    assert filled(2000) <= 1.0


def test_slow_requests_stand_above_the_bound_and_crowds_have_other_signs() -> None:
    found = progress_plot([10.0] * 3000 + [200.0], [10.0] * 3000 + [200.0], 662, SERVER)
    by_mark = {it.mark: [y for _, y in it.points] for it in found.series}
    assert all(y > 50.0 for y in by_mark["."][-1:]) and all(y < 50.0 for y in by_mark[":"])
    assert found.says == "3,001 requests so far: p50 10.000 ms, p90 10.000 ms, p99 10.000 ms, bound 50 ms."
