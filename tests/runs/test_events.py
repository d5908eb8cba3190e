import dataclasses
import json
from datetime import timezone
from pathlib import Path
from typing import Any, get_type_hints

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.jobs.errors import JobError
from dlbricks_tui.jobs.events import (
    Event,
    EventWriter,
    Paused,
    Resumed,
    Waiting,
    follow,
    from_line,
    to_line,
)
from dlbricks_tui.measure.events import RoundDone, RoundRepeated
from dlbricks_tui.runs.events import EVENTS, ProgramLoaded, RunEvents
from tests.runs.live_runs import ended, loaded, measured, planned

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


def test_an_unknown_field_is_ignored(tmp_path: Path) -> None:
    found = from_line(b'{"event":"Paused","when":"2026-11-21T08:00:00+00:00","why":"new"}', EVENTS)
    assert found == Paused() and isinstance(found, Event) and found.when == "2026-11-21T08:00:00+00:00"


def test_a_missing_field_gets_its_default() -> None:
    line = (
        b'{"event":"ProgramLoaded","when":"2026-11-21T08:00:00+00:00","program":1,"brick":"b","context":"","model":"",'
    )
    line += b'"label":"relu",'
    found = from_line(line + b'"first_run_ms":1.0,"used_by":["m"]}', EVENTS)
    assert isinstance(found, ProgramLoaded)
    assert found.samples_ms == ()


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


def test_samples_keep_their_values_to_the_last_bit(tmp_path: Path) -> None:
    event = RoundDone(samples_ms=((1, (0.1 + 0.2,)),), null_call_ms=1 / 3, reference_ms=None, seconds_left=1e-9)
    assert from_line(to_line(event), EVENTS) == event


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
