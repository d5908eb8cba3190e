"""The progress of `dlbricks fleet`, on a terminal and without one."""

import io

import pytest
from rich.console import Console

from dlbricks_tui.cli.fleet_progress import ShownFleet
from dlbricks_tui.fleet.request import FleetEnded, FleetHostState
from tests.fleet.sample_fleet import EVENTS, changed, progress


def test_without_a_terminal_progress_is_a_line_now_and_then(capsys: pytest.CaptureFixture[str]) -> None:
    now = [0.0]
    shown = ShownFleet(None, lambda: now[0])
    for event in EVENTS:
        shown.take(event)
    told = capsys.readouterr().err.splitlines()
    assert len([line for line in told if line.startswith("c7i")]) == 1, "ten seconds have not passed"
    now[0] = 10.0
    shown.take(progress("c7i", 50))
    (line,) = capsys.readouterr().err.splitlines()
    assert line.startswith("c7i measuring, 50 of 60 bricks, 1 failed, 42 s left; m8g probing, 12 of 60 bricks")


def test_the_last_line_has_what_the_table_has(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownFleet(None, lambda: 0.0)
    done = (
        progress("c7i", 60),
        changed("c7i", FleetHostState.DONE),
        FleetEnded(state="finished", message="", seconds=1.0),
    )
    for event in (*EVENTS, *done):
        shown.take(event)
    assert capsys.readouterr().err.splitlines()[-1].startswith("c7i done, 60 of 60 bricks, 1 failed; m8g probing, 12")


def test_on_a_terminal_each_host_has_a_row_and_repaints_are_rare() -> None:
    stream, now = io.StringIO(), [0.0]
    console = Console(file=stream, force_terminal=True, width=80, color_system=None)
    shown = ShownFleet(console, lambda: now[0])
    for event in EVENTS:
        shown.take(event)
    now[0] = 1.0
    shown.take(progress("c7i", 50))
    shown.close()
    rows = [line for line in stream.getvalue().splitlines() if "of 60" in line]
    assert ["c7i" in rows[-2], "50 of 60" in rows[-2], "m8g" in rows[-1]] == [True, True, True]
    assert "45 of 60" not in stream.getvalue(), "events between two pictures are not painted"
    assert "the order of hosts is sure for 1 of 2 models" in stream.getvalue()


def test_the_reason_why_a_host_cannot_be_reached_is_told_once(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownFleet(None, quiet=True)
    for seconds in (2, 4, 8):
        shown.take(changed("c7i", FleetHostState.CONNECTING, f"no SSH server answers; the next try is in {seconds} s"))
    shown.take(changed("c7i", FleetHostState.FAILED, "it did not join within 10 minutes"))
    assert capsys.readouterr().err.splitlines() == [
        "c7i connecting: no SSH server answers; the next try is in 2 s",
        "c7i failed: it did not join within 10 minutes",
    ]


def test_a_quiet_fleet_run_tells_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownFleet(None, quiet=True)
    for event in EVENTS:
        shown.take(event)
    assert capsys.readouterr().err == "old refused: it has dlbricks 0.1.0, and 0.2.0 is needed\n"
