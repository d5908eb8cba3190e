"""How alike every two models are: a grid to walk in."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual import on

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, column, cut, line
from dlbricks_tui.tui.shades import legend, shaded
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.tui.widgets.said import Said
from dlbricks_tui.wording.numbers import percent

if TYPE_CHECKING:
    from textual.app import ComposeResult

    from dlbricks_tui.bricks.corpus import Corpus
    from dlbricks_tui.tui.widgets.search_line import SearchLine

# Two cells are about as wide as a line is high.
_CELL = 2
_NUMBER = 4
_NARROWEST_NAME, _WIDEST_NAME = 10, 24
_SAME = "=="
_AND = " and "


class LikenessRows(RowsView):
    """A row and a column for each model; what the cursor is on says its value itself."""

    def __init__(self) -> None:
        super().__init__()
        self.corpus: Corpus | None = None
        # The models whose rows the search leaves, by their numbers.
        self.shown: tuple[int, ...] = ()
        self.current = 0
        self.first = 0

    @property
    def row_count(self) -> int:
        return len(self.shown)

    @property
    def pair(self) -> tuple[int, int] | None:
        """The two models that the cursor is on, by their numbers."""
        return (self.shown[self.cursor], self.current) if self.cursor < len(self.shown) else None

    def row(self, index: int, width: int) -> Line:
        if self.corpus is None:
            return ()
        number = self.shown[index]
        similarities = self.corpus.jaccard[number]
        cells = [
            Span(_figure(similarities[other]), "match")
            if index == self.cursor and other == self.current
            else shaded(similarities[other], _CELL)
            for other in self._columns(width)
        ]
        name = column(self.corpus.models[number].name, _name_width(width))
        return (column(f"{number + 1} ", _NUMBER, "muted", right=True), name, Span(" "), *cells)

    def heading(self, width: int) -> Line:
        """The numbers of the models: neighbours in different shades, as there is no room between them."""
        numbers = [
            column(
                f"{(other + 1) % 100}",
                _CELL,
                "match" if other == self.current else "text" if other % 2 else "muted",
                right=True,
            )
            for other in self._columns(width)
        ]
        return (Span(" " * (_NUMBER + _name_width(width) + 1)), *numbers)

    def go_to_column(self, number: int) -> None:
        """Moves the cursor to the column of a model, and brings it in sight."""
        count = len(self.corpus.models) if self.corpus else 0
        self.current = min(max(number, 0), max(0, count - 1))
        self._reveal()

    def on_resize(self) -> None:
        self._reveal()

    def _reveal(self) -> None:
        there = _columns_in(self.line_width - 1)
        self.first = min(max(self.first, self.current - there + 1), self.current)
        self.refresh()

    def _columns(self, width: int) -> range:
        count = len(self.corpus.models) if self.corpus else 0
        return range(self.first, min(count, self.first + _columns_in(width)))


class LikenessPanel(Panel):
    """The paper's figure 7."""

    scope = Scope.LIKENESS
    BINDINGS = bindings(Scope.LIKENESS)
    TITLE = "Likeness"
    REACHED_BY = "corpus.go_to_likeness"
    SEARCH_HINT = "name of a model, among the rows"
    HEADED = True
    ABOUT = (
        "How alike every two models are: the bricks that both have, over those that either has (Jaccard). The columns "
        "have the numbers of the rows. The cell that you are on shows its percentage, == where they are equal; the "
        "line below names both models."
    )

    def __init__(self) -> None:
        self._list = LikenessRows()
        super().__init__(self._list, id="likeness")
        self._foot = Said(self._foot_lines, classes="likeness-foot")
        self._words: tuple[str, ...] = ()

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._foot

    def heading(self, width: int) -> Line:
        return (Span(" "), *self._list.heading(width - 1))

    def say(self, *lines: Line | Hint) -> None:
        """What stands there while nothing is known."""
        self._list.say(*lines)

    def show(self, corpus: Corpus | None) -> None:
        """Shows the grid of these models."""
        self._list.corpus = corpus
        self._list.go_to_column(self._list.current)
        self._find()

    def go_to_model(self, number: int) -> None:
        """Moves the cursor to the row of a model, and to the one that it is most like."""
        if number in self._list.shown:
            self._list.move_to(self._list.shown.index(number))
            self.action_most_alike()

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self._words = tuple(event.text.casefold().split())
        self._find()

    def on_click(self) -> None:
        self.take_focus()

    def action_right(self) -> None:
        self._go(self._list.current + 1)

    def action_left(self) -> None:
        self._go(self._list.current - 1)

    def action_most_alike(self) -> None:
        corpus, pair = self._list.corpus, self._list.pair
        if corpus is not None and pair is not None:
            row, _ = pair
            others = [number for number in range(len(corpus.models)) if number != row]
            self._go(max(others, key=lambda other: corpus.jaccard[row][other], default=row))

    def action_exchange(self) -> None:
        if self._list.pair is not None:
            row, current = self._list.pair
            if current in self._list.shown:
                self._list.move_to(self._list.shown.index(current))
                self._go(row)

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()
        self._foot.refresh()

    def _go(self, number: int) -> None:
        self._list.go_to_column(number)
        self.heading_changed()
        self._foot.refresh()

    def _find(self) -> None:
        here = self._list.pair[0] if self._list.pair else None
        models = self._list.corpus.models if self._list.corpus else ()
        self._list.shown = tuple(
            number for number, model in enumerate(models) if all(word in model.name.casefold() for word in self._words)
        )
        self._list.rows_changed()
        self._list.move_to(place_of(here, self._list.shown))
        self.heading_changed()
        self._foot.refresh()

    def _foot_lines(self, width: int) -> tuple[Line, ...]:
        return (*self._pair_lines(width), legend())

    def _pair_lines(self, width: int) -> tuple[Line, Line]:
        corpus, pair = self._list.corpus, self._list.pair
        if corpus is None or pair is None:
            return (), ()
        one, other = (corpus.models[number] for number in pair)
        likeness = corpus.jaccard[pair[0]][pair[1]]
        both = one.unique_layers + other.unique_layers
        # From shared over all, as shared and all make up both.
        shared = round(likeness * both / (1.0 + likeness))
        said = Span(f" alike: {shared:,} of their {both - shared:,} bricks are in both", "muted")
        room = (width - len(_AND) - 2) // 2
        names = (Span(cut(each.name, room), "accent") for each in (one, other))
        return (
            line(Span(f" {percent(likeness, 1)}", "strong"), said),
            line(" ", next(names), Span(_AND, "muted"), next(names)),
        )


def _figure(likeness: float) -> str:
    if likeness >= 1.0:
        return _SAME
    return f"{min(99, round(100 * likeness)):>{_CELL}}"


def _name_width(width: int) -> int:
    return min(_WIDEST_NAME, max(_NARROWEST_NAME, width // 4))


def _columns_in(width: int) -> int:
    return max(1, (width - _NUMBER - _name_width(width) - 1) // _CELL)
