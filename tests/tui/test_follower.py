import threading
from dataclasses import replace

import pytest

from dlbricks_tui.runs.errors import RunError
from dlbricks_tui.runs.run_folder import RunFolder, State
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.run import follower as following
from dlbricks_tui.tui.run import updates as watching
from dlbricks_tui.tui.run.follower import Follower
from dlbricks_tui.tui.run.snapshot import RunSnapshot
from dlbricks_tui.tui.run.updates import Listener, RunWatch
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


class Ears:
    """Remembers all that a watch tells."""

    def __init__(self) -> None:
        self.seen: list[RunSnapshot] = []
        self.growths = 0
        self.errors: list[BaseException] = []

    @property
    def listener(self) -> Listener:
        return Listener(self.seen.append, self._grew, self.errors.append)

    def _grew(self) -> None:
        self.growths += 1


def test_the_first_look_shows_all_that_has_happened_and_the_next_one_nothing(new: DataFolder) -> None:
    follower = Follower(put_run(new, in_the_middle()))
    run = follower.look()
    assert run is not None
    assert (run.run, run.models, run.state) == (RUN, MODELS, State.RUNNING)
    assert len(run.bricks) == 16
    assert follower.look() is None


def test_a_run_that_has_told_nothing_yet_is_there_with_its_models(new: DataFolder) -> None:
    run = Follower(put_run(new, [], State.STARTING)).look()
    assert run is not None
    assert (run.models, run.state, run.share) == (MODELS, State.STARTING, None)


def test_that_a_run_is_asked_to_stand_still_is_seen_before_it_does(new: DataFolder) -> None:
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


def test_a_killed_run_is_noticed_though_it_tells_nobody(new: DataFolder) -> None:
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


def test_a_run_that_another_process_takes_up_goes_on_under_the_eyes_of_who_follows_it(new: DataFolder) -> None:
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


def test_a_run_that_is_under_way_is_found_at_the_start(new: DataFolder) -> None:
    put_run(new, [], State.FINISHED, run="20261121-070000-0001")
    put_run(new, in_the_middle())
    ears = Ears()
    RunWatch(new, ears.listener).look()
    assert [run.run for run in ears.seen] == [RUN]


def test_a_run_that_was_interrupted_is_offered_at_the_start_and_a_finished_one_is_not(new: DataFolder) -> None:
    put_run(new, in_the_middle(), process=NOBODY)
    ears = Ears()
    RunWatch(new, ears.listener).look()
    assert [run.state for run in ears.seen] == [State.INTERRUPTED]
    folder = RunFolder(new.runs / RUN)
    folder.set_state(replace(folder.state(), state=State.FINISHED))
    RunWatch(new, ears.listener).look()
    assert len(ears.seen) == 1


def test_a_run_that_is_started_elsewhere_is_found_once_there_is_none_to_follow(new: DataFolder) -> None:
    ears = Ears()
    watch = RunWatch(new, ears.listener)
    watch.look()
    assert ears.seen == []
    first = put_run(new, in_the_middle())
    watch.look()
    put_run(new, [started()], run="20261121-090000-0002")
    watch.look()
    assert {run.run for run in ears.seen} == {RUN}
    end(first)
    watch.look()
    watch.look()
    assert ears.seen[-1].run == "20261121-090000-0002"


def test_who_asks_for_a_run_sees_it_whatever_else_is_under_way(new: DataFolder) -> None:
    put_run(new, in_the_middle())
    old = put_run(new, [started()], State.RUNNING, run="20261120-090000-0002")
    end(old)
    ears = Ears()
    watch = RunWatch(new, ears.listener)
    watch.look()
    watch.follow(old.run)
    watch.look()
    watch.follow(RUN)
    watch.look()
    watch.follow(RUN)
    watch.look()
    assert [run.run for run in ears.seen] == [RUN, old.run, RUN, RUN]


def test_who_asks_for_a_run_that_has_ended_keeps_it_until_another_one_begins(new: DataFolder) -> None:
    put_run(new, in_the_middle())
    old = put_run(new, [started()], run="20261120-090000-0002")
    end(old)
    ears = Ears()
    watch = RunWatch(new, ears.listener)
    watch.look()
    watch.follow(old.run)
    for _ in range(3):
        watch.look()
    assert ears.seen[-1].run == old.run
    put_run(new, [started()], run="20261121-090000-0003")
    watch.look()
    assert ears.seen[-1].run == "20261121-090000-0003"


def test_growing_results_are_told_of_at_most_once_a_second_and_the_last_ones_too(new: DataFolder) -> None:
    folder = put_run(new, [started(), planned(), *(loaded(program) for program in range(9))])
    ears, clock = Ears(), Clock()
    watch = RunWatch(new, ears.listener, clock)
    for program in range(8):
        tell(folder, measured(program))
        watch.look()
        clock.now += 0.25
    assert ears.growths == 2
    clock.now += 1
    watch.look()
    assert ears.growths == 3
    clock.now += 10
    watch.look()
    assert ears.growths == 3


def test_a_run_that_had_nothing_to_measure_when_its_turn_came_is_told_of_as_others_have_stored_that(
    new: DataFolder,
) -> None:
    folder = put_run(new, [started()])
    ears, clock = Ears(), Clock()
    watch = RunWatch(new, ears.listener, clock)
    watch.look()
    assert ears.growths == 0
    end(folder)
    for _ in range(9):
        clock.now += 1
        watch.look()
    assert ears.growths == 1


def test_a_run_that_is_not_there_is_an_error_in_words(new: DataFolder) -> None:
    watch = RunWatch(new, Ears().listener)
    watch.follow("nosuch")
    with pytest.raises(RunError, match="nosuch"):
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
def test_who_asks_for_it_is_told_more_seldom_while_a_run_goes_on(poll_factor: float, new: DataFolder) -> None:
    put_run(new, in_the_middle())
    wake = Impatience()
    ears = Ears()
    watch = RunWatch(new, ears.listener._replace(seen=lambda _: watch.close()), poll_factor=poll_factor)
    watch._wake = wake
    watch._watch()
    assert wake.waited == [poll_factor * watching.SECONDS_BETWEEN_LOOKS] and not ears.errors
