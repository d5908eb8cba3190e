"""Pictures: how they are drawn, and the widget that draws them."""

import subprocess
import sys
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st
from textual.app import ComposeResult
from textual.pilot import Pilot
from textual.screen import Screen

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui.lines import Line, width_of
from dlbricks_tui.tui.widgets import drawing
from dlbricks_tui.tui.widgets.drawing import drawn
from dlbricks_tui.tui.widgets.pictures import (
    Axis,
    Level,
    Mark,
    Meaning,
    Piece,
    Plot,
    Row,
    Rows,
    Series,
    number_text,
    round_ticks,
)
from dlbricks_tui.tui.widgets.plot import PictureView
from tests.tui.application import NARROW, screen_text, settled, showing

ROOFS = Plot(
    "GFLOP/s by FLOP/byte",
    "All layers are bound by arithmetic.",
    Axis(0.1, 1000.0, is_log=True),
    Axis(1.0, 100.0, is_log=True),
    (
        Series("memory", ".", "bad", ((0.1, 1.0), (10.0, 100.0)), "."),
        Series("estimated", "o", "accent", ((10.0, 10.0),)),
        Series("measured", "x", "strong", ((1000.0, 1.0),)),
    ),
)
BARS = Rows(
    "Latency, ms",
    "The best measured takes 15 ms.",
    Axis(0.0, 20.0),
    (
        Row("measured", (Piece(0, 15, ".", "█", "bar"), Piece(15, 20, "#", "▓", "bad")), text="20.0 ms"),
        Row("gain", (Piece(5, 15, "-", "─", "muted"),), (Mark(10, "o", "accent"),)),
    ),
    (Meaning(".", "best", "bar", "█"), Meaning("#", "slower", "bad", "▓")),
)


def text_of(picture: Plot | Rows, width: int, height: int, *, fine: bool = False) -> list[str]:
    drawing.load()
    return ["".join(span.text for span in line) for line in drawing.drawn(picture, width, height, fine=fine)]


def test_points_stand_at_their_place_on_logarithmic_axes() -> None:
    title, *rows = text_of(ROOFS, 64, 14)
    assert title == "GFLOP/s by FLOP/byte   . memory   o estimated   x measured"
    canvas = [row.partition("┤")[2] or row.partition("│")[2] for row in rows[:-2]]
    (of_o,) = [place for place, row in enumerate(canvas) if "o" in row]
    # 10 is in the middle of both axes.
    assert of_o == len(canvas) // 2 and abs(canvas[of_o].index("o") - 30) <= 1
    assert canvas[-1].rstrip().endswith("x") and canvas[-1].index("x") >= 58
    assert rows[0].startswith("100┤") and "1,000" in rows[-1]


def test_series_differ_by_their_marks_without_colours_and_lines_are_finer_with_them() -> None:
    plain, fine = "\n".join(text_of(ROOFS, 64, 14)), "\n".join(text_of(ROOFS, 64, 14, fine=True))
    assert plain.count(".") > 10 and not any("⠀" <= sign <= "⣿" for sign in plain)
    assert any("⠀" <= sign <= "⣿" for sign in fine) and "⠒ memory" in fine
    assert all(sign in fine for sign in "ox")


def test_a_stacked_bar_divides_its_row_and_names_its_signs() -> None:
    title, *rows = text_of(BARS, 60, 8)
    assert title == "Latency, ms   . best   # slower"
    (bar,) = [row for row in rows if row.lstrip().startswith("measured")]
    best, slower = bar.count("."), bar.count("#")
    assert bar.rstrip().endswith(" 20.0 ms") and abs(best - 3 * slower) <= 3
    (gain,) = [row for row in rows if row.lstrip().startswith("gain")]
    assert 0 < gain.index("-") < gain.index("o") < gain.rindex("-")
    assert "█" in "\n".join(text_of(BARS, 60, 8, fine=True))


def test_the_mark_of_the_largest_value_is_not_hidden_by_the_text_behind_it() -> None:
    row = Row("all", (), (Mark(20.0, "o", "accent"),), "20 ms")
    assert any("o 20 ms" in text for text in text_of(replace(BARS, rows=(row,), legend=()), 50, 6))


def test_rows_without_room_are_counted() -> None:
    many = replace(BARS, rows=tuple(Row(f"row {number}", text=f"{number} ms") for number in range(20)))
    title, *rows = text_of(many, 60, 9)
    assert title.startswith("Latency, ms, 6 of 20") and len(rows) == 8 and "row 0" in rows[0]


@given(st.integers(30, 200), st.integers(4, 60), st.booleans(), st.sampled_from([ROOFS, BARS]))
def test_a_picture_is_never_larger_than_its_area(width: int, height: int, fine: bool, picture: Plot | Rows) -> None:
    drawing.load()
    lines = drawing.drawn(picture, width, height, fine=fine)
    assert len(lines) <= height and all(width_of(each) <= width for each in lines)


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e9), st.booleans(), st.integers(2, 20))
def test_ticks_are_round_numbers_within_the_axis(low: float, times: float, is_log: bool, most: int) -> None:
    axis = Axis(low, low * times, is_log)
    found = round_ticks(axis, most)
    assert len(found) <= most + 1
    assert all(low * (1 - 1e-6) <= value <= low * times * (1 + 1e-6) for value, _ in found)
    assert [value for value, _ in found] == sorted({value for value, _ in found})


@pytest.mark.parametrize(
    ("value", "text"), [(1000.0, "1,000"), (0.25, "0.25"), (10.0, "10"), (0.30000000000000004, "0.3")]
)
def test_numbers_on_axes_are_short(value: float, text: str) -> None:
    assert number_text(value) == text


def test_levels_cross_the_whole_picture() -> None:
    bound = replace(ROOFS, levels=(Level("bound 10 ms", 10.0),))
    title, *rows = text_of(bound, 64, 14)
    assert "─ bound 10 ms" in "\n".join([title, *rows])
    assert sum(row.count("─") > 40 for row in rows) == 2, "the bound and the axis"


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

    monkeypatch.setattr(drawing, "drawn", counting)
    return found


@asynccontextmanager
async def picture_of(data: DataFolder, height: int) -> AsyncIterator[tuple[Pilot[None], PictureView]]:
    async with showing(data, lambda _: PictureScreen(height), NARROW) as pilot:
        yield pilot, pilot.app.screen.query_one(PictureView)


async def test_a_picture_is_drawn_once_until_it_changes(new: DataFolder, drawings: list[Plot | Rows]) -> None:
    async with picture_of(new, 16) as (pilot, view):
        view.show(ROOFS)
        await settled(pilot)
        assert "100┤" in screen_text(pilot) and ROOFS.says in screen_text(pilot)
        view.show(replace(ROOFS))
        view.refresh()
        await settled(pilot)
        assert drawings == [ROOFS]
        view.show(BARS)
        await settled(pilot)
        assert drawings == [ROOFS, BARS] and BARS.says in screen_text(pilot)


async def test_a_hidden_picture_is_not_drawn(new: DataFolder, drawings: list[Plot | Rows]) -> None:
    async with picture_of(new, 16) as (pilot, view):
        view.display = False
        view.show(ROOFS)
        await settled(pilot)
        assert not drawings
        view.display = True
        await settled(pilot)
        assert drawings == [ROOFS]


async def test_a_small_area_shows_the_sentence_alone(new: DataFolder, drawings: list[Plot | Rows]) -> None:
    async with picture_of(new, 3) as (pilot, view):
        view.show(ROOFS)
        await settled(pilot)
        assert screen_text(pilot).strip() == ROOFS.says and not drawings


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
    monkeypatch.setattr(drawing, "is_loaded", lambda: bool(loaded))
    monkeypatch.setattr(drawing, "load", lambda: loaded.append(True))
    async with picture_of(new, 16) as (pilot, view):
        view.show(ROOFS)
        await settled(pilot)
        assert screen_text(pilot).strip() == ROOFS.says
        await settled(pilot)
        assert loaded == [True] and "100┤" in screen_text(pilot)


def test_the_program_starts_without_the_library_of_pictures() -> None:
    code = (
        "import sys\n"
        "import dlbricks_tui.tui.app, dlbricks_tui.tui.analysis.screen, dlbricks_tui.tui.fleet.screen\n"
        "import dlbricks_tui.tui.scenario.screen, dlbricks_tui.tui.trace.screen, dlbricks_tui.tui.widgets.plot\n"
        "assert 'plotext' not in sys.modules\n"
        "assert not any(name.endswith('widgets.drawing') for name in sys.modules)\n"
    )
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)


def test_the_first_screen_loads_neither_numpy_nor_the_store_nor_estimates() -> None:
    late = [
        "numpy",
        "tinydb",
        "dlbricks_tui.store.database",
        "dlbricks_tui.store.records",
        "dlbricks_tui.models.library",
    ]
    late += [
        "dlbricks_tui.estimate",
        "dlbricks_tui.measure",
        "dlbricks_tui.tui.run.follower",
        "dlbricks_tui.bricks.regions",
    ]
    code = f"import sys, dlbricks_tui.tui.app\nloaded = {{*sys.modules}} & {{*{late}}}\nassert not loaded, loaded"
    subprocess.run([sys.executable, "-c", code], cwd=Path(__file__).parents[2], check=True)
