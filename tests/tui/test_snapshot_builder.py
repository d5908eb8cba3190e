from dataclasses import replace

from dlbricks_tui.jobs.events import Event, Paused, Resumed
from dlbricks_tui.jobs.folder import State
from dlbricks_tui.measure.events import BatchRestarted, RoundRepeated
from dlbricks_tui.runs.events import FailedBefore
from dlbricks_tui.tui.run.follower import MOST_NOTES, MOST_WIDTHS, SnapshotBuilder
from dlbricks_tui.tui.run.screen import brick_row
from dlbricks_tui.tui.run.snapshot import BrickState
from dlbricks_tui.wording.runs import Done, Tone
from tests.runs.live_runs import (
    BRICKS,
    MODELS,
    RUN,
    at,
    ended,
    estimate,
    failed,
    in_the_middle,
    loaded,
    measured,
    planned,
    round_done,
    sample_ms,
    started,
    unfinished,
)


def folded(*events: Event) -> SnapshotBuilder:
    folding = SnapshotBuilder(RUN, MODELS)
    folding.take(events)
    return folding


def test_a_brick_in_progress_ends_with_a_latency_or_a_reason() -> None:
    folding = folded(started(), planned(), loaded(1), loaded(2), round_done([1, 2], 0), round_done([1, 2], 1))
    on_bench = folding.snapshot().bricks
    assert [brick.state for brick in on_bench] == [BrickState.SAMPLING] * 2
    assert on_bench[0].samples_ms == (sample_ms(1, 0), sample_ms(1, 1))
    folding.take([measured(1), failed(2)])
    known, lost = folding.snapshot().bricks
    assert known.state is BrickState.MEASURED
    assert known.latency_ms == sample_ms(1, 0)
    assert known.half_width is not None
    assert abs(known.half_width - 0.007) < 1e-9
    assert (lost.state, lost.reason) == (BrickState.FAILED, "crashed: the worker died (SIGSEGV)")


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
    assert "0" in "".join(cells)
    assert "%" not in "".join(cells)


def test_a_brick_that_fails_before_its_first_sample_is_named() -> None:
    (brick,) = folded(started(), planned(), failed(5)).snapshot().bricks
    assert (brick.number, brick.state) == (5, BrickState.FAILED)
    assert brick.reason.startswith("crashed")


def test_unchanged_parts_of_a_snapshot_are_the_same_objects() -> None:
    folding = folded(*in_the_middle())
    before = folding.snapshot()
    folding.take([round_done([12], 30)])
    after = folding.snapshot()
    assert after.estimates is before.estimates
    assert after.notes is before.notes
    changed = [old.number for old, new in zip(before.bricks, after.bricks, strict=True) if old is not new]
    assert changed == [12]


def test_progress_follows_time_and_never_decreases() -> None:
    folding = folded(started(), planned(2))
    assert folding.snapshot().share == 0.0
    folding.take([round_done([], 16, seconds_left=54)])
    assert folding.snapshot().share == 18 / (18 + 54)
    folding.take([round_done([], 17, seconds_left=500)])
    assert folding.snapshot().share == 18 / (18 + 54)
    assert folding.snapshot().seconds_left == 500


def test_pauses_do_not_count_as_elapsed_time() -> None:
    folding = folded(started(), planned(2), round_done([], 6), Paused(when=at(10)), Resumed(when=at(1000)))
    assert folding.snapshot().seconds_spent == 8
    assert folded(started(), planned(), Paused(when=at(3))).snapshot().state is State.PAUSED


def test_a_run_with_nothing_to_measure_is_complete() -> None:
    known = planned(reused=BRICKS)
    folding = folded(started(), replace(known, models_reused=2))
    assert folding.snapshot().share == 1.0


def test_an_ended_run_shows_its_working_time() -> None:
    run = folded(*in_the_middle(), ended()).snapshot()
    assert run.state is State.FINISHED
    assert run.seconds_spent == 90


def test_counts_include_bricks_and_whole_models() -> None:
    counts = folded(*in_the_middle()).snapshot().counts
    assert (counts.bricks, counts.models, counts.reused, counts.failed) == (Done(17, 40), Done(1, 2), 8, 1)


def test_an_estimate_keeps_the_history_of_its_interval() -> None:
    folding = folded(started(), planned())
    for number in range(10 * MOST_WIDTHS):
        folding.take([estimate("resnet18_v1", 1 / (number + 2))])
    (model,) = folding.snapshot().estimates
    assert len(model.half_widths) <= MOST_WIDTHS
    assert list(model.half_widths) == sorted(model.half_widths, reverse=True)
    assert abs(model.half_widths[-1] - 1 / (10 * MOST_WIDTHS + 1)) < 1e-9
    assert model.coverage == 40 / 60


def test_failures_and_doubts_are_reported_in_words() -> None:
    notes = folded(*in_the_middle()).snapshot().notes
    failures = [note.text for note in notes if note.tone is Tone.FAILURE]
    assert any("Left out: broken: broken-symbol.json" in text for text in failures)
    assert any(text.startswith("Failed: ") and "crashed: the worker died" in text for text in failures)
    doubts = [note.text for note in notes if note.tone is Tone.DOUBT]
    assert any("8 % slower" in text for text in doubts)
    assert any("annot fuse" in text for text in doubts)
    assert any(note.text.startswith("Waiting for run 20261121-0755-99aa of ada") for note in notes)


def test_repeated_noise_updates_one_note() -> None:
    folding = folded(started(), planned(2))
    for number in range(100):
        folding.take([RoundRepeated(when=at(3 + number), reason="others", seconds=0.5, seconds_left=9.0)])
    (noise,) = [note for note in folding.snapshot().notes if note.tone is Tone.DOUBT]
    assert noise.text == ("Noise: 100 rounds repeated (50 s); close other programs, or measure when the host is quiet")
    folding.take([failed(1, 200)])
    *_, before, last = folding.snapshot().notes
    assert (before, last.tone) == (noise, Tone.FAILURE)


def test_only_the_newest_notes_are_kept() -> None:
    about = {"brick": "b", "context": "c", "model": "", "reason": "crashed"}
    folding = folded(started(), *(FailedBefore(when=at(1), label=str(number), **about) for number in range(2000)))
    notes = folding.snapshot().notes
    assert len(notes) == MOST_NOTES
    assert ": 1999: " in notes[-1].text


def test_a_resumed_run_starts_a_new_progress_and_keeps_its_notes() -> None:
    folding = folded(*in_the_middle(), ended(State.CANCELLED))
    folding.take([started(100)])
    run = folding.snapshot()
    assert (run.state, run.bricks, run.share) == (State.STARTING, (), None)
    assert any("Cancelled after" in note.text for note in run.notes)


def test_the_speed_of_the_host_is_compared_with_the_start_of_the_run() -> None:
    folding = folded(started(), planned(), *(round_done([], number) for number in range(14)))
    assert folding.snapshot().drift is None
    folding.take([round_done([], number) for number in range(14, 200)])
    drift = folding.snapshot().drift
    assert drift is not None
    assert 0.17 < drift < 0.2


def test_a_stopped_brick_with_a_result_is_not_done() -> None:
    folding = folded(started(), planned(), loaded(1), round_done([1], 0))
    before = folding.snapshot()
    folding.take([unfinished(1), ended(State.CANCELLED, "it was cancelled")])
    run = folding.snapshot()
    assert run.counts == before.counts
    assert run.share is not None
    assert run.share < 1
    (brick,) = run.bricks
    assert (brick.state, brick.latency_ms) == (BrickState.UNFINISHED, sample_ms(1, 0))
    assert brick_row(brick, 80)[0].text == "part   "


def test_samples_of_an_earlier_run_are_counted_with_the_new_ones() -> None:
    resumed = replace(loaded(1), samples_ms=(0.5, 0.6))
    (brick,) = folded(started(), planned(), resumed, round_done([1], 0)).snapshot().bricks
    assert brick.samples_ms == (0.5, 0.6, sample_ms(1, 0))
