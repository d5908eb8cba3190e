"""Putting a report into a folder."""

from collections.abc import Iterator, Mapping
from pathlib import Path

from dlbricks_tui.report.errors import ReportError

_OURS = ("*.svg", "*.csv")


def write_report(folder: Path, page: str, files: Mapping[str, str], figures: str) -> Path:
    """Writes the page and, in a folder beside it, its files, in the place of a former report; returns the page.

    The page comes last: whoever sees it finds all that it links to.
    """
    try:
        beside = folder / figures
        beside.mkdir(parents=True, exist_ok=True)
        for stale in _stale(beside, files):
            stale.unlink()
        for name, text in files.items():
            (beside / name).write_text(text, encoding="utf-8", newline="\n")
        path = folder / "index.html"
        path.write_text(page, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(
            f"the report cannot be written to {folder}: {error.strerror}; name another folder with -o"
        ) from None
    return path


def _stale(folder: Path, files: Mapping[str, str]) -> Iterator[Path]:
    # Nothing else than what reports write is ever there, unless somebody else put it there: then it stays.
    for pattern in _OURS:
        yield from (path for path in folder.glob(pattern) if path.name not in files and path.name.startswith(_STEMS))


_STEMS = ("figure-", "figures-", "table-", "bricks")
