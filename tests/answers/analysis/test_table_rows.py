from dlbricks_tui.answers.analyses import csv_rows
from tests.analysis.rows import analysed


def test_comma_separated_rows_have_a_cell_for_each_column() -> None:
    columns, full, empty = csv_rows([analysed("a"), analysed("b", best_ms=None, gap=None, gains={})])
    assert len(columns) == len(set(columns)) == len(full) == len(empty)
    held = dict(zip(columns, full, strict=True))
    assert (held["model"], held["best_runtime"], held["runtime_gain"]) == ("a", "runtime-other", 0.25)
