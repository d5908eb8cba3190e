"""Work of the results screens that takes time: worker threads do it and post what they have found."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING, NamedTuple

from textual.message import Message
from textual.worker import get_current_worker

from dlbricks_tui.store.conditions import Condition, parse_condition, where
from dlbricks_tui.store.contrast import contrast
from dlbricks_tui.store.errors import DamagedResultError, QueryError
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.index import RESULT_TABLES
from dlbricks_tui.store.queries import Order, Selection, select
from dlbricks_tui.store.store import Store

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.contrast import Contrast
    from dlbricks_tui.store.importing import ImportReport
    from dlbricks_tui.store.records import Result
    from dlbricks_tui.tui.session import SharedStore


class NamedSelection(NamedTuple):
    """Results with the name that the comparison shows."""

    selection: Selection
    name: str


# A quoted value may contain blanks; the closing quote may still be missing.
_WORD = re.compile(r'(?:[^\s"]|"[^"]*"?)+')
_BEGUN = re.compile(r"\w+(==|!=|<=|>=|=|<|>|~)")


class ResultQuery(NamedTuple):
    """The search text and the order of the wanted results."""

    text: str
    orders: tuple[Order, ...]


def conditions_of(text: str) -> tuple[Condition, ...]:
    """Parse the filters of a search text; an incomplete filter is ignored."""
    words = [word.replace('"', "") for word in _WORD.findall(text)]
    return tuple(parse_condition(word) for word in words if word and not _BEGUN.fullmatch(word))


def quoted(column: str, value: str) -> str:
    """Return the filter for exactly this value."""
    return f'{column}=="{value}"' if re.search(r"[\s,]", value) else f"{column}=={value}"


class Found(Message):
    """The results of a query and the number of all results, or the problem with the query."""

    def __init__(self, query: ResultQuery, selection: Selection | None, total: int, problem: str = "") -> None:
        super().__init__()
        self.query = query
        self.selection = selection
        self.total = total
        self.problem = problem


class ResultRead(Message):
    """A complete result, and the history of its brick or model in the same way, oldest first."""

    def __init__(self, summary: Summary, result: Result | None, history: tuple[Summary, ...]) -> None:
        super().__init__()
        self.summary = summary
        self.result = result
        self.history = history


class Deleted(Message):
    """Results were deleted; `count` of them still existed."""

    def __init__(self, selection: Selection, count: int) -> None:
        super().__init__()
        self.selection = selection
        self.count = count


class Restored(Message):
    """Deleted results were restored."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class Exported(Message):
    """Results were exported to a file."""

    def __init__(self, count: int, path: Path) -> None:
        super().__init__()
        self.count = count
        self.path = path


class Imported(Message):
    """A file was imported."""

    def __init__(self, path: Path, report: ImportReport) -> None:
        super().__init__()
        self.path = path
        self.report = report


class ComparisonMade(Message):
    """Two selections were compared."""

    def __init__(self, found: Contrast) -> None:
        super().__init__()
        self.found = found


class ResultsWork:
    """Queries and changes the store, and posts the outcome as messages to one screen."""

    def __init__(self, store: SharedStore, post: Callable[[Message], object]) -> None:
        self._store = store
        self._post = post

    def find(self, query: ResultQuery) -> None:
        """Find results, including those that were just stored."""
        with self._store.held() as store:
            store.refresh()
            total = len(store.generation.index.rows_of(*RESULT_TABLES))
            try:
                found = select(store.generation, conditions_of(query.text), query.orders)
            except QueryError as error:
                self._post(Found(query, None, total, str(error)))
                return
        self._post(Found(query, found, total))

    def read_result(self, one: Selection) -> None:
        """Read a result and the history of its brick or model."""
        (summary,) = one.summaries()
        with self._store.held() as store:
            try:
                result = one.result(0)
            except DamagedResultError:
                # The store has recorded the damage; the summary is still valid.
                result = None
            same = where(brick=summary.brick, model=summary.model, context=summary.context, system=summary.system)
            same += where(runtime=summary.runtime, level=summary.level.value, protocol=summary.protocol)
            history = select(store.generation, same, (Order("when"),)).summaries()
        self._post(ResultRead(summary, result, tuple(history)))

    def read_again(self, summary: Summary) -> None:
        """Read the samples of a result whose summary is known."""
        with self._store.held() as store:
            found = select(store.generation, [Condition("id", "=", summary.id)])
        if found:
            self.read_result(found)

    def delete(self, selection: Selection) -> None:
        with self._store.held() as store:
            count = store.delete(selection.values("id"))
        self._post(Deleted(selection, count))

    def restore(self, selection: Selection) -> None:
        with self._store.held() as store:
            count = store.restore(selection.generation, selection.rows.tolist())
        self._post(Restored(count))

    def export(self, selection: Selection, path: Path) -> None:
        """Export results to a file."""
        with self._store.held():
            count = export_selection(selection, path)
        self._post(Exported(count, path))

    def import_from(self, path: Path) -> None:
        """Import a file that was exported on any host."""
        # An import takes long, so it opens the store a second time instead of locking the shared one.
        with Store(self._store.folder) as store:
            report = import_file(store, path)
        self._post(Imported(path, report))

    def compare(self, first: Selection, second: Selection) -> None:
        """Test the common bricks and models of two selections for differences."""
        worker = get_current_worker()
        with self._store.held():
            found = contrast(first, second, lambda: not worker.is_cancelled)
        if not worker.is_cancelled:
            self._post(ComparisonMade(found))
