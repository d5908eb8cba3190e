"""Axes and marks of figures with a row for each model."""

from collections.abc import Sequence

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from dlbricks_tui.report import drawing
from dlbricks_tui.report.drawing import Ink

WIDTH = 6.4
ROW = 0.165
_LABELS = 2.5
_RIGHT = 0.2
_LEGEND = 0.2
_ABOVE = 0.12
_BELOW = 0.5
# The width of the legend in letters.
_LEGEND_LETTERS = 66


def rows_height(rows: int, legend: Sequence[Artist]) -> float:
    """Return the height in inches of a figure with a number of rows and a legend."""
    return _ABOVE + _legend_height(legend) + rows * ROW + _BELOW


def row_axes(figure: Figure, labels: Sequence[str], axis: str, legend: Sequence[Artist] = ()) -> Axes:
    """Add axes with a row for each label from the top down, and a legend above them."""
    top = _ABOVE + _legend_height(legend)
    found = drawing.axes(figure, _LABELS, top, WIDTH - _LABELS - _RIGHT, len(labels) * ROW)
    found.set_ylim(len(labels) - 0.5, -0.5)
    found.set_yticks([])
    # Not as ticks, which would take most of the drawing time.
    for row, label in enumerate(labels):
        row_label(found, row, label)
    found.tick_params(axis="x", length=0)
    found.grid(axis="x")
    # A line after every fifth row guides the eye.
    for row in range(4, len(labels) - 1, 5):
        found.axhline(row + 0.5, color=Ink.GRID.light, linewidth=0.5, zorder=0)
    found.spines["left"].set_visible(False)
    found.set_xlabel(axis, labelpad=5)
    if legend:
        across = _LABELS / WIDTH, 1 - (_ABOVE - 0.04) / rows_height(len(labels), legend)
        shown = figure.legend(handles=list(legend), loc="upper left", bbox_to_anchor=across, ncols=_columns(legend))
        for text in shown.get_texts():
            text.set_parse_math(False)
    return found


def row_label(axes: Axes, row: float, label: str) -> None:
    """Write the label of a row at its left; a dollar sign in it does not begin a formula."""
    text = axes.text(-0.015, row, label, ha="right", va="center_baseline", fontsize=8, parse_math=False)
    text.set_transform(axes.get_yaxis_transform())


def mark(label: str, ink: Ink, shape: str, hollow: bool = False) -> Line2D:
    """Return an entry of a legend."""
    face = "none" if hollow else ink.light
    return Line2D(
        [], [], linestyle="none", marker=shape, markersize=5, label=label, color=ink.light, markerfacecolor=face
    )


def draw_marks(
    axes: Axes, places: Sequence[tuple[float, float]], ink: Ink, shape: str, size: float, *, hollow: bool
) -> None:
    """Draw marks at once, which takes much less time than one by one."""
    rows, values = [row for row, _ in places], [value for _, value in places]
    face = "none" if hollow else ink.light
    axes.plot(values, rows, shape, color=ink.light, markersize=size, markerfacecolor=face, linestyle="none")


def draw_bars(axes: Axes, places: Sequence[tuple[float, float, float]], height: float, ink: Ink) -> None:
    """Draw bars at once: each has its row, its begin and its end. The height is a share of that of a row."""
    rows, begins, ends = zip(*places, strict=True) if places else ((), (), ())
    axes.hlines(rows, begins, ends, color=ink.light, linewidth=height * ROW * drawing.INCHES)


def _legend_height(legend: Sequence[Artist]) -> float:
    return _LEGEND * -(-len(legend) // _columns(legend)) + (0.06 if legend else 0)


def _columns(legend: Sequence[Artist]) -> int:
    longest = max((len(str(entry.get_label())) for entry in legend), default=0)
    return max(1, min(len(legend), _LEGEND_LETTERS // (longest + 5)))
