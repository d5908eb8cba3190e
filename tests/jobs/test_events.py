"""Events of jobs: kept in files, followed, and replayed."""

from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import (
    FASTEST,
    MOST_IDLE_SECONDS,
    SLOWEST,
    Event,
    EventWriter,
    Paused,
    Replay,
    Resumed,
    Waiting,
    events_so_far,
    follow,
    timed,
    to_line,
)
from dlbricks_tui.runs.events import RunEvents, RunProgress
from tests.runs.live_runs import at, ended, in_the_middle, loaded, planned, put_run, started


def test_a_reader_gets_every_event_once_and_waits_for_incomplete_lines(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    reader = RunEvents(path)
    assert reader.new() == ()
    first, second = Waiting(holder="a"), Waiting(holder="b")
    path.write_bytes(to_line(first) + to_line(second)[:10])
    assert reader.new() == (first,)
    assert reader.new() == ()
    with path.open("ab") as file:
        file.write(to_line(second)[10:])
    assert reader.new() == (second,)


def test_a_torn_last_line_damages_no_later_event(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    path.write_bytes(to_line(Waiting(holder="a"))[:-5])
    heard: list[Event] = []
    writer = EventWriter(path, heard.append)
    resumed = Resumed()
    writer.tell(resumed)
    writer.close()
    assert RunEvents(path).new() == tuple(heard) == (resumed,)


def test_a_follower_gets_the_last_events(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    told = [Waiting(holder=str(number)) for number in range(5)]
    written: list[Event] = []

    def write_one_more() -> None:
        if len(written) < len(told):
            written.append(told[len(written)])
            with path.open("ab") as file:
                file.write(to_line(written[-1]))

    # The last event is written between the question whether there is more and the next look.
    assert list(follow(RunEvents(path), lambda: len(written) < len(told), write_one_more)) == told


def test_an_unwritable_event_file_is_named(tmp_path: Path) -> None:
    with pytest.raises(JobError, match=r"events\.jsonl"):
        EventWriter(tmp_path / "no-folder" / "events.jsonl")
    with pytest.raises(JobError, match="cannot read"):
        RunEvents(tmp_path).new()


WHOLE_RUN = [*in_the_middle(), ended()]


class Clock:
    """A clock that a test sets, and that moves on while a replay waits."""

    def __init__(self) -> None:
        self.now = 50.0

    def __call__(self) -> float:
        return self.now

    def wait(self, seconds: float) -> None:
        # A timer is never early, and often a little late.
        self.now += seconds + 0.001


def progress_of(events: list[Event]) -> RunProgress:
    progress = RunProgress()
    for event in events:
        progress.take(event)
    return progress


@given(st.floats(0.01, 10_000), st.integers(0, len(WHOLE_RUN)))
def test_at_any_speed_a_replay_ends_as_the_run_did(speed: float, length: int) -> None:
    clock, events = Clock(), WHOLE_RUN[:length]
    replayed = list(Replay(timed(events), speed, clock).play(clock.wait))
    assert replayed == events
    assert progress_of(replayed) == progress_of(events)


def test_events_come_when_they_came_in_the_run_and_sooner_at_a_higher_speed() -> None:
    clock = Clock()
    replay = Replay(timed([started(0), planned(2), loaded(1, 6)]), 2.0, clock)
    assert [type(it).__name__ for it in replay.due()] == ["RunStarted"]
    assert replay.seconds_to_wait == 1.0
    clock.now += 0.9
    assert replay.due() == ()
    clock.now += 0.2
    assert len(replay.due()) == 1 and not replay.ended
    clock.now += 2.0
    assert len(replay.due()) == 1 and replay.ended
    assert replay.seconds_to_wait is None


def test_a_pause_holds_the_position_and_a_change_of_speed_keeps_it() -> None:
    clock = Clock()
    replay = Replay(timed([started(0), loaded(1, 10)]), 1.0, clock)
    assert len(replay.due()) == 1
    clock.now += 4
    replay.pause()
    clock.now += 100
    assert (replay.position, replay.seconds_to_wait) == (4.0, None)
    replay.go_on()
    replay.change_speed(2)
    assert (replay.position, replay.seconds_to_wait) == (4.0, 3.0)
    for _ in range(40):
        replay.change_speed(2)
    assert replay.speed == FASTEST
    for _ in range(80):
        replay.change_speed(0.5)
    assert replay.speed == SLOWEST


def test_time_in_which_nothing_worked_is_shortened() -> None:
    hours = 3 * 3600.0
    waited = timed([Waiting(when=at(0), holder="ada"), started(hours)])
    paused = timed([Paused(when=at(0)), Resumed(when=at(hours))])
    resumed = timed([loaded(1, 0), started(hours)])
    assert [it[-1].seconds for it in (waited, paused, resumed)] == [MOST_IDLE_SECONDS] * 3
    # A clock that was set back keeps the order of events.
    assert [it.seconds for it in timed([started(10), planned(4), loaded(1, 6)])] == [0.0, 0.0, 2.0]


@pytest.mark.parametrize("speed", [0.0, -1.0, float("nan"), float("inf")])
def test_a_number_that_is_no_speed_is_refused(speed: float) -> None:
    with pytest.raises(JobError, match="give a number above 0"):
        Replay((), speed, Clock())


def test_lines_of_newer_versions_torn_lines_and_wrong_times_are_skipped(tmp_path: Path) -> None:
    folder = put_run(DataFolder(tmp_path), WHOLE_RUN)
    with folder.events_file.open("ab") as file:
        file.write(b'{"event":"Teleported","when":"2026-11-21T08:02:00+00:00"}\n')
        file.write(b'{"event":"Resumed","when":"yesterday"}\n{"event":"Resumed","when":"2026-11-21T08:02:00"}\n')
        file.write(b'{"event":"Resumed","when":7}\n{"event":"Resu')
    assert [it.event for it in events_so_far(folder, RunEvents(folder.events_file))] == WHOLE_RUN


def test_a_run_without_events_cannot_be_replayed(tmp_path: Path) -> None:
    folder = put_run(DataFolder(tmp_path), [])
    with pytest.raises(JobError, match="has no events to replay: no process has worked on it"):
        events_so_far(folder, RunEvents(folder.events_file))
