"""The panels beside the table of results, and the boxes."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.answers.sides import PairKind
from dlbricks_tui.documents.parts import BLANK_LINE, Column, Fact, Part, Sentence
from dlbricks_tui.documents.results import KEY_DIGITS, cell, history_columns, result_parts, title_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.exporting import export_format
from dlbricks_tui.store.selections import Selection
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, NewFileScreen, PathScreen
from dlbricks_tui.tui.keys import scopes
from dlbricks_tui.tui.keys.keymap import Hint, with_keys
from dlbricks_tui.tui.marks.marks import ComparableRow
from dlbricks_tui.tui.widgets.panel import Copyable, DocumentPanel, TablePanel
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.share.galleries import Imported
    from dlbricks_tui.share.suites.results_file import SuiteImport
    from dlbricks_tui.store.columns import Summary
    from dlbricks_tui.tui.results.work import ResultRead
    from dlbricks_tui.tui.session import SharedStore


NO_RESULT = "No result is selected."


class RecordPanel(DocumentPanel):
    scope = scopes.RESULT
    ID = "result"
    TITLE = "Result"
    REACHED_BY = "results.go_to_result"
    PLACEHOLDER = (Hint("Select a result to read about it.", "muted"),)
    NOTHING_TO_COPY = NO_RESULT
    ABOUT = (
        "One result: its brick or model, how it was measured, the distribution of its samples, and the conditions on "
        "the host."
    )

    def show(self, read: ResultRead) -> None:
        parts = result_parts(read.summary, read.result, read.provenance, read.layers)
        self.show_groups([Copyable(tuple(parts), read.summary.key)], read.summary.id)


def result_row(summary: Summary) -> ComparableRow:
    name = summary.name or title_of(summary)[:KEY_DIGITS]
    return ComparableRow(PairKind.RESULT, summary.id, f"{name}, {cell('when', summary.when)}", summary.id)


class HistoryPanel(TablePanel["Summary"]):
    scope = scopes.HISTORY
    ID = "history"
    TITLE = "History"
    REACHED_BY = "results.go_to_history"
    PLACEHOLDER = (Hint("Select a result to see its history.", "muted"),)
    NOTHING_TO_COPY = NO_RESULT
    ABOUT = (
        "The results of all runs for the brick in its context, or for the model, on the same system by the same "
        "runtime, the newest first: time, milliseconds, and the change since the previous run. A change in brackets "
        "may be due to sampling, because the intervals overlap."
    )

    def columns(self) -> tuple[Column[Summary], ...]:
        return history_columns(self.items)

    def show(self, history: tuple[Summary, ...]) -> None:
        """Show measurements that are given oldest first."""
        before = [it.id for it in self.items]
        self.show_items(history[::-1])
        if [it.id for it in self.items] != before:
            self.rows.cursor = 0

    def show_counts(self) -> None:
        self.show_title(f" {counted(len(self.items), 'run')}" if self.items else "")

    def comparable(self, item: Summary) -> ComparableRow:
        return result_row(item)

    def copied(self) -> str | None:
        return self.selected.id if self.selected else None


_MOST_NAMED = 6


class DeleteScreen(ConfirmingScreen):
    HEADING = "Delete?"
    scope = scopes.DELETE_RESULTS
    ABOUT = (
        "Estimates no longer use deleted results. {results.undo_delete} on the screen of results restores them until "
        "you quit dlbricks. Export them first to keep them longer."
    )

    def __init__(self, results: Selection, total: int) -> None:
        count = len(results)
        named: list[Part] = [
            Fact(it.name, f"{cell('when', it.when)}  {it.system}  {cell('trimmed_mean_ms', it.trimmed_mean_ms)} ms")
            for it in results[:_MOST_NAMED]
        ]
        if count > _MOST_NAMED:
            named.append(Sentence(f"and {counted(count - _MOST_NAMED, 'other')}", "muted"))
        restored = Hint("{results.undo_delete} restores them until you quit dlbricks.")
        super().__init__(Sentence(f"{counted(count, 'result')} of {total:,}:", "strong"), *named, BLANK_LINE, restored)


class ImportScreen(PathScreen):
    """Asks for an existing file."""

    HEADING = "Import results from a file"
    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A file that was exported here or by `dlbricks results export` on any host, or one that `dlbricks suite run` "
        "has written of a suite whose key is in this data folder. Results that are already in the store stay as they "
        "are. `dlbricks results import` on the command line imports the paper's published measurements."
    )

    def problem_with(self, path: Path) -> str:
        return f"{path} is a folder: name a file in it" if path.is_dir() else super().problem_with(path)


class ExportScreen(NewFileScreen):
    """Asks for the file of an export."""

    HINT = "~/results.json, .csv or .jsonl"
    ABOUT = (
        "The ending selects the format. A .json or .json.gz file contains the results with their systems and runtimes "
        "and can be imported on any host. A .csv or .jsonl file contains one row per result."
    )

    def format_problem(self, path: Path) -> str:
        try:
            export_format(path)
        except ExchangeError as error:
            return str(error)
        return ""


class ImportTold(NamedTuple):
    """The outcome of an import in words, and whether something is wrong or missing."""

    text: str
    is_warning: bool


def import_from(shared: SharedStore, path: Path, data: DataFolder) -> ImportTold:
    """Import a file that was exported on any host, or the results of a suite that was exported here."""
    # Loaded here: imports are rare.
    from dlbricks_tui.answers.suites import import_suite_results
    from dlbricks_tui.share.galleries import Trust, import_paths
    from dlbricks_tui.share.signatures import signers_of
    from dlbricks_tui.share.suites.results_file import has_suite_results

    # An import takes long, so it opens the store a second time instead of locking the shared one.
    with ResultsDatabase(shared.folder) as store:
        if has_suite_results(path):
            return _suite_told(import_suite_results(store, path, data))
        return _file_told(path, import_paths(store, [path], Trust(signers_of(data))))


def _suite_told(done: SuiteImport) -> ImportTold:
    from dlbricks_tui.wording.fleets import import_outcome

    lists = with_keys("{results.leave} {workbench.show_systems} lists the systems")
    told = f"{import_outcome(done)}. {lists}: select {done.system} to estimate {names_of(done.models)}."
    return ImportTold(told, bool(done.failed or done.missing))


def _file_told(path: Path, done: Imported) -> ImportTold:
    files = [it for one in done.paths for it in one.files]
    reports = [it.report for it in files]
    told = f"{counted(sum(it.new for it in reports), 'new record')} in {path.name}, "
    told += f"{sum(it.known for it in reports):,} known."
    if signers := sorted({it.signer for it in files if it.signer}):
        told += f" Signed by {', '.join(signers)}."
    if conflicts := sum(len(it.conflicts) for it in reports):
        told += f" {conflicts:,} differ from those in the store; both are kept."
    if done.claims:
        told += f" {counted(len(done.claims), 'result')} contradict others: `dlbricks results import` lists them."
    refused = [str(each) for it in reports for each in it.refused] + [it.refusal for it in files if it.refusal]
    if refused:
        told += f" {len(refused):,} cannot be read: {refused[0]}"
    return ImportTold(told, bool(refused or done.claims))
