"""Events of runs: kept in files, followed, added up to progress, and replayed."""

import dataclasses
import json
from datetime import timezone
from pathlib import Path
from typing import Any, get_type_hints

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
    from_line,
    timed,
    to_line,
)
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import BatchStarted, RoundDone, RoundRepeated
from dlbricks_tui.runs.events import EVENTS, PartStarted, ProgramLoaded, RunEvents, RunProgress
from tests.runs.live_runs import at, ended, in_the_middle, loaded, measured, planned, put_run, started
from tests.runs.runs import BRICKS, MODEL, Measured

NUMBERS = st.floats(allow_nan=False, allow_infinity=False)
VALUES: dict[Any, st.SearchStrategy[Any]] = {
    str: st.text(),
    int: st.integers(),
    float: NUMBERS,
    bool: st.booleans(),
    float | None: st.none() | NUMBERS,
    tuple[float, ...]: st.lists(NUMBERS).map(tuple),
    tuple[str, ...]: st.lists(st.text()).map(tuple),
    tuple[tuple[int, tuple[float, ...]], ...]: st.lists(st.tuples(st.integers(), st.lists(NUMBERS).map(tuple))).map(
        tuple
    ),
}


@st.composite
def events(draw: st.DrawFn) -> Event:
    """An event of any kind."""
    kind = draw(st.sampled_from(list(EVENTS.values())))
    hints = get_type_hints(kind)
    drawn = {it.name: draw(VALUES[hints[it.name]]) for it in dataclasses.fields(kind)}
    when = draw(st.datetimes(timezones=st.just(timezone.utc)))
    return kind(**drawn | {"when": when.isoformat(timespec="microseconds")})


@given(events())
def test_every_event_survives_a_round_trip(event: Event) -> None:
    line = to_line(event)
    assert line.count(b"\n") == 1
    found = from_line(line, EVENTS)
    assert isinstance(found, Event) and found == event and found.when == event.when


@given(
    st.binary(max_size=40) | st.sampled_from([b"{}", b'{"event":"Flown","when":"now"}', b'{"event":"Paused"}', b"[]"])
)
def test_unknown_lines_are_ignored(line: bytes) -> None:
    assert not isinstance(from_line(line, EVENTS), Event)


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


def test_the_calibration_of_an_earlier_version_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "events.jsonl"
    own = RoundDone(samples_ms=((1, (1.5,)),), null_call_ms=None, reference_ms=5.0, seconds_left=7.0)
    of_network = dataclasses.replace(own, samples_ms=((1, (9.0,)),))
    repeated = RoundRepeated(reason="noise", seconds=1.0, seconds_left=7.0)

    def former(name: str, **about: object) -> bytes:
        return json.dumps({"event": name, "when": own.when, **about}, separators=(",", ":")).encode() + b"\n"

    told = (planned(), loaded(1), own, measured(1))
    networks = [former("Calibrating", network=name, number=1, of=2) for name in ("small residual", "cold chain")]
    calibration = b"".join(line + to_line(of_network) + to_line(repeated) for line in networks)
    for end, after in ((former("Calibrated", error=0.01), (own, ended())), (b"", (ended(),))):
        path.write_bytes(b"".join(map(to_line, told)) + calibration + end + b"".join(map(to_line, after)))
        assert RunEvents(path).new() == (*told, *after)


def test_events_give_the_progress_of_a_run_at_every_moment(measured: Measured) -> None:
    progress = RunProgress()
    shares: list[float] = []
    for event in measured.events:
        progress.seconds_left = 9.0
        progress.take(event)
        if progress.total:
            shares.append(progress.done / progress.total)
            assert progress.done < progress.total or not progress.seconds_left, "nothing is left to measure"
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert (progress.state, progress.total, progress.done) == (State.FINISHED, BRICKS + 1, BRICKS + 1)
    assert (progress.bricks_measured, progress.models_measured, progress.failed) == (BRICKS, 1, [])
    assert progress.being_sampled == ()
    assert progress.estimates[MODEL].missing_layers == 0
    for program in progress.programs.values():
        assert program.measured is not None
        assert len(program.samples_ms) == program.measured.samples + program.measured.warm_up


def test_the_time_left_decreases_and_follows_the_estimate_of_the_run() -> None:
    progress = RunProgress()
    said: list[float | None] = []
    for event in (
        planned(0, expected_seconds=100.0),
        loaded(1, 10),
        RoundRepeated(when=at(20), reason="noise", seconds=1.0, seconds_left=140.0),
        RoundRepeated(when=at(30), reason="noise", seconds=1.0, seconds_left=125.0),
        RoundDone(when=at(40), samples_ms=(), null_call_ms=None, reference_ms=None, seconds_left=110.0),
        Paused(when=at(45)),
        Resumed(when=at(1000)),
        BatchStarted(when=at(1001), number=1, of=1, programs=2, seconds_left=90.0),
        loaded(2, 2000),
        PartStarted(when=at(2001), part="2 threads", number=2, of=3, later_seconds=500.0, budget_seconds=60.0),
        RoundDone(when=at(2011), samples_ms=(), null_call_ms=None, reference_ms=None, seconds_left=20.0),
    ):
        progress.take(event)
        said.append(progress.seconds_left)
    assert said[:9] == [100.0, 90.0, 140.0, 125.0, 110.0, 105.0, 105.0, 90.0, 0.0]
    # Later parts take what the time budget leaves.
    assert said[9:] == [0.0, 50.0]


def test_torn_lines_do_not_stop_a_viewer(measured: Measured) -> None:
    progress = RunProgress()
    for event in measured.events:
        if not isinstance(event, ProgramLoaded):
            progress.take(event)
    assert progress.done == progress.total == BRICKS + 1


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
    with pytest.raises(JobError, match="has no events to replay"):
        events_so_far(folder, RunEvents(folder.events_file))
