import io
from dataclasses import replace
from typing import Any

import pytest
from rich.console import Console

from dlbricks_tui.cli.run_progress import ShownProgress
from dlbricks_tui.jobs.events import Event, Waiting
from dlbricks_tui.measure.events import BatchRestarted, BatchStarted, DriftNoted, RoundDone, RoundRepeated, Stop
from dlbricks_tui.runs.events import (
    EstimateChanged,
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    ProgramMeasured,
    RunEnded,
    RunStarted,
)
from tests.runs.live_runs import at, ended

ABOUT: dict[str, Any] = {"program": 0, "brick": "b" * 64, "context": "plain", "model": "", "label": "conv 3x3 1x8x8x8"}
BEGINNING: list[Event] = [
    RunStarted(run="r", pid=1, models=("m",), runtime="x", level="fused", granularity=1, end_to_end=False),
    ModelLoading(model="m", number=1, of=1),
    LevelLowered(model="m", reason="its branches disagree"),
    Planned(
        system="s",
        runtime="x",
        bricks=3,
        bricks_reused=1,
        bricks_failed_before=0,
        models=0,
        models_reused=0,
        models_failed_before=0,
        expected_seconds=200.0,
    ),
    BatchStarted(number=1, of=1, programs=2),
    ProgramLoaded(first_run_ms=1.0, used_by=("m",), **ABOUT),
    RoundDone(samples_ms=((0, (1.5,)),), null_call_ms=0.01, reference_ms=None, seconds_left=100.0),
]
ESTIMATE = EstimateChanged(
    model="m",
    sequential_ms=12.34,
    parallel_ms=10.0,
    low_ms=12.0,
    high_ms=20.0,
    measured_layers=2,
    missing_layers=1,
    unmeasurable_layers=0,
)


def at_once(event: Event) -> Event:
    """Return the event at the first moment of the run."""
    return replace(event, when=at(0))


class Clock:
    """A clock that the test sets."""

    now = 0.0

    def __call__(self) -> float:
        return self.now


def test_without_a_terminal_progress_is_an_occasional_line_and_one_per_important_event(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    shown = ShownProgress(None, clock)
    for event in BEGINNING:
        shown.take(at_once(event))
    lines = capsys.readouterr().err.splitlines()
    assert lines == [
        "run r of 1 model, process 1",
        "cannot fuse m (its branches disagree); its layers are measured as written in the file",
        "3 bricks: 1 known, 2 to measure; about 3 min",
        "1 of 3 bricks, 3 min left",
    ]
    shown.take(at_once(ESTIMATE))
    clock.now = 11.0
    shown.take(ProgramFailed(when=at(4), reason="crashed", message="SIGSEGV", **ABOUT))
    assert capsys.readouterr().err.splitlines() == [
        f"failed: conv 3x3 1x8x8x8 ({'b' * 12}): crashed: SIGSEGV",
        "2 of 3 bricks, 1 failed, 2 min left; m 12.34 ms (12.00 to 20.00, without 1 of its layers)",
    ]


def noisy(rounds: int) -> list[Event]:
    """Return the events of a run that other programs disturb."""
    events: list[Event] = [
        RoundRepeated(when=at(number), reason=f"others took the processor {number}", seconds=0.5, seconds_left=9.0)
        for number in range(rounds)
    ]
    events.append(BatchRestarted(when=at(rounds), times_as_fast=1.4, samples_ms=(), seconds_left=9.0))
    events.append(DriftNoted(when=at(rounds), reference_ms=1.08, usual_ms=1.0))
    return [*events, ended(seconds=float(rounds))]


def test_noise_is_summarised_in_one_line_with_a_hint(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownProgress(None)
    for event in noisy(100):
        shown.take(event)
    assert capsys.readouterr().err.splitlines() == [
        "noise: 100 rounds repeated (50 s), 1 batch restarted, host 8 % slower than at first; "
        "close other programs, or measure when the host is quiet"
    ]


def test_on_a_terminal_noise_is_one_counter() -> None:
    screen = io.StringIO()
    clock = Clock()
    shown = ShownProgress(Console(file=screen, force_terminal=True, width=120, color_system=None), clock)
    for event in [*BEGINNING, *noisy(2)[:2]]:
        clock.now += 1.0
        shown.take(event)
    assert "2 rounds repeated (1 s); close other programs" in screen.getvalue()
    assert "others took the processor" not in screen.getvalue()
    shown.close()


def test_a_quiet_display_shows_failures_only(capsys: pytest.CaptureFixture[str]) -> None:
    shown = ShownProgress(None, quiet=True)
    failure = ProgramFailed(reason="crashed", message="SIGSEGV", **ABOUT)
    for event in [*BEGINNING, ESTIMATE, Waiting(holder="run x of ada"), *noisy(3)[:-1], failure, ended()]:
        shown.take(event)
    assert capsys.readouterr().err.splitlines() == [
        "cannot fuse m (its branches disagree); its layers are measured as written in the file",
        f"failed: conv 3x3 1x8x8x8 ({'b' * 12}): crashed: SIGSEGV",
    ]


@pytest.mark.parametrize("few_samples", [False, True])
def test_wide_intervals_are_told_unless_few_samples_are_taken_by_choice(
    capsys: pytest.CaptureFixture[str], few_samples: bool
) -> None:
    shown = ShownProgress(None, few_samples=few_samples)
    limit: dict[str, Any] = {"trimmed_mean_ms": 1.0, "low_ms": 0.5, "high_ms": 1.5, "samples": 24}
    for event in [
        *BEGINNING,
        ProgramMeasured(stop=Stop.MOST_SAMPLES.value, warm_up=0, outliers=0, **limit, **ABOUT),
        ended(),
    ]:
        shown.take(event)
    assert ("run again on a quieter host" in capsys.readouterr().err) is not few_samples


def test_important_events_are_printed_at_once(capsys: pytest.CaptureFixture[str]) -> None:
    unsuccessful: dict[str, Any] = {"bricks": 1, "bricks_measured": 0, "bricks_reused": 0, "bricks_failed": 0}
    shown = ShownProgress(None)
    for event in (
        Waiting(holder="run x of ada"),
        ModelLeftOut(model="m", reason="it is empty"),
        LayerUnmeasurable(model="m", layer="fc", reason="no operator"),
        FailedBefore(brick="b", context="plain", model="", label="conv", reason="hung: it did not answer"),
        RunEnded(state="cancelled", message="it was cancelled", models_failed=0, seconds=1.0, **unsuccessful),
    ):
        shown.take(event)
    assert capsys.readouterr().err.splitlines() == [
        "waiting for run x of ada",
        "left out: m: it is empty",
        "unmeasurable: m: fc: no operator",
        "failed in an earlier run, not tried again: conv: hung: it did not answer; --retry-failed tries it again",
        "cancelled after 1 s: it was cancelled",
    ]


def test_on_a_terminal_a_progress_display_is_drawn_and_erased() -> None:
    screen = io.StringIO()
    clock = Clock()
    shown = ShownProgress(Console(file=screen, force_terminal=True, width=80, color_system=None), clock)
    for event in [*BEGINNING, ESTIMATE]:
        clock.now += 1.0
        shown.take(at_once(event))
    picture = screen.getvalue()
    assert "running" in picture
    assert "1 of 3 bricks, 2 min left; conv 3x3 1x8x8x8, 1 sample so far" in picture
    assert "12.34 ms" in picture
    shown.take(
        ProgramMeasured(trimmed_mean_ms=1, low_ms=1, high_ms=1, samples=20, warm_up=0, outliers=0, stop="", **ABOUT)
    )
    shown.close()
    # The last code wipes the picture.
    assert screen.getvalue().endswith("\x1b[2K")


def test_programs_stopped_at_a_limit_are_counted_during_the_run_and_at_its_end(
    capsys: pytest.CaptureFixture[str],
) -> None:
    clock = Clock()
    shown = ShownProgress(None, clock)
    found = ProgramMeasured(
        trimmed_mean_ms=1, low_ms=0.5, high_ms=1.6, samples=50, warm_up=0, outliers=0, stop="most samples", **ABOUT
    )
    for event in [*BEGINNING, found]:
        clock.now += 11.0
        shown.take(event)
    assert "2 of 3 bricks, 1 noisy" in capsys.readouterr().err
    counts: dict[str, Any] = {"bricks": 3, "bricks_measured": 1, "bricks_reused": 1, "bricks_failed": 0}
    shown.take(RunEnded(state="finished", message="", seconds=1.0, models_failed=0, **counts))
    told = capsys.readouterr().err
    assert "1 of 1 result are known less precisely than asked for, although they took the most samples: run" in told
