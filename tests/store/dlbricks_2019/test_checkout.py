import os
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from dlbricks_tui.store.dlbricks_2019 import checkout
from dlbricks_tui.store.dlbricks_2019.checkout import BrokenFileError, Row, TimesFile, systems_of
from tests.store.dlbricks_2019.checkouts import time_layers, time_model


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    """Two models on two systems; one model has only an end-to-end time."""
    folder = tmp_path / "checkout"
    for system in ("c5.xlarge", "c4.xlarge"):
        time_model(folder, system, "Tiny Net", [30.0, 31.0])
        time_model(folder, system, "Big Net", [2.5e6])
        time_layers(folder, system, "Tiny Net", {"a/conv": [10.0, 11.0], "2": [5.0]})
    (folder / "data" / "mxnet_model" / "README.md").write_text("not a system")
    (folder / "data" / "mxnet_model" / "c5.xlarge" / "notes.txt").write_text("no times")
    return folder


def rows_of(folder: Path, system: str) -> dict[str, list[Row]]:
    files = next(found.files for found in systems_of(folder) if found.system == system)
    return {str(file.path.relative_to(folder / "data")): file.rows() for file in files}


def only_file(folder: Path) -> TimesFile:
    ((_, (file,)),) = systems_of(folder)
    return file


def test_a_checkout_has_a_folder_for_each_system_and_a_file_for_each_model(folder: Path) -> None:
    assert [found.system for found in systems_of(folder)] == ["c4.xlarge", "c5.xlarge"]
    assert rows_of(folder, "c5.xlarge") == {
        "mxnet_model/c5.xlarge/Big_Net.csv": [Row(2, "Big Net", None, "{2.5*^6}")],
        "mxnet_model/c5.xlarge/Tiny_Net.csv": [Row(2, "Tiny Net", None, "{30., 31.}")],
        "mxnet_layer_sequence/seq_0/c5.xlarge/Tiny_Net.csv": [
            Row(2, "Tiny Net", "a/conv", "{10., 11.}"),
            Row(3, "Tiny Net", "2", "{5.}"),
        ],
    }


def test_a_system_with_only_one_kind_of_file_is_read_and_a_row_of_several_layers_is_of_no_single_one(
    tmp_path: Path,
) -> None:
    path = time_layers(tmp_path, "a", "Tiny Net", {"1": [1.0]})
    path.write_text(path.read_text().replace('"1","1","1"', '"1","3","1;3"'))
    assert only_file(tmp_path).rows()[0].layer == "1 ... 3"
    time_model(tmp_path, "b", "Tiny Net", [1.0])
    assert [(found.system, len(found.files)) for found in systems_of(tmp_path)] == [("a", 1), ("b", 1)]


def test_columns_are_found_by_name_and_byte_order_marks_and_foreign_line_ends_accepted(tmp_path: Path) -> None:
    path = time_model(tmp_path, "a", "Tiny Net", [1.0])
    path.write_bytes(b"\xef\xbb\xbf" + path.read_bytes().replace(b"\n", b"\r\n"))
    assert only_file(tmp_path).rows() == [Row(2, "Tiny Net", None, "{1.}")]
    path.write_text('raw_time,extra,name\n"{7.}",,Tiny Net\n')
    assert only_file(tmp_path).rows() == [Row(2, "Tiny Net", None, "{7.}")]


@pytest.mark.parametrize(
    ("content", "complaint"),
    [
        (b"", "has no column name and no raw_time"),
        (b'"id","name"\n1,"Tiny Net"\n', "has no column raw_time"),
        (b"version https://git-lfs.github.com/spec/v1\n", "has no column name"),
        (b'name,raw_time\n"Tiny Net","{1., 2.', "is not a table of comma-separated values: unexpected end of data"),
        (b'name,raw_time\n"Tiny Net"', "ends in the middle of line 2"),
        (b'name,raw_time\n"Tiny Net"x,"{1.}"\n', "is not a table of comma-separated values"),
        (b'name,raw_time\n"' + b"x" * 200_000 + b'","{1.}"\n', "field larger than field limit"),
        (b"name,raw_time\n\xff\xfe,{1.}\n", "is not text"),
    ],
)
def test_a_file_in_another_layout_counts_as_broken(tmp_path: Path, content: bytes, complaint: str) -> None:
    time_model(tmp_path, "a", "Tiny Net", [1.0]).write_bytes(content)
    with pytest.raises(BrokenFileError, match=complaint):
        only_file(tmp_path).rows()


def test_a_file_larger_than_any_published_one_is_not_read(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(checkout, "_MOST_BYTES", 100)
    time_model(tmp_path, "a", "Tiny Net", [1.0] * 50)
    with pytest.raises(BrokenFileError, match="is larger than"):
        only_file(tmp_path).rows()


def test_a_pipe_is_refused_without_waiting(tmp_path: Path) -> None:
    folder = time_model(tmp_path, "a", "Tiny Net", [1.0]).parent
    os.mkfifo(folder / "pipe.csv")
    (folder / "folder.csv").mkdir()
    (folder / "gone.csv").symlink_to(folder / "nowhere")
    files = systems_of(tmp_path)[0].files
    assert len(files) == 4
    for file in files:
        if file.path.name != "Tiny_Net.csv":
            with pytest.raises(BrokenFileError, match="cannot be read"):
                file.rows()


@given(st.binary() | st.text(alphabet='name,raw_time"\n\r{}.1 \x00').map(str.encode))
def test_any_bytes_give_rows_or_a_broken_file(tmp_path_factory: pytest.TempPathFactory, content: bytes) -> None:
    path = tmp_path_factory.getbasetemp() / "any.csv"
    path.write_bytes(content)
    try:
        assert all(row.line > 1 for row in TimesFile(path, checkout._MODEL_COLUMNS).rows())
    except BrokenFileError as broken:
        assert str(broken)
