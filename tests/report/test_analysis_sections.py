from xml.dom.minidom import parseString

from dlbricks_tui.analysis.bounds import Gap
from dlbricks_tui.analysis.roofline import LayerPoint, Roof, Work
from dlbricks_tui.analysis.tables import BestGain
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.documents.analysis import analyses_parts
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.models.kinds import Kind
from dlbricks_tui.report.measured import analysis_sections
from dlbricks_tui.report.page import Exhibit, Section
from dlbricks_tui.runtime.variant import Variant
from tests.analysis.rows import analysed

ROOF = Roof(1, {"avx512": 100.0, "avx2": 60.0}, 10.0, 40.0, 1 << 25, 1 << 20)


def point(share: int, operations: float = 1e9) -> LayerPoint:
    return LayerPoint((share,), (Kind.CONVOLUTION,), 1, Work(operations, 1e6, 1e6), float(share), 0.5)


def exhibit(sections: tuple[Section, ...], anchor: str) -> Exhibit:
    (found,) = next(it for it in sections if it.anchor == anchor).exhibits
    if found.svg:
        parseString(found.svg)
    return found


def cells(found: Exhibit, model: str) -> dict[str, object]:
    """The row of a model in the file, by column."""
    columns, place = found.numbers.columns, found.numbers.columns.index("model")
    return dict(zip(columns, next(row for row in found.numbers.rows if row[place] == model), strict=True))


def shown(found: Exhibit) -> list[list[str]]:
    """The rows as the page shows them."""
    assert found.table is not None
    return [[str(it.cell(row)) for it in found.table.columns] for row in found.table.rows]


def test_a_store_with_nothing_to_analyse_gets_one_line() -> None:
    for models in ([], [analysed(best_ms=None, best_parallel_ms=None, gap=None, gains={})]):
        (section,) = analysis_sections(models)
        (line,) = section.missing
        assert section.exhibits == ()
        assert "`dlbricks analyze MODEL --measure`" in line


def test_bounds_gains_and_gaps_have_a_row_for_each_model() -> None:
    gains = {
        WhatIfKind.THREADS: BestGain("threads-2", 0.4, 0.35, False),
        WhatIfKind.RUNTIME: BestGain("runtime-mix", 0.1, None, True),
        WhatIfKind.BATCH: BestGain("batch-8", -3.0, None, False),
    }
    bad = analysed("bad", best_ms=None, best_parallel_ms=None, gap=None, gains={})
    below = analysed("below", gap=Gap(6 * 10**9, 0, -2 * 10**9), gains={})
    sections = analysis_sections([analysed("one", gains=gains), analysed("two", measured_ms=40.0), bad, below])
    bounds = exhibit(sections, "bounds")
    assert bounds.name == "figure-bounds-here-mxnet-fused"
    assert cells(bounds, "one")["best_over_latency"] == 0.6
    assert shown(bounds)[-2][0] == "geometric mean" and "geometric mean" not in bounds.numbers.csv()
    assert "sequential 0.38, parallel 0.31" in bounds.caption
    # Predicted and proved gains stand beside one another. Kinds without results have columns only in the file, and a
    # line that says so.
    gains_found = exhibit(sections, "gains")
    assert "+40/+35" in shown(gains_found)[0] and len(shown(gains_found)[0]) == 4
    row = cells(gains_found, "one")
    assert (row["best_threads"], row["threads_gain"], row["threads_proved"]) == ("threads-2", 0.4, 0.35)
    assert row["runtime_gain"] == 0.1 and row["fusion_gain"] is None
    (line,) = sections[1].missing
    assert "--kinds parallel,kernels,fusion,precision" in line
    # A model without a best is named and has an empty row; gaps may have a negative rest.
    assert "No best of bad" in sections[0].missing[0]
    gap = exhibit(sections, "gap")
    assert cells(gap, "bad")["best_share"] is None
    row = cells(gap, "below")
    shares = [row[f"{part}_share"] for part in ("best", "slower_layers", "conversions", "unexplained")]
    assert sum(shares) == 1.0  # type: ignore[arg-type]
    assert row["unexplained_share"] == -0.2


def test_the_tables_of_the_page_are_those_of_the_command_line() -> None:
    models = [analysed("one"), analysed("two", measured_ms=40.0)]
    sections = analysis_sections(models)
    page = [shown(exhibit(sections, anchor)) for anchor in ("bounds", "gains", "gap")]
    tables = [it for it in analyses_parts(models) if isinstance(it, Table)]
    assert [[[str(column.cell(row)) for column in it.columns] for row in it.rows] for it in tables] == page


def test_the_roofline_has_the_layers_that_take_some_time() -> None:
    points = (point(90), point(9), point(1), point(50, operations=0.0))
    sections = analysis_sections([analysed("one", points=points, roof=ROOF), analysed("two")])
    found = exhibit(sections, "roofline")
    assert [row[found.numbers.columns.index("first_layer")] for row in found.numbers.rows] == [90, 9]
    assert "dlbricks doctor --peaks" in sections[-1].missing[0]


def test_each_execution_has_figures_with_names_of_their_own() -> None:
    models = [analysed("one"), analysed("one", variant=Variant(threads=2))]
    names = [it.name for section in analysis_sections(models) for it in section.exhibits]
    assert len(names) == len(set(names)) == 6
    assert all(name.startswith("figure-") for name in names)
