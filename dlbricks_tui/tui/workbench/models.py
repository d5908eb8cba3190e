"""The panel of models, and how its rows are arranged."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message

from dlbricks_tui.api.open_models import ComparableRow, ModelId, id_of
from dlbricks_tui.documents.lines import Line, Span, contains_all, cut, cut_start, highlighted, width_of
from dlbricks_tui.settings.setting import next_of
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint
from dlbricks_tui.tui.model_names import FAMILY_INDENT
from dlbricks_tui.tui.widgets.panel import ItemPanel, counts_text, marks_text
from dlbricks_tui.tui.widgets.rows import MARK, ItemRows
from dlbricks_tui.tui.widgets.screens import WIDE, ask
from dlbricks_tui.tui.workbench.model_columns import (
    FIRST_COLUMNS,
    ListedModel,
    ListSection,
    ModelColumnsScreen,
    ModelGroup,
    ModelOrder,
    columns_in,
    fitting,
    grouped,
    in_columns,
    in_order,
    labels,
    list_rows,
    names_room,
    room_beside,
    sections_of,
    texts_of,
    usually_unfolded,
    whole_names,
)
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.numbers import task_words

if TYPE_CHECKING:
    from collections.abc import Callable, Collection, Hashable, Iterable, Sequence

    from dlbricks_tui.api.open_models import KnownLatency
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.tui.workbench.model_columns import ModelColumn
    from dlbricks_tui.wording.plain_text import TextTable

_MARK_WIDTH = 2
# The width of frame, cursor, marks and scroll bar.
_AROUND = 6
# Marks the title of the column that the list is sorted by; all have the greatest first.
_SORTED = "▾"
# As in the decomposition.
_UNFOLDED, _FOLDED = "- ", "+ "


def row_line(
    row: ListedModel,
    columns: Sequence[ModelColumn],
    name_width: int,
    width: int,
    *,
    marked: bool = False,
    latency: KnownLatency | None = None,
    words: Iterable[str] = (),
    now: float = 0.0,
) -> Line:
    """Return a row of the list in a width, with these columns beside a name."""
    if row.source is None:
        count = "" if row.folded is None else f" {row.folded:,}"
        if row.group is None:
            return (Span(" " * _MARK_WIDTH), Span(cut_start(row.text, width - _MARK_WIDTH), "muted"))
        sign = Span(_FOLDED if count else _UNFOLDED, "accent")
        return (sign, Span(cut(row.text, width - _MARK_WIDTH - len(count)), "heading"), Span(count, "muted"))
    indent = " " * (FAMILY_INDENT if row.in_family else 0)
    name = (Span(indent), *highlighted(cut(row.text, name_width - len(indent)), words))
    mark = Span(f"{MARK} " if marked else " " * _MARK_WIDTH, "mark")
    cells = in_columns(columns, texts_of(columns, row.source, latency, now))
    return (mark, *name, Span(" " * (name_width - width_of(name))), *cells)


def heading_line(columns: Sequence[ModelColumn], order: ModelOrder, name_width: int) -> Line:
    """Return the titles of the columns; one of them has the mark of the order."""
    title = cut("▴model" if order is ModelOrder.NAME else "model", name_width).ljust(name_width)
    titles = [(f"{_SORTED * (it.name == order.column)}{it.title}", "heading") for it in columns]
    return (Span(" " * _MARK_WIDTH), Span(title, "heading"), *in_columns(columns, titles))


def searched_text(source: ModelSource) -> str:
    """Return the name, task, number and path of a model."""
    number = f"table1:{source.table1_id}" if source.table1_id else ""
    # The folders above would match for all models in them.
    path = "/".join(source.path.parts[-2:])
    return f"{source.name} {task_words(source.task)} {number} {path}"


class ModelRows(ItemRows["ModelSource"]):
    """The models with headings between them; names are shortened anew when the width changes."""

    def __init__(self, arrange: Callable[[int], list[ListedModel]], draw: Callable[[ListedModel, int], Line]) -> None:
        super().__init__()
        self._arrange = arrange
        self._draw = draw
        self._made: list[ListedModel] = []
        self._made_for = -1

    @property
    def row_count(self) -> int:
        return len(self._rows())

    @property
    def here(self) -> ListedModel | None:
        """The row under the cursor."""
        rows = self._rows()
        return rows[self.cursor] if self.cursor < len(rows) else None

    @property
    def selected(self) -> ModelSource | None:
        return self.here and self.here.source

    def source_at(self, index: int) -> ModelSource | None:
        """Return the model of a row; None for a heading."""
        return self._rows()[index].source

    def can_select(self, index: int) -> bool:
        row = self._rows()[index]
        return row.source is not None or row.group is not None

    def row(self, index: int, width: int) -> Line:
        return self._draw(self._rows()[index], width)

    def select(self, identity: Hashable) -> None:
        """Move the cursor to a model, or to the first one if it is not there."""
        models = [(at, id_of(row.source)) for at, row in enumerate(self._rows()) if row.source]
        self.move_to(next((at for at, it in models if it == identity), models[0][0] if models else 0))

    def select_group(self, group: ModelGroup) -> None:
        self.move_to(next((at for at, row in enumerate(self._rows()) if row.group is group), 0))

    def remake(self) -> None:
        """Make the rows again; the cursor stays on its model."""
        self._made_for = -1
        self.rows_changed()

    def on_resize(self) -> None:
        if self.line_width - 1 != self._made_for:
            self.remake()
        else:
            self.scroll_to_cursor()

    def _rows(self) -> list[ListedModel]:
        width = self.line_width - 1
        if width != self._made_for and width > 0:
            here = self._made[self.cursor] if self.cursor < len(self._made) else None
            self._made, self._made_for = self._arrange(width), width
            # Another width has other headings between the models. At first the cursor is on a model.
            wanted = here or not self.cursor
            at = next((at for at, row in enumerate(self._made) if wanted and _is_same(row, here)), None)
            if at is not None:
                self.set_reactive(ModelRows.cursor, at)
        return self._made


def _is_same(row: ListedModel, other: ListedModel | None) -> bool:
    return row.source is not None if other is None else (row.source, row.group) == (other.source, other.group)


class ModelsPanel(ItemPanel["ModelSource"]):
    scope = scopes.MODELS
    TITLE = "Models"
    SEARCH_HINT = "name, task, table1:14 or path"
    HEADED = True
    PLACEHOLDER = (Hint("Reading the library.", "muted"),)
    NOUN = "model"
    ABOUT = (
        "The models in the library: the samples, and the files and folders that you add with {workbench.open_path}; "
        "{models.remove} removes an added one. {models.open} and {models.fold} fold groups. {models.sort} sorts all "
        "models, and {models.choose_columns} selects the columns. 'unique' is the share of layers that differ from all "
        "others of the model: only these need to be run. ~ before an estimate: some of it is predicted. '60 % run' in "
        "place of an estimate is the share of the model that was measured so far. 'age' is the age of the oldest "
        "measurement in an estimate."
    )

    class Opened(Message):
        """The user wants to open the selected model."""

    class ViewChanged(Message):
        """The user has changed the order, the columns, or which groups are unfolded."""

    class LanguageAsked(Message):
        """The user wants to see the language models."""

    def __init__(
        self,
        columns: Sequence[str] | None = None,
        order: ModelOrder = ModelOrder.LIBRARY,
        recent: Sequence[ModelId] = (),
        unfolded: Collection[ModelGroup] | None = None,
    ) -> None:
        self._model_rows = ModelRows(self._arranged, self._line)
        super().__init__(self._model_rows)
        self.columns = columns_in(FIRST_COLUMNS if columns is None else columns)
        self.sorted_by = order
        self._recent = recent
        # None: the usual ones, until the user folds or unfolds one.
        self.unfolded = None if unfolded is None else frozenset(unfolded)
        self._language_models = 0
        # The columns beside the names, and the width of the names.
        self._shown: tuple[Sequence[ModelColumn], int] = ((), 0)
        # In the order in which they were marked.
        self._marked: dict[ModelId, None] = {}
        self._latencies: dict[ModelId, KnownLatency] = {}

    def heading(self, width: int) -> Line:
        shown, name_width = self._fitting(self._sections(), width - 1)
        return (Span(" "), *heading_line(shown, self.sorted_by, name_width))

    def as_texts(self) -> TextTable:
        from dlbricks_tui.wording.plain_text import TextTable

        now = numbers.now()
        rows = [
            [it.name, *(text for text, _ in texts_of(self.columns, it, self._latencies.get(id_of(it)), now))]
            for it in self.found
        ]
        return TextTable(("model", *(each.title for each in self.columns)), rows)

    def say_why_empty(self) -> tuple[Hint, ...]:
        return (*super().say_why_empty(), Hint("{workbench.show_language} shows language models.", "muted"))

    def show(self, sources: tuple[ModelSource, ...], language_models: int = 0) -> None:
        self._language_models = language_models
        listed = {id_of(source) for source in sources}
        self._marked = {it: None for it in self._marked if it in listed}
        self.show_placeholder(Hint("No models."), Hint("{workbench.open_path} adds a file or a folder.", "muted"))
        self.show_items(sources)

    def identity(self, item: ModelSource) -> ModelId:
        return id_of(item)

    def select(self, identity: Hashable) -> None:
        """Move the cursor to a model, or to the first one if it is not there; unfold the group around it."""
        group = self._group_of(identity)
        if group is not None and group not in self._open:
            self.unfolded = self._open | {group}
            self._remake()
        self._model_rows.select(identity)

    @property
    def _in_groups(self) -> bool:
        return self.sorted_by is ModelOrder.LIBRARY and not self.words

    @property
    def _open(self) -> frozenset[ModelGroup]:
        return usually_unfolded(len(self.items)) if self.unfolded is None else self.unfolded

    def _group_of(self, identity: Hashable) -> ModelGroup | None:
        """Return the group of a model; None if the list has no groups, or not that model."""
        groups = grouped(self.found, self._recent) if self._in_groups else {}
        return next((it for it, members in groups.items() if identity in [id_of(each) for each in members]), None)

    def search_changed(self) -> None:
        here = self._model_rows.here
        self._show_found()
        if here is None or here.source is not None or not self._in_groups:
            self.select(here and here.source and id_of(here.source))

    def _show_found(self) -> None:
        words = self.words
        found = [it for it in self.items if contains_all(searched_text(it), words)] if words else self.items
        self._model_rows.items = tuple(in_order(found, self.sorted_by, self._latencies))
        self._remake()
        self.show_counts()

    def _remake(self) -> None:
        self._model_rows.remake()
        # A list of other names has other columns.
        self.heading_changed()

    def show_counts(self) -> None:
        by = f", {self.sorted_by.value}" if self.sorted_by.value else ""
        self.show_title(f" {counts_text(len(self.found), len(self.items))}{by}")
        self.border_subtitle = marks_text(len(self.marked), len(self.marked_in_view))

    def show_latency(self, source: ModelSource, latency: KnownLatency) -> None:
        key = id_of(source)
        before = self._latencies.get(key)
        self._latencies[key] = latency
        if before != latency:
            self._latencies_changed()

    def forget_latency(self, source: ModelSource) -> None:
        """Drop the latency of a model while a run of it has better figures."""
        if self._latencies.pop(id_of(source), None) is not None:
            self._latencies_changed()

    def forget_latencies(self) -> None:
        self._latencies.clear()
        self._latencies_changed()

    def _latencies_changed(self) -> None:
        if self.sorted_by in (ModelOrder.TIME, ModelOrder.AGE):
            self.search_changed()
        else:
            self.rows.refresh()

    def put_cursor_on(self, source: ModelSource) -> None:
        """Select a model; end a search that hides it."""
        if source in self.items and source not in self.found:
            self.search_line.end()
            self.search_changed()
        if source in self.found:
            self.select(id_of(source))

    @property
    def marked(self) -> tuple[ModelSource, ...]:
        """The marked models in the order of the library."""
        return tuple(source for source in self.items if id_of(source) in self._marked)

    @property
    def compared(self) -> tuple[ComparableRow, ...]:
        """The marked models as rows to compare, the one marked first is A."""
        by_id = {id_of(source): source for source in self.items}
        return tuple(self.comparable(by_id[it]) for it in self._marked)

    @property
    def marked_in_view(self) -> tuple[ModelSource, ...]:
        return tuple(source for source in self.found if id_of(source) in self._marked)

    def action_open(self) -> None:
        group = self._group_here
        if group is ModelGroup.LANGUAGE:
            self.post_message(self.LanguageAsked())
        elif group is not None:
            self._fold(group, self._open ^ {group})
        elif self.selected is not None:
            self.post_message(self.Opened())

    def action_unfold(self) -> None:
        if self._group_here in self._open:
            self.rows.action_down()
        else:
            self.action_open()

    def action_fold(self) -> None:
        group = self._group_here or (self._group_of(id_of(self.selected)) if self.selected else None)
        if group is not None:
            self._fold(group, self._open - {group})

    @property
    def _group_here(self) -> ModelGroup | None:
        here = self._model_rows.here
        return here and here.group

    def _fold(self, group: ModelGroup, unfolded: frozenset[ModelGroup]) -> None:
        self.unfolded = unfolded
        self._remake()
        self._model_rows.select_group(group)
        self.post_message(self.ViewChanged())

    def action_sort(self) -> None:
        self.sorted_by = next_of(tuple(ModelOrder), self.sorted_by, 1)
        self._show_found()
        self.select(None)
        self.post_message(self.ViewChanged())

    def action_choose_columns(self) -> None:
        def chosen(names: tuple[str, ...]) -> None:
            self.columns = columns_in(names)
            self._remake()
            self.post_message(self.ViewChanged())

        ask(self.app, ModelColumnsScreen(it.name for it in self.columns), chosen)

    def mark(self) -> bool:
        if self.selected is not None:
            self._mark([id_of(self.selected)])
        # A heading is passed.
        self.rows.action_down()
        return True

    def action_mark_all(self) -> None:
        self._mark([id_of(source) for source in self.found])

    def _mark(self, models: Sequence[ModelId]) -> None:
        """Mark these models, or unmark them if all of them are marked."""
        if all(it in self._marked for it in models):
            self._marked = {it: None for it in self._marked if it not in models}
        else:
            self._marked |= dict.fromkeys(models)
        self.rows.refresh()
        self.show_counts()

    def comparable(self, item: ModelSource) -> ComparableRow:
        # Loaded here: the first screen appears without it.
        from dlbricks_tui.api.open_models import PairKind

        return ComparableRow(PairKind.MODEL, id_of(item), item.name, item)

    def comparable_at(self, index: int) -> ComparableRow | None:
        source = self._model_rows.source_at(index)
        return None if source is None else self.comparable(source)

    def _sections(self) -> list[ListSection]:
        if self._in_groups:
            return sections_of(self.found, self._recent, self._open, self._language_models)
        names = labels(self.found)
        return [ListSection(None, [(names[id_of(it)], it) for it in self.found])]

    def _fitting(self, sections: Sequence[ListSection], width: int) -> tuple[Sequence[ModelColumn], int]:
        """Return the columns that a list of this width shows, and the width of the names."""
        room, names = width - _MARK_WIDTH, whole_names(sections, self.sorted_by)
        return fitting(self.columns, room, names_room(names, self.columns, room, is_wide=self.screen.has_class(WIDE)))

    def needed_width(self, screen: int) -> int:
        """Return the width that whole names and the columns need, the less important ones in two fifths of a screen."""
        names = whole_names(self._sections(), self.sorted_by)
        room = max(2 * screen // 5 - _AROUND, room_beside(names, self.columns))
        return room - (fitting(self.columns, room, names)[1] - names) + _AROUND

    def _arranged(self, width: int) -> list[ListedModel]:
        sections = self._sections()
        self._shown = self._fitting(sections, width)
        return list_rows(sections, self.sorted_by, self._shown[1])

    def _line(self, row: ListedModel, width: int) -> Line:
        if row.source is None:
            return row_line(row, *self._shown, width)
        key = id_of(row.source)
        latency, marked = self._latencies.get(key), key in self._marked
        return row_line(row, *self._shown, width, marked=marked, latency=latency, words=self.words, now=numbers.now())
