"""The widget that draws pictures."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from importlib.util import find_spec
from pathlib import Path

import pytest
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen

from dlbricks_tui.documents import pictures
from dlbricks_tui.documents.lines import Line
from dlbricks_tui.documents.pictures import Plot, Rows, drawn
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.widgets.text import PictureView
from tests.documents.test_drawing import BARS, ROOFS
from tests.tui.application import NARROW, screen_text, settled, showing


class PictureScreen(Screen[None]):
    """A screen with a picture that has so many lines."""

    def __init__(self, height: int) -> None:
        super().__init__()
        self.view = PictureView()
        self.view.styles.height = height

    def compose(self) -> ComposeResult:
        yield self.view


@pytest.fixture
def drawings(monkeypatch: pytest.MonkeyPatch) -> list[Plot | Rows]:
    """The pictures that were drawn, in their order."""
    found = []

    def counting(picture: Plot | Rows, width: int, height: int, *, fine: bool) -> tuple[Line, ...]:
        found.append(picture)
        return drawn(picture, width, height, fine=fine)

    monkeypatch.setattr(pictures, "drawn", counting)
    return found


@asynccontextmanager
async def picture_of(data: DataFolder, height: int) -> AsyncIterator[tuple[Pilot[None], PictureView]]:
    async with showing(data, lambda _: PictureScreen(height), NARROW) as pilot:
        yield pilot, pilot.app.screen.query_one(PictureView)


async def test_a_picture_is_drawn_once_until_it_changes(new: DataFolder, drawings: list[Plot | Rows]) -> None:
    async with picture_of(new, 16) as (pilot, view):
        # A hidden one is not drawn.
        view.display = False
        view.show(ROOFS)
        await settled(pilot)
        assert not drawings
        view.display = True
        await settled(pilot)
        assert "100┤" in screen_text(pilot) and ROOFS.says in screen_text(pilot)
        view.show(replace(ROOFS))
        view.refresh()
        await settled(pilot)
        assert drawings == [ROOFS]
        view.show(BARS)
        await settled(pilot)
        assert drawings == [ROOFS, BARS] and BARS.says in screen_text(pilot)
        # A small area shows the sentence alone.
        view.styles.height = 3
        view.show(ROOFS)
        await settled(pilot)
        assert screen_text(pilot).strip() == ROOFS.says and drawings == [ROOFS, BARS]


@pytest.mark.parametrize("setting", ["NO_COLOR", "sixteen colours", "the theme of the terminal"])
async def test_few_colours_give_plain_signs(setting: str, new: DataFolder, monkeypatch: pytest.MonkeyPatch) -> None:
    if setting == "NO_COLOR":
        monkeypatch.setenv("NO_COLOR", "1")
    elif setting == "sixteen colours":
        monkeypatch.setenv("TERM", "screen")
        monkeypatch.delenv("COLORTERM")
    async with picture_of(new, 16) as (pilot, view):
        if setting == "the theme of the terminal":
            pilot.app.theme = "terminal"
        view.show(BARS)
        await settled(pilot)
        shown = screen_text(pilot)
        assert "..." in shown and "##" in shown and "█" not in shown


async def test_until_the_library_is_loaded_the_sentence_stands_alone(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    loaded: list[bool] = []
    monkeypatch.setattr(pictures, "is_loaded", lambda: bool(loaded))
    monkeypatch.setattr(pictures, "load", lambda: loaded.append(True))
    async with picture_of(new, 16) as (pilot, view):
        view.show(ROOFS)
        await settled(pilot)
        assert screen_text(pilot).strip() == ROOFS.says
        await settled(pilot)
        assert loaded == [True] and "100┤" in screen_text(pilot)


def test_the_program_starts_without_what_only_later_screens_need() -> None:
    late = ["numpy", "tinydb"]
    late += [f"dlbricks_tui.{name}" for name in ("store.database", "store.records", "models.library", "estimate")]
    late += [f"dlbricks_tui.{name}" for name in ("measure.inside", "api.followed_runs", "bricks.regions")]
    assert [name for name in late if find_spec(name) is None] == [], "they are called otherwise"
    code = (
        "import sys, dlbricks_tui.tui.app\n"
        f"loaded = {{*sys.modules}} & {{*{late}}}\n"
        "assert not loaded, loaded\n"
        "import dlbricks_tui.tui.analysis, dlbricks_tui.tui.fleet\n"
        "import dlbricks_tui.tui.scenario, dlbricks_tui.tui.trace, dlbricks_tui.tui.widgets.text\n"
        "assert 'plotext' not in sys.modules\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
