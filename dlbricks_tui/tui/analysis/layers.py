"""The panel of the layers of a model, each with the execution in which it is fastest."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar

from dlbricks_tui.documents.analysis import fastest_words, layer_columns
from dlbricks_tui.documents.lines import ELLIPSIS, line
from dlbricks_tui.tui.analysis import actions
from dlbricks_tui.tui.widgets.panel import Orders, counts_text
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.wording.layers import common_beginning

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.analysis.bounds import GroupTimes
    from dlbricks_tui.documents.parts import Column


class LayersPanel(TablePanel["GroupTimes"]):
    """A row for each group of layers: its time here, the least time, and the execution that reached it."""

    scope = actions.LAYERS
    TITLE = "Layers"
    REACHED_BY = "analysis.go_to_layers"
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
        super().__init__(id="layers")
        # The beginning of all names, which the title shows once.
        self._common = ""

    def columns(self) -> tuple[Column[GroupTimes], ...]:
        return layer_columns(self._common)

    def copied_columns(self) -> tuple[Column[GroupTimes], ...]:
        # A copy has no title that says the beginning of the names.
        return layer_columns("")

    def show(self, groups: Sequence[GroupTimes]) -> None:
        self._common = common_beginning([name for it in groups for name in it.layers])
        self.show_placeholder(line("No layers to compare: not all of them were measured."))
        self.show_items(groups)

    def identity(self, item: GroupTimes) -> tuple[str, ...]:
        return item.layers

    def searched(self, item: GroupTimes) -> str:
        return f"{' '.join(item.layers)} {fastest_words(item)}"

    def show_counts(self) -> None:
        common = f" of {self._common}{ELLIPSIS}" if self._common else ""
        self.show_title(f"{common} {counts_text(len(self.found), len(self.items))}, {self.order}")
