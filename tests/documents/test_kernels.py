from dlbricks_tui.analysis.kernels import LayerKernel, TimedKernel
from dlbricks_tui.documents.analysis import kernels_table, layer_kernels_table
from tests.documents.snapshots import check
from tests.documents.test_layout import texts

WIDE = [TimedKernel(LayerKernel(number, "brgconv:avx512_core", "avx512"), f"wide{number}", 1.0) for number in range(3)]
NARROW = TimedKernel(
    LayerKernel(3, "jit_1x1:avx2", "avx2", ("acdb -> aBcd8b",), ("24 output channels are too few",), is_derived=True),
    "narrow",
    5.0,
)
SILENT = TimedKernel(LayerKernel(4, "", ""), "silent", 0.0)


def test_kernels_and_layers_are_ordered_by_their_time_with_the_reasons_against_others() -> None:
    found = [*WIDE, NARROW, SILENT]
    check("kernels", {"by kernel": [kernels_table(found)], "by layer": [layer_kernels_table(found)]}, width=80)
    assert texts(80, kernels_table([SILENT]))[1].split()[-2:] == ["0.000", "-"]


def test_reasons_that_several_layers_share_are_told_once_and_whole() -> None:
    told = [
        TimedKernel(LayerKernel(number, "ref", "", (), ("a long reason " * 9,)), f"layer{number}", 1.0)
        for number in range(4)
    ]
    _, _, *reason = texts(80, kernels_table(told))
    assert " ".join(" ".join(reason).split()) == f"4 layers: {'a long reason ' * 9}".strip()
    assert max(map(len, reason)) <= 80


def test_of_a_long_name_of_a_layer_its_end_is_shown() -> None:
    long = NARROW._replace(name=f"{'stage_' * 20}conv7")
    _, row = texts(60, layer_kernels_table([long]))
    assert row.startswith("…") and "_conv7  5.000  jit_1x1:avx2  acdb -> aBcd8b" in row and len(row) <= 60
