"""Asks before results are deleted."""

from collections.abc import Iterable

from dlbricks_tui.store.queries import Selection
from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import BLANK, Line, Span, line
from dlbricks_tui.tui.screens.confirming import ConfirmingScreen
from dlbricks_tui.tui.screens.results.cells import cell
from dlbricks_tui.wording.numbers import counted

_MOST_NAMED = 6


class DeleteScreen(ConfirmingScreen):
    """Gives True when the person is sure."""

    QUESTION = "Delete?"
    ACTIONS = Scope.DELETE_RESULTS
    BINDINGS = bindings(Scope.DELETE_RESULTS)
    ABOUT = (
        "Estimates no longer use deleted results. {results.undo_delete} on the screen of results brings them back, as "
        "long as dlbricks stays open. Export them first to keep them for longer."
    )

    def __init__(self, results: Selection, total: int) -> None:
        super().__init__()
        self._results = results
        self._total = total

    def paragraphs(self) -> Iterable[Line]:
        count = len(self._results)
        yield line(Span(f"{counted(count, 'result')} of {self._total:,}:", "strong"))
        for it in self._results.part(0, _MOST_NAMED).summaries():
            told = f"  {cell('when', it.when)}  {it.system}  {cell('trimmed_mean_ms', it.trimmed_mean_ms)} ms"
            yield line(it.name, Span(told, "muted"))
        if count > _MOST_NAMED:
            yield line(Span(f"and {counted(count - _MOST_NAMED, 'other')}", "muted"))
        yield BLANK
        yield Hint("{results.undo_delete} brings them back afterwards, as long as dlbricks stays open.").line
