"""Events of runs: as lines, and added up to progress."""

import dataclasses
from datetime import timezone
from typing import Any, get_type_hints

from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.jobs.events import (
    Event,
    Paused,
    Resumed,
    from_line,
    to_line,
)
from dlbricks_tui.jobs.folder import State, Tally
from dlbricks_tui.measure.events import END_SECONDS, BatchStarted, RoundDone, RoundRepeated
from dlbricks_tui.runs.events import EVENTS, PartStarted, ProgramLoaded, ProgramMeasured, RunProgress
from tests.runs.live_runs import at, loaded, planned
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


def test_events_give_the_progress_of_a_run_at_every_moment(measured: Measured) -> None:
    progress = RunProgress()
    shares: list[float] = []
    for event in measured.events:
        progress.seconds_left = 9.0
        progress.take(event)
        if progress.total:
            shares.append(progress.done / progress.total)
            assert progress.done < progress.total or (progress.seconds_left or 0) <= END_SECONDS, (
                "nothing is left to measure"
            )
    assert shares == sorted(shares)
    assert (shares[0], shares[-1]) == (0.0, 1.0)
    assert (progress.state, progress.total, progress.done) == (State.FINISHED, BRICKS + 1, BRICKS + 1)
    assert (progress.of_bricks, progress.of_models) == (Tally(BRICKS, BRICKS), Tally(1, 1))
    assert progress.being_sampled == ()
    assert progress.estimates[MODEL].missing_layers == 0
    told = {it.program: it for it in measured.events if isinstance(it, ProgramMeasured)}
    for number, brick in progress.bricks.items():
        assert brick.is_measured
        assert len(brick.samples_ms) == told[number].samples + told[number].warm_up


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
