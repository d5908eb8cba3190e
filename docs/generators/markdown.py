"""Parts of generated pages: the first line that marks them, and tables."""

from collections.abc import Iterable, Sequence
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"
MARK = "<!-- Generated: `make reference` writes this page. -->\n\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells may hold bars and line ends."""
    head = f"{_line(headings)}|{'---|' * len(headings)}\n"
    return head + "".join(map(_line, rows))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', chr(92) + '|') for cell in cells)} |\n"
