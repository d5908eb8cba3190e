import re
from dataclasses import replace
from datetime import datetime
from functools import cache, partial
from pathlib import Path
from typing import Any

import pytest

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.documents.lines import width_of
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings.cutting import GRANULARITY, WORKERS
from dlbricks_tui.settings.setting import Setting
from dlbricks_tui.settings.variant import SYSTEM
from dlbricks_tui.tui.choices import BASIC_SETTINGS, CHOSEN, NONE_AVAILABLE, Available, Choices, change_setting
from dlbricks_tui.tui.estimator import ThreadSafeEstimator
from dlbricks_tui.tui.session import SharedStore
from dlbricks_tui.tui.workbench.estimate import Headline
from dlbricks_tui.tui.workbench.estimate_rows import (
    CHOOSE_A_MODEL,
    EstimateRow,
    EstimateView,
    NextStep,
    UnderWay,
    estimate_rows,
    setting_text,
)
from dlbricks_tui.wording.numbers import age
from tests.tui.application import MEASURED_ONLY, NOW, WRITTEN
from tests.tui.results import OTHER_SYSTEM, RUNTIME, WHEN, graph_of, source_called, store_run

AGE = age(NOW - datetime.fromisoformat(WHEN).timestamp())
AVAILABLE = Available("here", (OTHER_SYSTEM,), (RUNTIME,), 100)


@pytest.fixture
def measured(_measured_once: DataFolder) -> DataFolder:
    """The results that all tests share: these tests only read them."""
    return _measured_once


@cache
def view_of(data: DataFolder, name: str, choices: Choices = WRITTEN) -> EstimateView:
    estimator = ThreadSafeEstimator(SharedStore(data.store), data)
    read = partial(decompose, graph_of(name), choices.cutting)
    return estimator.explain(estimator.answer(source_called(name), choices, lambda _: read()))


def about(view: EstimateView, one: SystemEstimate) -> EstimateView:
    """Return the view of another estimate of the same model."""
    return replace(view, document=replace(view.document, one=one))


def texts(found: tuple[EstimateRow, ...]) -> list[str]:
    return ["".join(span.text for span in row.line).rstrip() for row in found]


def test_the_compositions_are_shown_with_the_measurement(measured: DataFolder) -> None:
    shown_rows = texts(estimate_rows(view_of(measured, "resnet18_v1"), WRITTEN, AVAILABLE, 60, more=True))
    assert shown_rows[:3] == [
        f"14.56 ms: MXNet, 2 threads, batch 1, measured {AGE} ago",
        "doubt its bricks: they add up to 14.18 to 14.30 ms",
        "",
    ]
    for system, place in (("here", ""), (OTHER_SYSTEM.id, "on c5.xlarge, 4 cores, ")):
        named = texts(estimate_rows(view_of(measured, "resnet18_v1"), replace(WRITTEN, system=system), AVAILABLE, 90))
        assert named[0] == f"14.56 ms: MXNet, 2 threads, batch 1, {place}measured {AGE} ago"
    begin = next(at for at, row in enumerate(shown_rows) if row.startswith("sequential"))
    assert shown_rows[begin : begin + 5] == [
        f"sequential  14.24 ms  {'█' * 13}  95 %: 14.18 to 14.30 ms",
        f"parallel    12.64 ms  {'█' * 11}▎   1.13 times as fast",
        f"2 workers   12.64 ms  {'█' * 11}▎",
        f"end to end  14.56 ms  {'█' * 13}  measured, error -2.2 %",
        "batch 1, 2 threads, f32: 68.70 per second",
    ]
    narrow = texts(estimate_rows(view_of(measured, "resnet18_v1"), WRITTEN, AVAILABLE, 38))
    assert "sequential  14.24 ms  14.18 to 14.30" in narrow and "end to end  14.56 ms  error -2.2 %" in narrow
    assert "residual: 0.3147 ms more measured than estimated" in " ".join(shown_rows)
    assert "Latency by type" in shown_rows and "68 of 68 layers measured" in shown_rows


@pytest.mark.parametrize(
    ("whole", "is_outside"),
    [
        (Latency(14.25, 14.20, 14.60), False),
        (Latency(14.56, 14.29, 14.80), True),
        (Latency(14.56, 14.49, 14.63), True),
    ],
)
def test_a_measured_latency_outside_of_the_interval_is_doubted(
    whole: Latency, is_outside: bool, measured: DataFolder
) -> None:
    view = view_of(measured, "resnet18_v1")
    changed = about(view, replace(view.document.one, end_to_end=whole))
    rows = texts(estimate_rows(changed, WRITTEN, AVAILABLE, 160, more=True))
    assert ("doubt its bricks: they add up to 14.18 to 14.30 ms" in rows) is is_outside
    assert ("is outside of the estimate's 14.18 to 14.30 ms" in "".join(rows)) is is_outside


def test_an_estimate_of_a_quantised_copy_says_that_accuracy_was_not_checked(measured: DataFolder) -> None:
    view = view_of(measured, "resnet18_v1")
    assert "accuracy" not in "".join(texts(estimate_rows(view, WRITTEN, AVAILABLE, 40)))
    variant = replace(view.document.one.variant, precision=Precision.INT8)
    copied = about(view, replace(view.document.one, variant=variant))
    assert "int8, accuracy not checked, measured" in " ".join(texts(estimate_rows(copied, WRITTEN, AVAILABLE, 40)))
    headline = Headline()
    headline.show("resnet18_v1", WRITTEN, copied.document.one)
    (told,) = headline.lines(120)
    assert "int8, accuracy not checked" in "".join(span.text for span in told)


def test_a_change_of_host_speed_between_model_and_bricks_is_reported(measured: DataFolder) -> None:
    view = view_of(measured, "resnet18_v1")
    assert "host was" not in "".join(texts(estimate_rows(view, WRITTEN, AVAILABLE, 60)))
    slow = replace(view.document.one, reference_ms=0.8, usual_reference_ms=0.64)
    shown_rows = " ".join(texts(estimate_rows(about(view, slow), WRITTEN, AVAILABLE, 40, more=True)))
    assert "The host was 25 % slower than usual when the model was measured" in shown_rows


def test_a_partial_sum_is_marked_and_shows_what_is_missing(measured: DataFolder) -> None:
    shown_rows = texts(estimate_rows(view_of(measured, "squeezenet1.1", MEASURED_ONLY), WRITTEN, AVAILABLE, 60))
    assert shown_rows[0] == "MXNet, 2 threads, batch 1, 40 of 66 layers measured: no"
    begin = next(at for at, row in enumerate(shown_rows) if row.startswith("sequential  part 8.775 ms"))
    assert shown_rows[begin].endswith("  only 61 % of its layers") and shown_rows[begin + 1].endswith(", this part")
    assert "a sum of 40 of 66 layers only: the model may take more or" in shown_rows
    assert not any(">" in row for row in shown_rows)
    assert "next: m measures what is missing" in shown_rows
    all_rows = estimate_rows(view_of(measured, "squeezenet1.1", MEASURED_ONLY), WRITTEN, AVAILABLE, 60, more=True)
    assert "40 of 66 layers measured, 26 missing" in texts(all_rows)


def test_predictions_are_marked_and_told(measured: DataFolder) -> None:
    shown_rows = texts(estimate_rows(view_of(measured, "squeezenet1.1"), WRITTEN, AVAILABLE, 60))
    assert re.fullmatch(r"~[\d.]+ to [\d.]+ ms: MXNet, 2 threads, batch 1, predicted, 61 % of", shown_rows[0])
    begin = next(at for at, row in enumerate(shown_rows) if row.startswith("sequential  ~"))
    assert re.match(r"parallel +~\d", shown_rows[begin + 1])
    assert shown_rows[2] == "46 % is predicted: 26 of 66 layers"
    all_rows = texts(estimate_rows(view_of(measured, "squeezenet1.1"), WRITTEN, AVAILABLE, 60, more=True))
    assert "40 of 66 layers measured, 26 predicted, 26 missing" in all_rows


def test_a_model_without_results_shows_what_to_do(measured: DataFolder) -> None:
    shown_rows = texts(estimate_rows(view_of(measured, "vgg16", MEASURED_ONLY), WRITTEN, AVAILABLE, 60))
    assert shown_rows[:2] == ["Not measured here yet.", "next: m measures it"]
    predicted = texts(estimate_rows(view_of(measured, "vgg16"), WRITTEN, AVAILABLE, 60))
    assert predicted[0].startswith("~") and predicted[0].endswith(", predicted")
    assert "next: m measures it" in predicted


@pytest.mark.parametrize("choices", [WRITTEN, MEASURED_ONLY], ids=["predicted", "measured only"])
def test_a_run_in_progress_is_mentioned_in_place_of_the_next_step(measured: DataFolder, choices: Choices) -> None:
    view = view_of(measured, "vgg16", choices)
    shown_rows = texts(estimate_rows(view, choices, AVAILABLE, 60, UnderWay("A run of this model is in progress.")))
    begin = shown_rows.index("A run of this model is in progress.")
    assert shown_rows[begin + 1] == "w shows the run" and "next: m measures it" not in shown_rows


@pytest.mark.parametrize("width", [20, 30, 39, 57, 120])
def test_settings_fit_narrow_panels(width: int, measured: DataFolder) -> None:
    for row in estimate_rows(view_of(measured, "resnet18_v1"), WRITTEN, AVAILABLE, width, more=True):
        if isinstance(row.stop, Setting):
            assert width_of(row.line) <= max(width, 20)


def test_the_cursor_stops_on_settings_and_on_explanations(measured: DataFolder) -> None:
    view = view_of(measured, "resnet18_v1")
    found = estimate_rows(view, WRITTEN, AVAILABLE, 60, more=True)
    assert [row.stop for row in found if isinstance(row.stop, Setting)] == list(CHOSEN)
    assert not any(row.stop is not None for row in found[:6]) and found[-1].stop is not None


def test_the_answer_is_three_lines_and_all_else_is_one_key_away(measured: DataFolder) -> None:
    view = view_of(measured, "resnet18_v1")
    sure = replace(view.document.one, end_to_end=Latency(14.25, 14.20, 14.60))
    view = replace(about(view, sure), step=NextStep.LOAD)
    assert texts(estimate_rows(view, WRITTEN, AVAILABLE, 80))[:7] == [
        f"14.25 ms: MXNet, 2 threads, batch 1, measured {AGE} ago",
        "its bricks add up to 14.24 ms ±0.4 %: 0.1 % too little",
        "next: L how much load it can serve",
        "",
        f"sequential  14.24 ms  {'█' * 27}   95 %: 14.18 to 14.30 ms",
        f"parallel    12.64 ms  {'█' * 24}▎     1.13 times as fast",
        f"end to end  14.25 ms  {'█' * 27}░  measured, error -0.1 %",
    ]
    few, everything = (estimate_rows(view, WRITTEN, AVAILABLE, 80, more=more) for more in (False, True))
    assert texts(few)[-1] == ". shows workers, errors, coverage and settings"
    for told in ("2 workers", "Settings", "Coverage", "residual: ", "Latency by type"):
        assert told not in "\n".join(texts(few)) and told in "\n".join(texts(everything))
    unmeasured = about(view, replace(sure, end_to_end=None))
    assert texts(estimate_rows(unmeasured, WRITTEN, AVAILABLE, 80))[1].endswith("; not measured end to end")


def test_the_headline_names_settings_that_are_not_as_usual(measured: DataFolder) -> None:
    view, unusual = view_of(measured, "resnet18_v1"), replace(WRITTEN, granularity=3)
    headline = Headline()
    for choices, expert, told in (
        (Choices(), False, ""),
        (Choices(), True, "fused, bricks of 1 layer, chain"),
        (unusual, False, "bricks of up to 3 layers"),
    ):
        headline.show("resnet18_v1", choices, view.document.one, expert=expert)
        shown = "".join(span.text for span in headline.lines(160)[0])
        assert told in shown and ("bricks of 1 layer" in shown) is expert
        assert f"14.56 ms measured {AGE} ago MXNet, 2 threads, batch 1" in shown


def test_a_prediction_has_no_error_until_its_bricks_are_measured(measured: DataFolder) -> None:
    predicted, timed = view_of(measured, "vgg16"), view_of(measured, "resnet18_v1")
    whole = replace(predicted.document.one, end_to_end=timed.document.one.end_to_end)
    assert whole.error is not None
    shown_rows = texts(estimate_rows(about(predicted, whole), WRITTEN, AVAILABLE, 80))
    assert shown_rows[0].startswith("14.56 ms: ") and "error" not in " ".join(shown_rows[:-1])
    assert any(row.startswith("sequential ") and " ~" in row for row in shown_rows)
    assert any(row.startswith("end to end ") and row.endswith("  measured") for row in shown_rows)
    # Some of its bricks are measured: the error counts, but not while a run measures the others.
    partly = view_of(measured, "squeezenet1.1")
    whole = replace(partly.document.one, end_to_end=timed.document.one.end_to_end)
    partly = about(partly, whole)
    for under_way, told in ((UnderWay(), False), (UnderWay("A run of this model is in progress."), True)):
        shown_rows = texts(estimate_rows(partly, WRITTEN, AVAILABLE, 80, under_way))
        assert any("measured, error " in row for row in shown_rows) is not told


def test_a_run_shows_its_figures_until_its_results_are_stored(measured: DataFolder) -> None:
    under_way = UnderWay("A run of this model is in progress.", Latency(30.0, 20.0, 40.0), Latency(32.0, 31.0, 33.0))
    view = view_of(measured, "squeezenet1.1")
    assert texts(estimate_rows(view, WRITTEN, AVAILABLE, 62, under_way))[:6] == [
        "The estimate so far is 30.00 ms.",
        f"end to end  32.00 ms  {'█' * 22}░",
        f"sequential  30.00 ms  {'█' * 14}{'▓' * 7}{'░' * 7}",
        "20.00 to 40.00 ms, the 95 % interval so far; more samples",
        "narrow it.",
        "w shows the run",
    ]
    early = replace(under_way, estimate=None)
    assert (
        texts(estimate_rows(view, WRITTEN, AVAILABLE, 60, early))[0] == "The whole model is timed; its layers follow."
    )
    headline = Headline()
    headline.show("squeezenet1.1", WRITTEN, view.document.one)
    for run, told in ((under_way, "30.00 ms so far"), (early, "is being measured")):
        headline.show_run(run)
        assert told in "".join(span.text for span in headline.lines(120)[0])
    complete = view_of(measured, "resnet18_v1")
    assert texts(estimate_rows(complete, WRITTEN, AVAILABLE, 60, under_way))[0].startswith("14.56 ms: ")


def test_settings_are_shown_without_a_model(tmp_path: Path) -> None:
    shown_rows = texts(estimate_rows(CHOOSE_A_MODEL, WRITTEN, NONE_AVAILABLE, 60, more=True))
    assert shown_rows[0] == "No model is open." and "level       ◂ written ▸" in shown_rows


@pytest.mark.parametrize("setting", CHOSEN, ids=lambda it: it.name)
def test_every_setting_can_be_changed_and_changed_back(setting: Setting[Any]) -> None:
    choices = Choices(granularity=3, workers=3)
    there = change_setting(setting, choices, 1, AVAILABLE)
    assert there != choices and change_setting(setting, there, -1, AVAILABLE) == choices


def test_settings_are_shown_in_words() -> None:
    choices = Choices(2, Level.FUSED, Cut.OVERLAP, LayerOrder.PAPER, OTHER_SYSTEM.id, RUNTIME.id, 4)
    told = [setting_text(setting, choices, AVAILABLE) for setting in CHOSEN]
    assert told == [
        *("mxnet, 2 threads", "any number", "as in the file", "c5.xlarge, 4 cores"),
        *("f32", "on", "fused", "2", "overlap", "paper", "4"),
    ]
    assert [setting_text(setting, Choices(), AVAILABLE) for setting in (SYSTEM, BASIC_SETTINGS[0])] == [
        "this host",
        "the fastest",
    ]


def test_another_system_resets_the_runtime() -> None:
    choices = change_setting(SYSTEM, Choices(runtime=RUNTIME.id), 1, AVAILABLE)
    assert (choices.system, choices.runtime) == (OTHER_SYSTEM.id, None)


def test_granularity_and_workers_stop_at_one() -> None:
    for setting in (GRANULARITY, WORKERS):
        least = Choices(granularity=1, workers=1)
        assert change_setting(setting, least, -1, AVAILABLE) == least


def test_other_systems_with_results_are_named_if_this_one_has_none(measured: DataFolder) -> None:
    nowhere = Choices(level=Level.WRITTEN, system="a system without results")
    shown_rows = texts(estimate_rows(view_of(measured, "squeezenet1.1", nowhere), nowhere, AVAILABLE, 60))
    assert "c5.xlarge, 4 cores has results: select it as the system" in shown_rows


def test_the_answer_of_another_system_names_it(measured: DataFolder) -> None:
    there = replace(WRITTEN, system=OTHER_SYSTEM.id)
    view = view_of(measured, "resnet18_v1", there)
    assert "batch 1, on c5.xlarge, 4 cores, " in texts(estimate_rows(view, there, AVAILABLE, 90))[0]
    headline = Headline()
    headline.show("resnet18_v1", there, view.document.one)
    assert f", on {OTHER_SYSTEM.id}" in "".join(span.text for span in headline.lines(160)[0])


def test_the_runtime_of_the_measurements_is_named(measured: DataFolder) -> None:
    shown_rows = texts(estimate_rows(view_of(measured, "resnet18_v1"), WRITTEN, AVAILABLE, 120, more=True))
    assert any(", MXNet 1.9.1, 2 threads, written layers" in row for row in shown_rows)


def test_an_impossible_estimate_shows_the_reason_and_what_to_do(measured: DataFolder) -> None:
    view = view_of(measured, "alexnet")
    estimate = replace(view.document.one.estimate, composed=None, obstacle="layer 'gate' (If) runs layers inside it")
    system_estimate = replace(view.document.one, estimate=estimate, end_to_end=None)
    shown_rows = texts(estimate_rows(about(view, system_estimate), WRITTEN, AVAILABLE, 80))
    assert shown_rows[:3] == [
        "No estimate is possible.",
        "layer 'gate' (If) runs layers inside it.",
        "m with end to end on times the whole model",
    ]
    headline = Headline()
    headline.show("alexnet", WRITTEN, system_estimate)
    assert "no estimate possible" in "".join(span.text for span in headline.lines(120)[0])


def test_the_answer_of_a_combination_that_was_chosen_says_so_and_names_a_faster_one(new: DataFolder) -> None:
    store_run(new, ["resnet18_v1"])
    store_run(new, ["resnet18_v1"], runtime=replace(RUNTIME, id="mxnet-1.9.1 threads-1", threads=1), factor=3.0)
    for choices, said in ((WRITTEN, False), (replace(WRITTEN, threads=1), True)):
        view = view_of(new, "resnet18_v1", choices)
        shown_rows = " ".join(texts(estimate_rows(view, choices, AVAILABLE, 60)))
        assert (", as chosen" in shown_rows) is said
        assert ("the fastest measured: 14.56 ms: MXNet, 2 threads, batch 1" in shown_rows) is said
