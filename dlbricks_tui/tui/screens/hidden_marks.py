"""Asks whether marked rows that a search hides are meant too."""

from collections.abc import Iterable

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.screens.dialog import Dialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading
from dlbricks_tui.wording.numbers import counted


class HiddenMarksScreen(Dialog[bool]):
    """Gives True for all marked rows, False for those in view."""

    BINDINGS = bindings(Scope.HIDDEN_MARKS)
    ABOUT = "A mark stays when a search hides its row. Say whether hidden rows are meant too."

    def __init__(self, what: str, in_view: int, hidden: int) -> None:
        super().__init__()
        self._what = what
        self._in_view = in_view
        self._hidden = hidden

    def compose(self) -> ComposeResult:
        with Box(f"Some marked {self._what}s are hidden", [Scope.HIDDEN_MARKS, Scope.DIALOG]):
            yield Reading(self._said)

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._in_view > 0 if action == "in_view" else True

    def action_in_view(self) -> None:
        self.dismiss(False)

    def action_everything(self) -> None:
        self.dismiss(True)

    def _said(self) -> Iterable[Line]:
        everything = self._in_view + self._hidden
        marked = counted(everything, f"marked {self._what}")
        if self._in_view:
            are = "is" if self._hidden == 1 else "are"
            yield line(Span(f"The search hides {self._hidden:,} of {marked}.", "strong"))
            yield BLANK
            yield Hint(f"{{hidden_marks.in_view}}  only the {self._in_view:,} in view").line
            yield Hint(
                f"{{hidden_marks.everything}}  all {everything:,}, also the {self._hidden:,} that {are} hidden"
            ).line
        else:
            yield line(Span(f"The search hides all of {marked}.", "strong"))
            yield BLANK
            yield Hint("{hidden_marks.everything}  use them").line
        yield Hint("{dialog.close}  go back and do nothing").line
