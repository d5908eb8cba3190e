"""Histograms and tables as text."""

import csv
import json
import random
from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.printable import printable
from dlbricks_tui.wording.plain_text import TableFormat, TextTable, bar, bins, divided, written

samples_ms = st.lists(st.floats(1e-4, 1e4), min_size=1, max_size=200)


@given(samples_ms, st.integers(2, 20))
def test_every_sample_is_in_one_bin(samples: list[float], most: int) -> None:
    found = bins(samples, most)
    assert sum(each.samples for each in found) == len(samples)
    assert 1 <= len(found) <= most
    assert found[0].low_ms == min(samples)
    assert found[-1].high_ms == max(samples)
    assert all(one.high_ms <= other.low_ms for one, other in pairwise(found))


def test_one_slow_run_does_not_flatten_the_histogram() -> None:
    chance = random.Random(1)
    found = bins([*(chance.gauss(10, 0.1) for _ in range(60)), 100.0])
    assert found[-1].tail
    assert found[-1].samples == 1
    assert len(found) > 5


@given(samples_ms, st.integers(2, 20), st.floats(1e-4, 1e4))
def test_each_bin_is_on_one_side_of_the_bound(samples: list[float], most: int, bound_ms: float) -> None:
    found = divided(bins(samples, most), samples, bound_ms)
    assert sum(each.samples for each in found) == len(samples)
    above = [each for each in found if each.high_ms > bound_ms]
    assert sum(each.samples for each in above) == sum(it > bound_ms for it in samples)
    assert found[len(found) - len(above) :] == tuple(above)


def test_the_longest_bar_fills_its_width_and_zero_has_no_bar() -> None:
    assert [bar(share, 4) for share in (1.0, 0.5, 0.0, 1e-6, 7.0)] == ["████", "██", "", "▏", "████"]


TABLE = TextTable(("model", "est. ms"), (("resnet18_v1", "12.50"), ('a|b, \\ and 7.4"', "")))


def test_markdown_has_a_line_for_each_row_and_no_cell_ends_early() -> None:
    assert written(TABLE, TableFormat.MARKDOWN).splitlines() == [
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
    assert list(csv.reader(found.splitlines())) == [list(TABLE.titles), *cells]
    document = json.loads(written(table, TableFormat.JSON))
    assert [list(row.values()) for row in document] == cells


@pytest.mark.parametrize("how", TableFormat)
def test_a_table_without_rows_is_a_whole_document(how: TableFormat) -> None:
    found = written(TextTable(("model",), ()), how)
    assert found.splitlines()[0] in ("| model |", "model", "[]")


def test_json_keeps_the_cells_of_columns_with_one_title() -> None:
    text = written(TextTable(("ms", "ms", "ms"), (("1", "2", "3"),)), TableFormat.JSON)
    assert json.loads(text) == [{"ms": "1", "ms 2": "2", "ms 3": "3"}]
