"""The panels of unique layers, of repeated kinds, and of accuracy by granularity."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, ClassVar

from textual.message import Message

from dlbricks_tui.bricks.corpus import RepeatedType
from dlbricks_tui.documents.corpus import (
    CountedLayers,
    GroupAccuracy,
    common_words,
    granularity_columns,
    kind_columns,
    model_columns,
    models_of,
    together,
)
from dlbricks_tui.documents.lines import Span, line
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.tui.corpus import actions
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.model_names import told_apart
from dlbricks_tui.tui.widgets.panel import Orders, counts_text
from dlbricks_tui.tui.widgets.table import TablePanel

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.bricks.corpus import Corpus


class UniquenessPanel(TablePanel[CountedLayers]):
    """The share of unique layers in each model (figure 5 of the paper), and in all of them together."""

    scope = actions.UNIQUENESS
    TITLE = "Unique layers"
    REACHED_BY = "corpus.go_to_uniqueness"
    SEARCH_HINT = "name of a model"
    ABOUT = (
        "The number of layers (or sequences) of each model that differ from all others of the same model: only these "
        "need to be run. The last row also counts what models share with each other only once."
    )
    ORDERS: ClassVar[Orders] = {
        "as in the library": lambda it: it.number,
        "least unique first": lambda it: (it.share, it.number),
        "most layers first": lambda it: (-it.layers, it.number),
        "by name": lambda it: (it.name, it.number),
    }

    @dataclass
    class Chosen(Message):
        """The user wants to see the models that are most similar to this one."""

        number: int

    def __init__(self) -> None:
        super().__init__(id="uniqueness")
        self._unit = "layer"

    def columns(self) -> tuple[Column[CountedLayers], ...]:
        # Names that begin alike differ in their part of the row.
        return model_columns(self._unit, told_apart)

    def show(self, corpus: Corpus | None, unit: str) -> None:
        self._unit = unit
        self.show_totals(together(corpus) if corpus else ())
        self.show_items(models_of(corpus, [it.name for it in corpus.models]) if corpus else ())

    def searched(self, item: CountedLayers) -> str:
        return item.name

    def identity(self, item: CountedLayers) -> int | None:
        return item.number

    def show_counts(self) -> None:
        noun = "model" if len(self.items) == 1 else "models"
        self.show_title(f" in {counts_text(len(self.found), len(self.items))} {noun}" if self.items else "")
        self.border_subtitle = self.order if self.items else ""

    def action_show_likeness(self) -> None:
        if self.selected is not None and self.selected.number is not None:
            self.post_message(self.Chosen(self.selected.number - 1))


class KindsPanel(TablePanel[RepeatedType]):
    """The kinds of layers that repeat, the most repeated first (figure 6 of the paper)."""

    TITLE = "Repeated kinds"
    REACHED_BY = "corpus.go_to_kinds"
    ABOUT = (
        "For each kind of layer: the number of layers (or sequences), the number of those that occur more than once in"
        " their model, and their share of all repeated ones."
    )

    def __init__(self) -> None:
        super().__init__(id="kinds")
        self._unit, self._layers = "layer", 0

    def columns(self) -> tuple[Column[RepeatedType], ...]:
        return kind_columns(self.items, self._unit)

    def show(self, corpus: Corpus | None, unit: str) -> None:
        self._unit, self._layers = unit, corpus.layers if corpus else 0
        self.show_items(corpus.repeated_types if corpus else ())

    def show_counts(self) -> None:
        repeated = sum(it.repeated for it in self.items)
        self.show_title(f": {repeated:,} of {self._layers:,}" if self._layers else "")


class GranularitiesPanel(TablePanel[GroupAccuracy]):
    """Speed-up and accuracy by granularity, as measured here (figures 9 and 10 of the paper).

    One row per granularity, for each system and way of measuring.
    """

    TITLE = "Speed-up and accuracy"
    REACHED_BY = "corpus.go_to_granularities"
    ABOUT = (
        "For each granularity that was run, over all models measured both end to end and brick by brick: the time of "
        "the whole models over the time of their unique bricks (the paper's speed-up), the mean absolute error of the "
        "estimates, and the worst error."
    )

    def __init__(self) -> None:
        super().__init__(id="granularities")
        self.show_placeholder(line(Span("Reading the store.", "muted")))

    def columns(self) -> tuple[Column[GroupAccuracy], ...]:
        return granularity_columns(self.items)

    def show(self, accuracies: Sequence[GroupAccuracy]) -> None:
        self.show_placeholder(
            line("Nothing was measured both end to end and brick by brick."),
            Hint("On the workbench, {workbench.start_run} runs the models, with the setting end to end on."),
            Hint("{workbench.coarser} first selects longer sequences of layers to compare with."),
        )
        self.show_items(accuracies)

    def show_counts(self) -> None:
        """Show in the title what all rows have in common."""
        told = common_words(self.items)
        self.show_title(f": {', '.join(told)}" if told else "")
