"""The page: one HTML document that loads nothing else."""

import re
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from importlib.resources import files
from string import Template
from typing import Any

from dlbricks_tui import __version__
from dlbricks_tui.answers.analyses import Cell
from dlbricks_tui.documents.parts import CellKind, Table
from dlbricks_tui.report.drawing import escaped, for_pages, style_sheet
from dlbricks_tui.report.exhibits import CsvTable, Exhibit, Section, cell_text

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


def page(heading: PageHeading, summary: Table[Any] | None, sections: Sequence[Section], folder: str) -> str:
    """Return the document; `folder`, beside it, has the files of its exhibits."""
    return "\n".join(_lines(heading, summary, sections, folder)) + "\n"


def _lines(heading: PageHeading, summary: Table[Any] | None, sections: Sequence[Section], folder: str) -> Iterator[str]:
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
    if section.answer:
        yield f'<p class="answer">{_text(section.answer)}</p>'
    else:
        yield from _explained(section)
    for number, exhibit in enumerate(section.exhibits):
        if number:
            yield '<div class="together">'
        yield from _exhibit(exhibit, folder, titled=len(section.exhibits) > 1)
    if not section.exhibits:
        yield "</div>"
    if section.answer:
        # The answer comes first, its picture next.
        yield from _explained(section)
    yield "</section>"


def _explained(section: Section) -> Iterator[str]:
    yield f"<p>{_text(section.explanation)}</p>"
    if section.published:
        yield f'<p class="published">{_text(section.published)}</p>'
    yield from (f'<p class="missing">{_text(line)}</p>' for line in section.missing)


def _exhibit(exhibit: Exhibit, folder: str, titled: bool) -> Iterator[str]:
    if titled:
        yield f"<h3>{escaped(exhibit.title)}</h3>"
    held = _numbers(exhibit.numbers.shown()) if exhibit.table is None else _table(exhibit.table)
    table = f"{_named(f'CsvTable: {exhibit.title}', 'region')}>{held}</div>"
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
    yield f'<details><summary>CsvTable</summary><div class="numbers" {table}'
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
    heads = [
        (name.replace("table1_id", "id").replace("_", " "), _class(name, [row[place] for row in numbers.rows]))
        for place, name in enumerate(numbers.columns)
    ]
    return _html_table(heads, [[cell_text(cell) for cell in row] for row in numbers.rows])


def _html_table(heads: Sequence[tuple[str, str]], rows: Iterable[Sequence[str]]) -> str:
    """Return a table whose columns have titles and classes."""
    kinds = [f' class="{it}"' if it else "" for _, it in heads]
    titles = "".join(
        f'<th scope="col"{kind}>{escaped(name)}</th>' for kind, (name, _) in zip(kinds, heads, strict=True)
    )
    cells = ("".join(f"<td{kind}>{escaped(cell)}</td>" for kind, cell in zip(kinds, row, strict=True)) for row in rows)
    return f"<table><thead><tr>{titles}</tr></thead><tbody>{''.join(f'<tr>{it}</tr>' for it in cells)}</tbody></table>"


def _class(name: str, cells: Sequence[Cell]) -> str:
    """Return the class of a column: numbers are aligned right, names are wide."""
    told = [cell for cell in cells if cell is not None]
    if told and all(isinstance(cell, int | float) or cell[:1] in "+-0123456789" for cell in told):
        return "number"
    return "name" if name in _NAMES else ""


def _text(line: str) -> str:
    """Return a line as HTML, with `commands` as code."""
    return _CODE.sub(r"<code>\1</code>", escaped(line))
