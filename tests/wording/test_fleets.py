"""Fleet runs in words."""

from dlbricks_tui.fleet.events import HostEstimate, HostState
from dlbricks_tui.fleet.progress import FleetProgress, HostRow
from dlbricks_tui.wording.fleets import (
    dollars,
    fastest_sentence,
    fleet_line,
    host_line,
    latency_on,
    order_in_words,
    settled_line,
)


def estimate(ms: float | None, *, predicted: int = 0, missing: int = 0, price: float | None = None) -> HostEstimate:
    return HostEstimate(
        host="a",
        model="m",
        runtime="r",
        sequential_ms=ms,
        low_ms=ms,
        high_ms=ms,
        measured_layers=1,
        predicted_layers=predicted,
        missing_layers=missing,
        per_second=None,
        dollars_per_million=price,
    )


def test_a_latency_is_marked_where_it_is_predicted_or_lacks_layers() -> None:
    found = [latency_on(it) for it in (estimate(2.0), estimate(2.0, predicted=1), estimate(2.0, missing=1))]
    assert found == ["2.000", "~2.000", "…2.000"]
    assert latency_on(estimate(None)) == "-"


def test_a_price_is_in_dollars_and_a_dash_where_it_is_unknown() -> None:
    assert [dollars(estimate(2.0, price=1234.5)), dollars(estimate(2.0))] == ["$1,234.50", "-"]


def test_an_order_names_the_fastest_first_and_equally_fast_hosts_together() -> None:
    assert order_in_words((("b",), ("a", "c"))) == "b < a = c"
    assert settled_line([True, False]) == "1 of 2 orders settled"


def test_hosts_are_fastest_so_far_until_all_orders_are_settled() -> None:
    assert fastest_sentence([["a"], ["a"]], settled=True) == "a is fastest for every model"
    assert fastest_sentence([["a"], ["a"]], settled=False) == "a is fastest for every model so far"
    assert fastest_sentence([["a", "b"], []], settled=True) == "a and b are fastest for every model so far"
    assert fastest_sentence([["a"], ["b"]], settled=False).startswith("The fastest host so far differs: ")


def test_a_host_has_time_left_only_while_it_measures() -> None:
    row = HostRow("a", state=HostState.MEASURING, bricks=3, of=1200, failed=2, seconds_left=100.0)
    assert host_line(row) == "a measuring, 3 of 1,200 bricks, 2 failed, 2 min left"
    assert host_line(HostRow("a", state=HostState.IDLE, bricks=3, of=4, seconds_left=100.0)) == "a idle, 3 of 4 bricks"


def test_a_line_of_many_hosts_counts_the_others() -> None:
    progress = FleetProgress()
    assert fleet_line(progress) == "waiting for hosts"
    progress.hosts = {name: HostRow(name) for name in "abcdef"}
    assert fleet_line(progress).endswith("d connecting; and 2 more hosts")
