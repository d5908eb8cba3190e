"""The page: one HTML document that loads nothing else, with figures and their numbers, written into a folder."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from importlib.resources import files
from pathlib import Path
from string import Template
from typing import Any

from dlbricks_tui import __version__
from dlbricks_tui.api.analyses import Cell
from dlbricks_tui.documents.parts import CellKind, Table
from dlbricks_tui.errors import UserError
from dlbricks_tui.report.drawing import escaped, for_pages, style_sheet
from dlbricks_tui.wording import plain_text


@dataclass(frozen=True, slots=True)
class CsvTable:
    """Rows of exact numbers; the names of columns include units."""

    columns: Sequence[str]
    rows: Sequence[Sequence[Cell]]
    # Columns that are only in the CSV file.
    details: Sequence[str] = ()
    # The number of rows on the page; the CSV file has all. None: all.
    most: int | None = None

    def shown(self) -> "CsvTable":
        """Return the first rows without the details."""
        held = [number for number, name in enumerate(self.columns) if name not in self.details]
        rows = tuple(tuple(row[number] for number in held) for row in self.rows[: self.most])
        return CsvTable(tuple(self.columns[number] for number in held), rows)

    def csv(self) -> str:
        """Return the rows as comma-separated values; control codes in texts are spelled out."""
        rows = (["" if it is None else str(it) for it in row] for row in self.rows)
        return plain_text.written(plain_text.TextTable(tuple(self.columns), rows), plain_text.TableFormat.CSV)


def cell_text(cell: Cell) -> str:
    """Return the text of a cell: numbers with four significant digits, an empty cell as a dash."""
    if cell is None:
        return "-"
    if isinstance(cell, float):
        return f"{cell:,.0f}" if abs(cell) >= 1000 else f"{cell:.4g}"
    return f"{cell:,}" if isinstance(cell, int) else cell


@dataclass(frozen=True, slots=True)
class Exhibit:
    """A drawing with its numbers, or these alone."""

    # Also the name of its files.
    name: str
    title: str
    caption: str
    numbers: CsvTable
    svg: str = ""
    # The table on the page, where it is that of a document.
    table: Table[Any] | None = None


@dataclass(frozen=True, slots=True)
class Section:
    """A figure or table of the paper: its explanation, its exhibits, and the missing data."""

    # With the paper's number; `anchor` is for links.
    heading: str
    anchor: str
    explanation: str
    exhibits: tuple[Exhibit, ...] = ()
    # The values of the paper and its authors' files.
    published: str = ""
    # The missing data, with the command that measures it.
    missing: tuple[str, ...] = ()
    # The answer, if the heading is a question.
    answer: str = ""


_CODE = re.compile(r"`([^`]+)`")
# The browser must not load anything else either.
_POLICY = "default-src 'none'; style-src 'unsafe-inline'"
_NAMES = ("model", "name", "what")


@dataclass(frozen=True, slots=True)
class PageHeading:
    """The title of a page, the paragraphs below it, and the sentence about its files at the end."""

    title: str
    lead: tuple[str, ...]
    about_files: str


def page(heading: PageHeading, summary: Table[Any] | None, sections: Sequence[Section], folder: str) -> Iterator[str]:
    """Yield the lines of the document; `folder`, beside it, has the files of its exhibits."""
    sheet = Template(files("dlbricks_tui.report").joinpath("page.css").read_text(encoding="utf-8"))
    yield "<!doctype html>"
    yield '<html lang="en">'
    yield "<head>"
    yield '<meta charset="utf-8">'
    yield f'<meta http-equiv="Content-Security-Policy" content="{_POLICY}">'
    yield '<meta name="viewport" content="width=device-width, initial-scale=1">'
    yield f"<title>{escaped(heading.title)}</title>"
    yield f"<style>{sheet.substitute(light=style_sheet(dark=False), dark=style_sheet(dark=True))}</style>"
    yield "</head>"
    yield "<body>"
    yield "<header>"
    yield f"<h1>{escaped(heading.title)}</h1>"
    yield from (f'<p class="lead">{_text(line)}</p>' for line in heading.lead)
    if summary is not None:
        yield f'<div class="numbers whole" {_named("Summary", "region")}>{_table(summary)}</div>'
    yield '<nav aria-label="Contents"><ul>'
    yield from (f'<li><a href="#{it.anchor}">{escaped(it.heading)}</a></li>' for it in sections)
    yield "</ul></nav>"
    yield "</header>"
    yield "<main>"
    for section in sections:
        yield from _section(section, folder)
    yield "</main>"
    yield f"<footer>Made by dlbricks {__version__}."
    yield f"The folder <code>{escaped(folder)}</code> beside this page has every"
    yield f"drawing as SVG and its numbers as CSV. {_text(heading.about_files)}</footer>"
    yield "</body>"
    yield "</html>"


def _section(section: Section, folder: str) -> Iterator[str]:
    yield f'<section aria-labelledby="{section.anchor}">'
    # In print, the text stays on the page of its drawing.
    yield '<div class="together">'
    yield f'<h2 id="{section.anchor}">{escaped(section.heading)}</h2>'
    explained = [f"<p>{_text(section.explanation)}</p>"]
    explained += [f'<p class="published">{_text(section.published)}</p>'] if section.published else []
    explained += [f'<p class="missing">{_text(line)}</p>' for line in section.missing]
    # An answer comes first, its picture next.
    yield from [f'<p class="answer">{_text(section.answer)}</p>'] if section.answer else explained
    for number, exhibit in enumerate(section.exhibits):
        if number:
            yield '<div class="together">'
        yield from _exhibit_lines(exhibit, folder, titled=len(section.exhibits) > 1)
    if not section.exhibits:
        yield "</div>"
    yield from explained if section.answer else ()
    yield "</section>"


def _exhibit_lines(exhibit: Exhibit, folder: str, titled: bool) -> Iterator[str]:
    if titled:
        yield f"<h3>{escaped(exhibit.title)}</h3>"
    held = _numbers(exhibit.numbers.shown()) if exhibit.table is None else _table(exhibit.table)
    table = f"{_named(f'Table: {exhibit.title}', 'region')}>{held}</div>"
    stem = f"{folder}/{exhibit.name}"
    downloads = f'<a href="{stem}.csv">CSV</a>'
    if not exhibit.svg:
        yield "</div>"
        yield f'<div class="numbers whole" {table}'
        yield f'<p class="downloads">{downloads}</p>'
        return
    yield "<figure>"
    yield f'<div class="drawing" {_named(exhibit.title, "group")}>{for_pages(exhibit.svg)}</div>'
    yield f"<figcaption>{_text(exhibit.caption)}</figcaption>"
    yield "</figure>"
    yield "</div>"
    yield f'<details><summary>Table</summary><div class="numbers" {table}'
    yield "</details>"
    yield f'<p class="downloads">{downloads} · <a href="{stem}.svg">SVG</a></p>'


def _named(label: str, role: str) -> str:
    """Return the attributes of a scrolling element: a label and keyboard access."""
    return f'role="{role}" aria-label="{escaped(label)}" tabindex="0"'


def _table(table: Table[Any]) -> str:
    """Return the table of a document."""
    columns = [it for it in table.columns if it.kind is not CellKind.BAR]
    classes = {CellKind.NUMBER: "number", CellKind.NAME: "name"}
    heads = [(it.title, classes.get(it.kind, "")) for it in columns]
    return _html_table(heads, [[str(it.cell(row)) for it in columns] for row in table.rows])


def _numbers(numbers: CsvTable) -> str:
    heads = []
    for place, name in enumerate(numbers.columns):
        # Numbers are aligned right, names are wide.
        told = [row[place] for row in numbers.rows if row[place] is not None]
        is_number = told and all(isinstance(it, int | float) or (it or "")[:1] in "+-0123456789" for it in told)
        title = name.replace("table1_id", "id").replace("_", " ")
        heads.append((title, "number" if is_number else "name" if name in _NAMES else ""))
    return _html_table(heads, [[cell_text(cell) for cell in row] for row in numbers.rows])


def _html_table(heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns have titles and classes."""
    kinds = [f' class="{it}"' if it else "" for _, it in heads]
    titles = "".join(
        f'<th scope="col"{kind}>{escaped(name)}</th>' for kind, (name, _) in zip(kinds, heads, strict=True)
    )
    cells = ("".join(f"<td{kind}>{escaped(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)) for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(f'<tr>{it}</tr>' for it in cells)}</tbody></table>"


def _text(line: str) -> str:
    """Return a line as HTML, with `commands` as code."""
    return _CODE.sub(r"<code>\1</code>", escaped(line))


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
    """Write a page with the files of its exhibits, and other files by their names, into a folder.

    An earlier report is replaced. The page comes last, so that all of its links lead somewhere.
    """
    texts = {f"{it.name}.csv": it.numbers.csv() for section in sections for it in section.exhibits}
    texts |= {f"{it.name}.svg": it.svg for section in sections for it in section.exhibits if it.svg}
    texts |= others or {}
    beside, path = folder / _FIGURES, folder / "index.html"
    document = "\n".join(page(heading, summary, sections, _FIGURES)) + "\n"
    try:
        beside.mkdir(parents=True, exist_ok=True)
        for known in list(beside.iterdir()):
            # Only files with the names of reports: the user's own files stay.
            if known.suffix in _ENDINGS and known.name.startswith(_STEMS) and known.name not in texts:
                known.unlink()
        for name, text in texts.items():
            (beside / name).write_text(text, encoding="utf-8", newline="\n")
        path.write_text(document, encoding="utf-8", newline="\n")
    except OSError as error:
        raise ReportError(
            f"the report cannot be written to {folder}: {error.strerror}; name another folder with -o"
        ) from None
    return Report(path, tuple(sections), tuple(beside / name for name in texts))
