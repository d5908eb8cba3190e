from dlbricks_tui.analysis.kernels import LayerKernel, TimedKernel
from dlbricks_tui.documents.kernels import kernels_table, layer_kernels_table
from tests.documents.test_layout import texts

WIDE = [TimedKernel(LayerKernel(number, "brgconv:avx512_core", "avx512"), f"wide{number}", 1.0) for number in range(3)]
NARROW = TimedKernel(
    LayerKernel(3, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), ("24 output channels are too few",), is_derived=True),
    "narrow",
    5.0,
)
SILENT = TimedKernel(LayerKernel(4, "", ""), "silent", 0.0)


def test_kernels_are_ordered_by_their_time_with_the_reasons_against_others() -> None:
    assert texts(80, kernels_table([*WIDE, NARROW, SILENT])) == [
        "kernel                       layers  conversions     ms  share",
        "jit_1x1:avx2                      1            1  5.000   62 %",
        "    narrow: 24 output channels are too few (derived)",
        "brgconv:avx512_core               3            -  3.000   38 %",
        "(the runtime does not tell)       1            -  0.000    0 %",
    ]


def test_reasons_that_several_layers_share_are_told_once_and_whole() -> None:
    told = [
        TimedKernel(LayerKernel(number, "ref", "", (), ("a long reason " * 9,)), f"layer{number}", 1.0)
        for number in range(4)
    ]
    _, _, *reason = texts(80, kernels_table(told))
    assert " ".join(" ".join(reason).split()) == f"4 layers: {'a long reason ' * 9}".strip()
    assert max(map(len, reason)) <= 80


def test_each_layer_has_a_row_with_its_kernel_the_longest_first() -> None:
    lines = texts(80, layer_kernels_table([*WIDE, NARROW, SILENT]))
    assert [line.split()[0] for line in lines] == ["layer", "narrow", "wide0", "wide1", "wide2", "silent"]
    assert lines[1].split() == ["narrow", "5.000", "jit_1x1:avx2", "acdb", "->", "aBcd8b"]
    assert lines[2].split() == ["wide0", "1.000", "brgconv:avx512_core", "-"]
    assert "(the runtime does not tell)" in lines[-1]


def test_of_a_long_name_of_a_layer_its_end_is_shown() -> None:
    long = NARROW._replace(name=f"{'stage_' * 20}conv7")
    _, row = texts(60, layer_kernels_table([long]))
    assert row.startswith("…") and "_conv7  5.000  jit_1x1:avx2  acdb -> aBcd8b" in row and len(row) <= 60
