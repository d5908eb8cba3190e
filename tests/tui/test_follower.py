import threading
from dataclasses import replace

import pytest
from textual.message import Message

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.load import HostLoad, LoadMeter
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.folder import RunFolder, State
from dlbricks_tui.tui.messages import Failed, HostLoadSeen, ResultsStored, RunSeen
from dlbricks_tui.tui.run import follower as following
from dlbricks_tui.tui.run import updates as watching
from dlbricks_tui.tui.run.follower import Follower
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.run.updates import RunWatch
from tests.runs.live_runs import (
    MODELS,
    NOBODY,
    RUN,
    end,
    in_the_middle,
    loaded,
    measured,
    planned,
    put_run,
    round_done,
    started,
    tell,
)


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class Posted(list[Message]):
    """The messages that a watch has posted."""

    @property
    def seen(self) -> list[RunSnapshot]:
        return [each.run for each in self if isinstance(each, RunSeen)]

    @property
    def growths(self) -> int:
        return sum(isinstance(each, ResultsStored) for each in self)

    @property
    def errors(self) -> list[BaseException]:
        return [each.error for each in self if isinstance(each, Failed)]


def test_the_first_look_returns_all_events_and_the_second_none(new: DataFolder) -> None:
    follower = Follower(put_run(new, in_the_middle()))
    run = follower.look()
    assert run is not None
    assert (run.run, run.models, run.state) == (RUN, MODELS, State.RUNNING)
    assert len(run.bricks) == 16
    assert follower.look() is None


def test_a_run_without_events_is_shown_with_its_models(new: DataFolder) -> None:
    run = Follower(put_run(new, [], State.STARTING)).look()
    assert run is not None
    assert (run.models, run.state, run.share) == (MODELS, State.STARTING, None)


def test_a_requested_pause_is_shown_before_the_run_pauses(new: DataFolder) -> None:
    folder = put_run(new, [started(), planned(), round_done([], 1)])
    follower = Follower(folder)
    follower.look()
    folder.pause()
    run = follower.look()
    assert run is not None
    assert (run.pausing, run.state) == (True, State.RUNNING)
    folder.unpause()
    run = follower.look()
    assert run is not None
    assert not run.pausing


def test_the_time_left_counts_down_while_the_run_is_silent(new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(following, "COUNTDOWN_AFTER_SECONDS", 2.0)
    clock = Clock()
    folder = put_run(new, [started(), planned(), round_done([], 1, seconds_left=40.0)])
    follower = Follower(folder, clock)
    said = [follower.look()]
    for _ in range(4):
        clock.now += 1.0
        said.append(follower.look())
    assert [run and run.seconds_left for run in said] == [40.0, None, 38.0, 37.0, 36.0]
    tell(folder, round_done([], 2, seconds_left=50.0))
    run = follower.look()
    assert run is not None
    assert run.seconds_left == 50.0
    clock.now += 1000
    run = follower.look()
    assert run is not None
    assert run.seconds_left == 0.0
    assert follower.look() is None


def test_a_killed_run_is_noticed_without_an_event(new: DataFolder) -> None:
    clock = Clock()
    folder = put_run(new, in_the_middle())
    follower = Follower(folder, clock)
    follower.look()
    folder.set_state(replace(folder.state(), process=NOBODY))
    assert follower.look() is None
    clock.now += 2
    run = follower.look()
    assert run is not None
    assert (run.state, run.active, run.can_be_resumed) == (State.INTERRUPTED, False, True)
    assert "killed" in run.message
    assert follower.look() is None


def test_a_run_resumed_by_another_process_is_still_followed(new: DataFolder) -> None:
    clock = Clock()
    folder = put_run(new, in_the_middle(), process=NOBODY)
    follower = Follower(folder, clock)
    run = follower.look()
    assert run is not None
    assert run.state is State.INTERRUPTED
    put_run(DataFolder(new.path / "other"), [])
    folder.set_state(replace(RunFolder(new.path / "other" / "runs" / RUN).state(), state=State.RUNNING))
    tell(folder, started(50), planned(51), round_done([], 60))
    clock.now += 2
    run = follower.look()
    assert run is not None
    assert (run.state, run.bricks) == (State.RUNNING, ())


def test_a_running_run_is_found_at_the_start(new: DataFolder) -> None:
    put_run(new, [], State.FINISHED, run="20261121-070000-0001")
    put_run(new, in_the_middle())
    posted = Posted()
    RunWatch(new, posted.append).look()
    assert [run.run for run in posted.seen] == [RUN]


def test_an_interrupted_run_is_offered_at_the_start_and_a_finished_one_is_not(new: DataFolder) -> None:
    put_run(new, in_the_middle(), process=NOBODY)
    posted = Posted()
    RunWatch(new, posted.append).look()
    assert [(run.state, run.interrupted) for run in posted.seen] == [(State.INTERRUPTED, 1)]
    put_run(new, in_the_middle(), process=NOBODY, run="20261119-080000-0001")
    RunWatch(new, posted.append).look()
    assert posted.seen[1].interrupted == 2
    folder = RunFolder(new.runs / RUN)
    folder.set_state(replace(folder.state(), state=State.FINISHED))
    RunWatch(new, posted.append).look()
    assert len(posted.seen) == 2


def test_a_run_started_elsewhere_is_followed_when_no_other_is(new: DataFolder) -> None:
    posted = Posted()
    watch = RunWatch(new, posted.append)
    watch.look()
    assert posted.seen == []
    first = put_run(new, in_the_middle())
    watch.look()
    put_run(new, [started()], run="20261121-090000-0002")
    watch.look()
    assert {run.run for run in posted.seen} == {RUN}
    end(first)
    watch.look()
    watch.look()
    assert posted.seen[-1].run == "20261121-090000-0002"


def test_a_requested_run_is_followed_while_others_are_running(new: DataFolder) -> None:
    put_run(new, in_the_middle())
    old = put_run(new, [started()], State.RUNNING, run="20261120-090000-0002")
    end(old)
    posted = Posted()
    watch = RunWatch(new, posted.append)
    watch.look()
    watch.follow(old.run)
    watch.look()
    watch.follow(RUN)
    watch.look()
    watch.follow(RUN)
    watch.look()
    assert [run.run for run in posted.seen] == [RUN, old.run, RUN, RUN]


def test_a_requested_ended_run_is_followed_until_another_one_starts(new: DataFolder) -> None:
    put_run(new, in_the_middle())
    old = put_run(new, [started()], run="20261120-090000-0002")
    end(old)
    posted = Posted()
    watch = RunWatch(new, posted.append)
    watch.look()
    watch.follow(old.run)
    for _ in range(3):
        watch.look()
    assert posted.seen[-1].run == old.run
    put_run(new, [started()], run="20261121-090000-0003")
    watch.look()
    assert posted.seen[-1].run == "20261121-090000-0003"


def test_new_results_are_reported_at_most_once_a_second_and_at_the_end(new: DataFolder) -> None:
    folder = put_run(new, [started(), planned(), *(loaded(program) for program in range(9))])
    posted, clock = Posted(), Clock()
    watch = RunWatch(new, posted.append, clock)
    for program in range(8):
        tell(folder, measured(program))
        watch.look()
        clock.now += 0.25
    assert posted.growths == 2
    clock.now += 1
    watch.look()
    assert posted.growths == 3
    clock.now += 10
    watch.look()
    assert posted.growths == 3


def test_a_run_whose_bricks_were_stored_by_others_reports_new_results(
    new: DataFolder,
) -> None:
    folder = put_run(new, [started()])
    posted, clock = Posted(), Clock()
    watch = RunWatch(new, posted.append, clock)
    watch.look()
    assert posted.growths == 0
    end(folder)
    for _ in range(9):
        clock.now += 1
        watch.look()
    assert posted.growths == 1


# Before the fixture of all tests that replaces it.
LOOK_AT_LOAD = RunWatch._look_at_load


class BusyHost(LoadMeter):
    """A host whose load a test sets."""

    load: HostLoad | None = None

    def look(self) -> HostLoad | None:
        return self.load


def test_the_load_of_the_host_is_told_with_news_and_while_a_run_is_silent(new: DataFolder) -> None:
    folder = put_run(new, in_the_middle())
    posted, clock, host = Posted(), Clock(), BusyHost()
    watch = RunWatch(new, posted.append, clock, meter=host)
    watch.look()
    host.load = HostLoad((1.0, 0.5), (0.0, 0.0))
    watch.look()
    assert [run.load for run in posted.seen] == [None]
    clock.now += watching.SECONDS_BETWEEN_LOADS
    watch.look()
    watch.look()
    assert [run.load for run in posted.seen] == [None, host.load]
    end(folder)
    clock.now += watching.SECONDS_BETWEEN_LOADS
    watch.look()
    clock.now += watching.SECONDS_BETWEEN_LOADS
    watch.look()
    assert [run.load for run in posted.seen] == [None, host.load, None]


def test_without_a_run_the_load_of_the_host_is_told_where_its_words_change(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunWatch, "_look_at_load", LOOK_AT_LOAD)
    posted, clock, host = Posted(), Clock(), BusyHost()
    watch = RunWatch(new, posted.append, clock, meter=host)
    for busy in (0.0, 0.01, 0.9, 0.8):
        host.load = HostLoad((busy, 0.0), (0.0, 0.0))
        watch.look()
        watch.look()
        clock.now += watching.SECONDS_BETWEEN_IDLE_LOADS
    told = [it.words for it in posted if isinstance(it, HostLoadSeen)]
    assert told == ["host quiet", "host busy: 1 of 2 cores"]


def test_a_missing_run_is_reported_in_words(new: DataFolder) -> None:
    watch = RunWatch(new, Posted().append)
    watch.follow("nosuch")
    with pytest.raises(JobError, match="nosuch"):
        watch.look()


class Impatience(threading.Event):
    """Remembers how long a watch wants to wait, and ends it instead."""

    def __init__(self) -> None:
        super().__init__()
        self.waited: list[float | None] = []

    def wait(self, timeout: float | None = None) -> bool:
        self.waited.append(timeout)
        return True


@pytest.mark.parametrize("poll_factor", [1.0, 4.0])
def test_the_poll_factor_stretches_the_time_between_looks(poll_factor: float, new: DataFolder) -> None:
    put_run(new, in_the_middle())
    wake = Impatience()
    posted = Posted()

    def close_at_first(message: Message) -> None:
        posted.append(message)
        watch.close()

    watch = RunWatch(new, close_at_first, poll_factor=poll_factor)
    watch._wake = wake
    watch._watch()
    assert wake.waited == [poll_factor * watching.SECONDS_BETWEEN_LOOKS] and not posted.errors
