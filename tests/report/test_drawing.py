import re
from xml.etree import ElementTree

from matplotlib.figure import Figure

from dlbricks_tui.report import drawing
from dlbricks_tui.report.palette import Ink


def paint() -> Figure:
    figure = drawing.canvas(3, 2)
    axes = drawing.axes(figure, 0.5, 0.2, 2, 1.5)
    axes.plot([0, 1], [0, 1], "o-", color=Ink.BLUE.light)
    axes.set_xlabel("a < b")
    return figure


def test_the_same_numbers_give_the_same_bytes() -> None:
    assert drawing.draw("one", "A line", "It rises.", paint) == drawing.draw("one", "A line", "It rises.", paint)


def test_a_drawing_says_what_it_shows_and_loads_nothing() -> None:
    svg = drawing.draw("one", "Less < more", "It rises.", paint)
    root = ElementTree.fromstring(svg)
    texts = [element.text for element in root if element.tag.endswith(("title", "desc"))]
    assert texts == ["Less < more", "It rises."]
    assert root.get("role") == "img"
    assert not re.findall(r'(?:href|src)="(?!#)|<style|<script|@import', svg)
    assert ">a &lt; b<" in svg


def test_names_of_two_drawings_in_one_page_never_meet() -> None:
    ids = [set(re.findall(r'\bid="([^"]+)"', drawing.draw(name, "t", "d", paint))) for name in ("one", "two")]
    assert ids[0]
    assert not ids[0] & ids[1]
    svg = drawing.draw("one", "t", "d", paint)
    assert set(re.findall(r'(?:url\(#|href="#)([^")]+)', svg)) <= ids[0]
