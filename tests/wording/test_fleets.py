"""Fleet runs in words."""

from dlbricks_tui.fleet.request import FleetHostState, FleetProgress, HostBrickFailed, HostChanged, HostRow
from dlbricks_tui.runs.events import ModelLeftOut
from dlbricks_tui.wording.fleets import fleet_line, host_line, note_line, settled_line


def test_the_orders_that_are_settled_are_counted() -> None:
    assert settled_line([True, False]) == "the order of hosts is sure for 1 of 2 models"


def test_a_host_has_time_left_only_while_it_measures() -> None:
    row = HostRow("a", state=FleetHostState.MEASURING, bricks=3, of=1200, failed=2, seconds_left=100.0)
    assert host_line(row) == "a measuring, 3 of 1,200 bricks, 2 failed, 2 min left"
    assert (
        host_line(HostRow("a", state=FleetHostState.IDLE, bricks=3, of=4, seconds_left=100.0))
        == "a idle, 3 of 4 bricks"
    )


def test_a_line_of_many_hosts_counts_the_others() -> None:
    progress = FleetProgress()
    assert fleet_line(progress) == "waiting for hosts"
    progress.hosts = {name: HostRow(name) for name in "abcdef"}
    assert fleet_line(progress).endswith("d connecting; and 2 more hosts")
    progress.hosts = {name: HostRow(name) for name in "abcd"}
    assert fleet_line(progress).endswith("; d connecting")


def test_what_a_user_should_know_has_a_line_and_attempts_to_reach_a_host_have_one_together() -> None:
    progress = FleetProgress()
    assert note_line(ModelLeftOut(model="m", reason="why"), progress) == "m is left out: why"
    failed = HostBrickFailed(host="a", brick="b", label="conv", reason="why")
    assert note_line(failed, progress) == "a: conv failed: why"
    lost = HostChanged(host="a", state="lost", message="no answer")
    assert note_line(lost, progress) == "a lost: no answer"
    for before, told in (
        (HostRow("a", state=FleetHostState.MEASURING, message="x"), "a lost: no answer"),
        (HostRow("a", state=FleetHostState.LOST), "a lost: no answer"),
        (HostRow("a", state=FleetHostState.LOST, message="x"), ""),
    ):
        progress.hosts = {"a": before}
        assert note_line(lost, progress) == told
    assert note_line(HostChanged(host="a", state="lost"), progress) == ""
    assert note_line(HostChanged(host="a", state="measuring", message="x"), progress) == ""
