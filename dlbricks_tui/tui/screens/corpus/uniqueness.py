"""How much of each model is unlike the rest of it."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from textual import on
from textual.message import Message

from dlbricks_tui.tui.actions.action import Scope
from dlbricks_tui.tui.actions.registry import bindings
from dlbricks_tui.tui.key_words import Hint
from dlbricks_tui.tui.lines import Line, Span, bar, column, figure, fitted, highlighted, line
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import RowsView, place_of
from dlbricks_tui.wording.numbers import percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.bricks.corpus import Corpus, Uniqueness
    from dlbricks_tui.tui.widgets.search_line import SearchLine

_NUMBER, _LAYERS, _SHARE = 4, 8, 8
_NARROWEST_NAME, _WIDEST_NAME = 12, 30
_ALL = "all together"


class Numbered(NamedTuple):
    """A model with its number in the grid of likeness."""

    number: int
    model: Uniqueness


class ModelOrder(Enum):
    """In which order models stand."""

    LIBRARY = "as in the library"
    SHARE = "least unique first"
    LAYERS = "most layers first"
    NAME = "by name"


_SORTS: dict[ModelOrder, Callable[[Numbered], tuple[object, ...]]] = {
    ModelOrder.LIBRARY: lambda it: (it.number,),
    ModelOrder.SHARE: lambda it: (it.model.share, it.number),
    ModelOrder.LAYERS: lambda it: (-it.model.layers, it.number),
    ModelOrder.NAME: lambda it: (it.model.name, it.number),
}


class UniquenessRows(RowsView):
    """The models that the search leaves, then all of them together."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: tuple[Numbered, ...] = ()
        self.corpus: Corpus | None = None
        self.words: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        # All together are more than one, or they are that one.
        return len(self.shown) + (len(self.shown) > 1)

    @property
    def under_cursor(self) -> int | None:
        """The number of the model that the cursor is on, None on the row of all together."""
        return self.shown[self.cursor].number if self.cursor < len(self.shown) else None

    def row(self, index: int, width: int) -> Line:
        if index < len(self.shown):
            number, model = self.shown[index]
            name = highlighted(model.name, self.words)
            return _row(f"{number + 1}", name, model.layers, model.unique_layers, width)
        layers, unique = (self.corpus.layers, self.corpus.unique_layers) if self.corpus else (0, 0)
        return _row("", line(Span(_ALL, "heading")), layers, unique, width)


class UniquenessPanel(Panel):
    """The paper's figure 5."""

    scope = Scope.UNIQUENESS
    BINDINGS = bindings(Scope.UNIQUENESS)
    TITLE = "Unique layers"
    REACHED_BY = "corpus.go_to_uniqueness"
    SEARCH_HINT = "name of a model"
    HEADED = True
    ABOUT = (
        "Of each model how many of its layers (or sequences) differ from all others of the same model: only these need "
        "to be run. All together also leaves out what one model shares with another."
    )

    class Chosen(Message):
        """The person wants to see which models are like this one."""

        def __init__(self, number: int) -> None:
            super().__init__()
            self.number = number

    def __init__(self) -> None:
        self._list = UniquenessRows()
        super().__init__(self._list, id="uniqueness")
        self._order = ModelOrder.LIBRARY

    def heading(self, width: int) -> Line:
        name = _name_width(width - 1)
        right = (column(text, wide, "muted", right=True) for text, wide in (("layers", _LAYERS), ("unique", _LAYERS)))
        return (column("", 1 + _NUMBER), column("model", name, "muted"), *right, Span("   share", "muted"))

    def say(self, *lines: Line | Hint) -> None:
        """What stands there while nothing is known."""
        self._list.say(*lines)

    def show(self, corpus: Corpus | None) -> None:
        """Lists the models."""
        self._list.corpus = corpus
        self._find()

    def on_search_line_sought(self, event: SearchLine.Sought) -> None:
        self._list.words = tuple(event.text.casefold().split())
        self._find()
        if self._list.under_cursor is None:
            self._list.move_to(0)

    def on_click(self) -> None:
        self.take_focus()

    def action_sort(self) -> None:
        orders = list(ModelOrder)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._find()
        self._list.move_to(0)

    def action_show_likeness(self) -> None:
        if self._list.under_cursor is not None:
            self.post_message(self.Chosen(self._list.under_cursor))

    @on(RowsView.Rested)
    def _rested(self, event: RowsView.Rested) -> None:
        event.stop()

    def _find(self) -> None:
        here = self._list.under_cursor
        models = self._list.corpus.models if self._list.corpus else ()
        fitting = [
            Numbered(number, model)
            for number, model in enumerate(models)
            if all(word in model.name.casefold() for word in self._list.words)
        ]
        self._list.shown = tuple(sorted(fitting, key=_SORTS[self._order]))
        self._list.rows_changed()
        if here is not None:
            self._list.move_to(place_of(here, [each.number for each in self._list.shown]))
        of = "" if len(fitting) == len(models) else f" of {len(models)}"
        self.show_title(f" in {len(fitting)}{of} models" if models else "")
        self.border_subtitle = self._order.value if models else ""


def _name_width(width: int) -> int:
    return min(_WIDEST_NAME, max(_NARROWEST_NAME, width - _NUMBER - 2 * _LAYERS - _SHARE - 6))


def _row(number: str, name: Line, layers: int, unique: int, width: int) -> Line:
    share = unique / layers if layers else 0.0
    named = fitted(name, _name_width(width))
    used = _NUMBER + _name_width(width) + 2 * _LAYERS + _SHARE + 2
    return (
        column(f"{number} ", _NUMBER, "muted", right=True),
        *named,
        figure(f"{layers:,}", _LAYERS),
        figure(f"{unique:,}", _LAYERS, "strong"),
        figure(percent(share, 1), _SHARE),
        Span(" "),
        *bar(share, max(0, width - used)),
    )
