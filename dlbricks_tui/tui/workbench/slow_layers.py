"""The rows of the slowest layers in the panel of the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import Line, column, cut_start, number_column
from dlbricks_tui.wording.numbers import milliseconds, percent
from dlbricks_tui.wording.slowest import sign_of_part

if TYPE_CHECKING:
    from dlbricks_tui.estimate.slowest import SlowPart

# The number of slow layers that are shown.
MOST_SLOW = 10
_MS, _SHARE = 9, 6
_LEAST_TITLE, _MOST_TITLE, _LEAST_NAME = 8, 26, 12


class LayerStop(NamedTuple):
    """The row of a slow layer as a place of the cursor: the first layer of a sequence, by its index."""

    layer: int


class SlowRow(NamedTuple):
    """One of the slowest layer sequences with its titles and names."""

    slow: SlowPart
    title: str
    name: str


def slow_line(row: SlowRow, width: int) -> Line:
    """Return a slow layer with its latency, its share, and the share of it and of all slower ones."""
    room = max(_LEAST_TITLE, width - _MS - 2 * _SHARE)
    title_width = room if room < _MOST_TITLE + _LEAST_NAME else _MOST_TITLE
    # The end of a name tells more than its beginning.
    name = f"  {cut_start(row.name, room - title_width - 2)}" if room > title_width else ""
    return (
        column(row.title, title_width),
        column(name, room - title_width, "muted"),
        number_column(
            sign_of_part(row.slow) + milliseconds(row.slow.latency_ms),
            _MS,
            "warn" if row.slow.part.predicted else "strong",
        ),
        number_column(percent(row.slow.share), _SHARE),
        number_column(percent(row.slow.cumulative), _SHARE, "muted"),
    )
