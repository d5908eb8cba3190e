from dataclasses import replace

import numpy as np
import pytest

from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.scenarios.predicting import load_curve, predict, with_other_arrivals
from dlbricks_tui.scenarios.scenario import Scenario, ScenarioError, ScenarioKind, batch_sizes_up_to
from dlbricks_tui.scenarios.service import ServiceSource, ServiceTime, ServiceTimes

SAMPLES = tuple(9.9 + number / 100 for number in range(21))
SERVER = Scenario(kind=ScenarioKind.SERVER, percentile=99.0, bound_ms=40.0)

pytestmark = pytest.mark.usefixtures("rough_predictions")


def service(doubt: float = 0.02, per_request: float = 0.5, sizes: tuple[int, ...] = (1, 2, 4, 8)) -> ServiceTimes:
    """A model that takes 10 ms for one request, and a part of that for each further one."""
    found = []
    for size in sizes:
        factor = 1 - per_request + per_request * size
        value_ms = 10.0 * factor
        latency = Latency(value_ms, value_ms * (1 - doubt), value_ms * (1 + doubt))
        samples = tuple(factor * sample for sample in SAMPLES)
        found.append(ServiceTime(size, latency, samples, ServiceSource.END_TO_END))
    return ServiceTimes(tuple(found), 0.0)


def test_a_single_stream_has_the_percentiles_of_the_service() -> None:
    found = predict(Scenario(kind=ScenarioKind.SINGLE, percentile=90.0), service())
    assert found.p50_ms.value == pytest.approx(np.quantile(SAMPLES, 0.5), rel=0.01)
    assert found.p90_ms.value == pytest.approx(np.quantile(SAMPLES, 0.9), rel=0.01)
    assert found.per_second.value == pytest.approx(100.0, rel=0.01)
    # The interval of the estimate is that of the prediction.
    assert found.p50_ms.low == pytest.approx(9.8, rel=0.01)
    assert found.p50_ms.high == pytest.approx(10.2, rel=0.01)


def test_a_query_of_a_multi_stream_takes_as_long_as_eight_samples_on_the_instances() -> None:
    scenario = Scenario(kind=ScenarioKind.MULTI, percentile=99.0)
    for instances, batches, factor in ((1, 1, 8), (2, 1, 4), (1, 8, 4.5)):
        changed = replace(scenario, instances=instances, batch_sizes=batch_sizes_up_to(batches))
        found = predict(changed, service())
        assert found.p50_ms.value == pytest.approx(10.0 * factor, rel=0.01)
        assert found.per_second.value == pytest.approx(8 / (0.01 * factor), rel=0.01)


def test_offline_takes_the_batch_size_with_the_highest_throughput() -> None:
    scenario = Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0, batch_sizes=(1, 2, 4, 8), instances=2)
    found = predict(scenario, service())
    assert found.batch_size == 8
    assert found.per_second.value == pytest.approx(2 * 8 / 0.045, rel=0.02)
    costly = predict(scenario, service(per_request=1.2))
    assert costly.batch_size == 1


def test_offline_latencies_count_from_the_start_of_the_test() -> None:
    found = predict(Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0), service())
    assert 3000.0 < found.p999_ms.value < 5000.0
    assert found.p50_ms.value == pytest.approx(found.p999_ms.value / 2, rel=0.01)
    full = predict(Scenario(kind=ScenarioKind.OFFLINE, percentile=99.0, full=True), service())
    assert full.p999_ms.value == pytest.approx(found.p999_ms.value * 600 / 3, rel=0.01)


def test_a_server_without_a_rate_has_the_highest_one_within_the_bound() -> None:
    found = predict(SERVER, service())
    assert 0 < found.per_second.low < found.per_second.value < found.per_second.high < 102.0
    assert found.valid
    assert found.p99_ms.value <= 40.0
    at_rate = predict(replace(SERVER, rate=0.97 * found.per_second.low), service())
    above = predict(replace(SERVER, rate=1.1 * found.per_second.high), service())
    assert (at_rate.valid, above.valid) == (True, False)


def test_other_arrivals_make_the_highest_rate_less_certain() -> None:
    loadgens, others = predict(SERVER, service(doubt=0.0)).per_second, with_other_arrivals(SERVER, service(doubt=0.0))
    assert others.high - others.low > 2 * (loadgens.high - loadgens.low)
    assert others.low < loadgens.value < others.high


def test_a_higher_rate_has_higher_percentiles() -> None:
    slow, fast = (predict(replace(SERVER, rate=rate), service()) for rate in (20.0, 80.0))
    assert slow.p50_ms.value <= fast.p50_ms.value
    assert slow.p90_ms.value < fast.p90_ms.value
    assert slow.p99_ms.value < fast.p99_ms.value
    assert slow.p999_ms.value < fast.p999_ms.value
    assert slow.per_second.value == pytest.approx(20.0, rel=0.03)


def test_a_wider_interval_of_the_estimate_gives_wider_ranges() -> None:
    narrow, wide = (predict(SERVER, service(doubt)).per_second for doubt in (0.0, 0.2))
    assert wide.high - wide.low > 2 * (narrow.high - narrow.low)


def test_more_instances_serve_more() -> None:
    one, two = (predict(replace(SERVER, instances=it), service()).per_second.value for it in (1, 2))
    assert two > 2 * one
    assert two <= 202.0


def test_batches_serve_more_where_they_are_cheap() -> None:
    scenario = replace(SERVER, bound_ms=100.0)
    alone, batched = (
        predict(replace(scenario, batch_sizes=sizes), service(per_request=0.1)) for sizes in ((1,), (1, 2, 4, 8))
    )
    assert batched.per_second.value > 1.5 * alone.per_second.value
    assert batched.batch_size == 8


def test_a_bound_that_no_request_meets_gets_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"^bound 9 ms: a request that never waits takes 10 ms on average"):
        predict(replace(SERVER, bound_ms=9.0), service())


def test_a_percentile_that_needs_too_many_queries_gets_one_line() -> None:
    with pytest.raises(ScenarioError, match=r"^percentile 99.99: a test needs 66,\d+ requests") as caught:
        predict(replace(SERVER, percentile=99.99), service())
    assert "\n" not in str(caught.value)
    assert predict(replace(SERVER, percentile=99.9), service()).per_second.value > 0


def test_full_tests_have_more_queries() -> None:
    fewest, full = (predict(replace(SERVER, rate=30.0, full=it), service()) for it in (False, True))
    assert full.queries / 20 > 662
    # Percentiles of longer tests vary less.
    assert full.p99_ms.high - full.p99_ms.low < fewest.p99_ms.high - fewest.p99_ms.low


def test_the_curve_rises_from_the_service_time() -> None:
    points = load_curve(SERVER, service(), points=10)
    rates, percentiles = [it.rate for it in points], [it.latency_ms.value for it in points]
    assert len(points) == 10
    assert rates == sorted(rates)
    assert rates[-1] == pytest.approx(100.0, rel=0.02)
    assert percentiles == sorted(percentiles)
    assert 9.0 < percentiles[0] < 25.0
    assert percentiles[-1] > 40.0


def test_batch_sizes_are_powers_of_two_and_the_largest() -> None:
    assert [batch_sizes_up_to(it) for it in (1, 2, 6, 8)] == [(1,), (1, 2), (1, 2, 4, 6), (1, 2, 4, 8)]
