"""Replays in the terminal UI: events of the past in the view of a live run, marked as such."""

from dataclasses import replace

import pytest

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.tui.messages import ReplayWanted
from dlbricks_tui.tui.run.follower import Follower, ReplayChange, ReplayFollower
from dlbricks_tui.tui.run.screen import RunScreen
from dlbricks_tui.tui.run.snapshot import ReplayPace, RunSnapshot
from dlbricks_tui.tui.run.updates import Replayed, RunWatch
from tests.runs.live_runs import RUN, ended, in_the_middle, put_run
from tests.tui.application import NARROW, app_on, press, running
from tests.tui.test_follower import Clock, Posted
from tests.tui.test_run_screens import shows

WHOLE_RUN = [*in_the_middle(), ended()]


def last_look(follower: ReplayFollower, clock: Clock, seconds: float) -> RunSnapshot:
    clock.now += seconds
    found = follower.look()
    assert found is not None
    return found


@pytest.mark.parametrize("speed", [0.5, 1, 7, 4000])
def test_at_any_speed_the_last_snapshot_is_that_of_the_run(speed: float, new: DataFolder) -> None:
    folder, clock = put_run(new, WHOLE_RUN, State.FINISHED), Clock()
    live = Follower(folder).look()
    follower = ReplayFollower(folder, speed, clock)
    seen = [follower.look()]
    while follower.active:
        clock.now += 1.3
        seen.append(follower.look())
    last = next(it for it in reversed(seen) if it is not None)
    assert last.replay == ReplayPace(speed, ended=True)
    assert replace(last, replay=None) == live


def test_a_replay_is_no_measurement_and_cannot_be_resumed(new: DataFolder) -> None:
    folder, clock = put_run(new, in_the_middle(), State.INTERRUPTED), Clock()
    run = last_look(ReplayFollower(folder, 1.0, clock), clock, 10)
    assert run.active and run.state is State.RUNNING
    assert not run.measures and not run.can_be_resumed


def test_keys_change_the_pace(new: DataFolder) -> None:
    folder, clock = put_run(new, WHOLE_RUN, State.FINISHED), Clock()
    follower = ReplayFollower(folder, 2.0, clock)
    follower.change(ReplayChange.FASTER)
    assert last_look(follower, clock, 1).replay == ReplayPace(4.0)
    assert follower.look() is None, "nothing has changed"
    follower.change(ReplayChange.PAUSE)
    held = last_look(follower, clock, 1)
    assert held.replay == ReplayPace(4.0, paused=True)
    clock.now += 1000
    assert follower.look() is None
    follower.change(ReplayChange.PAUSE)
    follower.change(ReplayChange.SLOWER)
    assert last_look(follower, clock, 0).replay == ReplayPace(2.0)
    follower.change(ReplayChange.STOP)
    stopped = last_look(follower, clock, 1000)
    assert stopped.replay == ReplayPace(2.0, ended=True) and stopped.counts == held.counts
    assert not follower.active


async def test_a_run_is_replayed_from_the_list_of_runs_without_a_trace_of_it(measured: DataFolder) -> None:
    # Long enough that no replay of it ends by itself.
    folder = put_run(measured, [*in_the_middle(), ended(seconds=36_000)], State.FINISHED)
    without_events = put_run(measured, [], State.INTERRUPTED, run="20261120-080000-0001")
    before = folder.events_file.read_bytes(), folder.state(), sorted(measured.store.iterdir())
    async with running(app_on(measured), NARROW) as pilot:
        pilot.app.post_message(ReplayWanted(without_events.run))
        await shows(pilot, "has no events to replay")
        await press(pilot, "escape")
        pilot.app.post_message(ReplayWanted(RUN))
        # The bar says that it is a replay.
        await shows(pilot, " replay 4x ")
        await press(pilot, "J", "w")
        assert isinstance(pilot.app.screen, RunScreen)
        await shows(pilot, "replay 4x")
        await press(pilot, "plus")
        await shows(pilot, "replay 8x")
        await press(pilot, "minus", "p")
        await shows(pilot, "replay paused")
        await press(pilot, "x")
        await shows(pilot, "replay ended")
        await press(pilot, "escape")
    assert (folder.events_file.read_bytes(), folder.state(), sorted(measured.store.iterdir())) == before


def test_keys_pressed_before_a_replay_begins_apply_to_it(new: DataFolder) -> None:
    put_run(new, WHOLE_RUN, State.FINISHED)
    posted = Posted()
    watch = RunWatch(new, posted.append)
    watch.replay(Replayed(RUN, 4.0))
    watch.look()
    watch.replay(Replayed(RUN, 16.0))
    watch.change_replay(ReplayChange.FASTER)
    watch.look()
    assert posted.seen[-1].replay == ReplayPace(32.0)


def test_the_end_of_a_replay_stays_in_view_beside_an_interrupted_run(new: DataFolder) -> None:
    put_run(new, WHOLE_RUN, State.FINISHED)
    put_run(new, in_the_middle(), State.INTERRUPTED, run="20261127-120000-ffff")
    posted = Posted()
    watch = RunWatch(new, posted.append)
    watch.replay(Replayed(RUN, begin=1000.0))
    for _ in range(3):
        watch.look()
    assert {it.run for it in posted.seen} == {RUN} and not posted.seen[-1].active
