"""Write a report into a folder: the page, and its drawings and numbers beside it."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from dlbricks_tui.documents.parts import Table
from dlbricks_tui.errors import UserError
from dlbricks_tui.report.exhibits import Section
from dlbricks_tui.report.page import PageHeading, page


class ReportError(UserError):
    """A report that cannot be made or written."""


_FIGURES = "figures"
_ENDINGS = (".svg", ".csv")
_STEMS = ("figure-", "figures-", "table-", "bricks")


@dataclass(frozen=True, slots=True)
class Report:
    """The written page, its sections and its files."""

    page: Path
    sections: tuple[Section, ...]
    files: tuple[Path, ...]


def written(
    folder: Path,
    heading: PageHeading,
    summary: Table[Any] | None,
    sections: Sequence[Section],
    others: Mapping[str, str] | None = None,
) -> Report:
    """Write a page with the files of its exhibits, and other files by their names, into a folder."""
    texts = {f"{it.name}.csv": it.numbers.csv() for section in sections for it in section.exhibits}
    texts |= {f"{it.name}.svg": it.svg for section in sections for it in section.exhibits if it.svg}
    texts |= others or {}
    path = _write(folder, page(heading, summary, sections, _FIGURES), texts)
    return Report(path, tuple(sections), tuple(folder / _FIGURES / name for name in texts))


def _write(folder: Path, document: str, files: Mapping[str, str]) -> Path:
    """Write the page, and its files in a folder beside it; return the page. An earlier report is replaced.

    The page comes last, so that all of its links lead somewhere.
    """
    try:
        beside = folder / _FIGURES
        beside.mkdir(parents=True, exist_ok=True)
        for known in list(beside.iterdir()):
            # Only files with the names of reports: the user's own files stay.
            if known.suffix in _ENDINGS and known.name.startswith(_STEMS) and known.name not in files:
                known.unlink()
        for name, text in files.items():
            (beside / name).write_text(text, encoding="utf-8", newline="\n")
        path = folder / "index.html"
        path.write_text(document, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(
            f"the report cannot be written to {folder}: {error.strerror}; name another folder with -o"
        ) from None
    return path
