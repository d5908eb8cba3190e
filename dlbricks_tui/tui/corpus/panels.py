"""The panels of unique layers, of repeated kinds, and of accuracy by granularity."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message

from dlbricks_tui.bricks.corpus import RepeatedType
from dlbricks_tui.tui.corpus import actions
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.lines import Line, Span, bar, column, contains_all, fitted, highlighted, line, number_column
from dlbricks_tui.tui.widgets.panel import Panel
from dlbricks_tui.tui.widgets.rows import ItemRows, RowsView, place_of
from dlbricks_tui.wording.numbers import percent, signed_percent

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.bricks.corpus import Corpus, Uniqueness
    from dlbricks_tui.tui.corpus.work import GroupAccuracy
    from dlbricks_tui.tui.widgets.search_line import SearchLine

_NUMBER, _LAYERS, _SHARE = 4, 8, 8
_NARROWEST_NAME, _WIDEST_NAME = 12, 30
_ALL = "all together"


class Numbered(NamedTuple):
    """A model with its number in the grid of likeness."""

    number: int
    model: Uniqueness


class ModelOrder(Enum):
    """The orders of the models."""

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
    """The models that match the search, then a row for all of them together."""

    def __init__(self) -> None:
        super().__init__()
        self.shown: tuple[Numbered, ...] = ()
        self.corpus: Corpus | None = None
        self.words: tuple[str, ...] = ()

    @property
    def row_count(self) -> int:
        # One model needs no row for all together.
        return len(self.shown) + (len(self.shown) > 1)

    @property
    def under_cursor(self) -> int | None:
        """The number of the selected model; None on the row for all together."""
        return self.shown[self.cursor].number if self.cursor < len(self.shown) else None

    def row(self, index: int, width: int) -> Line:
        if index < len(self.shown):
            number, model = self.shown[index]
            name = highlighted(model.name, self.words)
            return _row(f"{number + 1}", name, model.layers, model.unique_layers, width)
        layers, unique = (self.corpus.layers, self.corpus.unique_layers) if self.corpus else (0, 0)
        return _row("", line(Span(_ALL, "heading")), layers, unique, width)


class UniquenessPanel(Panel):
    """The share of unique layers in each model (figure 5 of the paper)."""

    scope = actions.UNIQUENESS
    TITLE = "Unique layers"
    REACHED_BY = "corpus.go_to_uniqueness"
    SEARCH_HINT = "name of a model"
    HEADED = True
    ABOUT = (
        "The number of layers (or sequences) of each model that differ from all others of the same model: only these "
        "need to be run. The last row also counts what models share with each other only once."
    )

    class Chosen(Message):
        """The user wants to see the models that are most similar to this one."""

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

    def show_placeholder(self, *lines: Line | Hint) -> None:
        self._list.show_placeholder(*lines)

    def show(self, corpus: Corpus | None) -> None:
        self._list.corpus = corpus
        self._find()

    def on_search_line_text_changed(self, event: SearchLine.TextChanged) -> None:
        self._list.words = tuple(event.text.casefold().split())
        self._find()
        if self._list.under_cursor is None:
            self._list.move_to(0)

    def action_sort(self) -> None:
        orders = list(ModelOrder)
        self._order = orders[(orders.index(self._order) + 1) % len(orders)]
        self._find()
        self._list.move_to(0)

    def action_show_likeness(self) -> None:
        if self._list.under_cursor is not None:
            self.post_message(self.Chosen(self._list.under_cursor))

    def _find(self) -> None:
        here = self._list.under_cursor
        models = self._list.corpus.models if self._list.corpus else ()
        fitting = [
            Numbered(number, model) for number, model in enumerate(models) if contains_all(model.name, self._list.words)
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
        number_column(f"{layers:,}", _LAYERS),
        number_column(f"{unique:,}", _LAYERS, "strong"),
        number_column(percent(share, 1), _SHARE),
        Span(" "),
        *bar(share, max(0, width - used)),
    )


_KIND, _COUNT, _KIND_SHARE = 15, 9, 8


class KindRows(ItemRows[RepeatedType]):
    """The kinds of layers, the most repeated first."""

    def __init__(self) -> None:
        super().__init__()
        self.repeated = 0

    def row(self, index: int, width: int) -> Line:
        found = self.items[index]
        share = found.repeated / self.repeated if self.repeated else 0.0
        room = max(0, width - _KIND - 2 * _COUNT - _KIND_SHARE - 2)
        return (
            column(found.kind.value, _KIND),
            number_column(f"{found.layers:,}", _COUNT),
            number_column(f"{found.repeated:,}", _COUNT, "strong"),
            number_column(percent(share, 1), _KIND_SHARE),
            Span(" "),
            *bar(share, room),
        )


class KindsPanel(Panel):
    """The kinds of layers that repeat (figure 6 of the paper)."""

    TITLE = "Repeated kinds"
    REACHED_BY = "corpus.go_to_kinds"
    HEADED = True
    ABOUT = (
        "For each kind of layer: the number of layers (or sequences), the number of those that occur more than once in"
        " their model, and their share of all repeated ones."
    )

    def __init__(self) -> None:
        self._list = KindRows()
        super().__init__(self._list, id="kinds")

    def heading(self, width: int) -> Line:
        titles = (("layers", _COUNT), ("repeated", _COUNT), ("share", _KIND_SHARE))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        return (Span(" "), column("kind", _KIND, "muted"), *right)

    def show_placeholder(self, *lines: Line | Hint) -> None:
        self._list.show_placeholder(*lines)

    def show(self, corpus: Corpus | None) -> None:
        self._list.items = corpus.repeated_types if corpus else ()
        self._list.repeated = sum(found.repeated for found in self._list.items)
        self._list.rows_changed()
        self.show_title(f": {self._list.repeated:,} of {corpus.layers:,}" if corpus else "")


_G, _FIGURE, _SYSTEM = 4, 9, 16
_BAR = 12


class GranularityRows(ItemRows["GroupAccuracy"]):
    """One row per granularity, for each system and way of measuring."""

    def row(self, index: int, width: int) -> Line:
        group, found = self.items[index]
        most = max(it.accuracy.speedup or 0.0 for it in self.items)
        speedup = "-" if found.speedup is None else f"{found.speedup:.2f}x"
        room = min(_BAR, max(0, width - _G - 4 * _FIGURE - _SYSTEM - 1))
        drawn = bar((found.speedup or 0.0) / most if most else 0.0, room)
        return (
            column(f"{group.granularity} ", _G, "strong", right=True),
            number_column(speedup, _FIGURE - 1, "strong"),
            Span(" "),
            *drawn,
            number_column(percent(found.mean_absolute_error, 1), _FIGURE, "strong"),
            number_column(signed_percent(found.worst_error), _FIGURE),
            number_column(f"{found.models}", _FIGURE),
            Span(f"  {group.way.system}, {group.way.level.value}", "muted"),
        )


class GranularitiesPanel(Panel):
    """Speed-up and accuracy by granularity, as measured here (figures 9 and 10 of the paper)."""

    TITLE = "Speed-up and accuracy"
    REACHED_BY = "corpus.go_to_granularities"
    HEADED = True
    ABOUT = (
        "For each granularity that was run, over all models measured both end to end and brick by brick: the time of "
        "the whole models over the time of their unique bricks (the paper's speed-up), the mean absolute error of the "
        "estimates, and the worst error."
    )

    def __init__(self) -> None:
        self._list = GranularityRows()
        super().__init__(self._list, id="granularities")
        self._list.show_placeholder(line(Span("Reading the store.", "muted")))

    def heading(self, width: int) -> Line:
        room = min(_BAR, max(0, width - 1 - _G - 4 * _FIGURE - _SYSTEM - 1))
        titles = (("error", _FIGURE), ("worst", _FIGURE), ("models", _FIGURE))
        right = (column(text, wide, "muted", right=True) for text, wide in titles)
        first = (column("G ", 1 + _G, "muted", right=True), column("speed-up", _FIGURE + room, "muted"))
        return (*first, *right, Span("  on", "muted"))

    def show(self, accuracies: tuple[GroupAccuracy, ...]) -> None:
        self._list.items = accuracies
        self._list.show_placeholder(
            line("Nothing was measured both end to end and brick by brick."),
            Hint("On the workbench, {workbench.start_run} runs the models, with the setting end to end on."),
            Hint("{workbench.coarser} first selects another granularity to compare with."),
        )
        self._list.rows_changed()
