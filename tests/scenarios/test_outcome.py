import pytest

from dlbricks_tui.scenarios.outcome import measured_load, percentile_of
from dlbricks_tui.store.packed_latencies import pack_latencies
from tests.store.samples import load_test


@pytest.mark.parametrize(("percentile", "found"), [(50.0, 6), (90.0, 10), (99.0, 10), (0.1, 1)])
def test_percentiles_are_those_of_loadgen(percentile: float, found: int) -> None:
    assert percentile_of(range(1, 11), percentile) == found


def test_the_outcome_of_a_load_test_has_percentiles_to_the_nanosecond() -> None:
    latencies_ns = [20_000_000 - number for number in range(1000)]
    found = measured_load(load_test(queries=1000, latencies=pack_latencies(latencies_ns)))
    assert (found.p50_ms, found.p99_ms, found.p999_ms) == (19.999501, 19.999991, 20.0)
    assert (found.per_second, found.valid, found.queries) == (40.0, True, 1000)
