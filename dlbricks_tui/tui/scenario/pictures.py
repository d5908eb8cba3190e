"""Pictures of load as lines in the colours of the theme; each sign differs by shape too."""

from __future__ import annotations

from itertools import groupby
from typing import TYPE_CHECKING

from dlbricks_tui.tui.lines import Line, Span, line
from dlbricks_tui.tui.widgets.rows import LineRows
from dlbricks_tui.wording.load_charts import BOUND, FAILED, HIGHEST, PASSED, RUNNING
from dlbricks_tui.wording.numbers import PREDICTED

if TYPE_CHECKING:
    from collections.abc import Iterator

    from dlbricks_tui.wording.load_charts import Picture

_STYLES = {PREDICTED: "accent", BOUND: "warn", PASSED: "good", FAILED: "bad", RUNNING: "strong", HIGHEST: "accent"}


class PictureRows(LineRows):
    """Lines that fill the height of their panel; there is nothing to select."""

    @property
    def has_cursor(self) -> bool:
        return False


def picture_lines(picture: Picture) -> Iterator[Line]:
    """Yield the lines of a picture with its signs in colours."""
    yield line(Span(picture.above, "muted"))
    for row in picture.rows:
        yield (Span(row.label, "muted"), *_inked(row.cells))
    yield (Span(picture.ground.label, "muted"), *(_inked(picture.ground.cells.replace("=", "-"))))
    for text in picture.below:
        yield line(Span(text, "muted"))


def _inked(cells: str) -> Iterator[Span]:
    for style, signs in groupby(cells, lambda sign: _STYLES.get(sign, "muted")):
        yield Span("".join(signs), style)
