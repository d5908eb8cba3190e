"""The panel of the layers of a model, each with the execution in which it is fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dlbricks_tui.documents.lines import ELLIPSIS, Line, Span, column, cut_start, line, number_column, titles
from dlbricks_tui.estimate.compositions import milliseconds as from_picoseconds
from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.widgets.panel import ItemPanel, Orders, counts_text
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.wording.analysis import short_name
from dlbricks_tui.wording.layers import common_beginning
from dlbricks_tui.wording.numbers import milliseconds, signed_percent
from dlbricks_tui.wording.text_tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.analysis.bounds import GroupTimes

_MS, _SLOWER, _FASTEST = 9, 9, 24
_LEAST_FASTEST = 16
# A layer that is slower by less is as fast as the best.
_SLOWER_FROM = 0.05
# From here on a percentage needs no decimals, and has no room for them.
_MANY_TIMES = 9.0


class LayersPanel(ItemPanel["GroupTimes"]):
    """A row for each group of layers: its time here, the least time, and the execution that reached it."""

    scope = actions.LAYERS
    TITLE = "Layers"
    REACHED_BY = "analysis.go_to_layers"
    HEADED = True
    PICTURED = True
    SEARCH_HINT = "layer or execution"
    ABOUT = (
        "Runtimes fuse different layers, so the times are those of the smallest groups that all of them compute "
        "together. Slower is how much longer the model's own execution takes than the fastest one. "
        "'mxnet fused on 2' is MXNet with fused layers on two threads."
    )
    ORDERS: ClassVar[Orders] = {
        "longest first": lambda it: -it.latency_ps,
        "most to gain first": lambda it: it.best_ps - it.latency_ps,
    }

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="layers")
        # The beginning of all names, which the title shows once.
        self._common = ""

    def heading(self, width: int) -> Line:
        name, fastest = _widths(width - 1)
        right = titles(("here ms", _MS), ("best ms", _MS), ("slower", _SLOWER))
        return (Span(" "), column("layers", name, "muted"), *right, column("  fastest", fastest, "muted"))

    def show(self, groups: Sequence[GroupTimes]) -> None:
        self._common = common_beginning([name for it in groups for name in it.layers])
        self.show_placeholder(line("No layers to compare: not all of them were measured."))
        self.show_items(groups)

    def identity(self, item: GroupTimes) -> tuple[str, ...]:
        return item.layers

    def searched(self, item: GroupTimes) -> str:
        return f"{' '.join(item.layers)} {' '.join(map(short_name, item.fastest))}"

    def show_counts(self) -> None:
        common = f" of {self._common}{ELLIPSIS}" if self._common else ""
        self.show_title(f"{common} {counts_text(len(self.found), len(self.items))}, {self.order}")

    def as_texts(self) -> TextTable:
        found = super().as_texts()
        # A copy has no title that says the beginning of the names.
        return TextTable(found.titles, [[f"{self._common}{name}", *cells] for name, *cells in found.rows])

    def _row(self, index: int, width: int) -> Line:
        it = self.found[index]
        name, fastest = _widths(width)
        names = [each.removeprefix(self._common) for each in it.layers]
        more = f" +{len(names) - 1}" if len(names) > 1 else ""
        here = it.latency_ps
        slower = here / it.best_ps - 1.0 if it.best_ps else None
        is_slower = slower is not None and slower >= _SLOWER_FROM
        return (
            column(cut_start(names[0], name - len(more)), name - len(more)),
            Span(more, "muted"),
            number_column(milliseconds(from_picoseconds(here)), _MS, "strong"),
            number_column(milliseconds(from_picoseconds(it.best_ps)), _MS),
            number_column(_slower_text(slower), _SLOWER, "bad" if is_slower else "muted"),
            column("  " + " + ".join(dict.fromkeys(map(short_name, it.fastest))), fastest, "muted"),
        )


def _widths(width: int) -> tuple[int, int]:
    """Return the widths of the names and of the fastest executions."""
    left = width - 2 * _MS - _SLOWER
    fastest = max(_LEAST_FASTEST, min(_FASTEST, left // 2)) if left < 2 * _FASTEST + 8 else left // 2
    return max(4, left - fastest), fastest


def _slower_text(slower: float | None) -> str:
    if slower is None:
        return "-"
    return f"{100 * slower:+,.0f} %" if slower >= _MANY_TIMES else signed_percent(slower)
