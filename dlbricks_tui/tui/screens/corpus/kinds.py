"""Which kinds of layers repeat."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, bar, column, figure
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView
from dlbricks_tui.wording.numbers import percent

if TYPE_CHECKING:
    from dlbricks_tui.bricks.corpus import Corpus, RepeatedType

_KIND, _COUNT, _SHARE = 15, 9, 8


class KindRows(RowsView):
    """The kinds, the most repeated first."""

    def __init__(self) -> None:
        super().__init__()
        self.kinds: tuple[RepeatedType, ...] = ()
        self.repeated = 0

    @property
    def row_count(self) -> int:
        return len(self.kinds)

    def row(self, index: int, width: int) -> Line:
        found = self.kinds[index]
        share = found.repeated / self.repeated if self.repeated else 0.0
        room = max(0, width - _KIND - 2 * _COUNT - _SHARE - 2)
        return (
            column(found.kind.value, _KIND),
            figure(f"{found.layers:,}", _COUNT),
            figure(f"{found.repeated:,}", _COUNT, "strong"),
            figure(percent(share, 1), _SHARE),
            Span(" "),
            *bar(share, room),
        )


class KindsPanel(Panel):
    """The paper's figure 6."""

    scope = Scope.KINDS
    TITLE = "Repeated kinds"
    REACHED_BY = "corpus.go_to_kinds"
    HEADED = True
    ABOUT = (
        "Of each kind how many layers (or sequences) there are, how many of them occur more than once in their model, "
        "and what share of all repeated ones that is."
    )

    def __init__(self) -> None:
        self._list = KindRows()
        super().__init__(self._list, id="kinds")

    def heading(self, width: int) -> Line:
        titles = (("layers", _COUNT), ("repeated", _COUNT), ("share", _SHARE))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        return (Span(" "), column("kind", _KIND, "muted"), *right)

    def say(self, *lines: Line | Hint) -> None:
        """What stands there while nothing is known."""
        self._list.say(*lines)

    def show(self, corpus: Corpus | None) -> None:
        """Lists the kinds."""
        self._list.kinds = corpus.repeated_types if corpus else ()
        self._list.repeated = sum(found.repeated for found in self._list.kinds)
        self._list.rows_changed()
        self.show_title(f": {self._list.repeated:,} of {corpus.layers:,}" if corpus else "")

    def on_click(self) -> None:
        self.take_focus()

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
