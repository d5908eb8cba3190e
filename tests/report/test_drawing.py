import re
from dataclasses import replace
from xml.etree import ElementTree

import pytest

from dlbricks_tui.documents.layout import MEANINGS
from dlbricks_tui.documents.parts import Grid
from dlbricks_tui.documents.pictures import Axis, BarRow, LegendSign, Mark, Piece, Plot, Rows, Series, StraightLine
from dlbricks_tui.report.drawing import Ink, draw, for_pages, ink_of, series_meaning, style_sheet


def luminance(colour: str) -> float:
    """Relative luminance as WCAG defines it."""
    parts = [int(colour[start : start + 2], 16) / 255 for start in (1, 3, 5)]
    linear = [part / 12.92 if part <= 0.04045 else ((part + 0.055) / 1.055) ** 2.4 for part in parts]
    return 0.2126 * linear[0] + 0.7152 * linear[1] + 0.0722 * linear[2]


def contrast(one: str, other: str) -> float:
    low, high = sorted((luminance(one), luminance(other)))
    return (high + 0.05) / (low + 0.05)


def test_texts_and_marks_have_contrast_on_light_and_dark_paper() -> None:
    for ink in (Ink.TEXT, Ink.MUTED):
        assert contrast(ink.light, Ink.PAPER.light) >= 4.5
        assert contrast(ink.dark, Ink.PAPER.dark) >= 4.5
    for ink in (*(ink_of(series_meaning(number, "").style) for number in range(6)), Ink.STONE):
        assert contrast(ink.light, Ink.PAPER.light) >= 2.9
        assert contrast(ink.dark, Ink.PAPER.dark) >= 2.9


def test_every_colour_of_a_drawing_has_a_style_variable_on_both_papers() -> None:
    assert len({ink.light for ink in Ink}) == len({ink.css_name for ink in Ink}) == len(Ink)
    drawn = f'<svg width="504pt" height="100pt" viewBox="0 0 504 100"><path style="fill: {Ink.BLUE.light}"/></svg>'
    shown = for_pages(drawn)
    assert 'style="fill: var(--blue)"' in shown
    assert "height=" not in shown
    assert 'style="max-width: 504pt; min-width: 312pt"' in shown
    for dark in (False, True):
        assert set(re.findall(r"--([\w-]+): #", style_sheet(dark))) == {ink.css_name for ink in Ink}


def test_series_are_distinguished_without_colours() -> None:
    styles = [series_meaning(number, "") for number in range(12)]
    assert len(set(styles)) == 12
    assert len({it.mark for it in styles[:6]}) == 6


ROWS = Rows(
    "a < b",
    "It rises.",
    Axis(0.0, 10.0),
    (
        BarRow("first", (Piece(0.0, 5.0, "=", "█", "bar"),), text="5 of 10"),
        BarRow("second", marks=(Mark(20.0, "◇", "good"),)),
    ),
    (LegendSign("=", "measured", "bar", "█"), LegendSign("◇", "predicted", "good")),
    1.0,
)
LINE = Series("memory", ".", "bad", ((1.0, 10.0), (10.0, 100.0)), ".")
ACROSS, UP = Axis(1.0, 10.0, is_log=True), Axis(10.0, 100.0, is_log=True)
PLOT = Plot("speed", "It is fast.", ACROSS, UP, (LINE,), (StraightLine("most", 50.0),))


def elements(svg: str, tag: str) -> list[dict[str, str]]:
    return [it.attrib for it in ElementTree.fromstring(svg).iter() if it.tag.endswith(f"}}{tag}")]


def texts(svg: str) -> list[str]:
    return [it.text or "" for it in ElementTree.fromstring(svg).iter() if it.tag.endswith("}text")]


def test_a_drawing_has_a_description_and_loads_nothing() -> None:
    svg = draw("one", "Less < more", ROWS, PLOT)
    root = ElementTree.fromstring(svg)
    assert [it.text for it in root if it.tag.endswith(("title", "desc"))] == ["Less < more", "It rises. It is fast."]
    assert root.get("role") == "img"
    assert not re.findall(r'(?:href|src)="(?!#)|<style|<script|@import', svg)
    assert ">a &lt; b<" in svg


def test_names_of_two_drawings_on_one_page_never_clash() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', draw(name, "t", ROWS))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]


def test_bars_begin_at_zero_and_marks_beyond_the_axis_stand_at_its_end() -> None:
    svg = draw("one", "t", ROWS)
    # Each row has its name and text, and each sign its meaning.
    assert {"first", "second", "5 of 10", "measured", "predicted"} <= {*texts(svg)}
    _, bar = elements(svg, "rect")
    places = {it.text: float(it.attrib["x"]) for it in ElementTree.fromstring(svg).iter() if it.tag.endswith("}text")}
    assert float(bar["x"]) == places["0"]
    assert float(bar["width"]) == pytest.approx((places["10"] - places["0"]) / 2, abs=0.01)
    assert f"translate({places['10']:g} " in elements(svg, "path")[-1]["transform"]


def test_lines_and_levels_of_a_plot_differ_without_colours() -> None:
    svg = draw("one", "t", PLOT)
    assert {"speed", "memory", "most"} <= {*texts(svg)}
    strong = [it for it in elements(svg, "polyline") if it["stroke-width"] == "1.2"]
    assert {it.get("stroke-dasharray") for it in strong} == {None, "1.5 2.5"}


def test_letters_and_filled_series_are_drawn() -> None:
    letter = Series("", "C", "strong", ((2.0, 20.0), (2.0, 20.0)))
    filled = Series("", "#", "bar", ((1.0, 20.0), (10.0, 20.0)), "#", filled=True)
    svg = draw("one", "t", replace(PLOT, series=(letter, filled)))
    assert texts(svg).count("C") == 1
    assert len(elements(svg, "polygon")) == 1


def test_a_grid_has_a_square_for_each_two_names() -> None:
    svg = draw("one", "t", Grid(("8 first", "second"), ((1.0, 0.1), (0.1, 1.0))), says="d")
    squares = [it["d"].count("M") for it in elements(svg, "path")]
    assert squares == [2, 2]
    assert {*MEANINGS, "8 first", "8", "second"} <= {*texts(svg)}
