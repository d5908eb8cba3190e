"""Imports of files, which the results screen runs in a thread, in words."""

from __future__ import annotations

from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.tui.keys.keymap import with_keys
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from pathlib import Path

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.share.galleries import Imported
    from dlbricks_tui.share.suites.results_file import SuiteImport
    from dlbricks_tui.tui.session import SharedStore


class ImportTold(NamedTuple):
    """The outcome of an import in words, and whether something is wrong or missing."""

    text: str
    is_warning: bool


def import_from(shared: SharedStore, path: Path, data: DataFolder) -> ImportTold:
    """Import a file that was exported on any host, or the results of a suite that was exported here."""
    # Loaded here: imports are rare.
    from dlbricks_tui.answers.suites.importing import import_suite_results
    from dlbricks_tui.share.galleries import Trust, import_paths
    from dlbricks_tui.share.signatures import signers_of
    from dlbricks_tui.share.suites.results_file import has_suite_results

    # An import takes long, so it opens the store a second time instead of locking the shared one.
    with ResultsDatabase(shared.folder) as store:
        if has_suite_results(path):
            return _suite_told(import_suite_results(store, path, data))
        return _file_told(path, import_paths(store, [path], Trust(signers_of(data))))


def _suite_told(done: SuiteImport) -> ImportTold:
    from dlbricks_tui.wording.suites import import_outcome

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
