import csv
import gzip
import json
from pathlib import Path

import pytest

from dlbricks_tui.store.columns import COLUMNS
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.exporting import ExportFormat, export_all, export_format, export_selection
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.selections import OLDEST_FIRST, equal
from tests.store.samples import end_to_end, form, measurement, runtime, system

HOSTILE = "a\x1b[2J\r\nb"


@pytest.fixture
def store(tmp_path: Path) -> ResultsDatabase:
    """A store with a brick and a model measured, the model under a name with control codes."""
    store = ResultsDatabase(tmp_path / "store")
    store.add(form(), system(), runtime(), measurement(), end_to_end(name=HOSTILE))
    return store


def test_the_suffix_sets_the_format(store: ResultsDatabase, tmp_path: Path) -> None:
    for expected, names in {
        ExportFormat.JSON: ("x.json", "x"),
        ExportFormat.PACKED_JSON: ("x.JSON.gz",),
        ExportFormat.CSV: ("x.csv", "x.2026.CSV"),
        ExportFormat.JSON_LINES: ("x.jsonl",),
    }.items():
        assert {export_format(Path(name)) for name in names} == {expected}
    for name in ("x.txt", "x.csv.gz", "x.xlsx", "x.csv.bak"):
        with pytest.raises(ExchangeError, match=r"is no format of an export: name a \.json or .*\.csv"):
            export_all(store, tmp_path / name)
        assert not (tmp_path / name).exists()


@pytest.mark.parametrize("whole", [True, False], ids=["file", "selection"])
def test_a_csv_file_has_a_line_per_result_with_all_columns(whole: bool, store: ResultsDatabase, tmp_path: Path) -> None:
    path = tmp_path / "x.csv"
    count = export_all(store, path) if whole else export_selection(store.select(order=OLDEST_FIRST), path)
    header, *rows = csv.reader(path.read_text().splitlines())
    assert count == len(rows) == 2
    assert header == list(COLUMNS)
    assert {row[header.index("name")] for row in rows} == {"Convolution 3x3/2 1x64x56x0", r"a\x1b[2J\r\nb"}


def test_json_lines_have_an_object_per_result(store: ResultsDatabase, tmp_path: Path) -> None:
    path = tmp_path / "x.jsonl"
    assert export_selection(store.select(equal(of="model")), path) == 1
    (line,) = path.read_text().splitlines()
    assert json.loads(line)["name"] == HOSTILE


def test_a_packed_file_has_the_content_of_a_plain_one_and_can_be_imported(
    store: ResultsDatabase, tmp_path: Path
) -> None:
    plain, packed = tmp_path / "x.json", tmp_path / "x.json.gz"
    for path in (plain, packed):
        assert export_all(store, path) == 2
    assert gzip.decompress(packed.read_bytes()) == plain.read_bytes()
    with ResultsDatabase(tmp_path / "other") as other:
        assert import_file(other, packed).new == 5
