"""Read the files of a comparison; large ones in processes of their own, as checking each record takes long."""

import os
from collections.abc import Sequence
from concurrent.futures import ProcessPoolExecutor
from multiprocessing import get_context
from pathlib import Path

from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.report.comparing.sides import COMPARED, ComparisonError, Side, side_of
from dlbricks_tui.share.signatures import signature_beside
from dlbricks_tui.store.importing import read_export

# A process takes a third of a second to start.
_LARGE_BYTES = 1 << 20


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
