import csv
import json

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.printable import printable
from dlbricks_tui.wording.plain_text import TableFormat, TextTable, written

TABLE = TextTable(("model", "est. ms"), (("resnet18_v1", "12.50"), ('a|b, \\ and 7.4"', "")))


def test_markdown_has_a_line_for_each_row_and_no_cell_ends_early() -> None:
    assert written(TABLE, TableFormat.MARKDOWN).text.splitlines() == [
        "| model | est. ms |",
        "|---|---|",
        "| resnet18_v1 | 12.50 |",
        '| a\\|b, \\\\ and 7.4" |  |',
    ]


@given(st.lists(st.tuples(st.text(), st.text()), max_size=5))
def test_csv_and_json_give_every_cell_back_with_control_codes_spelled_out(rows: list[tuple[str, str]]) -> None:
    table = TextTable(TABLE.titles, rows)
    cells = [[printable(cell) for cell in row] for row in rows]
    found = written(table, TableFormat.CSV)
    assert list(csv.reader(found.text.splitlines())) == [list(TABLE.titles), *cells]
    assert found.rows == len(rows)
    document = json.loads(written(table, TableFormat.JSON).text)
    assert [list(row.values()) for row in document] == cells


@pytest.mark.parametrize("how", TableFormat)
def test_a_table_without_rows_is_a_whole_document(how: TableFormat) -> None:
    found = written(TextTable(("model",), ()), how)
    assert found.rows == 0 and found.text.splitlines()[0] in ("| model |", "model", "[]")


def test_json_keeps_the_cells_of_columns_with_one_title() -> None:
    text = written(TextTable(("ms", "ms", "ms"), (("1", "2", "3"),)), TableFormat.JSON).text
    assert json.loads(text) == [{"ms": "1", "ms 2": "2", "ms 3": "3"}]
