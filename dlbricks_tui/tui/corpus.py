"""The screen of the corpus: what repeats within and across models, and how accurate estimates are."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from functools import lru_cache, partial
from operator import attrgetter
from typing import TYPE_CHECKING, ClassVar

from textual.app import ComposeResult

from dlbricks_tui.api.model_reading import ComparedModels, compare_models, find_accuracies
from dlbricks_tui.api.open_models import Choices, ModelSpec, change_setting, setting_named
from dlbricks_tui.api.session import WorkbenchSession
from dlbricks_tui.documents.corpus import (
    CountedLayers,
    common_words,
    granularity_columns,
    kind_columns,
    model_columns,
    models_of,
    together,
    totals_words,
)
from dlbricks_tui.documents.layout import PANEL, legend, shaded
from dlbricks_tui.documents.lines import Line, Span, column, line, wrapped
from dlbricks_tui.documents.parts import Column
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, key
from dlbricks_tui.tui.model_names import LEAST_WIDTH, longest, told_apart
from dlbricks_tui.tui.widgets.panel import ItemPanel, Orders, TablePanel, counts_text
from dlbricks_tui.tui.widgets.rows import ItemRows
from dlbricks_tui.tui.widgets.screens import AnswerScreen, no_other_value
from dlbricks_tui.tui.widgets.text import TextLines
from dlbricks_tui.tui.workbench.work import is_wanted
from dlbricks_tui.wording.numbers import counted, percent
from dlbricks_tui.wording.plain_text import TextTable

if TYPE_CHECKING:
    from dlbricks_tui.api.model_reading import GroupAccuracy
    from dlbricks_tui.bricks.decomposition import Corpus, RepeatedType, Uniqueness


class UniquenessPanel(TablePanel[CountedLayers]):
    """The share of unique layers in each model (figure 5 of the paper), and in all of them together."""

    scope = scopes.UNIQUENESS
    TITLE = "Unique layers"
    SEARCH_HINT = "name of a model"
    NOUN = "model"
    IDENTITY = attrgetter("number")
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

    def __init__(self) -> None:
        super().__init__()
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

    def show_counts(self) -> None:
        noun = "model" if len(self.items) == 1 else "models"
        self.show_title(f" in {counts_text(len(self.found), len(self.items))} {noun}" if self.items else "")
        self.border_subtitle = self.order if self.items else ""


class KindsPanel(TablePanel["RepeatedType"]):
    """The kinds of layers that repeat, the most repeated first (figure 6 of the paper)."""

    TITLE = "Repeated kinds"
    ABOUT = (
        "For each kind of layer: the number of layers (or sequences), the number of those that occur more than once in"
        " their model, and their share of all repeated ones."
    )

    def __init__(self) -> None:
        super().__init__()
        self._unit, self._layers = "layer", 0

    def columns(self) -> tuple[Column[RepeatedType], ...]:
        return kind_columns(self.items, self._unit)

    def show(self, corpus: Corpus | None, unit: str) -> None:
        self._unit, self._layers = unit, corpus.layers if corpus else 0
        self.show_items(corpus.repeated_types if corpus else ())

    def show_counts(self) -> None:
        repeated = sum(it.repeated for it in self.items)
        self.show_title(f": {repeated:,} of {self._layers:,}" if self._layers else "")


class GranularitiesPanel(TablePanel["GroupAccuracy"]):
    """Speed-up and accuracy by granularity, as measured here (figures 9 and 10 of the paper).

    One row per granularity, for each system and way of measuring.
    """

    TITLE = "Speed-up and accuracy"
    PLACEHOLDER = (Hint("Reading the store.", "muted"),)
    ABOUT = (
        "For each granularity that was run, over all models measured both end to end and brick by brick: the time of "
        "the whole models over the time of their unique bricks (the paper's speed-up), the mean absolute error of the "
        "estimates, and the worst error."
    )

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


# Two cells are about as wide as a line is high.
_CELL = 2
_NUMBER = 4
# Wider names leave no room for a quarter of the columns.
_NAMES_SHARE = 4
_SAME = "=="
_AND = " and "


class LikenessRows(ItemRows[int]):
    """The grid: a row and a column per model, by its number. The selected cell shows its percentage."""

    def __init__(self) -> None:
        super().__init__()
        self.names: tuple[str, ...] = ()
        self.alike: Sequence[Sequence[float]] = ()
        # The selected column, and the first one in view.
        self.current = self.first = 0

    def row(self, index: int, width: int) -> Line:
        number = self.items[index]
        likeness = self.alike[number]
        cells = [
            Span(_SAME if likeness[other] >= 1.0 else f"{min(99, round(100 * likeness[other])):>{_CELL}}", "match")
            if index == self.cursor and other == self.current
            else shaded(likeness[other], _CELL, PANEL.shades)
            for other in self._columns(width)
        ]
        room = self._name_width(width)
        name = column(_told_apart(self.names, room)[number], room)
        return (column(f"{number + 1} ", _NUMBER, "muted", right=True), name, Span(" "), *cells)

    def heading(self, width: int) -> Line:
        """Return the numbers of the models, in alternating shades because no gap fits between them."""
        numbers = []
        for other in self._columns(width):
            style = "match" if other == self.current else "text" if other % 2 else "muted"
            numbers.append(column(f"{(other + 1) % 100}", _CELL, style, right=True))
        return (column("", _NUMBER), column("model", self._name_width(width) + 1, "muted"), *numbers)

    def _name_width(self, width: int) -> int:
        """Return the cells for names: all that they need if each model keeps its column, else a share of the width."""
        beside = width - _NUMBER - 1 - _CELL * len(self.names)
        return max(LEAST_WIDTH, min(longest(self.names), max(beside, width // _NAMES_SHARE)))

    def go_to_column(self, number: int) -> None:
        """Select the column of a model and scroll it into view."""
        self.current = min(max(number, 0), max(0, len(self.names) - 1))
        self.on_resize()

    def on_resize(self) -> None:
        there = self._columns_in(self.line_width - 1)
        self.first = min(max(self.first, self.current - there + 1), self.current)
        self.refresh()

    def _columns(self, width: int) -> range:
        return range(self.first, min(len(self.names), self.first + self._columns_in(width)))

    def _columns_in(self, width: int) -> int:
        return max(1, (width - _NUMBER - self._name_width(width) - 1) // _CELL)


@lru_cache(2)
def _told_apart(names: tuple[str, ...], room: int) -> list[str]:
    return told_apart(names, room)


class LikenessPanel(ItemPanel[int]):
    """The similarity of each pair of models (figure 7 of the paper)."""

    scope = scopes.LIKENESS
    TITLE = "Likeness"
    SEARCH_HINT = "name of a model, among the rows"
    HEADED = True
    ABOUT = (
        "The similarity of each pair of models: the bricks in both models over the bricks in either of them (Jaccard)."
        " The columns have the numbers of the rows. The selected cell shows its percentage, or == if the models are "
        "equal; the lines below name both models."
    )

    def __init__(self) -> None:
        self._grid = LikenessRows()
        super().__init__(self._grid)
        self._models: Sequence[Uniqueness] = ()
        self._foot = TextLines(self._foot_lines, classes="likeness-foot")

    def compose(self) -> ComposeResult:
        yield from super().compose()
        yield self._foot

    def heading(self, width: int) -> Line:
        return (Span(" "), *self._grid.heading(width - 1))

    def as_texts(self) -> TextTable:
        names = self._grid.names
        rows = [[names[row], *(percent(it, 1) for it in self._grid.alike[row])] for row in self.found]
        return TextTable(("model", *names), rows)

    def show(self, corpus: Corpus | None) -> None:
        self._models = corpus.models if corpus else ()
        self._grid.names = tuple(it.name for it in self._models)
        self._grid.alike = corpus.jaccard if corpus else ()
        self._grid.go_to_column(self._grid.current)
        self.show_items(range(len(self._models)))

    def searched(self, item: int) -> str:
        return self._grid.names[item]

    def show_counts(self) -> None:
        self.heading_changed()
        self._foot.refresh()

    def go_to_model(self, number: int) -> None:
        """Select the row of a model and the column of its most similar model."""
        if number in self.found:
            self.select(number)
            self.action_most_alike()

    def action_step(self, step: int) -> None:
        self._go(self._grid.current + step)

    def action_most_alike(self) -> None:
        if (row := self.selected) is not None:
            others = [number for number in range(len(self._models)) if number != row]
            self._go(max(others, key=self._grid.alike[row].__getitem__, default=row))

    def action_exchange(self) -> None:
        row, current = self.selected, self._grid.current
        if row is not None and current in self.found:
            self.select(current)
            self._go(row)

    def cursor_settled(self) -> None:
        super().cursor_settled()
        self._foot.refresh()

    def _go(self, number: int) -> None:
        self._grid.go_to_column(number)
        self.show_counts()

    def _foot_lines(self, width: int) -> tuple[Line, ...]:
        return (*self._pair_lines(width), *wrapped(legend(PANEL.shades), width))

    def _pair_lines(self, width: int) -> tuple[Line, Line]:
        """Return how alike the models of the selected row and column are, and their names."""
        row, current = self.selected, self._grid.current
        if row is None:
            return (), ()
        one, other = self._models[row], self._models[current]
        likeness, both = self._grid.alike[row][current], one.unique_layers + other.unique_layers
        # likeness = shared / all, and shared + all = both.
        shared = round(likeness * both / (1.0 + likeness))
        verb = "is" if shared == 1 else "are"
        said = Span(f" alike: {shared:,} of their {counted(both - shared, 'brick')} {verb} in both", "muted")
        first, second = told_apart([one.name, other.name], max(1, (width - len(_AND) - 2) // 2))
        names = line(" ", Span(first, "accent"), Span(_AND, "muted"), Span(second, "accent"))
        return line(Span(f" {percent(likeness, 1)}", "strong"), said), names


QUESTION = "How many layers of these models are repeated?"


class CorpusScreen(AnswerScreen[None]):
    """Reads the models in a thread, then compares them."""

    scope = scopes.CORPUS
    CSS = """
    CorpusScreen.-wide .panels { grid-columns: 3fr 2fr; grid-rows: 1fr 1fr; }
    .likeness-foot { height: auto; }
    """
    WANTS_NEW_RESULTS = True
    WAITS_FOR_RUN = True
    ABOUT = (
        "The marked models of the workbench, or the whole library. Reading a model for the first time at this level "
        "takes the framework a moment; {corpus.read_all} reads those models too."
    )

    def __init__(
        self,
        session: WorkbenchSession,
        specs: Callable[[Choices], Sequence[ModelSpec]],
        choices: Choices,
        *,
        measuring: bool,
    ) -> None:
        self._uniqueness = UniquenessPanel()
        self._kinds = KindsPanel()
        self._likeness = LikenessPanel()
        self._granularities = GranularitiesPanel()
        super().__init__(self._uniqueness, self._kinds, self._likeness, self._granularities)
        self._session = session
        self._specs_for = specs
        # The paper counts single written layers, whatever the workbench shows.
        self._choices = choices.of_single_layers()
        self._measuring = measuring
        self._read_all = False
        self._compared: ComparedModels | None = None
        self._progress = ""

    def look(self) -> None:
        self._start_reading()
        self._update_estimate()

    def take_new_results(self) -> None:
        # They arrive once no run measures any more.
        self._measuring = False
        self._update_estimate()

    def _update_estimate(self) -> None:
        specs = self._specs_for(self._choices)
        find = partial(find_accuracies, self._session, specs, is_wanted, measuring=self._measuring)
        self.run_in_thread(find, "accuracy", self._granularities.show)

    def action_show_likeness(self) -> None:
        if self._uniqueness.selected is not None and self._uniqueness.selected.number is not None:
            self._likeness.go_to_model(self._uniqueness.selected.number - 1)
            self.go_to(self._likeness)

    def action_read_all(self) -> None:
        self._measuring, self._read_all = False, True
        self.look()

    def action_change(self, setting: str, step: int) -> None:
        choices = change_setting(setting_named(setting), self._choices, step)
        if choices == self._choices:
            self.notify(no_other_value(setting))
        else:
            self._choices = choices
            self._start_reading()

    def _start_reading(self) -> None:
        self._say(line(Span("Reading the models.", "muted")))
        self._show(None, "reading the models")
        specs = self._specs_for(self._choices)
        how = {"read_all": self._read_all, "measuring": self._measuring}
        compare = partial(compare_models, self._session.reader, specs, is_wanted, **how)
        self.run_steps_in_thread(compare, "compare", partial(self._models_compared, len(specs)))

    def _models_compared(self, total: int, compared: ComparedModels) -> None:
        reading = compared.tried < total
        if not reading and not compared.corpus.models:
            self._say(line("None of these models was read at this level yet."), Hint("{corpus.read_all} reads them."))
        slowly = " slowly, as a run measures" if self._measuring else ""
        self._show(compared, f"reading{slowly}, {compared.tried} of {counted(total, 'model')}" if reading else "")

    def _say(self, *lines: Line | Hint) -> None:
        for panel in (self._uniqueness, self._kinds, self._likeness):
            panel.show_placeholder(*lines)

    def _show(self, compared: ComparedModels | None, progress: str) -> None:
        self._compared, self._progress = compared, progress
        corpus = compared.corpus if compared and compared.corpus.models else None
        for panel in (self._uniqueness, self._kinds):
            panel.show(corpus, self._unit)
        self._likeness.show(corpus)
        self.head_changed()

    @property
    def _unit(self) -> str:
        return "layer" if self._choices.granularity == 1 else "sequence"

    def question(self) -> str:
        return QUESTION

    def answer(self) -> Iterable[Line]:
        compared = self._compared
        if compared is None:
            yield line(Span(f" {self._progress}", "muted"))
            return
        yield line(
            Span(" "),
            Span(f"{self._progress}; so far: " if self._progress else "", "warn"),
            Span(totals_words(compared.corpus, self._unit), "strong"),
        )
        for each in compared.refused[:1]:
            yield line(Span(f" Left out: {each}", "warn"))
        if len(compared.refused) > 1:
            yield line(Span(f" and {len(compared.refused) - 1} more cannot be read", "warn"))

    def state(self) -> Line:
        choices, compared = self._choices, self._compared
        longest = choices.granularity
        how = f" {choices.level.value} layers" + (f" in sequences of up to {longest}" if longest > 1 else "")
        if compared is None:
            return (Span(how, "muted"),)
        unread = f"; {compared.unread:,} never read, {key('corpus.read_all')} reads them" if compared.unread else ""
        return (Span(how, "muted"), Span(unread, "warn"))
