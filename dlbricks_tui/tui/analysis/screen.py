"""The screen of the analysis of a model: bounds, what-ifs, the gap, and the layers."""

from __future__ import annotations

from functools import partial
from typing import TYPE_CHECKING

from textual import on
from textual.containers import Container

from dlbricks_tui.runs.run_folder import State
from dlbricks_tui.tui import messages
from dlbricks_tui.tui.analysis import actions, work
from dlbricks_tui.tui.analysis.bounds import BoundsPanel
from dlbricks_tui.tui.analysis.layers import LayersPanel
from dlbricks_tui.tui.analysis.what_ifs import ChangePanel, WhatIfsPanel
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, line, wrapped_lines
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.wording.analysis import execution_line, headline, largest_gain
from dlbricks_tui.wording.numbers import capitalised

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.config.config import Config
    from dlbricks_tui.tui.choices import Choices
    from dlbricks_tui.tui.open_model import ModelSpec
    from dlbricks_tui.tui.run.snapshot import RunSnapshot
    from dlbricks_tui.tui.session import Session


class AnalysisScreen(PanelledScreen[None]):
    """Analyses the open model in a thread."""

    scope = actions.ANALYSIS
    CSS_PATH = "analysis.tcss"
    WANTS_NEW_RESULTS = True
    ABOUT = (
        "How fast the open model could be, from everything that was measured of it on the system of the estimate, and "
        "what is worth changing: parallel layers, kernels, runtimes, fusion, precision, threads and batch size."
    )

    def __init__(
        self, session: Session, spec: ModelSpec, choices: Choices, config: Config, run: RunSnapshot | None
    ) -> None:
        super().__init__()
        self._session = session
        self._analyse = partial(work.analyse, session, spec, choices, config)
        self._model = spec.source.name
        self._view: work.ModelView | None = None
        self._run = run
        # True if there are results that the analysis does not have yet.
        self._is_outdated = True
        self._said: Line = (Span(" Reading the model as each runtime has it.", "muted"),)
        self._head = TextLines(self._head_lines, classes="analysis-head")
        self._bounds = BoundsPanel()
        self._what_ifs = WhatIfsPanel()
        self._change = ChangePanel()
        self._layers = LayersPanel()

    def compose(self) -> ComposeResult:
        yield self._head
        with Container(classes="panels"):
            yield self._bounds
            yield self._what_ifs
            yield self._change
            yield self._layers
        yield KeyBar()

    def on_mount(self) -> None:
        self._look_unless_measuring()

    def on_screen_resume(self) -> None:
        self.post_message(messages.RunStateNeeded())

    @property
    def _measuring(self) -> bool:
        return self._run is not None and self._run.active and self._run.state is not State.PAUSED

    def show_run(self, run: RunSnapshot) -> None:
        """Take the state of the followed run; once it ends, analyse what it has measured."""
        self._run = run
        if not self._measuring and self._is_outdated:
            self._look_unless_measuring()

    @on(messages.NewResults)
    def _look_unless_measuring(self) -> None:
        """Analyse the model; while a run measures, only if the user asks for it."""
        self._is_outdated = True
        if not self._measuring:
            self.action_look_again()
        elif self._view is None:
            self._say(
                line("A run is measuring; an analysis would disturb it."), Hint("{analysis.look_again} analyses now.")
            )

    @on(WhatIfsPanel.Selected)
    def _what_if_selected(self, event: WhatIfsPanel.Selected) -> None:
        self._change.show(event.row)

    @on(WhatIfsPanel.Opened)
    def _what_if_opened(self) -> None:
        self.go_to(self._change)

    def action_look_again(self) -> None:
        self._is_outdated = False
        if self._view is None:
            self._say(line(Span("Reading the model as each runtime has it.", "muted")))
        self.run_in_thread(self._analyse, "analysis", self._analysed)

    def _analysed(self, found: work.ModelView | str) -> None:
        if isinstance(found, str):
            self._say(line(Span(found, "warn")))
            return
        self._view = found
        self._bounds.show(found.found)
        self._what_ifs.show(found.changes)
        self._layers.show(found.groups)
        self._head.refresh(layout=True)

    def _say(self, *lines: Line | Hint) -> None:
        """Show a text in place of the analysis."""
        self._view = None
        for panel in (self._bounds, self._what_ifs, self._layers):
            panel.show_placeholder(*lines)
        self._head.refresh(layout=True)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        if self._view is None:
            question = ": how fast could it be, and what is worth changing?"
            return wrapped_lines([line(Span(f" {self._model}", "strong"), Span(question))], width)
        found = self._view.found
        answer = headline(self._model, found.baseline, found.best, found.over_best)
        gain = largest_gain(found.what_ifs, {name: it.gain for name, it in found.proofs.items()}.get)
        lines = [line(Span(f" {answer}", "strong")), *([line(Span(f" {capitalised(gain)}", "good"))] if gain else [])]
        # The execution is the same as on the workbench, so it may be cut off.
        return (*wrapped_lines(lines, width), line(Span(f" {execution_line(found.baseline)}", "muted")))
