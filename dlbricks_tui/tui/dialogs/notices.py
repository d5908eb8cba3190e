"""Boxes that say or ask one thing: notices, a choice, a written value."""

from collections.abc import Callable, Iterable, Sized
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, NamedTuple, TypeVar

from textual.app import App

from dlbricks_tui.documents.lines import Line, Span, column, line
from dlbricks_tui.documents.parts import BLANK_LINE, Part, Sentence
from dlbricks_tui.settings.setting import ValueRefusedError
from dlbricks_tui.tui.dialogs.dialog import AskingDialog, Dialog, TextDialog
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.widgets.panel import Field
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.tui.widgets.screens import ask
from dlbricks_tui.wording.numbers import capitalised, counted
from dlbricks_tui.wording.plain_text import TableFormat


class ErrorScreen(TextDialog[None]):
    """An error with what to do about it; the text can be copied."""

    scope = scopes.ERROR
    HEADING = "Error"
    BOX_CLASSES = "-bad"

    def __init__(self, text: str, log: Path | None = None) -> None:
        defect = f"This is a defect in dlbricks. Details for a report: {log}"
        super().__init__(Sentence(text), *((BLANK_LINE, Sentence(defect, "muted")) if log else ()))
        self._error = text

    def action_copy(self) -> None:
        self.app.copy_to_clipboard(self._error)


class HiddenMarksScreen(TextDialog[bool]):
    """Asks whether marked rows that a search hides count too; returns True for all marked rows."""

    scope = scopes.HIDDEN_MARKS
    ABOUT = "A row that a search hides stays marked. Select whether hidden rows count too."

    def __init__(self, what: str, in_view: int, hidden: int) -> None:
        super().__init__(heading=f"Some marked {what}s are hidden")
        self._what = what
        self._in_view = in_view
        self._hidden = hidden

    def check_action(self, action: str, parameters: tuple[object, ...]) -> bool | None:
        return self._in_view > 0 if action == "in_view" else True

    def action_in_view(self) -> None:
        self.dismiss(False)

    def action_everything(self) -> None:
        self.dismiss(True)

    def parts(self) -> Iterable[Part]:
        everything = self._in_view + self._hidden
        marked = counted(everything, f"marked {self._what}")
        hidden = f"{self._hidden:,}" if self._in_view else "all"
        yield Sentence(f"The search hides {hidden} of {marked}.", "strong")
        yield BLANK_LINE
        if self._in_view:
            yield Hint(f"{{hidden_marks.in_view}}  only the {self._in_view:,} in view")
            yield Hint(f"{{hidden_marks.everything}}  all {everything:,}, including the {self._hidden:,} hidden")
        else:
            yield Hint("{hidden_marks.everything}  use them")
        yield Hint("{dialog.close}  cancel")


Rows = TypeVar("Rows", bound=Sized)


def ask_which_marked(
    app: App[object], what: str, in_view: Rows, everything: Rows, then: Callable[[Rows], object]
) -> None:
    """Call `then` with the marked rows; first ask about those that a search hides."""
    hidden = len(everything) - len(in_view)
    if hidden:
        box = HiddenMarksScreen(what, len(in_view), hidden)
        ask(app, box, lambda hidden_too: then(everything if hidden_too else in_view))
    else:
        then(everything)


@dataclass(frozen=True, slots=True)
class KeyLine:
    """A key in a column of its own, and what it does."""

    action: str
    text: str

    @property
    def line(self) -> Line:
        return line(column(key(self.action), 8, "accent"), self.text)


class _FirstScreen(TextDialog[bool]):
    """Greets the user at the start; returns True to begin, and False to search for a model first."""

    def action_begin(self) -> None:
        self.dismiss(True)

    def action_search(self) -> None:
        self.dismiss(False)


class WelcomeScreen(_FirstScreen):
    """Offers a newcomer a first run."""

    scope = scopes.WELCOME
    HEADING = "Welcome to dlbricks"
    ABOUT = "This data folder has no measurements yet. A first estimate takes about ten seconds."

    def __init__(self, sample: str) -> None:
        super().__init__(
            Sentence("How fast does a deep-learning model run on this machine?", "strong"),
            BLANK_LINE,
            Sentence(
                "Most layers of a model occur again and again, in it and in others. dlbricks runs each of them once, "
                "as a brick, and adds up the latency of every model from the bricks that it has measured."
            ),
            BLANK_LINE,
            Sentence(
                f"Nothing was measured here yet. {sample} is a small model to begin with. Its first estimate, beside "
                "the measured latency, takes about ten seconds; it becomes more exact for some seconds more."
            ),
            BLANK_LINE,
            KeyLine("welcome.begin", f"measure {sample}"),
            KeyLine("dialog.close", "explore first"),
            KeyLine("app.show_help", "list the keys, on any screen"),
        )


class DemonstrationScreen(_FirstScreen):
    """Says whose numbers a demonstration shows."""

    scope = scopes.DEMONSTRATION
    HEADING = "A demonstration of dlbricks"
    ABOUT = "The results were recorded on another host. Nothing is measured here."

    def __init__(self, origin: str) -> None:
        super().__init__(
            Sentence(f"All numbers were {origin}.", "strong"),
            BLANK_LINE,
            Sentence(
                "Everything can be looked at, and needs no framework. A run of that day is replayed meanwhile. Nothing "
                "is measured: that takes `dlbricks` itself."
            ),
            BLANK_LINE,
            KeyLine("demonstration.begin", "open a model"),
            KeyLine("workbench.show_run", "show the run that is replayed"),
            KeyLine("app.show_help", "list the keys, on any screen"),
        )


Value = TypeVar("Value")


class WritingScreen(AskingDialog[Value], Generic[Value]):
    """Returns what `read` makes of the text, or shows why it refuses it; `note` says what to write."""

    scope = scopes.NUMBERS
    ABOUT = "Write a number, or whole numbers with commas between them, such as 1,2,4. An empty line is the default."

    def __init__(self, title: str, text: str, note: str, read: Callable[[str], Value]) -> None:
        self._read = read
        self._field = Field(text, hint="")
        super().__init__(self._field, heading=title, note=note)

    def on_input_changed(self) -> None:
        self.say("")

    def action_submit(self) -> None:
        try:
            found = self._read(self._field.value.strip())
        except ValueRefusedError as error:
            self.say(capitalised(str(error)))
        else:
            self.dismiss(found)


_NAME = 13


class CopiedForm(NamedTuple):
    """A form of a copy: of all rows as a table in some format, or a picture of the panel or of the whole screen."""

    label: str
    about: str
    table: TableFormat | None = None
    is_panel: bool = True

    @property
    def line(self) -> Line:
        return line(column(self.label, _NAME, "strong"), Span(self.about, "muted"))


COPIED_FORMS = (
    CopiedForm("Markdown", "all rows as a table for documents", TableFormat.MARKDOWN),
    CopiedForm("CSV", "all rows for spreadsheets", TableFormat.CSV),
    CopiedForm("JSON", "all rows for programs, as texts", TableFormat.JSON),
    CopiedForm("SVG, panel", "a picture of the panel"),
    CopiedForm("SVG, screen", "a picture of the whole screen", is_panel=False),
)


class CopyScreen(Dialog[CopiedForm]):
    """Returns the selected form; the cursor begins on the one that was used last."""

    scope = scopes.COPYING
    ABOUT = (
        "A copy has all rows that the search finds, also those out of view. It goes to the clipboard of your terminal, "
        "and to a file. Tables leave out bars. What is too long for a terminal is only in the file."
    )

    def __init__(self, panel: str, last: CopiedForm | None) -> None:
        self._last = last or COPIED_FORMS[0]
        self._list: DrawnRows[CopiedForm] = DrawnRows(lambda index, _: self._list.items[index].line, COPIED_FORMS)
        super().__init__(self._list, heading=f"Copy: {panel}")

    def on_mount(self) -> None:
        self._list.move_to(self._list.items.index(self._last))

    def action_copy(self) -> None:
        if self._list.selected is not None:
            self.dismiss(self._list.selected)
