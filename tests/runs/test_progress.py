from dlbricks_tui.jobs.events import Event, Paused, Resumed
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import BatchStarted, RoundDone, RoundRepeated
from dlbricks_tui.runs.events import ProgramLoaded, RunStarted
from dlbricks_tui.runs.progress import RunProgress
from tests.runs.live_runs import at, loaded, planned
from tests.runs.runs import BRICKS, MODEL, Measured


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
    ):
        progress.take(event)
        said.append(progress.seconds_left)
    assert said == [100.0, 90.0, 140.0, 125.0, 110.0, 105.0, 105.0, 90.0, 0.0]


def test_events_without_progress_are_ignored() -> None:
    progress = RunProgress()
    progress.take(Event())
    assert progress == RunProgress()
    started = RunStarted(run="r", pid=1, models=("m",), runtime="x", level="fused", granularity=1, end_to_end=False)
    progress.take(started)
    assert progress.started == started


def test_torn_lines_do_not_stop_a_viewer(measured: Measured) -> None:
    progress = RunProgress()
    for event in measured.events:
        if not isinstance(event, ProgramLoaded):
            progress.take(event)
    assert progress.done == progress.total == BRICKS + 1
