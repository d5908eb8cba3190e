"""The search for the highest rate, by tests that pass up to a known rate."""

from collections.abc import Sequence
from dataclasses import replace

import pytest

from dlbricks_tui.scenarios.load_tests import LoadTests
from dlbricks_tui.scenarios.loadgen import Latencies, LoadgenVerdict, LoadSettings
from dlbricks_tui.scenarios.progress import LoadFinding, Searched
from dlbricks_tui.scenarios.rate_search import RateSearch
from dlbricks_tui.scenarios.scenario import ScenarioError, ScenarioKind, percentile_of

SETTINGS = LoadSettings(
    kind=ScenarioKind.SERVER, percentile=99.0, queries=662, seconds=0.0, expected_ms=20.0, bound_ms=100.0
)


class KnownServer(LoadTests):
    """Tests of a server that keeps its bound up to a rate; LoadGen's verdict is positive up to a lower one."""

    def __init__(self, highest: float, valid: float, inferences_ms: Sequence[float] = (20.0,)) -> None:
        self.highest, self.valid, self.inferences_ms = highest, valid, inferences_ms
        self.searched: list[LoadSettings] = []
        self.confirmed: list[float] = []

    def search(self, settings: LoadSettings, batch_size: int) -> Searched:
        self.searched.append(settings)
        rate = settings.rate or 0.0
        return Searched(self.highest if rate <= self.highest else None, self.inferences_ms)

    def run(self, settings: LoadSettings, batch_size: int) -> LoadFinding:
        rate = settings.rate or 0.0
        self.confirmed.append(rate)
        verdict = LoadgenVerdict(rate <= self.valid, (), 0)
        return LoadFinding("2026-11-27T08:00:00+00:00", settings, batch_size, verdict, Latencies([1], [0], 1.0))


def find(tests: KnownServer, expected: float | None, settings: LoadSettings = SETTINGS) -> LoadFinding:
    return RateSearch(tests, settings, 1, 50.0, 0.2).find(expected)


def test_a_search_begins_a_little_below_the_expected_rate() -> None:
    tests = KnownServer(35.0, 35.0)
    found = find(tests, 34.0)
    assert [it.rate for it in tests.searched] == [pytest.approx(0.9 * 34.0)]
    assert tests.confirmed == pytest.approx([35.0, 36.05])
    assert found.rate == 35.0


def test_a_first_rate_that_fails_is_lowered_until_one_passes() -> None:
    tests = KnownServer(12.0, 12.0)
    find(tests, 34.0)
    assert [it.rate for it in tests.searched] == pytest.approx([30.6, 21.42, 14.994, 10.4958])


def test_a_rate_that_loadgen_does_not_call_valid_is_lowered_until_it_does() -> None:
    tests = KnownServer(35.0, 33.5)
    found = find(tests, 34.0)
    assert tests.confirmed == pytest.approx([35.0, 33.95, 32.9315])
    assert found.verdict.valid


def test_a_valid_rate_is_raised_until_one_is_not_valid() -> None:
    # A disturbed test has ended the search too early.
    tests = KnownServer(35.0, 37.5)
    found = find(tests, 34.0)
    assert tests.confirmed == pytest.approx([35.0, 36.05, 37.1315, 38.245445])
    assert found.rate == tests.confirmed[2]
    assert found.verdict.valid


def test_a_server_that_is_never_valid_shows_the_last_verdict() -> None:
    tests = KnownServer(35.0, 1.0)
    found = find(tests, 34.0)
    assert len(tests.confirmed) == 11
    assert not found.verdict.valid
    assert found.rate == tests.confirmed[-1]


@pytest.mark.parametrize("expected", [None, 1e9])
def test_no_rate_is_tried_that_the_server_cannot_answer_in_the_long_run(expected: float | None) -> None:
    tests = KnownServer(35.0, 35.0)
    find(tests, expected)
    assert (tests.searched[0].rate or 0.0) < 50.0


def test_an_impossible_bound_is_refused_with_its_reason() -> None:
    with pytest.raises(
        ScenarioError, match=r"bound 10 ms: a request that never waits takes 20\.2 ms, so no rate keeps 99 %"
    ):
        find(KnownServer(0.0, 0.0), 34.0, replace(SETTINGS, bound_ms=10.0))
    # The median inference is short enough, and more than one in a hundred is not.
    slow = KnownServer(0.0, 0.0, [20.0] * 95 + [120.0] * 5)
    with pytest.raises(ScenarioError, match="a request that never waits takes 120 ms"):
        find(slow, 34.0)
    assert len(slow.searched) == 1


def test_a_search_ends_if_no_rate_passes() -> None:
    tests = KnownServer(0.0, 0.0)
    with pytest.raises(ScenarioError, match=r"bound 100 ms: no rate keeps .* not even 2\.52 per second"):
        find(tests, 34.0)


@pytest.mark.parametrize(("queries", "allowed"), [(662, 1), (1_307, 5)])
def test_a_rate_passes_the_search_if_the_verdict_would_be_positive(queries: int, allowed: int) -> None:
    tests = KnownServer(35.0, 35.0)
    find(tests, 34.0, replace(SETTINGS, queries=queries))
    search = tests.searched[0].search
    assert search is not None
    for slow, passes in ((allowed, True), (allowed + 1, False)):
        latencies_ms = [20.0] * (queries - slow) + [120.0] * slow
        assert (percentile_of(latencies_ms, search.percentile) <= 100.0) is passes


def test_a_test_is_so_long_that_a_queue_can_grow_beyond_the_bound() -> None:
    tests = KnownServer(35.0, 35.0)
    find(tests, 34.0, replace(SETTINGS, bound_ms=60_000.0))
    assert tests.searched[0].seconds == 600.0


@pytest.mark.parametrize(("expected", "decimals"), [(49.0, 0), (34.0, 1), (3.0, 2)])
def test_a_search_is_as_exact_as_a_few_percent(expected: float, decimals: int) -> None:
    tests = KnownServer(50.0, 50.0)
    find(tests, expected)
    search = tests.searched[0].search
    assert search is not None and search.decimals == decimals
