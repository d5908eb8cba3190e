import csv
import io

from dlbricks_tui.report.page import CsvTable, cell_text

NUMBERS = CsvTable(("model", "latency_ms", "results"), [("a, b", 0.1, "e1 e2"), ("c", None, "")], details=("results",))


def test_csv_keeps_numbers_exact_and_leaves_unknown_cells_empty() -> None:
    assert list(csv.reader(io.StringIO(NUMBERS.csv()))) == [
        ["model", "latency_ms", "results"],
        ["a, b", "0.1", "e1 e2"],
        ["c", "", ""],
    ]


def test_columns_for_machines_are_not_shown() -> None:
    shown = NUMBERS.shown()
    assert shown.columns == ("model", "latency_ms")
    assert shown.rows == (("a, b", 0.1), ("c", None))


def test_tables_show_significant_digits() -> None:
    assert [cell_text(cell) for cell in (None, 10815, 1234.56, 0.97234, "conv")] == [
        "-",
        "10,815",
        "1,235",
        "0.9723",
        "conv",
    ]
