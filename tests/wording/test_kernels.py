from dlbricks_tui.analysis.kernels import LayerKernel
from dlbricks_tui.wording.kernels import TimedKernel, kernel_lines, layer_kernel_lines

WIDE = [TimedKernel(LayerKernel(number, "brgconv:avx512_core", "avx512"), f"wide{number}", 1.0) for number in range(3)]
NARROW = TimedKernel(
    LayerKernel(3, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), ("24 output channels are too few",), is_derived=True),
    "narrow",
    5.0,
)
SILENT = TimedKernel(LayerKernel(4, "", ""), "silent", 0.0)


def test_kernels_are_ordered_by_their_time_with_the_reasons_against_others() -> None:
    lines = kernel_lines([*WIDE, NARROW, SILENT], 80)
    assert [line.split()[0] for line in lines] == ["KERNEL", "jit_1x1:avx2", "narrow:", "brgconv:avx512_core", "(the"]
    assert lines[1].split() == ["jit_1x1:avx2", "1", "1", "5.000", "62", "%"]
    assert lines[2].strip() == "narrow: 24 output channels are too few (derived)"
    assert lines[3].split() == ["brgconv:avx512_core", "3", "-", "3.000", "38", "%"]


def test_reasons_that_several_layers_share_are_told_once_within_the_width() -> None:
    told = [
        TimedKernel(LayerKernel(number, "ref", "", (), ("a long reason " * 9,)), f"layer{number}", 1.0)
        for number in range(4)
    ]
    lines = kernel_lines(told, 80)
    assert len(lines) == 3
    assert lines[2].strip().startswith("4 layers: a long reason")
    assert max(map(len, lines)) <= 80


def test_each_layer_has_a_row_with_its_kernel_the_longest_first() -> None:
    lines = layer_kernel_lines([*WIDE, NARROW, SILENT], 80)
    assert [line.split()[0] for line in lines] == ["LAYER", "narrow", "wide0", "wide1", "wide2", "silent"]
    assert lines[1].split() == ["narrow", "5.000", "jit_1x1:avx2", "acdb", "->", "aBcd8b"]
    assert lines[2].split() == ["wide0", "1.000", "brgconv:avx512_core", "-"]
    assert "(the runtime does not tell)" in lines[-1]


def test_of_a_long_name_of_a_layer_its_end_is_shown() -> None:
    long = NARROW._replace(name=f"{'stage_' * 20}conv7")
    heading, row = layer_kernel_lines([long], 60)
    assert row.startswith("...") and "_conv7  5.000  jit_1x1:avx2" in row
    assert max(len(heading), len(row)) <= 60
