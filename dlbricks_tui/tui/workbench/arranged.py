"""The base of the workbench screen that remembers its look and the models opened lately."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.run.host import RunHostScreen
from dlbricks_tui.tui.view_state import read_view, write_view
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.screens import layout_of
from dlbricks_tui.tui.workbench.model_columns import FIRST_COLUMNS
from dlbricks_tui.tui.workbench.model_order import ModelOrder
from dlbricks_tui.tui.workbench.models import ModelsPanel
from dlbricks_tui.tui.workbench.panel_sizes import STEP, STEP_UPPER, USUAL, fitted, taller, wider

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.tui.session import Session
    from dlbricks_tui.tui.view_state import PanelSizes


class ArrangedScreen(RunHostScreen):
    """Has the panel of models, and keeps its look and the sizes of all panels in a file."""

    def __init__(self, session: Session, config: Callable[[], Config]) -> None:
        super().__init__(session, config)
        self.view = read_view(session.data.view)
        orders = {order.value: order for order in ModelOrder}
        # Models that are opened now stay where they are until the next start.
        self._models = ModelsPanel(self.view.columns, orders.get(self.view.order, ModelOrder.LIBRARY), self.view.recent)

    def on_mount(self) -> None:
        self._apply_sizes()

    def on_resize(self) -> None:
        self._apply_sizes()

    def keep_view(self) -> None:
        """Write the look to its file."""
        # The newest look, even if an earlier thread writes last.
        self.run_in_thread(lambda: write_view(self.session.data.view, self.view), "view")

    @on(ModelsPanel.ViewChanged)
    def _view_changed(self) -> None:
        shown = tuple(each.name for each in self._models.columns)
        columns = None if shown == FIRST_COLUMNS else shown
        self.view = replace(self.view, columns=columns, order=self._models.sorted_by.value)
        self.keep_view()

    @on(ModelsPanel.ColumnsAsked)
    def _columns_wanted(self) -> None:
        from dlbricks_tui.tui.workbench.column_box import ModelColumnsScreen

        self.ask(ModelColumnsScreen(each.name for each in self._models.columns), self._models.show_columns)

    @property
    def is_expert(self) -> bool:
        return self.view.expert

    def show_expert(self, expert: bool) -> None:
        self.view = replace(self.view, expert=expert)
        self.keep_view()

    def action_wider(self) -> None:
        self._resize(lambda sizes, panel: wider(sizes, panel, STEP))

    def action_narrower(self) -> None:
        self._resize(lambda sizes, panel: wider(sizes, panel, -STEP))

    def action_taller(self) -> None:
        self._resize(lambda sizes, panel: taller(sizes, panel, STEP_UPPER))

    def action_shorter(self) -> None:
        self._resize(lambda sizes, panel: taller(sizes, panel, -STEP_UPPER))

    def _resize(self, change: Callable[[PanelSizes, str], PanelSizes]) -> None:
        layout = layout_of(self.size.width)
        panel = next((each for each in self.query(Panel) if each.has_class("-current")), None)
        if layout not in USUAL or panel is None or self.shows_one_panel:
            return
        sizes = fitted(change(self._sizes_in(layout), panel.id or ""), self.size.width)
        self.view = replace(self.view, sizes={**self.view.sizes, layout: sizes})
        self._apply_sizes()
        self.keep_view()

    def _sizes_in(self, layout: str) -> PanelSizes:
        return fitted(self.view.sizes.get(layout, USUAL[layout]), self.size.width)

    def _apply_sizes(self) -> None:
        layout, styles = layout_of(self.size.width), self.query_one(".panels").styles
        if layout in self.view.sizes and layout in USUAL:
            sizes = self._sizes_in(layout)
            styles.grid_columns = f"{sizes.left} 1fr {sizes.right}"
            styles.grid_rows = f"{sizes.upper}fr {100 - sizes.upper}fr"
        elif styles.has_rule("grid_columns"):
            # Those of the style sheet.
            styles.clear_rule("grid_columns")
            styles.clear_rule("grid_rows")
