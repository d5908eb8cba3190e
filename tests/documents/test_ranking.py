from dataclasses import asdict, replace
from typing import Any

from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.documents.parts import Sentence
from dlbricks_tui.documents.ranking import ranking_answer, ranking_heading, ranking_parts
from dlbricks_tui.estimate.ranking import Comparable, Ranked, Ranking, ranked
from dlbricks_tui.runtime.variant import USUAL_KERNELS, InstructionSet, Kernels, Optimisation, Precision
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.estimate.test_curve import point
from tests.estimate.test_ranking import estimated, predicted, timed


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
