"""The combinations of a model as a ranking, a matrix and curves."""

from collections.abc import Sequence
from dataclasses import asdict, replace
from typing import Any

from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.documents.parts import Sentence, Table
from dlbricks_tui.documents.pictures import Plot
from dlbricks_tui.documents.ranking import (
    MatrixRow,
    batch_sizes,
    cell_parts,
    cell_style,
    cell_text,
    column_points,
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
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.estimate.ranking import Comparable, Point, Ranked, Ranking, ranked
from dlbricks_tui.runtime.variant import USUAL_KERNELS, InstructionSet, Kernels, Optimisation, Precision, Variant
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.estimate.test_ranking import estimated, point, predicted, timed


def called(comparable: Comparable, runtime: str, **variant: Any) -> Comparable:
    """The same by a runtime of this name, in another variant."""
    found = replace(comparable.point.found, variant=replace(comparable.point.found.variant, **variant))
    return replace(comparable, point=replace(comparable.point, runtime=runtime, found=found))


MIXED = Ranking(
    "net",
    "c5.xlarge",
    ranked(
        [
            called(timed(1, 10.0), "onnxruntime"),
            called(timed(8, 70.0), "onnxruntime"),
            called(timed(8, 70.2), "openvino"),
            called(timed(8, 90.0, samples=4), "mxnet"),
            called(Comparable(point(16, None)), "mxnet"),
        ]
    ),
)


def lines_of(ranking: Ranking, width: int = 100) -> list[str]:
    return texts(width, *ranking_parts(ranking), look=TEXT)


def rows(ranking: Ranking, width: int = 100) -> list[list[str]]:
    return [line.split() for line in lines_of(ranking, width)]


def test_a_ranking_fits_80_columns_in_plain_characters() -> None:
    lines = lines_of(MIXED, 80)
    assert max(map(len, lines)) <= 80
    assert all(line.isascii() for line in lines)


def test_a_column_is_shown_for_everything_that_differs_and_the_heading_tells_the_rest() -> None:
    assert rows(MIXED)[0][:2] == ["RUNTIME", "BATCH"]
    assert ranking_heading(MIXED) == "c5.xlarge, 1 thread, f32, written layers; the best first, by throughput"
    both = [called(timed(1, 10.0), "openvino", precision=each) for each in Precision]
    ranking = Ranking("net", "c5.xlarge", ranked(both))
    assert rows(ranking)[0][0] == "PRECISION"
    assert ranking_heading(ranking) == (
        "c5.xlarge, OpenVINO, 1 thread, batch 1, written layers; the best first, by latency"
    )


def test_combinations_in_precisions_that_change_a_model_say_that_accuracy_was_not_checked() -> None:
    both = [called(timed(1, 10.0), "openvino", precision=each) for each in (Precision.F32, Precision.BF16)]
    assert lines_of(Ranking("net", "c5.xlarge", ranked(both)))[-1] == "bf16: accuracy was not checked"
    assert "bf16, accuracy not checked" in ranking_heading(Ranking("net", "c5.xlarge", ranked(both[1:])))
    assert "accuracy" not in "".join(lines_of(MIXED))


def test_the_rows_tell_latencies_throughput_and_significance() -> None:
    narrow, wide = predicted(5.0, 4.5, 5.5), predicted(5.0, 2.0, 20.0)
    uncertain = Ranking("net", "c5.xlarge", ranked([narrow, wide, timed(1, 10.0)]))
    estimates = Ranking("net", "c5.xlarge", ranked([estimated(1.0), estimated(2.0)]))
    alone = replace(MIXED, combinations=MIXED.combinations[:1])
    cases = {"mixed": MIXED, "predicted": uncertain, "estimated": estimates, "alone": alone}
    check("ranking", {name: ranking_parts(each) for name, each in cases.items()})
    told = {name: [Sentence(ranking_heading(it)), Sentence(ranking_answer(it))] for name, it in cases.items()}
    check("ranking-words", told)
    nothing = Ranking("net", "c5.xlarge", (Ranked(Comparable(point(1, None)), None),))
    assert ranking_answer(nothing) == "net was not measured in any combination."
    assert lines_of(MIXED, 80)[-1] == "unknown: fewer than 5 samples"


def test_an_uncertain_prediction_is_not_called_the_best() -> None:
    only = Ranking("net", "c5.xlarge", ranked([predicted(5.0, 2.0, 20.0)]))
    assert lines_of(only)[1].endswith("uncertain")
    assert ranking_answer(only).startswith(" may be best, but it is predicted too uncertainly: ~5.000 ms, ~200.0 per")


def test_the_interval_of_estimates_is_left_out_where_the_width_is_short() -> None:
    ranking = Ranking("net", "c5.xlarge", ranked([estimated(1.0), estimated(2.0)]))
    assert rows(ranking)[1][3:5] == ["+-1.0", "%"]
    assert "95" not in rows(ranking, 50)[0]


def test_estimates_of_measured_combinations_are_left_out_where_the_width_is_shorter_still() -> None:
    assert "ESTIMATE" in rows(MIXED, 70)[0]
    titles = rows(MIXED, 60)[0]
    assert "ESTIMATE" not in titles and "MEASURED" in titles
    only_estimated = Ranking("net", "c5.xlarge", ranked([estimated(1.0), estimated(2.0)]))
    assert "ESTIMATE" in rows(only_estimated, 40)[0]


def test_a_single_combination_without_a_latency_has_no_order() -> None:
    only = Ranking("net", "c5.xlarge", (Ranked(Comparable(point(1, None)), None),))
    assert ranking_heading(only) == "c5.xlarge, 1 thread, batch 1, f32, written layers"
    assert "best first" not in ranking_heading(only)


def test_a_single_combination_is_compared_with_nothing() -> None:
    only = replace(MIXED, combinations=MIXED.combinations[:1])
    titles = lines_of(only)[0]
    assert "MEASURED" in titles and "BEST" not in titles and "best" not in "".join(lines_of(only))
    assert "AGAINST BEST" in lines_of(MIXED)[0]


def test_limits_on_kernels_are_columns_where_they_differ_and_the_heading_tells_only_real_ones() -> None:
    limits = USUAL_KERNELS, Kernels(InstructionSet.AVX2), Kernels(optimisation=Optimisation.BASIC)
    every = [called(timed(1, 10.0), "openvino", **asdict(each)) for each in limits]
    assert rows(Ranking("net", "c5.xlarge", ranked(every)))[0][:2] == ["INSTRUCTIONS", "OPTIMISATION"]
    assert ", avx2 kernels, written" in ranking_heading(Ranking("net", "c5.xlarge", ranked(every[1:2])))
    assert ranking_heading(Ranking("net", "c5.xlarge", ranked(every[2:]))).count("optimisation basic") == 1


def test_the_only_measured_combination_is_not_called_the_best() -> None:
    one, other = called(timed(1, 10.0), "onnxruntime"), called(predicted(30.0, 29.0, 31.0), "mxnet")
    alone = Ranking("net", "c5.xlarge", ranked([one, other]))
    assert ranking_answer(alone).startswith("Only ONNX Runtime was measured: 10.00 ms, ")
    assert ranking_answer(alone).endswith("per second; 1 other was not.")
    quicker = called(predicted(5.0, 4.9, 5.1), "mxnet")
    assert ranking_answer(Ranking("net", "c5.xlarge", ranked([one, quicker]))).startswith(
        "Only ONNX Runtime was measured"
    )
    # What is predicted to be faster beyond doubt is worth a measurement.
    answer = ranking_answer(Ranking("net", "c5.xlarge", ranked([one, quicker])))
    assert "MXNet is predicted to be faster: ~5.000 ms" in answer
    two = [called(timed(1, ms), name) for ms, name in ((10.0, "onnxruntime"), (20.0, "mxnet"))]
    assert "ONNX Runtime is best: " in ranking_answer(Ranking("net", "c5.xlarge", ranked(two)))


def test_the_answer_counts_what_was_measured_where_most_others_are_predicted() -> None:
    two = [called(timed(1, ms), name) for ms, name in ((10.0, "onnxruntime"), (20.0, "mxnet"))]
    others = [called(predicted(30.0, 29.0, 31.0), "openvino", batch=size) for size in (1, 2)]
    answer = ranking_answer(Ranking("net", "c5.xlarge", ranked([*two, *others])))
    assert "; of 1 other measured 1 slower by up to 100 %" in answer and "predicted" not in answer


def test_the_answer_within_a_bound_names_the_best_that_keeps_it() -> None:
    best = "ONNX Runtime, batch 1 is best by throughput: 10.00 ms, 100.0 per second."
    assert ranking_answer(MIXED.within(50.0), 50.0) == f"Under 50 ms: {best}"
    assert ranking_answer(MIXED.within(1.0), 1.0) == "No combination is known to stay under 1 ms."
    assert MIXED.within(None) is MIXED


def with_threads(threads: int | None, comparable: Comparable, runtime: str = "onnxruntime") -> Comparable:
    found = called(comparable, runtime, threads=threads)
    return replace(found, point=replace(found.point, threads=threads))


def ranking_of(*combinations: Comparable) -> Ranking:
    return Ranking("net", "c5.xlarge", ranked(combinations))


FULL = ranking_of(
    *(with_threads(2, timed(size, ms)) for size, ms in ((1, 7.0), (2, 12.0), (4, 20.0))),
    *(with_threads(1, timed(size, 9.0 * size)) for size in (1, 4)),
    with_threads(1, called(predicted(18.0, 17.0, 19.0), "", batch=2)),
    *(called(timed(size, 8.0 * size), "openvino") for size in (1, 2)),
    called(timed(1, 30.0), "mxnet", instructions=InstructionSet.AVX2),
    called(Comparable(point(8, None)), "mxnet"),
)


def cell(ranking: Ranking, place: int, size: int, bound_ms: float | None = None) -> list[str]:
    return texts(80, *cell_parts(ranking, matrix_rows(ranking)[place], size, bound_ms), look=TEXT)


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
    check("matrix", {"latencies": matrix_parts(FULL), "rates": [rates], "mixed": matrix_parts(MIXED)})
    lines = texts(80, *matrix_parts(FULL), look=TEXT)
    assert all(line.isascii() and len(line) <= 80 for line in lines)


def test_a_single_row_or_column_is_no_matrix() -> None:
    assert not list(matrix_parts(ranking_of(timed(1, 10.0), timed(8, 40.0))))
    assert not list(matrix_parts(ranking_of(timed(1, 10.0), called(timed(1, 20.0), "mxnet"))))
    assert list(matrix_parts(MIXED))


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


def test_a_cell_says_what_is_known_of_it() -> None:
    assert cell(FULL, 1, 4) == [
        "ONNX Runtime, 2 threads, batch 4",
        "measured      20.00 ms, 200.0 per second",
        "against best  best",
    ]
    assert cell(FULL, 0, 4)[2] == "against best  +80 % slower"
    assert cell(FULL, 0, 2)[1] == "predicted     18.00 ms, 111.1 per second, 95 % 17.00 to 19.00"
    assert cell(FULL.within(15.0), 1, 4, 15.0)[-1] == "against best  above the bound of 15 ms"
    assert cell(MIXED, 2, 8)[-1] == "against best  +29 % unknown: fewer than 5 samples"
    bricks_only = ranking_of(timed(1, 100.0), called(estimated(1.0), "mxnet"))
    (row,) = [number for number, it in enumerate(matrix_rows(bricks_only)) if it.point.runtime == "mxnet"]
    assert cell(bricks_only, row, 1)[1].startswith("estimate      ")


def test_a_cell_without_a_latency_says_why() -> None:
    assert cell(FULL, 4, 8)[1] == "not measured"
    assert cell(FULL, 2, 4)[1] == "not measured"
    assert cell(replace(FULL, refusals=("its file fixes the batch",)), 2, 4)[1] == "its file fixes the batch"


def test_a_best_cell_that_may_be_chance_asks_for_a_repetition() -> None:
    assert not repeat_sentence(FULL)
    few = ranking_of(called(timed(8, 70.0), "onnxruntime"), called(timed(8, 74.0, samples=4), "openvino"))
    assert repeat_sentence(few) == "Repeat: OpenVINO may be as fast;"
    assert isinstance(matrix_rows(few)[0], MatrixRow)


BATCHES = [point(1, 10.0), point(2, 15.0), point(4, 26.0), point(8, 55.0), point(16, None), point(32, 230.0)]
THREADS = [point(size, 10.0 * size / threads**0.5, threads) for threads in (1, 4) for size in (1, 8)]

LACKING = replace(estimated(1.0).point.found.estimate.parts[0], standing=Standing.MISSING)


def plots_of(points: list[Point], bound_ms: float | None = None) -> tuple[Plot, Plot]:
    found = curve_pictures(points, bound_ms)
    assert found is not None
    return found


def of_variant(it: Point, variant: Variant) -> Point:
    return replace(it, found=replace(it.found, variant=variant))


def variant_lines(points: Sequence[Point], width: int = 80) -> list[str]:
    return texts(width, *variants_parts(points), look=TEXT)


def test_each_variant_has_a_row_and_a_missing_one_says_which_run_measures_it() -> None:
    int8 = [of_variant(it, replace(it.found.variant, precision=Precision.INT8)) for it in BATCHES[:2]]
    avx2 = [of_variant(it, replace(it.found.variant, instructions=InstructionSet.AVX2)) for it in BATCHES[:2]]
    check(
        "variants",
        {
            "batches": variants_parts(BATCHES),
            "threads": variants_parts(THREADS),
            "precisions": variants_parts([*BATCHES[:2], *int8]),
            "kernels": variants_parts([*BATCHES[:2], *avx2]),
            "estimated": variants_parts([estimated(1.0).point, predicted(5.0, 4.5, 5.5).point]),
        },
    )
    latencies, throughputs = plots_of(BATCHES, 50.0)
    by_threads = plots_of(THREADS)
    check(
        "variants-pictures",
        {"ms": latencies, "per second": throughputs, "threads": by_threads[0], "per second by threads": by_threads[1]},
    )
    several = plots_of([*BATCHES[:2], *int8])
    assert [it.style for it in several[0].series] == ["accent", "good"]


def test_a_long_command_has_a_line_of_its_own() -> None:
    command = f"dlbricks run {'x' * 70}"
    lines = variant_lines([point(1, 10.0), replace(point(2, None), cure=command)])
    assert [line.strip() for line in lines[2:4]] == ["2  not measured:", command]


def test_the_best_batch_under_a_bound_is_named_with_its_figures() -> None:
    assert best_line(BATCHES, 50) == "best under 50 ms: batch 4, 26.00 ms, 153.8 per second"
    assert best_line(BATCHES, 5) == "none stays under 5 ms; the quickest is batch 1, 10.00 ms, 100.0 per second"


def test_a_series_of_one_point_has_one_figure() -> None:
    latencies, throughputs = curve_sentences([point(1, 10.0, 2), point(1, 20.0, 1), point(4, 50.0, 1)])
    assert latencies == "2 threads, batch 1: 10.00 ms; 1 thread: 20.00 to 50.00 ms"
    assert throughputs == "2 threads, batch 1: 100.0 per second; 1 thread: 50.00 to 80.00 per second"


def test_a_single_size_has_no_curve() -> None:
    assert curve_pictures([point(1, 10.0), point(2, None)], None) is None


def test_several_series_have_letters_and_names_that_tell_what_varies() -> None:
    int8 = [of_variant(it, replace(it.found.variant, precision=Precision.INT8)) for it in BATCHES[:2]]
    avx2 = [of_variant(it, replace(it.found.variant, instructions=InstructionSet.AVX2)) for it in BATCHES[:2]]
    for points, names in (
        (THREADS, ["1 thread", "4 threads"]),
        ([*BATCHES[:2], *int8], ["f32", "int8"]),
        ([*BATCHES[:2], *avx2], ["all kernels", "avx2 kernels"]),
    ):
        latencies, _ = plots_of(points)
        assert [(it.mark, it.name) for it in latencies.series] == list(zip("AB", names, strict=True))
        assert latencies.legend == ("capitals: measured",)


def test_the_answer_names_the_quickest_and_the_busiest_variant() -> None:
    assert curve_answer([point(1, None)]) == "Nothing was measured in any of these variants."
    assert curve_answer(BATCHES) == (
        "Least latency: batch 1, 10.00 ms, 100.0 per second. Highest throughput: batch 4, 26.00 ms, 153.8 per second."
    )
    threads = [point(1, 10.0, 2), point(1, 25.0, 1)]
    assert curve_answer(threads) == "2 threads: 10.00 ms, 100.0 per second, 2.50 times as fast as 1 thread."
    assert curve_answer(threads[:1]) == "Batch 1: 10.00 ms, 100.0 per second."
    assert best_line([point(1, None)], 5) == "nothing is known about latencies under 5 ms"
    doubtful = [predicted(5.0, 4.5, 5.5).point]
    assert best_line(doubtful, 5.2) == (
        "best under 5.2 ms: batch 1, ~5.000 ms, 200.0 per second, but its interval reaches 5.500 ms"
    )
    assert variants_question("net") == "Which runtime, batch size and number of threads suit net?"
    assert variant_name(threads[0]) == "ONNX Runtime, 2 threads, written"


def test_a_variant_without_figures_says_why() -> None:
    (composed,) = [replace(estimated(1.0).point, cure="run it")]
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
