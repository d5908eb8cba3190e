"""Colours by what they mean, for light and for dark paper; told apart by those who see fewer colours too."""

import re
from enum import Enum


class Ink(Enum):
    """A colour with its name in style sheets, on light and on dark paper.

    No two are the same on light paper: that is how the colours of a drawing are found again when it is put into a page.
    The hues are those of Okabe and Ito, darker on light paper and lighter on dark.
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
    # From a little in common to all.
    HEAT_1 = ("heat-1", "#d7e6f3", "#17324a")
    HEAT_2 = ("heat-2", "#a6cae6", "#1c4f78")
    HEAT_3 = ("heat-3", "#62a2d2", "#2c78b3")
    HEAT_4 = ("heat-4", "#2271b0", "#62a9df")
    HEAT_5 = ("heat-5", "#0b3c68", "#c3e2fa")

    def __init__(self, css_name: str, light: str, dark: str) -> None:
        self.css_name = css_name
        self.light = light
        self.dark = dark


# For things of one sort, each with a mark of its own, so that no colour is needed to tell them apart.
SERIES_INKS = (Ink.BLUE, Ink.ORANGE, Ink.GREEN, Ink.PURPLE, Ink.SKY, Ink.YELLOW)
SERIES_MARKS = ("o", "s", "^", "v", "P", "X")
HEATS = (Ink.HEAT_1, Ink.HEAT_2, Ink.HEAT_3, Ink.HEAT_4, Ink.HEAT_5)


def series_style(number: int) -> tuple[Ink, str]:
    """Colour and mark of a series; from the seventh on the marks go on to other colours."""
    rounds, place = divmod(number, len(SERIES_INKS))
    return SERIES_INKS[place], SERIES_MARKS[(place + rounds) % len(SERIES_MARKS)]


_SIZE = re.compile(r' width="([\d.]+)pt" height="[^"]*"')
_LEAST = 0.62


def for_pages(svg: str) -> str:
    """A drawing whose colours follow the style sheet of the page that it stands in, and which shrinks with it."""
    svg = _SIZE.sub(_limits, svg, count=1)
    for ink in Ink:
        svg = svg.replace(ink.light, f"var(--{ink.css_name})")
    return svg


def _limits(size: re.Match[str]) -> str:
    """No larger than it was drawn, and no smaller than letters can be read: then it scrolls."""
    points = float(size[1])
    return f' style="max-width: {points:.0f}pt; min-width: {_LEAST * points:.0f}pt"'


def style_sheet(dark: bool) -> str:
    """The colours as declarations of a style sheet."""
    return " ".join(f"--{ink.css_name}: {ink.dark if dark else ink.light};" for ink in Ink)
