import pwd
import sys
from pathlib import Path

import pytest
from platformdirs.macos import MacOS

from dlbricks_tui.folders import SAMPLE_MODELS, THEMES, EmptyDataFolderError, NoHomeFolderError, data_folder

linux = pytest.mark.skipif(not sys.platform.startswith("linux"), reason="asks for the folders of Linux")


def test_the_command_line_overrides_the_environment() -> None:
    assert data_folder("/chosen", {"DLBRICKS_DATA_DIR": "/named"}).path == Path("/chosen")


def test_the_environment_overrides_the_platform() -> None:
    assert data_folder(None, {"DLBRICKS_DATA_DIR": "/named"}).path == Path("/named")


@pytest.mark.parametrize(
    ("chosen", "variable", "named"), [("", "/named", "--data-dir"), (" ", "", "--data-dir"), (None, "", "DLBRICKS")]
)
def test_an_empty_name_is_refused_and_never_the_usual_folder(chosen: str | None, variable: str, named: str) -> None:
    with pytest.raises(EmptyDataFolderError, match=f"^{named}.* is empty"):
        data_folder(chosen, {"DLBRICKS_DATA_DIR": variable})


@linux
@pytest.mark.parametrize("data_home", [None, "", "relative"])
def test_linux_without_a_usable_xdg_folder_keeps_data_below_the_home_folder(
    data_home: str | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    if data_home is None:
        monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    else:
        monkeypatch.setenv("XDG_DATA_HOME", data_home)
    assert data_folder(None, {}).path == Path("/home/ada/.local/share/dlbricks")


def test_macos_keeps_data_in_application_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/Users/ada")
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr("platformdirs.PlatformDirs", MacOS)
    assert data_folder(None, {}).path == Path("/Users/ada/Library/Application Support/dlbricks")


def test_an_unexpanded_tilde_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert data_folder("~/bricks").path == Path("/home/ada/bricks")


def test_a_relative_folder_is_resolved_at_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = data_folder("bricks")
    monkeypatch.chdir("/")
    assert folder.path == tmp_path / "bricks"


def test_an_unknown_home_folder_is_refused() -> None:
    with pytest.raises(NoHomeFolderError, match="~nobody-of-this-name"):
        data_folder("~nobody-of-this-name/bricks")


def test_a_user_without_a_home_folder_has_to_name_the_data_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_such_user(uid: int) -> pwd.struct_passwd:
        raise KeyError(uid)

    monkeypatch.delenv("HOME", raising=False)
    monkeypatch.delenv("XDG_DATA_HOME", raising=False)
    monkeypatch.setattr(pwd, "getpwuid", no_such_user)
    with pytest.raises(NoHomeFolderError, match="~"):
        data_folder(None, {})
    assert data_folder("/named", {}).path == Path("/named")


def test_looking_up_a_folder_creates_nothing(tmp_path: Path) -> None:
    folder = data_folder(str(tmp_path / "bricks"))
    assert (folder.cache, folder.log) == (tmp_path / "bricks" / "cache", tmp_path / "bricks" / "log")
    assert not folder.path.exists()


def test_a_checkout_has_its_samples_and_themes() -> None:
    assert (SAMPLE_MODELS / "README.md").is_file()
    assert (THEMES / "README.md").is_file()
