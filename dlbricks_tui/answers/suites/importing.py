"""Import the results of a suite that was exported here."""

from pathlib import Path

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.share.suites.key_file import key_path, read_key
from dlbricks_tui.share.suites.results_file import SuiteImport, import_results, read_results
from dlbricks_tui.store.database import ResultsDatabase


def import_suite_results(store: ResultsDatabase, path: Path, data: DataFolder, key: Path | None = None) -> SuiteImport:
    """Store the results of the private models' bricks; without a key file, that in the data folder counts."""
    results = read_results(path)
    return import_results(store, read_key(key or key_path(data, results.suite)), results, str(path))
