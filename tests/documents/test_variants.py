from collections.abc import Sequence
from dataclasses import replace

from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.documents.pictures import Plot
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
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.estimate.estimate import Coverage
from dlbricks_tui.estimate.parts import Standing
from dlbricks_tui.runtime.variant import InstructionSet, Precision, Variant
from tests.documents.snapshots import check
from tests.documents.test_layout import texts
from tests.estimate.test_curve import point
from tests.estimate.test_ranking import estimated, predicted

BATCHES = [point(1, 10.0), point(2, 15.0), point(4, 26.0), point(8, 55.0), point(16, None), point(32, 230.0)]
THREADS = [point(size, 10.0 * size / threads**0.5, threads) for threads in (1, 4) for size in (1, 8)]

LACKING = replace(estimated(1.0).point.found.estimate.parts[0], standing=Standing.MISSING)


def plots_of(points: list[Point], bound_ms: float | None = None) -> tuple[Plot, Plot]:
    found = curve_pictures(points, bound_ms)
    assert found is not None
    return found


def of_variant(it: Point, variant: Variant) -> Point:
    return replace(it, found=replace(it.found, variant=variant))


def lines_of(points: Sequence[Point], width: int = 80) -> list[str]:
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
    lines = lines_of([point(1, 10.0), replace(point(2, None), cure=command)])
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
