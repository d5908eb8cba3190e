from pathlib import Path

import pytest

from dlbricks_tui.settings import SAMPLE_MODELS, THEMES, NoHomeFolderError, data_folder


def test_the_command_line_decides_over_the_environment() -> None:
    assert data_folder("/chosen", {"DLBRICKS_DATA_DIR": "/named"}).path == Path("/chosen")


def test_the_environment_decides_over_the_platform() -> None:
    assert data_folder(None, {"DLBRICKS_DATA_DIR": "/named", "XDG_DATA_HOME": "/xdg"}).path == Path("/named")


def test_an_empty_variable_counts_as_none() -> None:
    assert data_folder(None, {"DLBRICKS_DATA_DIR": "", "XDG_DATA_HOME": "/xdg"}, "linux").path == Path("/xdg/dlbricks")


@pytest.mark.parametrize("environment", [{}, {"XDG_DATA_HOME": ""}, {"XDG_DATA_HOME": "relative"}])
def test_linux_without_a_usable_xdg_folder_keeps_data_below_the_home_folder(
    environment: dict[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert data_folder(None, environment, "linux").path == Path("/home/ada/.local/share/dlbricks")


def test_macos_keeps_data_in_application_support(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/Users/ada")
    assert data_folder(None, {}, "darwin").path == Path("/Users/ada/Library/Application Support/dlbricks")


def test_a_tilde_that_the_shell_left_alone_is_the_home_folder(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("HOME", "/home/ada")
    assert data_folder("~/bricks").path == Path("/home/ada/bricks")


def test_a_relative_folder_stays_where_it_was_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    folder = data_folder("bricks")
    monkeypatch.chdir("/")
    assert folder.path == tmp_path / "bricks"


def test_the_home_of_nobody_is_refused() -> None:
    with pytest.raises(NoHomeFolderError, match="~nobody-of-this-name"):
        data_folder("~nobody-of-this-name/bricks")


def test_looking_a_folder_up_makes_nothing(tmp_path: Path) -> None:
    folder = data_folder(str(tmp_path / "bricks"))
    assert (folder.cache, folder.log) == (tmp_path / "bricks" / "cache", tmp_path / "bricks" / "log")
    assert not folder.path.exists()


def test_a_checkout_has_its_samples_and_themes() -> None:
    assert (SAMPLE_MODELS / "README.md").is_file()
    assert (THEMES / "README.md").is_file()
