from pathlib import Path

import pytest

from dlbricks_tui.tui.dialogs.paths import common_beginning, completions


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("nets", "nets/deep", ".hidden"):
        (tmp_path / name).mkdir()
    for name in ("net-symbol.json", "net-symbol.json.gz", "net.onnx", "net-0000.params", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_and_model_files_are_offered_and_nothing_else(folder: Path) -> None:
    assert completions("") == ("nets/", "net-symbol.json", "net-symbol.json.gz", "net.onnx")
    assert completions("net.") == ("net.onnx",)
    assert completions("nets/") == ("nets/deep/",)
    assert completions(f"{folder}/ne") == tuple(f"{folder}/{name}" for name in completions("ne"))


def test_hidden_names_are_offered_after_a_typed_dot(folder: Path) -> None:
    assert completions(".h") == (".hidden/",)


def test_the_home_folder_may_be_a_tilde(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", str(folder))
    assert completions("~/nets") == ("~/nets/",)


def test_a_missing_path_has_no_completions(folder: Path) -> None:
    assert completions("nosuch/x") == () and completions("net.onnx/") == ()


@pytest.mark.parametrize(
    ("offered", "common"), [((), ""), (("nets/",), "nets/"), (("net-a", "net-b"), "net-"), (("net", "net-b"), "net")]
)
def test_a_path_is_completed_as_far_as_it_is_unambiguous(offered: tuple[str, ...], common: str) -> None:
    assert common_beginning(offered) == common
