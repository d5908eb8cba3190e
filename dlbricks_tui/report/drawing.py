"""From a painted figure to SVG text: the same bytes for the same numbers, and nothing that a page must load."""

import io
import re
from collections.abc import Callable
from html import escape
from typing import Any

import matplotlib
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dlbricks_tui.printable import printable
from dlbricks_tui.report.palette import Ink

INCHES = 72.0
# Texts stay texts, to be selected, searched and read aloud; the first font that is there is taken, and none is wider
# than the one that the drawing is laid out in.
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
# Where it stands in a page, a style sheet of a drawing would be one of the whole page.
_NEEDLESS = re.compile(r"\s*(<metadata>.*?</metadata>|<defs>\s*<style.*?</style>\s*</defs>|<!--.*?-->)", re.DOTALL)
_NAMES = re.compile(r'(\bid="|url\(#|href="#)')


def draw(name: str, title: str, description: str, paint: Callable[[], Figure]) -> str:
    """The SVG of what `paint` paints, with a title and a description for who cannot see it.

    All names inside begin with `name`, so that several drawings can stand in one page.
    """
    with matplotlib.rc_context():
        # Nobody's own settings have a say in a report.
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
    """An empty figure of so many inches."""
    return Figure(figsize=(width, height))


def axes(figure: Figure, left: float, top: float, width: float, height: float) -> Axes:
    """Axes at a place in inches from the upper left corner: no size depends on how texts are measured."""
    across, down = figure.get_size_inches()
    return figure.add_axes((left / across, 1 - (top + height) / down, width / across, height / down))
