from dataclasses import replace

from dlbricks_tui.runtime.variant import InstructionSet, Kernels, Precision
from dlbricks_tui.wording.curves import best_line, curve_sentences, curve_table
from tests.estimate.test_curve import point

BATCHES = [point(1, 10.0), point(2, 15.0), point(4, 26.0), point(8, 55.0), point(16, None), point(32, 230.0)]


def test_each_variant_has_a_row_and_a_missing_one_says_which_run_measures_it() -> None:
    lines = curve_table(BATCHES, 80)
    assert lines[0].split() == ["BATCH", "ESTIMATE", "95", "%", "MEASURED", "PER", "SECOND"]
    assert lines[4].split() == ["8", "-", "-", "55.00", "ms", "145.5"]
    assert lines[5].strip() == "16  not measured: dlbricks run net"


def test_a_long_command_has_a_line_of_its_own() -> None:
    command = f"dlbricks run {'x' * 70}"
    lines = curve_table([point(1, 10.0), replace(point(2, None), cure=command)], 80)
    assert [line.strip() for line in lines[2:4]] == ["2  not measured:", command]


def test_the_best_batch_under_a_bound_is_named_with_its_figures() -> None:
    assert best_line(BATCHES, 50) == "best under 50 ms: batch 4, 26.00 ms, 153.8 per second"
    assert best_line(BATCHES, 5) == "none stays under 5 ms; the quickest is batch 1, 10.00 ms, 100.0 per second"


def test_several_numbers_of_threads_have_an_efficiency() -> None:
    points = [point(size, 10.0 * size / threads**0.5, threads) for threads in (1, 4) for size in (1, 8)]
    lines = curve_table(points, 80)
    assert lines[0].split()[:2] == ["THREADS", "BATCH"]
    assert [line.split()[-2:] for line in lines[1:5]] == [["100", "%"]] * 2 + [["50", "%"]] * 2


def test_precisions_are_beside_each_other_and_those_that_change_a_model_have_a_remark() -> None:
    reduced = [replace(it.found, variant=replace(it.found.variant, precision=Precision.INT8)) for it in BATCHES[:2]]
    points = [*BATCHES[:2], *(replace(it, found=one) for it, one in zip(BATCHES, reduced, strict=False))]
    lines = curve_table(points, 80)
    assert lines[0].split()[:2] == ["PRECISION", "BATCH"]
    assert [line.split()[:2] for line in lines[1:5]] == [["f32", "1"], ["f32", "2"], ["int8", "1"], ["int8", "2"]]
    assert lines[5].startswith("int8: accuracy was not checked")
    assert "accuracy" not in "".join(curve_table(BATCHES, 80))


def test_limits_on_kernels_are_beside_each_other() -> None:
    kernels = Kernels(InstructionSet.AVX2)
    limited = [replace(it.found, variant=replace(it.found.variant, kernels=kernels)) for it in BATCHES[:2]]
    points = [*BATCHES[:2], *(replace(it, found=one) for it, one in zip(BATCHES, limited, strict=False))]
    lines = curve_table(points, 80)
    assert lines[0].split()[:2] == ["INSTRUCTIONS", "BATCH"]
    assert [line.split()[:2] for line in lines[1:5]] == [["all", "1"], ["all", "2"], ["avx2", "1"], ["avx2", "2"]]


def test_a_series_of_one_point_has_one_figure() -> None:
    latencies, throughputs = curve_sentences([point(1, 10.0, 2), point(1, 20.0, 1), point(4, 50.0, 1)])
    assert latencies == "2 threads, batch 1: 10.00 ms; 1 thread: 20.00 to 50.00 ms"
    assert throughputs == "2 threads, batch 1: 100.0 per second; 1 thread: 50.00 to 80.00 per second"
