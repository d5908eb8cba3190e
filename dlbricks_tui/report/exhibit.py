"""What a report is made of: figures and tables, each with its numbers, or with the way to get them."""

from dataclasses import dataclass

from dlbricks_tui.report.tables import Table


@dataclass(frozen=True, slots=True)
class Exhibit:
    """One drawing or table; without a drawing the table is shown itself."""

    # Also the name of its files.
    name: str
    title: str
    caption: str
    table: Table
    svg: str = ""


@dataclass(frozen=True, slots=True)
class Section:
    """A figure or table of the paper: what it shows, the exhibits that there are of it, and what is missing."""

    # As the paper numbers it, and for links.
    heading: str
    anchor: str
    explanation: str
    exhibits: tuple[Exhibit, ...] = ()
    # What the paper and its authors' files say about it.
    published: str = ""
    # What there is no data of, and the command that gets it.
    missing: tuple[str, ...] = ()
