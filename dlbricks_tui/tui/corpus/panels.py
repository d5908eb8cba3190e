"""The panels of unique layers, of repeated kinds, and of accuracy by granularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar, NamedTuple

from textual.message import Message

from dlbricks_tui.bricks.corpus import RepeatedType, Uniqueness
from dlbricks_tui.documents.lines import (
    Line,
    Span,
    bar,
    column,
    fitted,
    highlighted,
    line,
    number_column,
    titles,
    width_of,
)
from dlbricks_tui.runtime.variant import stated_kernels, stated_threads, threads_in_words
from dlbricks_tui.tui.corpus import actions
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.model_names import LEAST_WIDTH, longest, told_apart
from dlbricks_tui.tui.widgets.panel import ItemPanel, Orders, counts_text
from dlbricks_tui.tui.widgets.rows import DrawnRows
from dlbricks_tui.wording.numbers import percent, signed_percent
from dlbricks_tui.wording.text_tables import TextTable

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.bricks.corpus import Corpus
    from dlbricks_tui.estimate.system_estimate import Way
    from dlbricks_tui.tui.corpus.work import GroupAccuracy

_NUMBER, _LAYERS, _SHARE = 4, 8, 8
# The bars are at least so long where the names have all the cells that they need.
_LEAST_BAR = 6
_TOGETHER = "all together"


class NumberedModel(NamedTuple):
    """A model with its number in the grid of likeness."""

    number: int
    model: Uniqueness


class _RowsAndTotal(DrawnRows[NumberedModel]):
    """The models that were found, then a row for all models together, which cannot be selected."""

    @property
    def row_count(self) -> int:
        # One model needs no row for all together.
        return len(self.items) + (len(self.items) > 1)

    def can_select(self, index: int) -> bool:
        return index < len(self.items)


class UniquenessPanel(ItemPanel[NumberedModel]):
    """The share of unique layers in each model (figure 5 of the paper), and in all of them together."""

    scope = actions.UNIQUENESS
    TITLE = "Unique layers"
    REACHED_BY = "corpus.go_to_uniqueness"
    SEARCH_HINT = "name of a model"
    HEADED = True
    ABOUT = (
        "The number of layers (or sequences) of each model that differ from all others of the same model: only these "
        "need to be run. The last row also counts what models share with each other only once."
    )
    ORDERS: ClassVar[Orders] = {
        "as in the library": lambda it: it.number,
        "least unique first": lambda it: (it.model.share, it.number),
        "most layers first": lambda it: (-it.model.layers, it.number),
        "by name": lambda it: (it.model.name, it.number),
    }

    @dataclass
    class Chosen(Message):
        """The user wants to see the models that are most similar to this one."""

        number: int

    def __init__(self) -> None:
        super().__init__(_RowsAndTotal(self._row), id="uniqueness")
        self._corpus: Corpus | None = None
        # The names by the numbers of their models, as they are shown in a number of cells.
        self._shown: tuple[int, dict[int, str]] = (0, {})

    def heading(self, width: int) -> Line:
        model = column("model", self._name_width(width - 1), "muted")
        right = titles(("layers", _LAYERS), ("unique", _LAYERS), ("share", _SHARE))
        return (column("", 1 + _NUMBER), model, *right)

    def as_texts(self) -> TextTable:
        rows = [_model_texts(it.model.name, it.model.layers, it.model.unique_layers) for it in self.found]
        if self._corpus is not None and len(rows) > 1:
            rows.append(_model_texts(_TOGETHER, self._corpus.layers, self._corpus.unique_layers))
        return TextTable(("model", "layers", "unique", "share"), rows)

    def show(self, corpus: Corpus | None) -> None:
        self._corpus, self._shown = corpus, (0, {})
        self.show_items([NumberedModel(number, model) for number, model in enumerate(corpus.models if corpus else ())])

    def searched(self, item: NumberedModel) -> str:
        return item.model.name

    def identity(self, item: NumberedModel) -> int:
        return item.number

    def show_counts(self) -> None:
        noun = "model" if len(self.items) == 1 else "models"
        self.show_title(f" in {counts_text(len(self.found), len(self.items))} {noun}" if self.items else "")
        self.border_subtitle = self.order if self.items else ""

    def action_show_likeness(self) -> None:
        if self.selected is not None:
            self.post_message(self.Chosen(self.selected.number))

    def _row(self, index: int, width: int) -> Line:
        room = self._name_width(width)
        if index < len(self.found):
            number, model = self.found[index]
            name = highlighted(self._names(room)[number], self.words)
            return _model_row(f"{number + 1}", fitted(name, room), model.layers, model.unique_layers, width)
        layers, unique = (self._corpus.layers, self._corpus.unique_layers) if self._corpus else (0, 0)
        return _model_row("", fitted(line(Span(_TOGETHER, "heading")), room), layers, unique, width)

    def _name_width(self, width: int) -> int:
        needed = max(len(_TOGETHER), longest(it.model.name for it in self.items))
        return max(LEAST_WIDTH, min(needed, width - _NUMBER - 2 * _LAYERS - _SHARE - 2 - _LEAST_BAR))

    def _names(self, room: int) -> dict[int, str]:
        """Return the names so that those that begin alike differ in their part of the row."""
        if self._shown[0] != room:
            names = told_apart([it.model.name for it in self.items], room)
            self._shown = (room, {it.number: name for it, name in zip(self.items, names, strict=True)})
        return self._shown[1]


def _model_texts(name: str, layers: int, unique: int) -> list[str]:
    return [name, f"{layers:,}", f"{unique:,}", percent(unique / layers if layers else 0.0, 1)]


def _model_row(number: str, name: Line, layers: int, unique: int, width: int) -> Line:
    share = unique / layers if layers else 0.0
    used = _NUMBER + width_of(name) + 2 * _LAYERS + _SHARE + 2
    return (
        column(f"{number} ", _NUMBER, "muted", right=True),
        *name,
        number_column(f"{layers:,}", _LAYERS),
        number_column(f"{unique:,}", _LAYERS, "strong"),
        number_column(percent(share, 1), _SHARE),
        Span(" "),
        *bar(share, max(0, width - used)),
    )


_KIND, _COUNT, _KIND_SHARE = 15, 9, 8


class KindsPanel(ItemPanel[RepeatedType]):
    """The kinds of layers that repeat, the most repeated first (figure 6 of the paper)."""

    TITLE = "Repeated kinds"
    REACHED_BY = "corpus.go_to_kinds"
    HEADED = True
    ABOUT = (
        "For each kind of layer: the number of layers (or sequences), the number of those that occur more than once in"
        " their model, and their share of all repeated ones."
    )

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="kinds")
        self._layers = 0

    def heading(self, width: int) -> Line:
        right = titles(("layers", _COUNT), ("repeated", _COUNT), ("share", _KIND_SHARE))
        return (Span(" "), column("kind", _KIND, "muted"), *right)

    def show(self, corpus: Corpus | None) -> None:
        self._layers = corpus.layers if corpus else 0
        self.show_items(corpus.repeated_types if corpus else ())

    def show_counts(self) -> None:
        self.show_title(f": {self._repeated:,} of {self._layers:,}" if self._layers else "")

    @property
    def _repeated(self) -> int:
        return sum(found.repeated for found in self.items)

    def _row(self, index: int, width: int) -> Line:
        found, repeated = self.found[index], self._repeated
        share = found.repeated / repeated if repeated else 0.0
        return (
            column(found.kind.value, _KIND),
            number_column(f"{found.layers:,}", _COUNT),
            number_column(f"{found.repeated:,}", _COUNT, "strong"),
            number_column(percent(share, 1), _KIND_SHARE),
            Span(" "),
            *bar(share, max(0, width - _KIND - 2 * _COUNT - _KIND_SHARE - 2)),
        )


_G, _FIGURE, _WAY = 4, 9, 40
_BAR = 12


class GranularitiesPanel(ItemPanel["GroupAccuracy"]):
    """Speed-up and accuracy by granularity, as measured here (figures 9 and 10 of the paper).

    One row per granularity, for each system and way of measuring.
    """

    TITLE = "Speed-up and accuracy"
    REACHED_BY = "corpus.go_to_granularities"
    HEADED = True
    ABOUT = (
        "For each granularity that was run, over all models measured both end to end and brick by brick: the time of "
        "the whole models over the time of their unique bricks (the paper's speed-up), the mean absolute error of the "
        "estimates, and the worst error."
    )

    def __init__(self) -> None:
        super().__init__(DrawnRows(self._row), id="granularities")
        self._common: set[str] = set()
        self.show_placeholder(line(Span("Reading the store.", "muted")))

    def heading(self, width: int) -> Line:
        speedup = column("speed-up", _FIGURE + _bar_width(width - 1), "muted")
        right = titles(("error", _FIGURE), ("worst", _FIGURE), ("models", _FIGURE))
        return (column("G ", 1 + _G, "muted", right=True), speedup, *right, Span("  on", "muted"))

    def show(self, accuracies: Sequence[GroupAccuracy]) -> None:
        self.show_placeholder(
            line("Nothing was measured both end to end and brick by brick."),
            Hint("On the workbench, {workbench.start_run} runs the models, with the setting end to end on."),
            Hint("{workbench.coarser} first selects longer sequences of layers to compare with."),
        )
        ways = [_words_of(it.group.way) for it in accuracies]
        self._common = {words[0] for words in zip(*ways, strict=True) if len(ways) > 1 and len({*words}) == 1}
        self.show_items(accuracies)

    def show_counts(self) -> None:
        """Show in the title what all rows have in common."""
        told = dict.fromkeys(
            word for it in self.items for word in _words_of(it.group.way) if word and word in self._common
        )
        self.show_title(f": {', '.join(told)}" if told else "")

    def _told(self, way: Way) -> list[str]:
        return [word for word in _words_of(way) if word and word not in self._common]

    def _row(self, index: int, width: int) -> Line:
        group, found, measured = self.found[index]
        most = max(it.accuracy.speedup or 0.0 for it in self.found)
        speedup = "-" if found.speedup is None else f"{found.speedup:.2f}x"
        return (
            column(f"{group.granularity} ", _G, "strong", right=True),
            number_column(speedup, _FIGURE - 1, "strong"),
            Span(" "),
            *bar((found.speedup or 0.0) / most if most else 0.0, _bar_width(width)),
            number_column(percent(found.mean_absolute_error, 1), _FIGURE, "strong"),
            number_column(signed_percent(found.worst_error), _FIGURE),
            number_column(f"{found.models}", _FIGURE),
            Span(f"  {', '.join(filter(None, (*self._told(group.way), measured)))}", "muted"),
        )


def _bar_width(width: int) -> int:
    return min(_BAR, max(0, width - _G - 4 * _FIGURE - _WAY - 1))


def _words_of(way: Way) -> tuple[str, ...]:
    """Return what tells rows apart, the most telling first: a narrow terminal cuts off the end."""
    kernels = ", ".join(stated_kernels(way.runtime).words)
    threads = threads_in_words(stated_threads(way.runtime))
    return (kernels, threads, way.level.value, way.runtime.partition(" ")[0], way.system)
