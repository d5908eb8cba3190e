"""What threads do for the screen of results: each errand asks the store and posts what it has found."""

from __future__ import annotations

from typing import TYPE_CHECKING

from textual.message import Message
from textual.worker import get_current_worker

from dlbricks_tui.store.conditions import Condition, where
from dlbricks_tui.store.contrast import contrast
from dlbricks_tui.store.errors import DamagedResultError, QueryError
from dlbricks_tui.store.exporting import export_selection
from dlbricks_tui.store.importing import import_file
from dlbricks_tui.store.index import RESULT_TABLES
from dlbricks_tui.store.queries import Order, select
from dlbricks_tui.store.store import Store
from dlbricks_tui.tui.screens.results.seeking import conditions_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from pathlib import Path

    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.store.contrast import Contrast
    from dlbricks_tui.store.importing import ImportReport
    from dlbricks_tui.store.queries import Selection
    from dlbricks_tui.store.records import Result
    from dlbricks_tui.tui.screens.results.seeking import Question
    from dlbricks_tui.tui.shared_store import SharedStore


class Found(Message):
    """The results that a question asks for, and how many there are in all; or why nobody can follow it."""

    def __init__(self, question: Question, selection: Selection | None, total: int, problem: str = "") -> None:
        super().__init__()
        self.question = question
        self.selection = selection
        self.total = total
        self.problem = problem


class Studied(Message):
    """One result, whole, and all that was measured of the same thing in the same way, oldest first."""

    def __init__(self, summary: Summary, result: Result | None, history: tuple[Summary, ...]) -> None:
        super().__init__()
        self.summary = summary
        self.result = result
        self.history = history


class Deleted(Message):
    """Results were deleted: these, of which so many were still there."""

    def __init__(self, selection: Selection, count: int) -> None:
        super().__init__()
        self.selection = selection
        self.count = count


class Restored(Message):
    """Deleted results are back."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count


class Exported(Message):
    """Results were written to a file."""

    def __init__(self, count: int, path: Path) -> None:
        super().__init__()
        self.count = count
        self.path = path


class Imported(Message):
    """A file was taken up."""

    def __init__(self, path: Path, report: ImportReport) -> None:
        super().__init__()
        self.path = path
        self.report = report


class Compared(Message):
    """Two selections beside each other."""

    def __init__(self, found: Contrast) -> None:
        super().__init__()
        self.found = found


class ResultsErrands:
    """For one screen, which hears of everything by messages."""

    def __init__(self, store: SharedStore, post: Callable[[Message], object]) -> None:
        self._store = store
        self._post = post

    def find(self, question: Question) -> None:
        """Finds results, those included that were stored a moment ago."""
        with self._store.held() as store:
            store.refresh()
            total = len(store.generation.index.rows_of(*RESULT_TABLES))
            try:
                found = select(store.generation, conditions_of(question.text), question.orders)
            except QueryError as error:
                self._post(Found(question, None, total, str(error)))
                return
        self._post(Found(question, found, total))

    def study(self, one: Selection) -> None:
        """Reads a result, and what else was measured of the same."""
        (summary,) = one.summaries()
        with self._store.held() as store:
            try:
                result = one.result(0)
            except DamagedResultError:
                # It has joined the damage that the store reports; the rest of the row is still known.
                result = None
            same = where(brick=summary.brick, model=summary.model, context=summary.context, system=summary.system)
            same += where(runtime=summary.runtime, level=summary.level.value, protocol=summary.protocol)
            history = select(store.generation, same, (Order("when"),)).summaries()
        self._post(Studied(summary, result, tuple(history)))

    def study_again(self, summary: Summary) -> None:
        """Reads a result that is known already but for its samples."""
        with self._store.held() as store:
            found = select(store.generation, [Condition("id", "=", summary.id)])
        if found:
            self.study(found)

    def delete(self, selection: Selection) -> None:
        """Takes results out of the store."""
        with self._store.held() as store:
            count = store.delete(selection.values("id"))
        self._post(Deleted(selection, count))

    def restore(self, selection: Selection) -> None:
        """Brings back results that were deleted."""
        with self._store.held() as store:
            count = store.restore(selection.generation, selection.rows.tolist())
        self._post(Restored(count))

    def export(self, selection: Selection, path: Path) -> None:
        """Writes results to a file that describes itself."""
        with self._store.held():
            count = export_selection(selection, path)
        self._post(Exported(count, path))

    def import_from(self, path: Path) -> None:
        """Takes up a file that was exported, here or elsewhere."""
        # That takes its time: by a store of its own, so that nobody has to wait for the shared one.
        with Store(self._store.folder) as store:
            report = import_file(store, path)
        self._post(Imported(path, report))

    def compare(self, first: Selection, second: Selection) -> None:
        """Tests what two selections have in common for differences."""
        worker = get_current_worker()
        with self._store.held():
            found = contrast(first, second, lambda: not worker.is_cancelled)
        if not worker.is_cancelled:
            self._post(Compared(found))
