"""Pictures of documents as SVG: the same numbers give the same bytes, and a page needs no other files.

Colours are named by meaning, for light and dark pages, and can be told apart with colour blindness. Lengths are points.
"""

import math
import re
from collections.abc import Callable, Iterable, Iterator
from enum import Enum
from html import escape

from dlbricks_tui.documents.layout import MEANINGS, shade_of
from dlbricks_tui.documents.parts import Grid
from dlbricks_tui.documents.pictures import Axis, LegendSign, Plot, Rows, round_ticks
from dlbricks_tui.printable import printable


class Ink(Enum):
    """A colour on light and on dark pages, with its name in style sheets.

    All light colours differ, because a page finds the colours of a drawing by them. The hues are those of Okabe and
    Ito, darker on light pages and lighter on dark ones.
    """

    PAPER = ("paper", "#ffffff", "#14181d")
    TEXT = ("text", "#1d232a", "#e4e8ec")
    MUTED = ("muted", "#5b6570", "#9aa5b1")
    GRID = ("grid", "#d9dee4", "#323a43")
    BAND = ("band", "#eef1f4", "#20262d")
    BLUE = ("blue", "#0067a5", "#56b0ea")
    ORANGE = ("orange", "#c95300", "#ff9a57")
    GREEN = ("green", "#00805f", "#3fcb9d")
    PURPLE = ("purple", "#a34a87", "#e394c6")
    SKY = ("sky", "#3f9fd3", "#9bd7f7")
    YELLOW = ("yellow", "#b68400", "#f0c64a")
    STONE = ("stone", "#87919c", "#75808b")
    # From little in common to everything.
    HEAT_1 = ("heat-1", "#d7e6f3", "#17324a")
    HEAT_2 = ("heat-2", "#a6cae6", "#1c4f78")
    HEAT_3 = ("heat-3", "#62a2d2", "#2c78b3")
    HEAT_4 = ("heat-4", "#0b3c68", "#c3e2fa")

    def __init__(self, css_name: str, light: str, dark: str) -> None:
        self.css_name = css_name
        self.light = light
        self.dark = dark


_INKS = {
    "muted": Ink.STONE,
    "accent": Ink.SKY,
    "good": Ink.GREEN,
    "warn": Ink.YELLOW,
    "bad": Ink.ORANGE,
    "bar": Ink.BLUE,
    "rest": Ink.GRID,
    "mark": Ink.PURPLE,
}
_SHADES = (Ink.BAND, Ink.HEAT_1, Ink.HEAT_2, Ink.HEAT_3, Ink.HEAT_4)
_SERIES_STYLES, _SERIES_SIGNS = ("bar", "bad", "good", "mark", "accent", "warn"), "●■▲▼✚✖"
# The outlines of signs of radius 1. Other signs are letters.
_OUTLINES = {
    "●": "M-1,0a1,1 0 1,0 2,0a1,1 0 1,0 -2,0z",
    "■": "M-.9-.9H.9V.9H-.9z",
    "▲": "M0-1.1L1.1.9H-1.1z",
    "▼": "M0,1.1L1.1-.9H-1.1z",
    "◀": "M-1.1,0L.9,1.1V-1.1z",
    "▶": "M1.1,0L-.9,1.1V-1.1z",
    "◆": "M0-1.2L1.2,0L0,1.2L-1.2,0z",
    "✚": "M-.4-1.1H.4V-.4H1.1V.4H.4V1.1H-.4V.4H-1.1V-.4H-.4z",
    "✖": "M0-.55L.6-1.15L1.15-.6L.55,0L1.15.6L.6,1.15L0,.55L-.6,1.15L-1.15.6L-.55,0L-1.15-.6L-.6-1.15z",
}
_HOLLOW = dict(zip("○□△▽◁▷◇", "●■▲▼◀▶◆", strict=True))
_DASHES = {".": "1.5 2.5", ":": "4 2"}
# The share of the height of a row that pieces of these blocks have; any other block is a bar.
_BEHIND = "░"
_THICKNESS = {"─": 0.1, "▄": 0.36, _BEHIND: 1.0}
_BAR = 0.62

WIDTH = 461.0
_ROW, _LABELS, _MARGIN, _BELOW = 12.0, 178.0, 12.0, 32.0
_LETTER = 0.56
_SIZE, _SMALL = 8.0, 7.5
_LEGEND_ROW = 13.0
_PLOT_HEIGHT, _PLOT_LEFT = 170.0, 44.0
_GRID_LABELS, _GRID_TOP, _WIDEST_CELL = 190.0, 62.0, 18.0
# Texts stay texts, which can be selected and searched.
_FONTS = "DejaVu Sans, Verdana, Segoe UI, Helvetica Neue, Arial, sans-serif"
_PAGE_SIZE = re.compile(r' width="([\d.]+)pt" height="[^"]*"')
_LEAST = 0.62

Elements = list[str]
Drawn = tuple[Elements, float]


def series_meaning(number: int, name: str) -> LegendSign:
    """Return the meaning of the sign of a series; from the seventh on the signs get other colours."""
    rounds, place = divmod(number, len(_SERIES_STYLES))
    return LegendSign(_SERIES_SIGNS[(place + rounds) % len(_SERIES_SIGNS)], name, _SERIES_STYLES[place])


def escaped(words: str) -> str:
    """Return a text for XML and HTML, neither of which may hold control codes."""
    return escape(printable(words))


def style_sheet(dark: bool) -> str:
    """Return the colours as declarations of a style sheet."""
    return " ".join(f"--{ink.css_name}: {ink.dark if dark else ink.light};" for ink in Ink)


def for_pages(svg: str) -> str:
    """Return a drawing that uses the colours of a page's style sheet and shrinks with the page."""
    size = _PAGE_SIZE.search(svg)
    if size is not None:
        # The width is at most as drawn, and large enough to read; a narrower page scrolls.
        points = float(size[1])
        limits = f' style="max-width: {points:.0f}pt; min-width: {_LEAST * points:.0f}pt"'
        svg = svg.replace(size[0], limits, 1)
    for ink in Ink:
        svg = svg.replace(ink.light, f"var(--{ink.css_name})")
    return svg


def draw(name: str, title: str, *pictures: Rows | Plot | Grid, says: str = "") -> str:
    """Return the SVG of pictures below one another, described by what they or `says` say."""
    elements: Elements = []
    top = 0.0
    for picture in pictures:
        match picture:
            case Rows():
                drawn, top = _rows(picture, top)
            case Plot():
                drawn, top = _plot(picture, top)
            case Grid():
                drawn, top = _grid(picture, top)
        elements += drawn
    told = [it.says for it in pictures if isinstance(it, Rows | Plot)]
    return svg_document(name, title, says or " ".join(told), WIDTH, top, elements)


def svg_document(name: str, title: str, description: str, width: float, height: float, elements: Iterable[str]) -> str:
    """Return a drawing of this size, with a title and a description for screen readers.

    The ids inside begin with `name`, so that one page can hold several drawings.
    """
    size = f'width="{_number(width)}pt" height="{_number(height)}pt" viewBox="0 0 {_number(width)} {_number(height)}"'
    head = (
        f'<svg xmlns="http://www.w3.org/2000/svg" {size} font-family="{_FONTS}" role="img" '
        f'aria-labelledby="{name}-title {name}-desc" stroke-linejoin="round">'
    )
    told = f'<title id="{name}-title">{escaped(title)}</title>', f'<desc id="{name}-desc">{escaped(description)}</desc>'
    return "\n".join([head, *told, *elements, "</svg>\n"])


def svg_text(x: float, y: float, words: str, ink: Ink = Ink.TEXT, *, anchor: str = "start", size: float = _SIZE) -> str:
    """Return a text whose middle line is at `y`."""
    place = f'x="{_number(x)}" y="{_number(y + 0.36 * size)}" text-anchor="{anchor}" font-size="{_number(size)}"'
    return f'<text {place} fill="{ink.light}">{escaped(words)}</text>'


def svg_line(points: Iterable[tuple[float, float]], ink: Ink, width: float = 0.6, dash: str = "") -> str:
    """Return a line through points."""
    style = f'fill="none" stroke="{ink.light}" stroke-width="{_number(width)}"'
    dashes = f' stroke-dasharray="{dash}"' if dash else ""
    return f'<polyline points="{_places(points)}" {style}{dashes}/>'


def svg_sign(x: float, y: float, mark: str, ink: Ink, radius: float = 2.6, outline: Ink | None = None) -> str:
    """Return a sign; hollow ones have an outline alone."""
    shape = _OUTLINES.get(_HOLLOW.get(mark, mark))
    if shape is None:
        return svg_text(x, y, mark, ink, anchor="middle", size=3 * radius)
    fill, around = ("none", ink) if mark in _HOLLOW else (ink.light, outline)
    stroke = "" if around is None else f' stroke="{around.light}" stroke-width="{_number(1 / radius)}"'
    place = f"translate({_number(x)} {_number(y)}) scale({_number(radius)})"
    return f'<path transform="{place}" d="{shape}" fill="{fill}"{stroke}/>'


def svg_legend(meanings: Iterable[LegendSign], left: float, top: float, width: float) -> Drawn:
    """Return what signs mean, in as few lines as they need, and where these end."""
    elements: Elements = []
    x, y = left, top
    for it in meanings:
        needed = 14 * bool(it.mark) + _LETTER * _SMALL * len(it.name) + 12
        if x > left and x + needed > left + width:
            x, y = left, y + _LEGEND_ROW
        middle = y + _LEGEND_ROW / 2
        if it.block:
            elements.append(_box(x, middle - 3, 10, 6, ink_of(it.style)))
        elif it.mark in _DASHES or it.mark == "-":
            elements.append(svg_line([(x, middle), (x + 11, middle)], ink_of(it.style), 1.2, _DASHES.get(it.mark, "")))
        elif it.mark:
            elements.append(svg_sign(x + 5, middle, it.mark, ink_of(it.style)))
        elements.append(svg_text(x + 14 * bool(it.mark), middle, it.name, size=_SMALL))
        x += needed
    return elements, y + _LEGEND_ROW if elements else top


def _rows(picture: Rows, top: float) -> Drawn:
    """Return names with their bars and marks over an axis, and where they end."""
    room = _LETTER * _SMALL * max((len(it.text) for it in picture.rows), default=0)
    left, right = _LABELS, WIDTH - _MARGIN - room
    elements, begin = svg_legend(picture.legend, left, top, WIDTH - left)
    begin += 3
    end = begin + _ROW * len(picture.rows)
    across = _scale(picture.across, left, right)
    # A line after every fifth row guides the eye.
    guides = [begin + _ROW * row for row in range(5, len(picture.rows), 5)]
    elements += [svg_line([(left, y), (right, y)], Ink.GRID, 0.5) for y in guides]
    elements += _ticks(picture.across, across, begin, end, int((right - left) // 40))
    middles = [begin + _ROW * (number + 0.5) for number in range(len(picture.rows))]
    for row, middle in zip(picture.rows, middles, strict=True):
        elements.append(svg_text(left - 4, middle, row.name, anchor="end"))
        for piece in row.pieces:
            low, high = across(piece.low), across(piece.high)
            height = _ROW * _THICKNESS.get(piece.block, _BAR)
            ink = Ink.BAND if piece.block == _BEHIND else ink_of(piece.style)
            elements.append(_box(low, middle - height / 2, high - low, height, ink))
    if picture.upright is not None:
        x = across(picture.upright)
        elements.append(svg_line([(x, begin), (x, end)], Ink.MUTED, 0.9))
    for row, middle in zip(picture.rows, middles, strict=True):
        elements += [svg_sign(across(it.value), middle, it.sign, ink_of(it.style)) for it in row.marks]
        if row.text:
            ends = [*(it.high for it in row.pieces if it.block != _BEHIND), *(it.value for it in row.marks)]
            elements.append(svg_text(max(map(across, ends), default=left) + 6, middle, row.text, size=_SMALL))
    elements.append(svg_text((left + right) / 2, end + 22, picture.title, Ink.MUTED, anchor="middle"))
    return elements, end + _BELOW


def _plot(plot: Plot, top: float) -> Drawn:
    """Return lines and marks over two axes below their title and legend, and where they end."""
    left, right = _PLOT_LEFT, WIDTH - _MARGIN
    lines = [*((it, "levels") for it in plot.levels), *((it, "uprights") for it in plot.uprights)]
    meanings = [
        *(LegendSign(it.mark, it.name, it.style) for it in plot.series if it.name),
        *(LegendSign("-", it.name, it.style) for it, _ in lines),
        *(LegendSign("", told, "muted") for told in plot.legend),
    ]
    elements, begin = svg_legend(meanings, left, top + _LEGEND_ROW, right - left)
    elements.insert(0, svg_text(left, top + _LEGEND_ROW / 2, plot.title))
    begin += 6
    end = begin + _PLOT_HEIGHT
    across, up = _scale(plot.across, left, right), _scale(plot.up, end, begin)
    elements += _ticks(plot.across, across, begin, end, 8)
    for value, words in round_ticks(plot.up, 8):
        elements.append(svg_line([(left, up(value)), (right, up(value))], Ink.GRID))
        elements.append(svg_text(left - 4, up(value), words, Ink.MUTED, anchor="end", size=_SMALL))
    for each in plot.series:
        places = [(across(x), up(y)) for x, y in each.points]
        if each.filled and places:
            corners = [(places[0][0], end), *places, (places[-1][0], end)]
            elements.append(f'<polygon points="{_places(corners)}" fill="{ink_of(each.style).light}"/>')
        elif each.line:
            elements.append(svg_line(places, ink_of(each.style), 1.2, _DASHES.get(each.line, "")))
        if each.mark != each.line:
            elements += [svg_sign(x, y, each.mark, ink_of(each.style)) for x, y in dict.fromkeys(places)]
    for it, way in lines:
        ends = [(left, up(it.value)), (right, up(it.value))]
        if way == "uprights":
            ends = [(across(it.value), begin), (across(it.value), end)]
        elements.append(svg_line(ends, ink_of(it.style), 1.2))
    return elements, end + _BELOW - 8


def _grid(grid: Grid, top: float) -> Drawn:
    """Return a square of shades for every two names, and where they end; columns have the first words of the names."""
    count = len(grid.names)
    cell = min(_WIDEST_CELL, (WIDTH - _GRID_LABELS - _MARGIN) / count)
    elements: Elements = []
    x = _MARGIN
    for ink, told in zip(_SHADES, MEANINGS, strict=True):
        elements += [_box(x, top + 3, 10, 7, ink), svg_text(x + 14, top + 6.5, told, size=_SMALL)]
        x += 30 + _LETTER * _SMALL * len(told)
    begin, size = top + _GRID_TOP, min(_SMALL, 0.95 * cell)
    for number, name in enumerate(grid.names):
        middle = (number + 0.5) * cell
        elements.append(svg_text(_GRID_LABELS - 4, begin + middle, name, anchor="end", size=size))
        turned = f"rotate(-90 {_number(_GRID_LABELS + middle)} {_number(begin - 4)})"
        first = name.partition(" ")[0][:8]
        elements.append(f'<g transform="{turned}">{svg_text(_GRID_LABELS + middle, begin - 4, first, size=size)}</g>')
    for step, ink in enumerate(_SHADES):
        # All cells of a shade are one path: fifty models have 2,500.
        places = [
            f"M{_number(_GRID_LABELS + column * cell + 0.5)},{_number(begin + row * cell + 0.5)}"
            f"h{_number(cell - 1)}v{_number(cell - 1)}h-{_number(cell - 1)}z"
            for row, shares in enumerate(grid.shares)
            for column, share in enumerate(shares)
            if shade_of(share) == step
        ]
        elements += [f'<path d="{"".join(places)}" fill="{ink.light}"/>'] if places else []
    return elements, begin + count * cell + _MARGIN


def _ticks(axis: Axis, across: Callable[[float], float], begin: float, end: float, most: int) -> Iterator[str]:
    for value, words in round_ticks(axis, most):
        yield svg_line([(across(value), begin), (across(value), end)], Ink.GRID)
        yield svg_text(across(value), end + 8, words, Ink.MUTED, anchor="middle", size=_SMALL)


def _scale(axis: Axis, begin: float, end: float) -> Callable[[float], float]:
    """Return the place of values on an axis; values beyond an end are at that end."""

    def height(value: float) -> float:
        return math.log(value) if axis.is_log else value

    low, span = height(axis.low), height(axis.high) - height(axis.low)

    def place(value: float) -> float:
        return begin + (end - begin) * (height(min(max(value, axis.low), axis.high)) - low) / (span or 1.0)

    return place


def _box(x: float, y: float, width: float, height: float, ink: Ink) -> str:
    size = f'width="{_number(max(0.0, width))}" height="{_number(height)}"'
    return f'<rect x="{_number(x)}" y="{_number(y)}" {size} fill="{ink.light}"/>'


def _places(points: Iterable[tuple[float, float]]) -> str:
    return " ".join(f"{_number(x)},{_number(y)}" for x, y in points)


def ink_of(style: str) -> Ink:
    """Return the colour of a style of documents."""
    return _INKS.get(style, Ink.TEXT)


def _number(value: float) -> str:
    return f"{value:.2f}".rstrip("0").rstrip(".")
