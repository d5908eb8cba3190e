"""The line at the head of the workbench: the model, the settings and the estimate."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dlbricks_tui.tui.choices import Choices
from dlbricks_tui.tui.lines import Line, Span, spread
from dlbricks_tui.tui.widgets.text import LineBar
from dlbricks_tui.wording.numbers import PARTLY, counted, milliseconds, part_of

if TYPE_CHECKING:
    from dlbricks_tui.estimate.system_estimate import SystemEstimate

_ROOMY = 110


class Headline(LineBar):
    """Stays in sight in every layout."""

    def __init__(self) -> None:
        super().__init__(id="headline")
        self._model = ""
        self._choices = Choices()
        self._system_estimate: SystemEstimate | None = None

    def show(self, model: str, choices: Choices, system_estimate: SystemEstimate | None) -> None:
        self._model, self._choices, self._system_estimate = model, choices, system_estimate
        self.refresh()

    def lines(self, width: int) -> tuple[Line, ...]:
        how = self._choices
        settings = [how.level.value, f"G {how.granularity}"]
        if width >= _ROOMY:
            settings += [how.cut.value, counted(how.workers, "worker")]
        right = Span(" · ".join(settings) + " ", "muted")
        return (spread((Span(" dlbricks ", "accent"), *self._said()), (right,), width),)

    def _said(self) -> Line:
        if not self._model:
            return (Span(" How fast does it run here?", "muted"),)
        name = Span(f" {self._model} ", "strong")
        found = self._system_estimate.estimate if self._system_estimate else None
        if found is None:
            return (name,)
        if found.obstacle:
            return (name, Span(" no estimate possible ", "warn"))
        composed, coverage, workers = found.composed, found.coverage, found.options.workers
        if composed is None:
            return (name,)
        sign = PARTLY if found.is_partial else ""
        measured = f"{part_of(coverage.measured, coverage.layers)} measured"
        # The second number is for the selected number of workers.
        second_ms, by = composed.parallel_ms, "parallel"
        if workers is not None and composed.workers_ms is not None:
            second_ms, by = composed.workers_ms, counted(workers, "worker")
        return (
            name,
            Span(f" {sign}{milliseconds(composed.sequential_ms)} ms", "strong"),
            Span(" unfused " if found.is_unfused else " sequential ", "muted"),
            Span(f" {sign}{milliseconds(second_ms)} ms", "strong"),
            Span(f" {by} ", "muted"),
            Span(f" only {measured}", "warn") if found.is_partial else Span(f" {measured}", "muted"),
        )
