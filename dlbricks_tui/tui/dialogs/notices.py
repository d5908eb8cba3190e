"""Boxes that say or ask one thing."""

from collections.abc import Callable, Iterable, Sized
from pathlib import Path
from typing import TypeVar

from textual.app import App

from dlbricks_tui.documents.lines import BLANK, Line, Span, column, line
from dlbricks_tui.tui.dialogs.dialog import TextDialog
from dlbricks_tui.tui.keys import actions
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.wording.numbers import counted


class ErrorScreen(TextDialog[None]):
    """An error with what to do about it; the text can be copied."""

    scope = actions.ERROR
    HEADING = "Error"
    BOX_CLASSES = "-bad"

    def __init__(self, text: str, log: Path | None = None) -> None:
        super().__init__()
        self._text = text
        self._log = log

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._text)

    def paragraphs(self) -> Iterable[Line]:
        yield line(self._text)
        if self._log is not None:
            yield BLANK
            yield line(Span(f"This is a defect in dlbricks. Details for a report: {self._log}", "muted"))


class HiddenMarksScreen(TextDialog[bool]):
    """Asks whether marked rows that a search hides count too; returns True for all marked rows."""

    scope = actions.HIDDEN_MARKS
    ABOUT = "A row that a search hides stays marked. Select whether hidden rows count too."

    def __init__(self, what: str, in_view: int, hidden: int) -> None:
        super().__init__()
        self._what = what
        self._in_view = in_view
        self._hidden = hidden

    @property
    def heading(self) -> str:
        return f"Some marked {self._what}s are hidden"

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._in_view > 0 if action == "in_view" else True

    def action_in_view(self) -> None:
        self.dismiss(False)

    def action_everything(self) -> None:
        self.dismiss(True)

    def paragraphs(self) -> Iterable[Line]:
        everything = self._in_view + self._hidden
        marked = counted(everything, f"marked {self._what}")
        if self._in_view:
            yield line(Span(f"The search hides {self._hidden:,} of {marked}.", "strong"))
            yield BLANK
            yield Hint(f"{{hidden_marks.in_view}}  only the {self._in_view:,} in view").line
            yield Hint(f"{{hidden_marks.everything}}  all {everything:,}, including the {self._hidden:,} hidden").line
        else:
            yield line(Span(f"The search hides all of {marked}.", "strong"))
            yield BLANK
            yield Hint("{hidden_marks.everything}  use them").line
        yield Hint("{dialog.close}  cancel").line


_KEYS = 8
Rows = TypeVar("Rows", bound=Sized)


def ask_which_marked(
    app: App[object], what: str, in_view: Rows, everything: Rows, then: Callable[[Rows], object]
) -> None:
    """Call `then` with the marked rows; first ask about those that a search hides."""
    hidden = len(everything) - len(in_view)
    if not hidden:
        then(everything)
        return

    def answered(hidden_too: bool | None) -> None:
        if hidden_too is not None:
            then(everything if hidden_too else in_view)

    app.push_screen(HiddenMarksScreen(what, len(in_view), hidden), answered)


class WelcomeScreen(TextDialog[bool]):
    """Offers a newcomer a first run; returns True if it is accepted."""

    scope = actions.WELCOME
    HEADING = "Welcome to dlbricks"
    ABOUT = "This data folder has no measurements yet. A first estimate takes about ten seconds."

    def __init__(self, sample: str) -> None:
        super().__init__()
        self._sample = sample

    def action_begin(self) -> None:
        self.dismiss(True)

    def paragraphs(self) -> Iterable[Line]:
        yield line(Span("How fast does a deep-learning model run on this machine?", "strong"))
        yield BLANK
        yield line(
            "Most layers of a model occur again and again, in it and in others. dlbricks runs each of them once, as a "
            "brick, and adds up the latency of every model from the bricks that it has measured."
        )
        yield BLANK
        yield line(
            f"Nothing was measured here yet. {self._sample} is a small model to begin with. Its first estimate, beside "
            "the measured latency, takes about ten seconds; it becomes more exact for some seconds more."
        )
        yield BLANK
        yield line(column(key("welcome.begin"), _KEYS, "accent"), f"measure {self._sample}")
        yield line(column(key("dialog.close"), _KEYS, "accent"), "explore first")
        yield line(column(key("app.show_help"), _KEYS, "accent"), "list the keys, on any screen")


class DemonstrationScreen(TextDialog[bool]):
    """Says whose numbers a demonstration shows; returns True if the user wants to see a model."""

    scope = actions.DEMONSTRATION
    HEADING = "A demonstration of dlbricks"
    ABOUT = "The results were recorded on another host. Nothing is measured here."

    def __init__(self, origin: str) -> None:
        super().__init__()
        self._origin = origin

    def action_begin(self) -> None:
        self.dismiss(True)

    def paragraphs(self) -> Iterable[Line]:
        yield line(Span(f"All numbers were {self._origin}.", "strong"))
        yield BLANK
        yield line(
            "Everything can be looked at, and needs no framework. A run of that day is replayed meanwhile. Nothing is "
            "measured: that takes `dlbricks` itself."
        )
        yield BLANK
        yield line(column(key("demonstration.begin"), _KEYS, "accent"), "open a model")
        yield line(column(key("workbench.show_run"), _KEYS, "accent"), "show the run that is replayed")
        yield line(column(key("app.show_help"), _KEYS, "accent"), "list the keys, on any screen")
