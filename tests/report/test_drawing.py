import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from dlbricks_tui.report import drawing
from dlbricks_tui.report.drawing import SERIES_INKS, Ink, for_pages, series_style, style_sheet


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
    for ink in (*SERIES_INKS, Ink.STONE):
        assert contrast(ink.light, Ink.PAPER.light) >= 2.9
        assert contrast(ink.dark, Ink.PAPER.dark) >= 2.9


def test_every_colour_of_a_drawing_has_a_style_variable() -> None:
    assert len({ink.light for ink in Ink}) == len({ink.css_name for ink in Ink}) == len(Ink)
    drawn = f'<svg width="504pt" height="100pt" viewBox="0 0 504 100"><path style="fill: {Ink.BLUE.light}"/></svg>'
    shown = for_pages(drawn)
    assert 'style="fill: var(--blue)"' in shown
    assert "height=" not in shown
    assert 'style="max-width: 504pt; min-width: 312pt"' in shown


def test_both_papers_have_all_colours() -> None:
    for dark in (False, True):
        assert set(re.findall(r"--([\w-]+): #", style_sheet(dark))) == {ink.css_name for ink in Ink}


def test_series_are_distinguished_without_colours() -> None:
    styles = [series_style(number) for number in range(12)]
    assert len(set(styles)) == 12
    assert len({mark for _, mark in styles[:6]}) == 6


def paint() -> Figure:
    figure = drawing.canvas(3, 2)
    axes = drawing.axes(figure, 0.5, 0.2, 2, 1.5)
    axes.plot([0, 1], [0, 1], "o-", color=Ink.BLUE.light)
    axes.set_xlabel("a < b")
    return figure


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert drawing.draw("one", "A line", "It rises.", paint) == drawing.draw("one", "A line", "It rises.", paint)


def test_a_drawing_has_a_description_and_loads_nothing() -> None:
    svg = drawing.draw("one", "Less < more", "It rises.", paint)
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root if element.tag.endswith(("title", "desc"))]
    assert texts == ["Less < more", "It rises."]
    assert root.get("role") == "img"
    assert not re.findall(r'(?:href|src)="(?!#)|<style|<script|@import', svg)
    assert ">a &lt; b<" in svg


def test_names_of_two_drawings_on_one_page_never_clash() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', drawing.draw(name, "t", "d", paint))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]
    svg = drawing.draw("one", "t", "d", paint)
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg)) <= ids[0]
