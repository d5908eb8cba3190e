"""Draw figures as SVG: the same numbers give the same bytes, and a page needs no other files.

Colours are named by meaning, for light and dark pages, and can be told apart with colour blindness.
"""

import io
import re
from collections.abc import Callable
from enum import Enum
from html import escape
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

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
    HEAT_4 = ("heat-4", "#2271b0", "#62a9df")
    HEAT_5 = ("heat-5", "#0b3c68", "#c3e2fa")

    def __init__(self, css_name: str, light: str, dark: str) -> None:
        self.css_name = css_name
        self.light = light
        self.dark = dark


# For series; each has its own mark too, so that they can be told apart without colours.
SERIES_INKS = (Ink.BLUE, Ink.ORANGE, Ink.GREEN, Ink.PURPLE, Ink.SKY, Ink.YELLOW)
SERIES_MARKS = ("o", "s", "^", "v", "P", "X")
HEATS = (Ink.HEAT_1, Ink.HEAT_2, Ink.HEAT_3, Ink.HEAT_4, Ink.HEAT_5)


def series_style(number: int) -> tuple[Ink, str]:
    """Return the colour and mark of a series; from the seventh on the marks get other colours."""
    rounds, place = divmod(number, len(SERIES_INKS))
    return SERIES_INKS[place], SERIES_MARKS[(place + rounds) % len(SERIES_MARKS)]


_SIZE = re.compile(r' width="([\d.]+)pt" height="[^"]*"')
_LEAST = 0.62


def for_pages(svg: str) -> str:
    """Return a drawing that uses the colours of a page's style sheet and shrinks with the page."""
    svg = _SIZE.sub(_limits, svg, count=1)
    for ink in Ink:
        svg = svg.replace(ink.light, f"var(--{ink.css_name})")
    return svg


def _limits(size: re.Match[str]) -> str:
    """Limit the width: at most as drawn, and large enough to read; a narrower page scrolls."""
    points = float(size[1])
    return f' style="max-width: {points:.0f}pt; min-width: {_LEAST * points:.0f}pt"'


def style_sheet(dark: bool) -> str:
    """Return the colours as declarations of a style sheet."""
    return " ".join(f"--{ink.css_name}: {ink.dark if dark else ink.light};" for ink in Ink)


INCHES = 72.0
# Texts stay texts, which can be selected and searched. The browser takes the first font that it has; none is wider than
# the one that the drawing is laid out with.
_FONTS = ["DejaVu Sans", "Verdana", "Segoe UI", "Helvetica Neue", "Arial", "sans-serif"]
_STYLE: dict[Any, Any] = {
    "svg.fonttype": "none",
    "font.family": ["sans-serif"],
    "font.sans-serif": _FONTS,
    "font.size": 8.0,
    "figure.facecolor": "none",
    "savefig.facecolor": "none",
    "text.color": Ink.TEXT.light,
    "axes.edgecolor": Ink.GRID.light,
    "axes.labelcolor": Ink.MUTED.light,
    "axes.labelsize": 8.0,
    "axes.facecolor": "none",
    "axes.axisbelow": True,
    "axes.spines.top": False,
    "axes.spines.right": False,
    "axes.linewidth": 0.8,
    "grid.color": Ink.GRID.light,
    "grid.linewidth": 0.6,
    "xtick.color": Ink.GRID.light,
    "xtick.labelcolor": Ink.MUTED.light,
    "xtick.labelsize": 7.5,
    "ytick.color": Ink.GRID.light,
    "ytick.labelcolor": Ink.TEXT.light,
    "ytick.labelsize": 7.5,
    "legend.frameon": False,
    "legend.fontsize": 7.5,
    "legend.handletextpad": 0.3,
    "legend.columnspacing": 1.4,
    "legend.borderaxespad": 0.0,
    "lines.linewidth": 1.0,
    "hatch.linewidth": 0.6,
}
_PROLOGUE = re.compile(r"\A.*?(?=<svg)", re.DOTALL)
# Inside a page, the style sheet of a drawing would apply to the whole page.
_NEEDLESS = re.compile(r"\s*(<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->)", re.DOTALL)
_NAMES = re.compile(r'(\bid="|url\(#|href="#)')


def draw(name: str, title: str, description: str, paint: Callable[[], Figure]) -> str:
    """Return the SVG of a figure, with a title and a description for screen readers.

    All names inside begin with `name`, so that one page can hold several drawings.
    """
    with matplotlib.rc_context():
        # Without the user's own settings of matplotlib.
        matplotlib.rcdefaults()
        matplotlib.rcParams.update({**_STYLE, "svg.hashsalt": name})
        text = io.StringIO()
        paint().savefig(text, format="svg", metadata={"Date": None})
    head, rest = _NEEDLESS.sub("", _PROLOGUE.sub("", text.getvalue())).split(">", 1)
    words = f'<title id="title">{escaped(title)}</title>\n <desc id="desc">{escaped(description)}</desc>'
    return _NAMES.sub(
        rf"\g<1>{name}-",
        f'{head} role="img" aria-labelledby="{name}-title {name}-desc" stroke-linejoin="round">\n {words}{rest}',
    )


def escaped(text: str) -> str:
    """Return a text for XML and HTML, neither of which may hold control codes."""
    return escape(printable(text))


def canvas(width: float, height: float) -> Figure:
    """Return an empty figure; sizes are in inches."""
    return Figure(figsize=(width, height))


def axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Add axes at a place in inches from the upper left corner; no size depends on the width of texts."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))
