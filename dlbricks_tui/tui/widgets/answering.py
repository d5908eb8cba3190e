"""The frame of screens that answer one question: the question, the answer in one line, pictures, and their rows."""

from __future__ import annotations

from typing import TYPE_CHECKING, ClassVar, Generic

from textual.containers import Container

from dlbricks_tui.documents.lines import Line, Span, line, wrapped_lines
from dlbricks_tui.tui.messages import RunStateNeeded
from dlbricks_tui.tui.widgets.screens import KeyBar, PanelledScreen, Result
from dlbricks_tui.tui.widgets.text import TextLines

if TYPE_CHECKING:
    from collections.abc import Iterable

    from textual.app import ComposeResult

    from dlbricks_tui.tui.run.snapshot import RunSnapshot
    from dlbricks_tui.tui.widgets.panel import Panel

# What a screen says while its results have to wait.
NOT_YET = "A run measures now: what it stores is shown here once it has ended."


class AnsweringScreen(PanelledScreen[Result], Generic[Result]):
    """A screen with a question and its answer above the panels, of which most hold a picture above its rows."""

    # True if the state may take several lines; else the panels stay where they are while it changes.
    WRAPS_STATE: ClassVar[bool] = False

    def __init__(self) -> None:
        super().__init__()
        self._waits = False
        self._head = TextLines(self._head_lines, classes="answer-head")

    def compose(self) -> ComposeResult:
        yield self._head
        with Container(classes="panels"):
            yield from self.panels()
        yield KeyBar()

    def panels(self) -> Iterable[Panel]:
        """Return the panels, the one that a narrow terminal shows first at the beginning."""
        raise NotImplementedError

    def question(self) -> str:
        """Return the question, which names the model."""
        raise NotImplementedError

    def answer(self) -> Iterable[Line]:
        """Return the answer in one line; several only where one would hide what matters."""
        raise NotImplementedError

    def state(self) -> Line:
        """Return what is in progress, or what the answer is about."""
        return ()

    def on_screen_resume(self) -> None:
        self.post_message(RunStateNeeded())

    def show_run(self, run: RunSnapshot) -> None:
        """Take the state of the followed run: new results have to wait for its end."""
        if self.WAITS_FOR_RUN and run.measures is not self._waits:
            self._waits = run.measures
            self.head_changed()

    def head_changed(self) -> None:
        """Show the question and the answer anew."""
        self._head.refresh(layout=True)

    def _head_lines(self, width: int) -> tuple[Line, ...]:
        asked = line(Span(f" {self.question()}", "heading"))
        below = line(Span(f" {NOT_YET}", "warn")) if self._waits else self.state()
        whole = [below] if below and self.WRAPS_STATE else []
        return (*wrapped_lines([asked, *self.answer(), *whole], width), *([below] if below and not whole else []))
