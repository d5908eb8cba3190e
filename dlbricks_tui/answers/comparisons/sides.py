"""The sides of a comparison as users name them: files of results, or selections of the store."""

from collections.abc import Sequence
from contextlib import suppress
from pathlib import Path

from dlbricks_tui.answers.comparisons.selecting import NamedSelection, select_named
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.report.comparing.reading import read_sides
from dlbricks_tui.report.comparing.sides import Side, side_of
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.exporting import ExportFormat
from dlbricks_tui.store.records import BrickForm, Provenance, Record

_ENDINGS = tuple(it.value for it in ExportFormat)


def named_sides(names: Sequence[str], data: DataFolder) -> list[Side]:
    """Return the sides of these names, in their order: files, or words of `dlbricks results compare`."""
    files = [name for name in names if is_file(name)]
    found = dict(zip(files, read_sides([Path(name) for name in files]), strict=True))
    if len(files) < len(names):
        with ResultsDatabase(data.store) as store:
            found |= {name: side_of_selection(store, select_named(store, name)) for name in names if name not in found}
    return [found[name] for name in names]


def is_file(name: str) -> bool:
    """Return whether a name is that of a file; anything else selects results of the store."""
    return Path(name).exists() or name.lower().endswith(_ENDINGS)


def side_of_selection(store: ResultsDatabase, named: NamedSelection) -> Side:
    """Return the good results of a selection of the store; raise ComparisonError if there are none."""
    records: list[Record] = [*store.systems(), *store.runtimes(), *store.records(BrickForm)]
    # Those of other runs would tell of circumstances that these results did not have.
    runs = named.selection.distinct("run")
    records += [it for it in store.records(Provenance) if it.run in runs]
    for position in range(len(named.selection)):
        # The store reports damaged results.
        with suppress(DamagedResultError):
            records.append(named.selection.result(position))
    return side_of(named.name, records)
