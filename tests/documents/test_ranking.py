"""The combinations of a model as a ranking, a matrix and curves."""

from dataclasses import asdict, replace
from typing import Any

import pytest

from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.ranking import (
    batch_sizes,
    cell_parts,
    cell_style,
    cell_text,
    column_points,
    figure_remarks,
    matrix_columns,
    matrix_parts,
    matrix_rows,
    ranking_answer,
    ranking_heading,
    ranking_parts,
    repeat_sentence,
    row_points,
)
from dlbricks_tui.documents.variants import (
    best_line,
    curve_answer,
    curve_pictures,
    curve_sentences,
    missing_figures,
    variant_name,
    variants_parts,
    variants_question,
)
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.estimate.knowledge import Latency
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.estimate.ranking import Point, Ranked, Ranking, ranked
from dlbricks_tui.runtime.variant import USUAL_KERNELS, InstructionSet, Kernels, Optimisation, Precision, Variant
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.numbers import measured_ago
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.estimate.test_ranking import estimated, point, predicted, timed


def called(point: Point, runtime: str, **variant: Any) -> Point:
    """The same by a runtime of this name, in another variant."""
    found = replace(point.found, variant=replace(point.found.variant, **variant))
    return replace(point, runtime=runtime, found=found)


MIXED = Ranking(
    "net",
    "c5.xlarge",
    ranked(
        [
            called(timed(1, 10.0), "onnxruntime"),
            called(timed(8, 70.0), "onnxruntime"),
            called(timed(8, 70.2), "openvino"),
            called(timed(8, 90.0, samples=4), "mxnet"),
            called(point(16, None), "mxnet"),
        ]
    ),
)


def ranking_of(*combinations: Point) -> Ranking:
    return Ranking("net", "c5.xlarge", ranked(combinations))


def titles(ranking: Ranking, width: int = 100) -> list[str]:
    return texts(width, *ranking_parts(ranking), look=TEXT)[0].split()


def test_the_rows_tell_latencies_throughput_and_significance_and_what_differs_is_a_column() -> None:
    measured = [called(timed(1, ms), name) for ms, name in ((10.0, "onnxruntime"), (20.0, "mxnet"))]
    others = [called(predicted(30.0, 29.0, 31.0), "openvino", batch=size) for size in (1, 2)]
    slower, quicker = (called(predicted(ms, ms - 0.1, ms + 0.1), "mxnet") for ms in (30.0, 5.0))
    by_precision = [called(timed(1, 10.0), "openvino", precision=each) for each in Precision]
    limits = USUAL_KERNELS, Kernels(InstructionSet.AVX2), Kernels(optimisation=Optimisation.BASIC)
    by_kernels = [called(timed(1, 10.0), "openvino", **asdict(each)) for each in limits]
    cases = {
        "mixed": MIXED,
        "predicted": ranking_of(predicted(5.0, 4.5, 5.5), predicted(5.0, 2.0, 20.0), timed(1, 10.0)),
        "predicted too uncertainly": ranking_of(predicted(5.0, 2.0, 20.0)),
        "estimated": ranking_of(estimated(1.0), estimated(2.0)),
        "alone": replace(MIXED, combinations=MIXED.combinations[:1]),
        "two measured": ranking_of(*measured),
        # The only one that was measured is not called the best.
        "one of two measured": ranking_of(measured[0], slower),
        # What is predicted to be faster beyond doubt is worth a measurement.
        "one of two measured, the slower": ranking_of(measured[0], quicker),
        "most others predicted": ranking_of(*measured, *others),
        "precisions": ranking_of(*by_precision),
        "accuracy is not checked": ranking_of(by_precision[1]),
        "kernels": ranking_of(*by_kernels),
        "avx2 kernels": ranking_of(by_kernels[1]),
        "basic optimisation": ranking_of(by_kernels[2]),
    }
    check("ranking", {name: ranking_parts(each) for name, each in cases.items()})
    nothing = Ranking("net", "c5.xlarge", (Ranked(point(1, None), None),))
    told = {**cases, "nothing measured": nothing}
    words = {name: [ranking_heading(it), ranking_answer(it)] for name, it in told.items()}
    bounds = [ranking_answer(MIXED.within(bound), bound) for bound in (50.0, 1.0)]
    few = ranking_of(called(timed(8, 70.0), "onnxruntime"), called(timed(8, 74.0, samples=4), "openvino"))
    repeats = [repeat_sentence(it) or "no repetition" for it in (FULL, few)]
    check("ranking-words", {**words, "within bounds": bounds, "repetitions": repeats}, width=160)
    assert MIXED.within(None) is MIXED


def test_intervals_and_then_estimates_of_measured_combinations_are_left_out_where_the_width_is_short() -> None:
    estimates = ranking_of(estimated(1.0), estimated(2.0))
    assert all(len(it) <= 80 and it.isascii() for it in texts(80, *ranking_parts(MIXED), look=TEXT))
    assert "95" in titles(estimates) and "95" not in titles(estimates, 50)
    assert "ESTIMATE" in titles(MIXED, 70) and "ESTIMATE" in titles(estimates, 40)
    assert "ESTIMATE" not in titles(MIXED, 60) and "MEASURED" in titles(MIXED, 60)


def with_threads(threads: int | None, point: Point, runtime: str = "onnxruntime") -> Point:
    return replace(called(point, runtime, threads=threads), threads=threads)


def test_predictions_that_do_not_depend_on_threads_are_explained() -> None:
    for values, is_told in (((18.0, 18.0), True), ((18.0, 17.0), False)):
        points = [with_threads(number, predicted(ms, 9.0, 30.0)) for number, ms in enumerate(values, start=1)]
        told = " ".join(texts(80, *figure_remarks(ranking_of(timed(1, 10.0), *points)), look=TEXT))
        assert ("with a number of threads, its prediction is the same" in " ".join(told.split())) == is_told


FULL = ranking_of(
    *(with_threads(2, timed(size, ms)) for size, ms in ((1, 7.0), (2, 12.0), (4, 20.0))),
    *(with_threads(1, timed(size, 9.0 * size)) for size in (1, 4)),
    with_threads(1, called(predicted(18.0, 17.0, 19.0), "", batch=2)),
    *(called(timed(size, 8.0 * size), "openvino") for size in (1, 2)),
    called(timed(1, 30.0), "mxnet", instructions=InstructionSet.AVX2),
    called(point(8, None), "mxnet"),
)


def test_rows_are_runtimes_by_threads_and_columns_are_batch_sizes() -> None:
    rows = matrix_rows(FULL)
    assert [(row.point.runtime, row.point.threads) for row in rows[:3]] == [
        ("onnxruntime", 1),
        ("onnxruntime", 2),
        ("openvino", 1),
    ]
    # What was measured with limited kernels has a row of its own.
    assert len(rows) == 5 and [len(row.cells) for row in rows] == [3, 3, 2, 1, 1]
    assert batch_sizes(FULL) == (1, 2, 4, 8)
    assert [it.batch_size for it in row_points(rows[1])] == [1, 2, 4]
    assert [it.runtime for it in column_points(rows, 1)] == ["onnxruntime", "onnxruntime", "openvino", "mxnet"]


def test_a_matrix_shows_latencies_or_rates_and_marks_the_best_and_predictions() -> None:
    rates = Table(matrix_columns(FULL, by_rate=True), matrix_rows(FULL))
    column, row = (called(timed(1, 20.0), "mxnet"), timed(8, 40.0))
    check(
        "matrix",
        {
            "latencies": matrix_parts(FULL),
            "rates": [rates],
            "mixed": matrix_parts(MIXED),
            # A single row or column is none.
            "a row": matrix_parts(ranking_of(timed(1, 10.0), row)),
            "a column": matrix_parts(ranking_of(timed(1, 10.0), column)),
        },
    )
    lines = texts(80, *matrix_parts(FULL), look=TEXT)
    assert all(line.isascii() and len(line) <= 80 for line in lines)


def test_columns_without_room_are_left_out_those_that_nobody_measured_first() -> None:
    def sizes(width: int) -> list[str]:
        return texts(width, *matrix_parts(FULL), look=TEXT)[1].split("BATCH")[1].split()

    shown = [sizes(width) for width in (80, 64, 55)]
    assert shown == [["1", "2", "4", "8"], ["1", "2", "4"], ["1", "4"]]


def test_the_style_of_a_cell_says_what_it_is() -> None:
    first, second, *_, last = matrix_rows(FULL)
    assert [cell_style(second, size) for size in (1, 4)] == ["text", "good"]
    assert [cell_style(first, size) for size in (1, 2, 8)] == ["text", "muted", "muted"]
    assert cell_style(last, 8) == "muted"
    # Cells above a bound are muted and not the best.
    within = FULL.within(15.0)
    row = matrix_rows(within)[1]
    assert (cell_style(row, 4), cell_text(row.cells[4])) == ("muted", "20.00")
    assert (cell_style(row, 2), cell_text(row.cells[2])) == ("good", "best 12.00")


def test_a_cell_says_what_is_known_of_it_or_why_there_is_no_latency() -> None:
    bricks_only = ranking_of(timed(1, 100.0), called(estimated(1.0), "mxnet"))
    (row,) = [number for number, it in enumerate(matrix_rows(bricks_only)) if it.point.runtime == "mxnet"]
    within = FULL.within(15.0)
    cells: dict[str, tuple[Ranking, int, int, float | None]] = {
        "the best": (FULL, 1, 4, None),
        "slower": (FULL, 0, 4, None),
        "predicted": (FULL, 0, 2, None),
        "above the bound": (within, 1, 4, 15.0),
        "too few samples": (MIXED, 2, 8, None),
        "an estimate": (bricks_only, row, 1, None),
        "not measured": (FULL, 4, 8, None),
        "no combination": (FULL, 2, 4, None),
        "refused": (replace(FULL, refusals=("its file fixes the batch",)), 2, 4, None),
    }
    parts = {name: cell_parts(of, matrix_rows(of)[at], size, bound) for name, (of, at, size, bound) in cells.items()}
    check("cells", parts)


def test_the_age_of_a_measured_cell_is_that_of_its_whole_model_as_in_the_headline(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(numbers, "now", lambda: 10_000.0)
    it = estimated(1.0)
    estimate = it.found.estimate
    parts = [
        replace(part, measured=part.measured and part.measured._replace(when=9_000 * 10**6)) for part in estimate.parts
    ]
    whole = Latency(10.0, 9.0, 11.0)
    found = replace(
        it.found, end_to_end=whole, timed_when=9_800 * 10**6, estimate=replace(estimate, parts=tuple(parts))
    )
    ranking = ranking_of(replace(it, found=found))
    told = texts(80, *cell_parts(ranking, matrix_rows(ranking)[0], 1), look=TEXT)
    assert any("10.00 ms" in line and line.endswith("3 min ago") for line in told)
    assert measured_ago([found]) == "measured 3 min to 17 min ago"


BATCHES = [point(1, 10.0), point(2, 15.0), point(4, 26.0), point(8, 55.0), point(16, None), point(32, 230.0)]
THREADS = [point(size, 10.0 * size / threads**0.5, threads) for threads in (1, 4) for size in (1, 8)]

LACKING = replace(estimated(1.0).found.estimate.parts[0], standing=Standing.MISSING)


def of_variant(it: Point, variant: Variant) -> Point:
    return replace(it, found=replace(it.found, variant=variant))


def test_each_variant_has_a_row_and_a_missing_one_says_which_run_measures_it() -> None:
    int8 = [of_variant(it, replace(it.found.variant, precision=Precision.INT8)) for it in BATCHES[:2]]
    avx2 = [of_variant(it, replace(it.found.variant, instructions=InstructionSet.AVX2)) for it in BATCHES[:2]]
    cases = {"batches": BATCHES, "threads": THREADS, "precisions": [*BATCHES[:2], *int8]}
    cases["kernels"] = [*BATCHES[:2], *avx2]
    estimates = [estimated(1.0), predicted(5.0, 4.5, 5.5), predicted(0.001825, 0.00171, 0.00194)]
    long = [point(1, 10.0), replace(point(2, None), cure=f"dlbricks run {'x' * 70}")]
    parts = {name: variants_parts(it) for name, it in {**cases, "estimated": estimates, "a long command": long}.items()}
    check("variants", parts)
    plots = {
        f"{name}: {plot.title}": plot
        for name, points in cases.items()
        for plot in curve_pictures(points, 50.0 if points is BATCHES else None) or ()
    }
    check("variants-pictures", plots)
    assert curve_pictures([point(1, 10.0), point(2, None)], None) is None


def test_variants_are_told_in_sentences() -> None:
    threads, nothing = [point(1, 10.0, 2), point(1, 25.0, 1)], [point(1, None)]
    # A batch takes longer, but hardly longer for each of its items.
    small_is_best = [point(1, 10.0), point(4, 50.0)]
    doubtful = [predicted(5.0, 4.5, 5.5)]
    both = [replace(it, found=replace(it.found, end_to_end=Latency(6.0, 5.0, 7.0))) for it in doubtful]
    under = ((BATCHES, 50), (BATCHES, 5), (nothing, 5), (doubtful, 5.2), (both, 6.5), (both, 5.2))
    check(
        "variants-words",
        {
            "under a bound": [best_line(points, bound) for points, bound in under],
            # A series of one point has one figure.
            "curves": curve_sentences([*threads[:1], point(1, 20.0, 1), point(4, 50.0, 1)]),
            "answers": [curve_answer(it) for it in (nothing, BATCHES, threads, threads[:1], small_is_best)],
            "the question": variants_question("net"),
            "the name": variant_name(threads[0]),
        },
        width=140,
    )


def test_a_variant_without_figures_says_why() -> None:
    (composed,) = [replace(estimated(1.0), cure="run it")]
    some = replace(composed.found.estimate, coverage=Coverage(1, 1, 0, predicted=1))
    for found, told in (
        (composed.found.estimate, None),
        (replace(some, obstacle="of an operator"), ("no estimate is possible: of an operator", "")),
        (replace(some, composed=None), ("not measured: ", "run it")),
        (some, ("some layers are neither measured nor predicted: ", "run it")),
        (replace(some, coverage=Coverage(1, 1, 0)), ("only 1 of 2 layers measured: ", "run it")),
    ):
        lacking = found if told is None else replace(found, parts=(*found.parts, LACKING))
        assert missing_figures(replace(composed, found=replace(composed.found, estimate=lacking))) == told
