from collections.abc import Sequence

from dlbricks_tui.analysis.tables import BestGain, ModelRow
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.documents.analysis import analyses_parts
from dlbricks_tui.documents.layout import TEXT
from dlbricks_tui.runtime.variant import Variant
from tests.analysis.rows import analysed
from tests.documents.snapshots import check
from tests.documents.test_layout import texts

EVERY_KIND = {kind: BestGain(f"{kind.value}-x", 0.25, -0.125, False) for kind in WhatIfKind}


def lines_of(models: Sequence[ModelRow]) -> list[str]:
    return texts(80, *analyses_parts(models), look=TEXT)


def row(lines: list[str], beginning: str) -> list[str]:
    """The cells of the first line that begins so."""
    return next(line for line in lines if line.startswith(beginning)).removeprefix(beginning).split()


def after(lines: list[str], title: str) -> list[str]:
    start = next(number for number, line in enumerate(lines) if line.startswith(title))
    return lines[start:]


def test_each_table_has_a_row_for_each_model_their_mean_and_the_models_without_a_value() -> None:
    bad = analysed("bad", best_ms=None, best_parallel_ms=None, gap=None, gains={})
    bound = {WhatIfKind.FUSION: BestGain("fusion", 0.03, None, True), WhatIfKind.BATCH: BestGain("x", 0.0, -0.1, False)}
    partial = analysed(measured_ms=None, partial=True, best_ms=None, best_parallel_ms=None, gap=None, gains={})
    check(
        "analyses",
        {
            "several": analyses_parts([analysed("one"), analysed("two", measured_ms=40.0), bad]),
            "not timed, predicted": analyses_parts([analysed(measured_ms=None, predicted=True, gains=bound)]),
            "of a part": analyses_parts([partial]),
            "every kind": analyses_parts([analysed(gains=EVERY_KIND)]),
        },
    )


def test_all_kinds_fit_on_a_terminal_of_80_columns() -> None:
    long = analysed("A network with a very long name that no column holds", table1_id="17", gains=EVERY_KIND)
    huge = analysed("net", measured_ms=123_456.0, best_ms=99_999.0, roofline_ms=88_888.0, gains=EVERY_KIND)
    lines = lines_of([long, huge])
    assert max(map(len, lines)) <= 80
    assert row(after(lines, "GAINS"), "17 A net")[-7:] == ["+25/-12"] * 7


def test_models_of_different_executions_have_tables_of_their_own() -> None:
    lines = lines_of([analysed("one"), analysed("two", variant=Variant(threads=2))])
    assert [line for line in lines if line.endswith(": 1 model")] == [
        "here, MXNet 1.9.1, fused layers, batch 1, 1 thread, f32: 1 model",
        "here, MXNet 1.9.1, fused layers, batch 1, 2 threads, f32: 1 model",
    ]


def test_signs_are_explained_once_and_tables_without_a_value_are_left_out() -> None:
    unknown = analysed("two", variant=Variant(threads=2), best_ms=None, best_parallel_ms=None, gap=None, gains={})
    lines = lines_of([analysed("one"), unknown])
    assert sum(line.startswith("x: ") for line in lines) == 1
    assert [line.split()[0] for line in lines if line.startswith(("BOUNDS", "GAINS", "GAP"))] == [
        *("BOUNDS", "GAINS", "GAP"),
        "BOUNDS",
    ]
