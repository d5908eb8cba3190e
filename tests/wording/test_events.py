"""The sentences about runs, for the command line and the TUI."""

from typing import Any

import pytest

from dlbricks_tui.jobs.events import Event, Paused, Resumed, Waiting
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import BatchStarted, DriftNoted, RoundRepeated
from dlbricks_tui.runs.events import (
    EstimateChanged,
    FailedBefore,
    LayerUnmeasurable,
    LevelLowered,
    ModelLeftOut,
    ModelLoading,
    PartStarted,
    Planned,
    ProgramFailed,
    ProgramLoaded,
    RunEnded,
    RunStarted,
    ShapesRemembered,
    WorkerReplaced,
)
from dlbricks_tui.runs.progress import Disturbances, RunProgress
from dlbricks_tui.wording.events import (
    all_combinations,
    counts_of,
    doing_now,
    estimate_so_far,
    noise_counts,
    noise_note,
    note_of,
)
from dlbricks_tui.wording.events import measured as timed
from dlbricks_tui.wording.runs import NONE_DONE, Done, Tone
from tests.runs.live_runs import at, estimate, in_the_middle, loaded, measured, planned, round_done

ABOUT: dict[str, Any] = {"program": 0, "brick": "b" * 64, "context": "plain", "model": "", "label": "conv"}
COUNTS: dict[str, Any] = {
    "bricks": 3,
    "bricks_reused": 1,
    "bricks_failed_before": 0,
    "models": 2,
    "models_reused": 1,
    "models_failed_before": 0,
}
NO_COUNTS: dict[str, Any] = dict.fromkeys(COUNTS, 0)
ENDED: dict[str, Any] = {
    "bricks": 1,
    "bricks_measured": 0,
    "bricks_reused": 0,
    "bricks_failed": 0,
    "models_failed": 0,
    "seconds": 100.0,
}

PLANNED_AGAIN = Planned(
    system="s",
    runtime="x",
    expected_seconds=200.0,
    bricks=9,
    bricks_reused=1,
    bricks_failed_before=2,
    models=5,
    models_reused=1,
    models_failed_before=2,
    bricks_imprecise=2,
    bricks_of_slow_host=3,
    combination="two threads",
)
AGAIN = (
    "9 bricks: 1 known, 6 to measure (2 again: too imprecise so far; 3 again: measured while the host was slower); "
    "2 of 5 models to time end to end; about 3 min"
)


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
        (PLANNED_AGAIN, Tone.COURSE, f"two threads: {AGAIN}"),
        (
            Planned(system="s", runtime="x", expected_seconds=200.0, **{**COUNTS, "bricks_reused": 3}),
            Tone.COURSE,
            "3 bricks: 3 known, 0 to measure; 1 of 2 models to time end to end; about 3 min",
        ),
        (
            Planned(system="s", runtime="x", expected_seconds=200.0, **NO_COUNTS),
            Tone.COURSE,
            "0 bricks: 0 known, 0 to measure",
        ),
        (PartStarted(part="two threads", number=1, of=2, later_seconds=9), Tone.COURSE, "part 1 of 2: two threads"),
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


def test_what_a_run_waits_for_has_words_of_its_own() -> None:
    progress = RunProgress()
    assert counts_of(progress) == (NONE_DONE, NONE_DONE) and doing_now(progress) == ""
    progress.take(planned(bricks=2, reused=0))
    assert counts_of(progress) == (Done(0, 2), Done(0, 2)) and doing_now(progress) == "starting a worker"
    progress.take(BatchStarted(number=1, of=1, programs=2))
    progress.take(loaded(1))
    progress.take(round_done([1], 0))
    assert doing_now(progress) == "Convolution 3x3 1x8x56x56, 1 sample so far"
    progress.take(loaded(2))
    progress.take(round_done([1, 2], 1))
    assert doing_now(progress) == "Convolution 3x3 1x8x56x56 and 1 other, 2 samples so far"


def test_an_estimate_so_far_has_its_gaps() -> None:
    known: dict[str, Any] = {"model": "m", "parallel_ms": 1.0, "sequential_ms": 5.8, "low_ms": 5.6, "high_ms": 5.9}
    counts: dict[str, Any] = {"measured_layers": 3, "missing_layers": 0, "unmeasurable_layers": 0}
    assert estimate_so_far(EstimateChanged(**known, **counts)) == "5.800 ms (5.600 to 5.900)"
    gaps = {**counts, "missing_layers": 1, "unmeasurable_layers": 2, "sampled_layers": 4}
    told = "5.800 ms (5.600 to 5.900, without 3 of its layers, 4 still being sampled)"
    assert estimate_so_far(EstimateChanged(**known, **gaps)) == told
    foretold: dict[str, Any] = {
        "measured_layers": 3,
        "predicted_layers": 2,
        "missing_layers": 2,
        "unmeasurable_layers": 0,
    }
    assert estimate_so_far(EstimateChanged(**known, **foretold)) == "~5.800 ms (5.600 to 5.900, 2 predicted)"
    for name in ("sequential_ms", "low_ms", "high_ms"):
        assert estimate_so_far(EstimateChanged(**{**known, name: None}, **counts)) is None


def test_the_whole_run_and_each_model_have_a_sentence() -> None:
    assert all_combinations(2, PLANNED_AGAIN) == f"2 combinations together: {AGAIN}"
    assert timed(measured(1)).startswith("measured: ") and timed(measured(1)).endswith(")")
    noise = Disturbances(batches=1, slower=-0.1)
    assert noise_counts(noise) == "1 batch restarted, host 10 % faster than at first"
    noise.batches, noise.slower = 2, None
    assert noise_counts(noise) == "2 batches restarted"
