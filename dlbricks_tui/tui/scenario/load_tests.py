"""The panel of the stored load tests of the model."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.documents.lines import Line, Span, column, line, number_column, titles
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.scenario import actions
from dlbricks_tui.tui.scenario.work import percentile_ms_of
from dlbricks_tui.tui.widgets.panel import ItemPanel
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.wording.numbers import milliseconds
from dlbricks_tui.wording.scenarios import percentile_name, scenario_line, scenario_of

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.store.records import LoadTest

_RATE, _LATENCY, _VERDICT = 11, 12, 9
# From this width on the scenario is a sentence.
_ROOMY = 40


class LoadTestsPanel(ItemPanel["LoadTest"]):
    """A row for each load test, the newest first."""

    scope = actions.TESTS
    TITLE = "Load tests"
    REACHED_BY = "scenario.go_to_tests"
    HEADED = True
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
        super().__init__(DrawnRows(self._row), id="load-tests")
        self.show_placeholder(
            line("No load test of this model is stored."),
            Hint("{scenario.measure} measures the scenario above.", "muted"),
        )

    def heading(self, width: int) -> Line:
        right = titles(("per second", _RATE), ("ms", _LATENCY), ("verdict", _VERDICT))
        return (Span(" "), column("scenario", _scenario_width(width - 1), "muted"), *right)

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

    def _row(self, index: int, width: int) -> Line:
        it = self.found[index]
        latency = f"{percentile_name(it.percentile)} {milliseconds(percentile_ms_of(it))}"
        room = _scenario_width(width)
        scenario = scenario_line(scenario_of(it)) if room >= _ROOMY else it.kind
        return (
            column(f"{it.when[5:10]} {scenario}", room),
            number_column(milliseconds(it.found_per_second), _RATE, "strong"),
            number_column(latency, _LATENCY),
            number_column(verdict_of(it), _VERDICT, "good" if it.valid else "bad"),
        )


def verdict_of(test: LoadTest) -> str:
    """Return LoadGen's verdict."""
    return "VALID" if test.valid else "INVALID"


def _scenario_width(width: int) -> int:
    return max(8, width - _RATE - _LATENCY - _VERDICT)
