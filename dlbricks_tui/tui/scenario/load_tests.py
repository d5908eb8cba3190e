"""The panel of the stored load tests of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.lines import line
from dlbricks_tui.documents.scenario import load_test_columns, verdict_of
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.widgets.table import TablePanel
from dlbricks_tui.wording.scenarios import scenario_line, scenario_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.documents.parts import Column
    from dlbricks_tui.store.records import LoadTest


class LoadTestsPanel(TablePanel["LoadTest"]):
    """A row for each load test, the newest first."""

    scope = actions.TESTS
    TITLE = "Load tests"
    REACHED_BY = "scenario.go_to_tests"
    SEARCH_HINT = "scenario, runtime, verdict or date"
    ABOUT = (
        "The stored load tests of the model on this system, the newest first. The latencies of the selected one are "
        "shown while nothing is measured. {load_tests.take} takes its settings and predicts its scenario."
    )

    class Selected(Message):
        """The cursor has settled on a load test, or there is none."""

    class Taken(Message):
        """The user wants the settings of the selected load test."""

    def __init__(self) -> None:
        super().__init__(id="load-tests")
        self.show_placeholder(
            line("No load test of this model is stored."),
            Hint("{scenario.measure} measures the scenario above.", "muted"),
        )

    def columns(self) -> tuple[Column[LoadTest], ...]:
        return load_test_columns()

    def show(self, tests: Sequence[LoadTest]) -> None:
        self.show_items(tests)
        self.cursor_settled()

    def identity(self, item: LoadTest) -> str:
        return item.uuid

    def searched(self, item: LoadTest) -> str:
        return f"{scenario_line(scenario_of(item))} {item.runtime} {verdict_of(item)} {item.when[:16]}"

    def search_changed(self) -> None:
        super().search_changed()
        self.cursor_settled()

    def cursor_settled(self) -> None:
        self.post_message(self.Selected())

    def action_take(self) -> None:
        if self.selected is not None:
            self.post_message(self.Taken())
