"""The boxes of the results screen: deleting, undoing, exporting and importing."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.documents.lines import BLANK, Line, Span, line
from dlbricks_tui.documents.results import cell
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import ExchangeError
from dlbricks_tui.store.exporting import export_format
from dlbricks_tui.store.selections import Selection
from dlbricks_tui.tui.dialogs.dialog import ConfirmingScreen
from dlbricks_tui.tui.dialogs.paths import ANY_FILE, PathScreen
from dlbricks_tui.tui.keys.keymap import Hint, key, with_keys
from dlbricks_tui.tui.results import actions
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.share.galleries import Imported
    from dlbricks_tui.share.suites.results_file import SuiteImport
    from dlbricks_tui.tui.session import SharedStore

_MOST_NAMED = 6


class DeleteScreen(ConfirmingScreen):
    """Returns True if the user confirms."""

    HEADING = "Delete?"
    scope = actions.DELETE_RESULTS
    ABOUT = (
        "Estimates no longer use deleted results. {results.undo_delete} on the screen of results restores them until "
        "you quit dlbricks. Export them first to keep them longer."
    )

    def __init__(self, results: Selection, total: int) -> None:
        super().__init__()
        self._results = results
        self._total = total

    def paragraphs(self) -> Iterable[Line]:
        count = len(self._results)
        yield line(Span(f"{counted(count, 'result')} of {self._total:,}:", "strong"))
        for it in self._results[:_MOST_NAMED]:
            told = f"  {cell('when', it.when)}  {it.system}  {cell('trimmed_mean_ms', it.trimmed_mean_ms)} ms"
            yield line(it.name, Span(told, "muted"))
        if count > _MOST_NAMED:
            yield line(Span(f"and {counted(count - _MOST_NAMED, 'other')}", "muted"))
        yield BLANK
        yield Hint("{results.undo_delete} restores them until you quit dlbricks.").line


class ImportScreen(PathScreen):
    """Asks for an existing file."""

    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "A file that was exported here or by `dlbricks results export` on any host, or one that `dlbricks suite run` "
        "has written of a suite whose key is in this data folder. Results that are already in the store stay as they "
        "are. `dlbricks results import` on the command line imports the paper's published measurements."
    )

    @property
    def prompt(self) -> str:
        return "Import results from a file"

    def problem_with(self, path: Path) -> str:
        return f"{path} is a folder: name a file in it" if path.is_dir() else super().problem_with(path)


class ExportScreen(PathScreen):
    """Asks for a file to write; an existing one has to be confirmed."""

    HINT = "~/results.json"
    ENDINGS = ANY_FILE
    ABOUT = (
        "The ending selects the format. A .json or .json.gz file contains the results with their systems and runtimes "
        "and can be imported on any host. A .csv or .jsonl file contains one row per result."
    )

    def __init__(self, count: int) -> None:
        super().__init__()
        self._count = count
        self._warned_of: Path | None = None

    @property
    def prompt(self) -> str:
        return f"Export {counted(self._count, 'result')} to a file"

    def problem_with(self, path: Path) -> str:
        if path.is_dir():
            return f"{path} is a folder: name a file in it"
        if not path.absolute().parent.is_dir():
            return f"No such folder: {path.absolute().parent}"
        try:
            export_format(path)
        except ExchangeError as error:
            return str(error)
        if path.exists() and path != self._warned_of:
            self._warned_of = path
            return f"{path} already exists: press {key('path.take')} again to replace it"
        return ""


class ImportTold(NamedTuple):
    """The outcome of an import in words, and whether something is wrong or missing."""

    text: str
    is_warning: bool


def import_from(shared: SharedStore, path: Path, data: DataFolder) -> ImportTold:
    """Import a file that was exported on any host, or the results of a suite that was exported here."""
    # Loaded here: imports are rare.
    from dlbricks_tui.answers.suites.measuring import import_suite_results
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
