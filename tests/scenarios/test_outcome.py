import pytest

from dlbricks_tui.scenarios.scenario import best_of, measured_load, percentile_of
from dlbricks_tui.store.records import LoadTest
from dlbricks_tui.store.statistics import pack_latencies
from tests.store.samples import load_test


@pytest.mark.parametrize(("percentile", "found"), [(50.0, 6), (90.0, 10), (99.0, 10), (0.1, 1)])
def test_percentiles_are_those_of_loadgen(percentile: float, found: int) -> None:
    assert percentile_of(range(1, 11), percentile) == found


def test_the_outcome_of_a_load_test_has_percentiles_to_the_nanosecond() -> None:
    latencies_ns = [20_000_000 - number for number in range(1000)]
    found = measured_load(load_test(queries=1000, latencies=pack_latencies(latencies_ns)))
    assert (found.p50_ms, found.p99_ms, found.p999_ms) == (19.999501, 19.999991, 20.0)
    assert (found.per_second, found.valid, found.queries) == (40.0, True, 1000)


def test_the_newest_valid_test_answers_a_search() -> None:
    older, newest = load_test(rate=50.0), load_test(rate=38.04)
    assert best_of([load_test(rate=60.0, valid=False), newest, older]) is newest
    assert best_of([load_test(valid=False)]) is None
    assert best_of([]) is None


def test_a_given_rate_that_misses_its_bound_is_an_answer_too() -> None:
    missed = load_test(sought=False, bound_ms=1.0, valid=False)
    assert best_of([missed]) is missed
    # LoadGen has another reason here: the test was too short, or the clock was set.
    assert best_of([load_test(sought=False, valid=False)]) is None


def test_the_best_of_the_newest_batch_sizes_counts_offline() -> None:
    def tested(batch_size: int, per_second: float, valid: bool = True) -> LoadTest:
        asked = {"kind": "offline", "bound_ms": None, "rate": None, "sought": False}
        return load_test(**asked, batch_size=batch_size, per_second=per_second, valid=valid)

    found = best_of([tested(1, 162.8), tested(8, 300.0, valid=False), tested(4, 204.6), tested(4, 250.0)])
    assert found is not None
    assert (found.batch_size, found.per_second) == (4, 204.6)
