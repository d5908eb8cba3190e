"""The traces of a data folder."""

from pathlib import Path

import pytest

from dlbricks_tui.traces.file import find_trace, stored_traces, trace_path, write_trace
from dlbricks_tui.traces.trace import TraceError
from tests.traces.sample_traces import sample_trace


def stored(folder: Path, name: str, when: str) -> Path:
    path = trace_path(folder, name)
    write_trace(sample_trace(id=name, when=when), path)
    return path


def test_traces_are_listed_with_the_newest_last(tmp_path: Path) -> None:
    stored(tmp_path, "ab1", "2026-11-27T08:00:00+00:00")
    stored(tmp_path, "ab2", "2026-11-26T08:00:00+00:00")
    (tmp_path / "broken.json.gz").write_bytes(b"no trace")
    (tmp_path / "notes.txt").touch()
    found = stored_traces(tmp_path)
    assert [it.header.id for it in found.traces] == ["ab2", "ab1"]
    assert [it.size_bytes for it in found.traces] == [it.path.stat().st_size for it in found.traces]
    (line,) = found.unreadable
    assert "broken.json.gz" in line


def test_a_trace_is_found_by_the_beginning_of_its_id(tmp_path: Path) -> None:
    first = stored(tmp_path, "ab1", "2026-11-27T08:00:00+00:00")
    other = stored(tmp_path, "abc2", "2026-11-26T08:00:00+00:00")
    assert find_trace(tmp_path, "ab1") == first
    assert find_trace(tmp_path, "abc") == other
    assert find_trace(tmp_path, "last") == first


@pytest.mark.parametrize("wanted", ["", "ab", "zz", "../ab1", "last/"])
def test_other_ids_get_one_line(tmp_path: Path, wanted: str) -> None:
    stored(tmp_path / "traces", "ab1", "2026-11-27T08:00:00+00:00")
    stored(tmp_path / "traces", "ab2", "2026-11-27T08:00:00+00:00")
    with pytest.raises(TraceError, match="dlbricks trace --list"):
        find_trace(tmp_path / "traces", wanted)


def test_a_folder_without_traces_is_empty(tmp_path: Path) -> None:
    assert stored_traces(tmp_path / "traces").traces == ()
    with pytest.raises(TraceError, match="no trace is called 'last'"):
        find_trace(tmp_path / "traces", "last")
