"""What can be done, here and now."""

from collections.abc import Iterable, Sequence

from textual.app import ComposeResult

from dlbricks_tui.tui.actions.action import Action, Scope
from dlbricks_tui.tui.key_names import all_shown
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.keymap import keys_of
from dlbricks_tui.tui.lines import BLANK, Line, Span, column, line
from dlbricks_tui.tui.screens.searched import SearchedDialog
from dlbricks_tui.tui.widgets.box import Box
from dlbricks_tui.tui.widgets.reading import Reading

_KEYS = 16

TITLES = {
    Scope.EVERYWHERE: "Everywhere",
    Scope.LIST: "In every list",
    Scope.SEARCH: "While you search",
    Scope.DIALOG: "In this box",
    Scope.BOX: "In a box with a list",
    Scope.FORM: "In this form",
    Scope.PATH: "While you type a path",
    Scope.ERROR: "With this error",
    Scope.WELCOME: "To begin",
    Scope.PALETTE: "Among the commands",
    Scope.WORKBENCH: "On the workbench",
    Scope.MODELS: "Among the models",
    Scope.TREE: "In the decomposition",
    Scope.DETAILS: "In the details",
    Scope.ESTIMATE: "In the estimate",
    Scope.RUN_BAR: "In the run bar",
    Scope.RUN: "On the run screen",
    Scope.RUNS: "Among the runs",
    Scope.START_RUN: "Before the run",
    Scope.CANCEL_RUN: "Before it is cancelled",
    Scope.RESULTS: "On the screen of results",
    Scope.RESULT_TABLE: "Among the results",
    Scope.RESULT: "With one result",
    Scope.HISTORY: "In the history",
    Scope.COLUMNS: "Among the columns",
    Scope.DELETE_RESULTS: "Before they are deleted",
    Scope.HIDDEN_MARKS: "When marked rows are hidden",
    Scope.CONTRAST: "With two selections",
    Scope.PAIRS: "Among what both have",
    Scope.CORPUS: "On the screen of the corpus",
    Scope.UNIQUENESS: "Among the models of the corpus",
    Scope.LIKENESS: "In the grid of likeness",
    Scope.SYSTEMS: "On the screen of systems",
    Scope.SYSTEM_LIST: "Among the systems",
    Scope.MACHINES: "Among the machines for the model",
    Scope.DOCTOR: "With what the doctor found",
    Scope.CONFIG: "Among the settings of the config file",
}


class HelpScreen(SearchedDialog[None]):
    """The actions of where the person was, the nearest first, and what that place is about."""

    SEARCH_HINT = "what a key does, or a key"

    def __init__(self, about: Sequence[str], actions: Iterable[Action]) -> None:
        self._text = Reading(self._lines)
        super().__init__(self._text)
        self._about = about
        self._actions = tuple(actions)
        self._words: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        with Box("Help", [Scope.BOX, Scope.DIALOG], classes="-tall"):
            yield self._text
            yield self.search_line

    def show_found(self, words: Sequence[str]) -> None:
        self._words = tuple(words)
        self._text.remake()

    def _lines(self) -> Iterable[Line]:
        found = [action for action in self._actions if _fits(action, self._words)]
        if not self._words:
            for paragraph in self._about:
                yield line(paragraph)
                yield BLANK
        elif not found:
            yield line("Nothing that can be done here has all of these words.")
            yield Hint("{find.clear} shows everything again.", "muted").line
        scope = None
        for action in found:
            if action.scope is not scope:
                if scope is not None:
                    yield BLANK
                scope = action.scope
                yield line(Span(TITLES[scope], "heading"))
            yield line(column(all_shown(keys_of(action)), _KEYS, "accent"), action.help)


def _fits(action: Action, words: Sequence[str]) -> bool:
    text = f"{all_shown(keys_of(action))} {action.label} {action.help}".casefold()
    return all(word in text for word in words)
