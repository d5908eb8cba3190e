"""The sides of a comparison as users name them: files of results, or selections of the store.

Large files are read in processes of their own, as checking each record takes long.
"""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from contextlib import suppress
from multiprocessing import get_context
from pathlib import Path

from dlbricks_tui.answers.comparisons.selecting import NamedSelection, select_named
from dlbricks_tui.answers.comparisons.sides import COMPARED, ComparisonError, Side, side_of
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.share.signatures import signature_beside
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.errors import DamagedResultError
from dlbricks_tui.store.exporting import ExportFormat
from dlbricks_tui.store.importing import read_export
from dlbricks_tui.store.records import BrickForm, Provenance, Record

_ENDINGS = tuple(it.value for it in ExportFormat)
# A process takes a third of a second to start.
_LARGE_BYTES = 1 << 20


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


@without_cycle_search()
def read_side(path: Path) -> Side:
    """Return the results of a file of `dlbricks results export`."""
    records, refused = read_export(path, COMPARED)
    return side_of(str(path), records, [str(it) for it in refused], _signature_of(path))


def _signature_of(path: Path) -> str:
    """Return whether a signature is beside a file, which only an import verifies."""
    found = signature_beside(path)
    return "none" if found is None else f"{found.name}, not verified"


def read_sides(paths: Sequence[Path]) -> list[Side]:
    """Return the results of several files, in their order."""
    for place, path in enumerate(paths):
        if any(_is_same_file(path, other) for other in paths[:place]):
            raise ComparisonError(f"{path} is named twice: a comparison needs different files")
    at_once = min(len(paths), os.cpu_count() or 1)
    if at_once < 2 or sum(map(_size_of, paths)) - max(map(_size_of, paths)) < _LARGE_BYTES:
        return [read_side(path) for path in paths]
    # This process reads, too: the first file, while others read the rest.
    with ProcessPoolExecutor(at_once - 1, mp_context=get_context("spawn")) as pool:
        others = [pool.submit(read_side, path) for path in paths[1:]]
        return [read_side(paths[0]), *(it.result() for it in others)]


def _is_same_file(path: Path, other: Path) -> bool:
    return path.exists() and other.exists() and path.samefile(other)


def _size_of(path: Path) -> int:
    return path.stat().st_size if path.is_file() else 0
