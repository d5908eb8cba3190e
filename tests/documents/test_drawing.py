"""Pictures in characters that differ without colours, and in finer ones."""

from dataclasses import replace

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from dlbricks_tui.documents import pictures
from dlbricks_tui.documents.pictures import (
    Axis,
    BarRow,
    LegendSign,
    Mark,
    Piece,
    Plot,
    Rows,
    Series,
    StraightLine,
    number_text,
    round_ticks,
)

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
        BarRow("measured", (Piece(0, 15, ".", "█", "bar"), Piece(15, 20, "#", "▓", "bad")), text="20.0 ms"),
        BarRow("gain", (Piece(5, 15, "-", "─", "muted"),), (Mark(10, "o", "accent"),)),
    ),
    (LegendSign(".", "best", "bar", "█"), LegendSign("#", "slower", "bad", "▓")),
)


def text_of(picture: Plot | Rows, width: int, height: int, *, fine: bool = False) -> list[str]:
    return ["".join(text for text, _ in line) for line in pictures.drawn(picture, width, height, fine=fine)]


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
    row = BarRow("all", (), (Mark(20.0, "o", "accent"),), "20 ms")
    assert any("o 20 ms" in text for text in text_of(replace(BARS, rows=(row,), legend=()), 50, 6))


def test_rows_without_room_are_counted() -> None:
    many = replace(BARS, rows=tuple(BarRow(f"row {number}", text=f"{number} ms") for number in range(20)))
    title, *rows = text_of(many, 60, 9)
    assert title.startswith("Latency, ms, 6 of 20") and len(rows) == 8 and "row 0" in rows[0]


@given(st.integers(30, 200), st.integers(4, 60), st.booleans(), st.sampled_from([ROOFS, BARS]))
def test_a_picture_is_never_larger_than_its_area(width: int, height: int, fine: bool, picture: Plot | Rows) -> None:
    lines = pictures.drawn(picture, width, height, fine=fine)
    assert len(lines) <= height and all(sum(len(text) for text, _ in each) <= width for each in lines)


@given(st.floats(1e-6, 1e6), st.floats(1.001, 1e9), st.booleans(), st.integers(2, 20))
@example(low=0.5, times=8e8, is_log=False, most=2)
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
    bound = replace(ROOFS, levels=(StraightLine("bound 10 ms", 10.0),))
    title, *rows = text_of(bound, 64, 14)
    assert "─ bound 10 ms" in "\n".join([title, *rows])
    assert sum(row.count("─") > 40 for row in rows) == 2, "the bound and the axis"


@given(st.integers(60, 200), st.integers(6, 40), st.booleans())
def test_two_plots_share_the_width_and_one_legend(width: int, height: int, fine: bool) -> None:
    found = pictures.drawn(ROOFS, width, height, fine=fine, beside=replace(ROOFS, title="Again"))
    texts = ["".join(text for text, _ in line) for line in found]
    assert all(len(text) <= width for text in texts)
    assert texts[0].split("   ")[0] == ROOFS.title and texts[0].endswith("Again")
    legend = "   ".join(texts[height:])
    assert legend == f"{'⠒' if fine else '.'} memory   o estimated   x measured"


def test_wide_characters_take_two_cells_of_a_title() -> None:
    title, *_ = text_of(replace(ROOFS, title="測" * 40), 64, 14)
    assert title == "測" * 31 + "…"
