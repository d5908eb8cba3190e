"""Paths are chosen from what there is on the disk: walked to, entered, and taken."""

from pathlib import Path

import pytest
from textual.pilot import Pilot

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.dialogs.notices import ErrorScreen
from dlbricks_tui.tui.dialogs.paths import (
    ANY_FILE,
    OfferedPaths,
    OpenPathScreen,
    PathScreen,
    common_beginning,
    completions,
)
from dlbricks_tui.tui.result_table import ExportScreen, ImportScreen
from dlbricks_tui.tui.results import ResultsScreen
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.widgets.rows import CURSOR_SIGN
from dlbricks_tui.tui.workbench.screen import WorkbenchScreen
from tests.tui.application import MEASURED_ONLY, SIZES, app_on, press, running, screen_text, showing

MANY = 300


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where one is: two folders, and files in them and beside them."""
    here = tmp_path / "here"
    for name in ("deep/deeper", "empty"):
        (here / name).mkdir(parents=True)
    (here / "deep" / "mine.json").write_text("milk")
    (here / "deep" / "yours.json").write_text("bread")
    (here / "notes.txt").touch()
    monkeypatch.chdir(here)
    return here


def typed(pilot: Pilot[None]) -> str:
    return pilot.app.screen.query_one(Field).value


def offered(pilot: Pilot[None]) -> tuple[str, ...]:
    return pilot.app.screen.query_one(OfferedPaths).items


def under_cursor(pilot: Pilot[None]) -> list[str]:
    """The row with the cursor, as it is on the screen."""
    rows = pilot.app.screen.query_one(OfferedPaths)
    drawn = [rows.render_line(y).text.rstrip() for y in range(rows.size.height)]
    return [text.removeprefix(CURSOR_SIGN) for text in drawn if text.startswith(CURSOR_SIGN)]


async def test_a_path_is_typed_completed_or_chosen_from_a_list(stored: DataFolder, folder: Path) -> None:
    async with showing(stored, ResultsScreen, SIZES[0]) as pilot:
        await press(pilot, "i")
        assert isinstance(pilot.app.screen, ImportScreen)
        assert offered(pilot) == ("deep/", "empty/", "notes.txt")
        assert "deep/" in screen_text(pilot) and "notes.txt" in screen_text(pilot) and under_cursor(pilot) == []
        await press(pilot, "enter")
        assert "Type a path first." in screen_text(pilot)
        await press(pilot, "up")
        assert under_cursor(pilot) == []
        await pilot.click(OfferedPaths, offset=(3, 2))
        await press(pilot)
        assert under_cursor(pilot) == ["notes.txt"]
        await press(pilot, '"zzz"')
        assert "No file or folder here begins like this." in screen_text(pilot)
        await press(pilot, "down", "up", "tab")
        assert typed(pilot) == "zzz" and under_cursor(pilot) == []
        # Tab completes the typed path or takes the chosen name.
        await press(pilot, "ctrl+u", '"d"', "tab")
        assert typed(pilot) == "deep/"
        await press(pilot, "down", "down", "down", "tab")
        assert typed(pilot) == "deep/yours.json" and isinstance(pilot.app.screen, PathScreen)
        # Moving up from the first name restores the typed path.
        await press(pilot, "ctrl+u", '"deep/mi"', "down")
        assert under_cursor(pilot) == ["mine.json"]
        await press(pilot, "up", "enter")
        assert under_cursor(pilot) == [] and "There is no deep/mi" in screen_text(pilot)
        await press(pilot, "down", '"n"')
        assert typed(pilot) == "deep/min" and under_cursor(pilot) == [] and "There is no" not in screen_text(pilot)
        # The cursor reaches a file through folders.
        await press(pilot, "ctrl+u", "down")
        assert under_cursor(pilot) == ["deep/"]
        await press(pilot, "enter")
        assert typed(pilot) == "deep/" and under_cursor(pilot) == []
        assert offered(pilot) == ("deep/deeper/", "deep/mine.json", "deep/yours.json")
        await press(pilot, "down", "ctrl+n")
        assert under_cursor(pilot) == ["mine.json"]
        await press(pilot, "down", "down", "ctrl+p")
        assert under_cursor(pilot) == ["mine.json"]
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ErrorScreen)
        assert "mine.json" in screen_text(pilot) and "nothing was imported" in screen_text(pilot)


async def test_every_one_of_many_files_can_be_reached_and_is_replaced_only_after_a_second_enter(
    stored: DataFolder, folder: Path
) -> None:
    for number in range(MANY):
        (folder / "empty" / f"{number:03}.json").touch()
    async with showing(stored, ResultsScreen, SIZES[0]) as pilot:
        await press(pilot, "i", '"empty/"')
        assert len(offered(pilot)) == MANY
        await press(pilot, *["down"] * 30)
        assert under_cursor(pilot) == ["029.json"]
        await press(pilot, "tab")
        assert typed(pilot) == "empty/029.json"
        await press(pilot, "escape", "space", "e", '"deep/"', "down", "down", "enter")
        assert isinstance(pilot.app.screen, ExportScreen)
        assert "deep/mine.json already exists" in screen_text(pilot) and typed(pilot) == "deep/mine.json"
        assert (folder / "deep" / "mine.json").read_text() == "milk"
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, ResultsScreen)
        assert (folder / "deep" / "mine.json").read_text() != "milk"


UNUSABLE = (
    (300 * "x", "cannot be used: File name too long"),
    (f"deep/{300 * 'x'}/net.onnx", "cannot be used: File name too long"),
    ("~nobody-of-this-name/net.onnx", "cannot be used: Could not determine home directory"),
    ("loop/net.onnx", "There is no loop/net.onnx"),
    ("a\x00b", "There is no a\\x00b"),
)


async def test_a_path_that_no_file_can_have_is_one_line(measured: DataFolder, folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    (folder / "deep" / "my-net-symbol.json").write_text("{}")
    async with running(app_on(measured, MEASURED_ONLY), SIZES[0]) as pilot:
        await press(pilot, "o")
        screen = pilot.app.screen
        assert isinstance(screen, PathScreen)
        for text, said in UNUSABLE:
            # Pasted at once, as by a terminal.
            screen.query_one(Field).value = text
            await press(pilot, "enter")
            shown = " ".join(screen_text(pilot).split())
            assert pilot.app.screen is screen
            assert all(word in shown for word in said.split())
        # A folder of models is entered by the cursor, and opened by its path.
        await press(pilot, "ctrl+u", "down", "enter")
        assert isinstance(pilot.app.screen, OpenPathScreen)
        assert offered(pilot) == ("deep/deeper/", "deep/my-net-symbol.json")
        await press(pilot, "enter")
        assert isinstance(pilot.app.screen, WorkbenchScreen)
        assert "1 Models 8" in screen_text(pilot) and "my-net" in screen_text(pilot)


def test_a_link_in_a_circle_hides_no_other_name(folder: Path) -> None:
    (folder / "loop").symlink_to("loop")
    assert completions("", ANY_FILE) == ("deep/", "empty/", "loop", "notes.txt")
    assert completions("~nobody-of-this-name/x") == completions(f"{300 * 'x'}/") == completions("a\x00/b") == ()


@pytest.fixture
def nets(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    for name in ("nets", "nets/deep", ".hidden"):
        (tmp_path / name).mkdir()
    for name in ("net-symbol.json", "net-symbol.json.gz", "net.onnx", "net-0000.params", "notes.txt"):
        (tmp_path / name).touch()
    monkeypatch.chdir(tmp_path)
    return tmp_path


def test_folders_and_model_files_are_offered_and_nothing_else(nets: Path) -> None:
    assert completions("") == ("nets/", "net-symbol.json", "net-symbol.json.gz", "net.onnx")
    assert completions("net.") == ("net.onnx",)
    assert completions("nets/") == ("nets/deep/",)
    assert completions(f"{nets}/ne") == tuple(f"{nets}/{name}" for name in completions("ne"))


@pytest.mark.parametrize(
    ("offered", "common"), [((), ""), (("nets/",), "nets/"), (("net-a", "net-b"), "net-"), (("net", "net-b"), "net")]
)
def test_a_path_is_completed_as_far_as_it_is_unambiguous(offered: tuple[str, ...], common: str) -> None:
    assert common_beginning(offered) == common
