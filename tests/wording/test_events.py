"""The sentences about runs, for the command line and the TUI."""

from typing import Any

import pytest

from dlbricks_tui.measure.events import (
    Calibrated,
    Calibrating,
    CalibrationFailed,
    DriftNoted,
    Event,
    RoundRepeated,
)
from dlbricks_tui.runs.events import (
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    Paused,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    Resumed,
    RunEnded,
    RunStarted,
    ShapesRemembered,
    Waiting,
    WorkerReplaced,
)
from dlbricks_tui.runs.progress import Disturbances, RunProgress
from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.wording.events import doing_now, noise_note, note_of
from dlbricks_tui.wording.runs import Tone
from tests.runs.live_runs import at, estimate, in_the_middle

ABOUT: dict[str, Any] = {"program": 0, "brick": "b" * 64, "context": "plain", "model": "", "label": "conv"}
COUNTS: dict[str, Any] = {
    "bricks": 3,
    "bricks_reused": 1,
    "bricks_failed_before": 0,
    "models": 2,
    "models_reused": 1,
    "models_failed_before": 0,
}
ENDED: dict[str, Any] = {
    "bricks": 1,
    "bricks_measured": 0,
    "bricks_reused": 0,
    "bricks_failed": 0,
    "models_failed": 0,
    "seconds": 100.0,
}


@pytest.mark.parametrize(
    ("event", "tone", "text"),
    [
        (
            RunStarted(run="r", pid=7, models=("m",), runtime="x", level="fused", granularity=1, end_to_end=False),
            Tone.ASIDE,
            "run r of 1 model, process 7",
        ),
        (ModelLoading(model="m", number=1, of=2), Tone.ASIDE, "reading m, 1 of 2"),
        (ModelLeftOut(model="m", reason="it is empty"), Tone.FAILURE, "left out: m: it is empty"),
        (ShapesRemembered(model="m", shapes="d=1,3"), Tone.ASIDE, "inputs as given before: m: d=1,3"),
        (
            LevelLowered(model="m", reason="why"),
            Tone.DOUBT,
            "cannot fuse m (why); its layers are measured as written in the file",
        ),
        (LayerUnmeasurable(model="m", layer="fc", reason="why"), Tone.DOUBT, "unmeasurable: m: fc: why"),
        (Waiting(holder="run x of ada"), Tone.COURSE, "waiting for run x of ada"),
        (
            Planned(system="s", runtime="x", expected_seconds=200.0, **COUNTS),
            Tone.COURSE,
            "3 bricks: 1 known, 2 to measure; 1 of 2 models to time end to end; about 3 min",
        ),
        (Calibrating(network="net", number=3, of=11), Tone.COURSE, "calibrating on network 3 of 11: net"),
        (
            Calibrated(error=0.0123),
            Tone.COURSE,
            "calibrated: mean error 1.2 % on networks left out of the fit",
        ),
        (
            CalibrationFailed(reason="why"),
            Tone.DOUBT,
            "calibration failed: estimates use earlier constants, or those of other systems with wider intervals: why",
        ),
        (
            ProgramFailed(reason="crashed", message="SIGSEGV", **ABOUT),
            Tone.FAILURE,
            "failed: conv (bbbbbbbbbbbb): crashed: SIGSEGV",
        ),
        (
            FailedBefore(brick="b", context="", model="", label="conv", reason="hung"),
            Tone.DOUBT,
            "failed in an earlier run, not tried again: conv: hung",
        ),
        (
            ProgramLoaded(first_run_ms=1.0, used_by=("m",), allocates=True, **{**ABOUT, "brick": "", "label": "voice"}),
            Tone.DOUBT,
            "new outputs in each run: voice: their sizes vary, or differ from the file; the latency includes their "
            "allocation, as that of a plain call does",
        ),
        (WorkerReplaced(message="it died"), Tone.DOUBT, "new worker: it died"),
        (Paused(), Tone.COURSE, "paused: other runs may measure"),
        (Resumed(), Tone.COURSE, "resumed"),
        (RunEnded(state="finished", message="", **ENDED), Tone.COURSE, "finished after 2 min"),
        (RunEnded(state="failed", message="why", **ENDED), Tone.FAILURE, "failed after 2 min: why"),
    ],
)
def test_an_event_has_a_sentence(event: Event, tone: Tone, text: str) -> None:
    note = note_of(event)
    assert note is not None
    assert (note.when, note.tone, note.text) == (event.when, tone, text)


def test_events_shown_by_lists_and_counters_have_no_sentence() -> None:
    events: list[Event] = [estimate("m", 0.1), RoundRepeated(reason="noise", seconds_left=1.0)]
    assert [note_of(event) for event in events] == [None, None]


def test_noise_is_one_sentence_with_its_counts() -> None:
    noise = Disturbances()
    assert noise_note(noise) == ""
    noise.take(RoundRepeated(when=at(1), reason="others", seconds=2.0, seconds_left=9.0))
    noise.take(DriftNoted(when=at(2), reference_ms=1.08, usual_ms=1.0))
    assert noise_note(noise) == (
        "noise: 1 round repeated (2 s), host 8 % slower than at first; "
        "close other programs, or measure when the host is quiet"
    )


def test_a_run_does_one_thing_at_a_time() -> None:
    progress = RunProgress()
    done = []
    for event in in_the_middle():
        progress.take(event)
        done.append(doing_now(progress))
    assert "reading resnet18_v1, 1 of 3" in done
    assert done[-1].endswith("samples so far")
    progress.take(RunEnded(state=State.FINISHED.value, message="", **ENDED))
    assert doing_now(progress) == ""
