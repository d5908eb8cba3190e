"""A run, or a replay of one, is followed by what it leaves in its folder."""

import threading
from dataclasses import replace

import pytest

from dlbricks_tui.api import followed_runs as following
from dlbricks_tui.api import run_watch as watching
from dlbricks_tui.api.followed_runs import (
    MOST_NOTES,
    MOST_WIDTHS,
    Follower,
    ReplayChange,
    ReplayFollower,
    ReplayPace,
    RunSnapshot,
    SnapshotBuilder,
)
from dlbricks_tui.api.run_watch import LoadSeen, Replayed, ResultsGrown, RunWatch
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.host.noise import HostLoad, LoadMeter
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import Event, Paused, Resumed
from dlbricks_tui.jobs.folder import RunFolder, State
from dlbricks_tui.measure.events import BatchRestarted, RoundRepeated
from dlbricks_tui.runs.events import BrickState, FailedBefore
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.messages import JobWanted
from dlbricks_tui.tui.run.screen import RunScreen, brick_row
from dlbricks_tui.wording.runs import Tone
from tests.runs.live_runs import (
    BRICKS,
    MODELS,
    NOBODY,
    RUN,
    at,
    end,
    ended,
    estimate,
    failed,
    in_the_middle,
    loaded,
    measured,
    planned,
    put_run,
    round_done,
    sample_ms,
    started,
    tell,
    unfinished,
)
from tests.store.samples import measurement
from tests.tui.application import NARROW, app_on, running
from tests.tui.driving import press, shows

OLDER, NEWER, NEWEST = "20261120-090000-0002", "20261121-090000-0002", "20261121-090000-0003"


class Clock:
    def __init__(self) -> None:
        self.now = 100.0

    def __call__(self) -> float:
        return self.now


class BusyHost(LoadMeter):
    """A host whose load a test sets."""

    load: HostLoad | None = None

    def look(self) -> HostLoad | None:
        return self.load


class Watched:
    """A watch of a data folder, its clock, and what it has told."""

    def __init__(self, data: DataFolder) -> None:
        self.data, self.clock, self.host = data, Clock(), BusyHost()
        self.told: list[object] = []
        self.watch = RunWatch(data, self.told.append, self.clock, meter=self.host)

    def look(self, seconds: float = 0.0) -> None:
        """Look after so many seconds."""
        self.clock.now += seconds
        self.watch.look()

    @property
    def seen(self) -> list[RunSnapshot]:
        return [each for each in self.told if isinstance(each, RunSnapshot)]

    @property
    def runs(self) -> list[str]:
        """The run of each snapshot."""
        return [run.run for run in self.seen]

    @property
    def growths(self) -> int:
        """The number of times that results were stored."""
        return sum(isinstance(each, ResultsGrown) for each in self.told)


@pytest.fixture
def watched(new: DataFolder) -> Watched:
    return Watched(new)


def look(follower: Follower | ReplayFollower) -> RunSnapshot:
    """Return what is new."""
    run = follower.look()
    assert run is not None
    return run


# Following a run


def test_the_first_look_returns_all_events_and_later_ones_what_is_new(new: DataFolder) -> None:
    folder = put_run(new, in_the_middle())
    follower = Follower(folder)
    run = look(follower)
    assert (run.run, run.models, run.state, len(run.bricks)) == (RUN, MODELS, State.RUNNING, 16)
    assert follower.look() is None
    # A pause is shown before the run pauses.
    folder.pause()
    run = look(follower)
    assert (run.pausing, run.state) == (True, State.RUNNING)
    folder.unpause()
    assert not look(follower).pausing
    run = look(Follower(put_run(new, [], State.STARTING, run=NEWER)))
    assert (run.models, run.state, run.share) == (MODELS, State.STARTING, None)


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
    assert look(follower).seconds_left == 50.0
    clock.now += 1000
    assert look(follower).seconds_left == 0.0
    assert follower.look() is None


def test_a_killed_run_is_noticed_without_an_event_and_followed_when_another_process_resumes_it(new: DataFolder) -> None:
    clock = Clock()
    folder = put_run(new, in_the_middle())
    follower = Follower(folder, clock)
    follower.look()
    folder.set_state(replace(folder.state(), process=NOBODY))
    assert follower.look() is None
    clock.now += 2
    run = look(follower)
    assert (run.state, run.active, run.can_be_resumed) == (State.INTERRUPTED, False, True)
    # Nothing is sampled any more.
    assert BrickState.SAMPLING not in {it.state for it in run.bricks}
    assert "killed" in run.message and follower.look() is None
    put_run(DataFolder(new.path / "other"), [])
    folder.set_state(replace(RunFolder(new.path / "other" / "runs" / RUN).state(), state=State.RUNNING))
    tell(folder, started(50), planned(51), round_done([], 60))
    clock.now += 2
    run = look(follower)
    assert (run.state, run.bricks) == (State.RUNNING, ())


def test_results_that_another_process_stores_or_deletes_are_told_at_most_once_a_second(watched: Watched) -> None:
    with ResultsDatabase(watched.data.store) as store:
        store.add(measurement())
        watched.look()
        assert watched.growths == 0
        other = measurement(2.0)
        store.add(other)
        watched.look(1.0)
        store.delete([other.uuid])
        watched.look(0.5)
        assert watched.growths == 1
        watched.look(0.5)
        watched.look(1.0)
        assert watched.growths == 2


# Which run is followed


def test_at_the_start_a_running_run_is_found_and_an_interrupted_one_but_no_finished_one(watched: Watched) -> None:
    put_run(watched.data, [], State.FINISHED, run="20261121-070000-0001")
    watched.look()
    assert watched.runs == []
    folder = put_run(watched.data, in_the_middle(), process=NOBODY)
    other = Watched(watched.data)
    other.look()
    assert [(run.run, run.state, run.interrupted) for run in other.seen] == [(RUN, State.INTERRUPTED, 1)]
    earlier = put_run(watched.data, in_the_middle(), process=NOBODY, run=OLDER)
    other = Watched(watched.data)
    other.look()
    assert other.seen[0].interrupted == 2
    earlier.set_state(replace(earlier.state(), state=State.FINISHED))
    folder.set_state(replace(folder.state(), state=State.FINISHED))
    last = Watched(watched.data)
    last.look()
    assert last.runs == []


def test_a_run_started_elsewhere_is_followed_when_no_other_is(watched: Watched) -> None:
    watched.look()
    assert watched.runs == []
    first = put_run(watched.data, in_the_middle())
    watched.look()
    put_run(watched.data, [started()], run=NEWER)
    watched.look()
    assert {*watched.runs} == {RUN}
    end(first)
    watched.look()
    watched.look()
    assert watched.runs[-1] == NEWER


def test_a_requested_run_is_followed_while_others_are_running_until_another_one_starts(watched: Watched) -> None:
    put_run(watched.data, in_the_middle())
    end(put_run(watched.data, [started()], run=OLDER))
    watched.look()
    for run in (OLDER, RUN, RUN, OLDER):
        watched.watch.follow(run)
        watched.look()
    watched.look()
    assert watched.runs == [RUN, OLDER, RUN, RUN, OLDER]
    put_run(watched.data, [started()], run=NEWEST)
    watched.look()
    assert watched.runs[-1] == NEWEST
    watched.watch.follow("nosuch")
    with pytest.raises(JobError, match="nosuch"):
        watched.look()


# What is told beside the run


# Before the fixture of all tests that replaces it.
LOOK_AT_LOAD = RunWatch._look_at_load


def test_the_load_of_the_host_is_told_with_news_and_while_a_run_is_silent(watched: Watched) -> None:
    folder, host = put_run(watched.data, in_the_middle()), watched.host
    watched.look()
    host.load = HostLoad((1.0, 0.5), (0.0, 0.0))
    watched.look()
    assert [run.load for run in watched.seen] == [None]
    watched.look(watching.SECONDS_BETWEEN_LOADS)
    watched.look()
    assert [run.load for run in watched.seen] == [None, host.load]
    end(folder)
    watched.look(watching.SECONDS_BETWEEN_LOADS)
    watched.look(watching.SECONDS_BETWEEN_LOADS)
    assert [run.load for run in watched.seen] == [None, host.load, None]


def test_without_a_run_the_load_of_the_host_is_told_where_its_words_change(
    watched: Watched, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(RunWatch, "_look_at_load", LOOK_AT_LOAD)
    for busy in (0.0, 0.01, 0.9, 0.8):
        watched.host.load = HostLoad((busy, 0.0), (0.0, 0.0))
        watched.look()
        watched.look()
        watched.clock.now += watching.SECONDS_BETWEEN_IDLE_LOADS
    told = [it.words for it in watched.told if isinstance(it, LoadSeen)]
    assert told == ["host quiet", "host busy: 1 of 2 cores"]


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
    wake, told = Impatience(), list[object]()

    def close_at_first(news: object) -> None:
        told.append(news)
        watch.close()

    watch = RunWatch(new, close_at_first, poll_factor=poll_factor)
    watch._wake = wake
    watch._watch()
    assert wake.waited == [poll_factor * watching.SECONDS_BETWEEN_LOOKS]
    assert not any(isinstance(it, Exception) for it in told)


# What a snapshot has


def folded(*events: Event) -> SnapshotBuilder:
    folding = SnapshotBuilder(RUN, MODELS)
    folding.take(events)
    return folding


def test_a_brick_in_progress_ends_with_a_latency_or_a_reason() -> None:
    folding = folded(started(), planned(), loaded(1), loaded(2), round_done([1, 2], 0), round_done([1, 2], 1))
    on_bench = folding.snapshot().bricks
    assert [brick.state for brick in on_bench] == [BrickState.SAMPLING] * 2
    assert on_bench[0].samples_ms == (sample_ms(1, 0), sample_ms(1, 1))
    folding.take([measured(1), failed(2), failed(5)])
    known, lost, never = folding.snapshot().bricks
    assert (known.state, known.latency_ms) == (BrickState.MEASURED, sample_ms(1, 0))
    assert known.half_width == pytest.approx(0.007)
    assert (lost.state, lost.reason) == (BrickState.FAILED, "crashed: the worker died (SIGSEGV)")
    # One that fails before its first sample is named, too.
    assert (never.number, never.state) == (5, BrickState.FAILED) and never.reason.startswith("crashed")


def test_a_restarted_batch_shows_its_bricks_in_progress_with_the_samples_that_count() -> None:
    folding = folded(started(), planned(), loaded(1), loaded(2), round_done([1, 2], 0), measured(1))
    done = folding.snapshot().counts.bricks.done
    folding.take([BatchRestarted(when=at(40), times_as_fast=1.4, samples_ms=((1, ()), (2, (0.5,))), seconds_left=50.0)])
    run = folding.snapshot()
    assert [(brick.state, brick.samples_ms) for brick in run.bricks] == [
        (BrickState.SAMPLING, ()),
        (BrickState.SAMPLING, (0.5,)),
    ]
    assert (run.counts.bricks.done, run.seconds_left) == (done - 1, 50.0)
    assert "1 batch restarted" in run.notes[-1].text
    folding.take([measured(1)])
    assert folding.snapshot().counts.bricks.done == done


def test_a_brick_of_zero_latency_counts_as_measured() -> None:
    nothing = replace(measured(1), trimmed_mean_ms=0.0, low_ms=0.0, high_ms=0.001)
    (brick,) = folded(started(), planned(), loaded(1), round_done([1], 0), nothing).snapshot().bricks
    assert (brick.state, brick.latency_ms, brick.half_width) == (BrickState.MEASURED, 0.0, None)
    _, *cells = (span.text for span in brick_row(brick, 80))
    assert "0" in "".join(cells) and "%" not in "".join(cells)


def test_bricks_that_have_not_changed_are_the_same_objects_in_the_next_snapshot() -> None:
    folding = folded(*in_the_middle())
    before = folding.snapshot()
    folding.take([round_done([12], 30)])
    after = folding.snapshot()
    assert after.estimates == before.estimates and after.notes == before.notes
    changed = [old.number for old, new in zip(before.bricks, after.bricks, strict=True) if old is not new]
    assert changed == [12]


def test_progress_follows_working_time_and_never_decreases() -> None:
    folding = folded(started(), planned(2))
    assert folding.snapshot().share == 0.0
    for at_second, seconds_left in ((16, 54), (17, 500)):
        folding.take([round_done([], at_second, seconds_left=seconds_left)])
        assert (folding.snapshot().share, folding.snapshot().seconds_left) == (18 / (18 + 54), seconds_left)
    # Pauses do not count, nor does what was known before.
    paused = folded(started(), planned(2), round_done([], 6), Paused(when=at(10)), Resumed(when=at(1000)))
    assert paused.snapshot().seconds_spent == 8
    assert folded(started(), planned(), Paused(when=at(3))).snapshot().state is State.PAUSED
    assert folded(started(), replace(planned(reused=BRICKS), models_reused=2)).snapshot().share == 1.0
    run = folded(*in_the_middle(), ended()).snapshot()
    # A run with a target needs some bricks only; one whose time is over lacks the others.
    assert (run.state, run.seconds_spent, run.share) == (State.FINISHED, 90, 1.0)
    spent = folded(*in_the_middle(), ended(message="its time budget of 90 s is spent")).snapshot()
    assert spent.share is not None and spent.share < 1


def test_an_estimate_keeps_the_history_of_its_interval() -> None:
    folding = folded(started(), planned())
    for number in range(10 * MOST_WIDTHS):
        folding.take([estimate("resnet18_v1", 1 / (number + 2))])
    (model,) = folding.snapshot().estimates
    assert len(model.half_widths) <= MOST_WIDTHS
    assert list(model.half_widths) == sorted(model.half_widths, reverse=True)
    assert model.half_widths[-1] == pytest.approx(1 / (10 * MOST_WIDTHS + 1))
    assert model.coverage == 40 / 60


def test_failures_doubts_and_noise_are_notes_of_which_the_newest_are_kept() -> None:
    notes = folded(*in_the_middle()).snapshot().notes
    failures = [note.text for note in notes if note.tone is Tone.FAILURE]
    assert any("Left out: broken: broken-symbol.json" in text for text in failures)
    assert any(text.startswith("Failed: ") and "crashed: the worker died" in text for text in failures)
    doubts = [note.text for note in notes if note.tone is Tone.DOUBT]
    assert any("8 % slower" in text for text in doubts) and any("annot fuse" in text for text in doubts)
    assert any(note.text.startswith("Waiting for run 20261121-0755-99aa of ada") for note in notes)
    # Repeated noise is one note.
    folding = folded(started(), planned(2))
    for number in range(100):
        folding.take([RoundRepeated(when=at(3 + number), reason="others", seconds=0.5, seconds_left=9.0)])
    (noise,) = [note for note in folding.snapshot().notes if note.tone is Tone.DOUBT]
    assert noise.text == "Noise: 100 rounds repeated (50 s); close other programs, or measure when the host is quiet"
    folding.take([failed(1, 200)])
    *_, before, last = folding.snapshot().notes
    assert (before, last.tone) == (noise, Tone.FAILURE)
    about = {"brick": "b", "context": "c", "model": "", "reason": "crashed"}
    folding = folded(started(), *(FailedBefore(when=at(1), label=str(number), **about) for number in range(2000)))
    notes = folding.snapshot().notes
    assert len(notes) == MOST_NOTES and ": 1999: " in notes[-1].text


def test_a_resumed_run_starts_a_new_progress_and_keeps_its_notes_and_samples() -> None:
    folding = folded(*in_the_middle(), ended(State.CANCELLED))
    folding.take([started(100)])
    run = folding.snapshot()
    assert any("Cancelled after" in note.text for note in run.notes)
    folding.take([planned(101)])
    run = folding.snapshot()
    assert (run.bricks, run.counts.bricks.done, run.share) == ((), 8, 0.0)
    resumed = replace(loaded(1), samples_ms=(0.5, 0.6))
    (brick,) = folded(started(), planned(), resumed, round_done([1], 0)).snapshot().bricks
    assert brick.samples_ms == (0.5, 0.6, sample_ms(1, 0))


def test_a_resumed_run_shows_what_was_done_before_until_its_new_plan_is_known() -> None:
    folding = folded(*in_the_middle())
    before = folding.snapshot()
    # Twice: the process that resumed it was killed, too.
    folding.take([started(100), started(200)])
    run = folding.snapshot()
    assert run.counts == before.counts and run.counts.bricks.total and run.share == before.share
    assert len(run.bricks) == len(before.bricks) and run.estimates == before.estimates
    assert BrickState.SAMPLING not in {it.state for it in run.bricks}


def test_the_speed_of_the_host_is_compared_with_the_start_of_the_run() -> None:
    folding = folded(started(), planned(), *(round_done([], number) for number in range(14)))
    assert folding.snapshot().drift is None
    folding.take([round_done([], number) for number in range(14, 200)])
    drift = folding.snapshot().drift
    assert drift is not None and 0.17 < drift < 0.2


def test_a_stopped_brick_with_a_result_is_not_done() -> None:
    folding = folded(started(), planned(), loaded(1), round_done([1], 0))
    before = folding.snapshot()
    folding.take([unfinished(1), ended(State.CANCELLED, "it was cancelled")])
    run = folding.snapshot()
    assert run.counts == before.counts and run.share is not None and run.share < 1
    (brick,) = run.bricks
    assert (brick.state, brick.latency_ms) == (BrickState.UNFINISHED, sample_ms(1, 0))
    assert brick_row(brick, 80)[0].text == "part   "


# Replays

WHOLE_RUN = [*in_the_middle(), ended()]


def last_look(follower: ReplayFollower, clock: Clock, seconds: float) -> RunSnapshot:
    clock.now += seconds
    return look(follower)


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


def test_a_replay_is_no_measurement_and_keys_change_its_pace(new: DataFolder) -> None:
    folder, clock = put_run(new, in_the_middle(), State.INTERRUPTED), Clock()
    run = last_look(ReplayFollower(folder, 1.0, clock), clock, 10)
    assert run.active and run.state is State.RUNNING and not run.measures and not run.can_be_resumed
    follower = ReplayFollower(put_run(new, WHOLE_RUN, State.FINISHED, run=OLDER), 2.0, clock)
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
    assert held.at_work and not stopped.at_work
    assert not follower.active


async def test_a_run_is_replayed_from_the_list_of_runs_without_a_trace_of_it(measured: DataFolder) -> None:
    # Long enough that no replay of it ends by itself.
    folder = put_run(measured, [*in_the_middle(), ended(seconds=36_000)], State.FINISHED)
    without_events = put_run(measured, [], State.INTERRUPTED, run="20261120-080000-0001")
    before = folder.events_file.read_bytes(), folder.state(), sorted(measured.store.iterdir())
    async with running(app_on(measured), NARROW) as pilot:
        pilot.app.post_message(JobWanted(without_events.run, "run", replayed=True))
        await shows(pilot, "has no events to replay")
        await press(pilot, "escape")
        pilot.app.post_message(JobWanted(RUN, "run", replayed=True))
        # The bar says that it is a replay.
        await shows(pilot, " replay 4x ")
        await press(pilot, "J", "w", on=RunScreen)
        await shows(pilot, "replay 4x")
        await press(pilot, "plus")
        await shows(pilot, "replay 8x")
        await press(pilot, "minus", "p")
        await shows(pilot, "replay paused")
        await press(pilot, "x")
        await shows(pilot, "replay ended")
        await press(pilot, "escape")
    assert (folder.events_file.read_bytes(), folder.state(), sorted(measured.store.iterdir())) == before


def test_keys_pressed_before_a_replay_begins_apply_to_it_and_its_end_stays_in_view(watched: Watched) -> None:
    put_run(watched.data, WHOLE_RUN, State.FINISHED)
    put_run(watched.data, in_the_middle(), State.INTERRUPTED, run="20261127-120000-ffff")
    watched.watch.follow(Replayed(RUN, 4.0))
    watched.look()
    watched.watch.follow(Replayed(RUN, 16.0))
    watched.watch.change_replay(ReplayChange.FASTER)
    watched.look()
    assert watched.seen[-1].replay == ReplayPace(32.0)
    watched.watch.follow(Replayed(RUN, begin=1000.0))
    for _ in range(3):
        watched.look()
    assert {*watched.runs} == {RUN} and not watched.seen[-1].active
