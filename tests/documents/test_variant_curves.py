from dataclasses import replace

from dlbricks_tui.documents.drawing import drawn_beside
from dlbricks_tui.documents.pictures import Plot
from dlbricks_tui.documents.variant_curves import curve_pictures
from dlbricks_tui.estimate.curve import Point
from dlbricks_tui.runtime.variant import InstructionSet, Kernels, Precision, Variant
from tests.estimate.test_curve import point

BATCHES = [point(1, 10.0), point(2, 15.0), point(4, 26.0), point(8, 55.0), point(16, None), point(32, 230.0)]
THREADS = [point(size, 10.0 * size / threads**0.5, threads) for threads in (1, 4) for size in (1, 8)]


def plots_of(points: list[Point], bound_ms: float | None = None) -> tuple[Plot, Plot]:
    found = curve_pictures(points, bound_ms)
    assert found is not None
    return found


def of_variant(it: Point, variant: Variant) -> Point:
    return replace(it, found=replace(it.found, variant=variant))


def test_latency_and_throughput_are_beside_each_other_over_the_batch_sizes_that_were_measured() -> None:
    latencies, throughputs = plots_of(BATCHES, 50.0)
    (of_ms,), (of_rates,) = latencies.series, throughputs.series
    assert of_ms.points == ((1.0, 10.0), (2.0, 15.0), (4.0, 26.0), (8.0, 55.0), (32.0, 230.0))
    assert [round(rate) for _, rate in of_rates.points] == [100, 133, 154, 145, 139]
    assert [text for _, text in latencies.across.ticks] == ["1", "2", "4", "8", "32"]
    assert [it.value for it in latencies.levels] == [50.0] and not throughputs.levels
    texts = ["".join(text for text, _ in line) for line in drawn_beside(latencies, throughputs, 80, 10, fine=False)]
    assert max(map(len, texts)) <= 80
    assert texts[0].split("  ")[0] == "ms by batch size" and texts[0].endswith("Per second by batch size")
    assert texts[10:] == ["x measured   ─ bound 50 ms"]


def test_a_bound_far_above_all_latencies_is_not_drawn() -> None:
    assert not plots_of(BATCHES, 1000.0)[0].levels


def test_threads_at_one_batch_size_are_the_axis() -> None:
    assert plots_of([point(8, 40.0, 1), point(8, 25.0, 2)])[0].title == "ms by threads"


def test_a_single_size_has_no_curve() -> None:
    assert curve_pictures([point(1, 10.0), point(2, None)], None) is None


def test_several_series_have_letters_and_names_that_tell_what_varies() -> None:
    int8 = [of_variant(it, replace(it.found.variant, precision=Precision.INT8)) for it in BATCHES[:2]]
    avx2 = [of_variant(it, replace(it.found.variant, kernels=Kernels(InstructionSet.AVX2))) for it in BATCHES[:2]]
    for points, names in (
        (THREADS, ["1 thread", "4 threads"]),
        ([*BATCHES[:2], *int8], ["f32", "int8"]),
        ([*BATCHES[:2], *avx2], ["all kernels", "avx2 kernels"]),
    ):
        latencies, _ = plots_of(points)
        assert [(it.mark, it.name) for it in latencies.series] == list(zip("AB", names, strict=True))
        assert latencies.legend == ("capitals: measured",)
