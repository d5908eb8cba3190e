from pathlib import Path

import pytest

from dlbricks_tui.answers.sides import NotComparableError, read_sides
from tests.answers.comparisons.exports import exported, layer, model


def test_files_are_read_in_their_order_with_the_state_of_their_signatures(tmp_path: Path) -> None:
    first, second = exported(tmp_path / "a.json", model("m", 1.0)), exported(tmp_path / "b.json.gz", layer(0, 1.0))
    (tmp_path / "b.json.gz.sig").write_text("a signature")
    sides = read_sides([second, first])
    assert [(it.name, len(it.results), it.signature) for it in sides] == [
        (str(second), 1, "b.json.gz.sig, not verified"),
        (str(first), 1, "none"),
    ]


def test_large_files_are_read_in_processes_of_their_own(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("dlbricks_tui.answers.sides._LARGE_BYTES", 0)
    paths = [exported(tmp_path / f"{name}.json", model(name, 1.0)) for name in "ab"]
    assert [it.results[0].name for it in read_sides(paths)] == ["a", "b"]


def test_a_link_to_a_file_is_the_same_file(tmp_path: Path) -> None:
    path, link = exported(tmp_path / "a.json", model("m", 1.0)), tmp_path / "b.json"
    link.symlink_to(path)
    with pytest.raises(NotComparableError, match="is named twice"):
        read_sides([path, link])
