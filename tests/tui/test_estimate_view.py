"""The estimates of the workbench, from the results that its settings select, and the steps after them."""

from dataclasses import replace
from datetime import datetime
from functools import cache, partial

import pytest

from dlbricks_tui.api.estimating import Answer, KnownAlready, ThreadSafeEstimator
from dlbricks_tui.api.open_models import Available, Choices
from dlbricks_tui.api.session import SharedStore
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.documents.estimate import EstimateDocument
from dlbricks_tui.documents.run import UnderWay
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.system_estimate import SystemEstimate
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runtime.variant import INSTRUCTIONS_VARIABLE
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.widgets.text import text_of
from dlbricks_tui.tui.workbench.estimate import (
    NEXT_STEPS,
    EstimateRow,
    EstimateView,
    Headline,
    estimate_rows,
    next_step,
)
from dlbricks_tui.wording.numbers import age
from tests.store.samples import end_to_end, load_test, proof
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
    answer = estimator.answer(source_called(name), choices, lambda _: read())
    document = EstimateDocument(answer.decomposition.graph, answer.found, answer.is_chosen, answer.fastest)
    return EstimateView(document, estimator.other_systems(answer))


def about(view: EstimateView, one: SystemEstimate) -> EstimateView:
    """Return the view of another estimate of the same model."""
    return replace(view, document=replace(view.document, one=one))


def texts(found: tuple[EstimateRow, ...]) -> list[str]:
    return ["".join(span.text for span in row.line).rstrip() for row in found]


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


def test_the_answer_is_three_lines_and_all_else_is_one_key_away(measured: DataFolder) -> None:
    view = view_of(measured, "resnet18_v1")
    sure = replace(view.document.one, end_to_end=Latency(14.25, 14.20, 14.60))
    view = replace(about(view, sure), step=NEXT_STEPS[2])
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
    for choices, expert, told in (
        (Choices(), False, ""),
        (Choices(), True, "fused, bricks of 1 layer, chain"),
        (unusual, False, "bricks of up to 3 layers"),
    ):
        shown = text_of(Headline("resnet18_v1", choices, view.document.one, expert=expert).line(160))
        assert told in shown and ("bricks of 1 layer" in shown) is expert
        assert f"14.56 ms measured {AGE} ago MXNet, 2 threads, batch 1" in shown
        narrow = text_of(Headline("resnet18_v1", choices, view.document.one, expert=expert).line(40))
        assert narrow.startswith("dlbricks resnet18_v1 14.56 ms")


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
    headline = Headline("squeezenet1.1", WRITTEN, view.document.one)
    for run, told in ((under_way, "30.00 ms so far"), (early, "is being measured")):
        assert told in text_of(replace(headline, under_way=run).line(120))
    complete = view_of(measured, "resnet18_v1")
    assert texts(estimate_rows(complete, WRITTEN, AVAILABLE, 60, under_way))[0].startswith("14.56 ms: ")


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
    assert "no estimate possible" in text_of(Headline("alexnet", WRITTEN, system_estimate).line(120))


MODEL = "squeezenet1.1"
LIMITED = replace(RUNTIME, id=f"{RUNTIME.id} {INSTRUCTIONS_VARIABLE}=AVX2")


def answer(estimator: ThreadSafeEstimator, choices: Choices) -> Answer:
    return estimator.answer(source_called(MODEL), choices, lambda _: decompose(graph_of(MODEL)))


def test_results_with_limited_kernels_count_only_if_their_runtime_is_selected(new: DataFolder) -> None:
    # Those of a proof are the newest, and cover as much.
    store_run(new, [MODEL])
    store_run(new, [MODEL], runtime=LIMITED, factor=2.0)
    estimator = ThreadSafeEstimator(SharedStore(new.store), new)

    def way_and_ms(runtime: str | None) -> tuple[str, float | None]:
        found = answer(estimator, replace(WRITTEN, runtime=runtime)).found
        return found.way.runtime, found.sequential_ms

    usual, limited = way_and_ms(None), way_and_ms(LIMITED.id)
    assert (usual[0], limited[0]) == (RUNTIME.id, LIMITED.id)
    assert limited[1] == pytest.approx(2.0 * (usual[1] or 0.0), rel=0.1)


NOTHING_YET = KnownAlready(combinations=1, systems=1)


@pytest.mark.parametrize(
    ("known", "action"),
    [
        (NOTHING_YET, "workbench.show_variants"),
        (NOTHING_YET._replace(combinations=2), "workbench.show_analysis"),
        (NOTHING_YET._replace(combinations=2, proofs=1), "workbench.show_scenario"),
        (NOTHING_YET._replace(combinations=2, proofs=1, load_tests=1), "workbench.open_path"),
        (KnownAlready(9, 1, 1, systems=1, own_models=2), "workbench.show_fleet"),
    ],
)
def test_the_first_step_is_suggested_whose_answer_is_not_known(known: KnownAlready, action: str) -> None:
    assert (step := next_step(known)) is not None and step.action == action
    assert next_step(KnownAlready(9, 1, 1, 2, 2)) is None


def test_the_store_tells_what_is_known_of_a_model_on_a_system(measured: DataFolder) -> None:
    there = Choices(level=WRITTEN.level, system=OTHER_SYSTEM.id)

    def known() -> KnownAlready:
        return ThreadSafeEstimator(SharedStore(measured.store), measured).known_about("resnet18_v1", there)

    before = known()
    with ResultsDatabase(measured.store) as store:
        store.add(
            proof(name="resnet18_v1", system=OTHER_SYSTEM.id),
            load_test(name="resnet18_v1", system=OTHER_SYSTEM.id),
            load_test(name="resnet50_v1", system=OTHER_SYSTEM.id),
            end_to_end(name="resnet18_v1", system=OTHER_SYSTEM.id, batch_size=32),
        )
    after = known()
    assert (after.proofs, after.load_tests) == (before.proofs + 1, before.load_tests + 1)
    assert after.combinations == before.combinations + 1 and after.systems == before.systems >= 2
