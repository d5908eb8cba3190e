"""The page of a comparison: what is compared, what changed, and which host and version is how fast."""

from collections.abc import Iterator, Sequence
from pathlib import Path

from dlbricks_tui.answers.changes import ComparedSides
from dlbricks_tui.answers.sides import Side, SideFact
from dlbricks_tui.report.comparing.changes import changes_section, letters
from dlbricks_tui.report.comparing.columns import hosts_section, versions_section
from dlbricks_tui.report.exhibits import Exhibit, Section, csv_table
from dlbricks_tui.report.page import PageHeading
from dlbricks_tui.report.writing import Report, written
from dlbricks_tui.wording.numbers import counted

_TITLE = "Results side by side"
_ABOUT_FILES = "Rows of changes have the ids of the results behind them; `dlbricks results show ID` shows a result."


def make_comparison(compared: ComparedSides, folder: Path) -> Report:
    """Draw the figures of a comparison and write its page into a folder."""
    sections = (
        sides_section(compared.sides, compared.facts),
        changes_section(compared.comparisons),
        hosts_section(compared.hosts),
        versions_section(compared.versions),
    )
    lead = " · ".join(it.name for it in compared.sides)
    return written(folder, PageHeading(_TITLE, (lead,), _ABOUT_FILES), None, sections)


def sides_section(sides: Sequence[Side], facts: Sequence[SideFact]) -> Section:
    """Return the section of what is compared."""
    columns = ("what", *(letters(number) for number in range(len(sides))))
    rows = [(it.name, *(value or None for value in it.values)) for it in facts]
    differing = [it for it in facts if it.differs]
    names = {it.name for it in differing}
    exhibits = [Exhibit("table-sides", "The sides", f"{counted(len(sides), 'side')}.", csv_table(columns, rows))]
    if differing:
        differences = csv_table(columns, [row for row in rows if row[0] in names])
        exhibits.append(Exhibit("table-differences", "Differences", "Circumstances that differ.", differences))
    return Section(
        "What is being compared?",
        "sides",
        "Each side is a file of results, or a selection of the store. Results in doubt are not compared.",
        tuple(exhibits),
        missing=tuple(_missing(sides)),
        answer=_answer(sides, differing),
    )


def _answer(sides: Sequence[Side], differing: Sequence[SideFact]) -> str:
    told = ", ".join(f"{letters(number)} is {it.name}" for number, it in enumerate(sides))
    if not differing:
        return f"{told}. They tell no difference in systems, runtimes, versions and methods."
    return f"{told}. They differ in: {', '.join(it.name for it in differing)}."


def _missing(sides: Sequence[Side]) -> Iterator[str]:
    for number, side in enumerate(sides):
        runs = {it.run for it in side.results}
        untold = len(runs - {it.run for it in side.origins})
        if untold:
            yield (
                f"{letters(number)} does not tell the versions of packages and the state of the host for "
                f"{untold:,} of its {counted(len(runs), 'run')}."
            )
        if side.refused:
            lines = counted(len(side.refused), "line")
            yield f"{letters(number)} has {lines} without a record, the first: {side.refused[0]}."
