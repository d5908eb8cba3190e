"""Parts of generated pages: the first line that marks them, and tables."""

import re
from collections.abc import Iterable, Sequence
from pathlib import Path

REFERENCE = Path(__file__).parents[1] / "reference"
_CODE = re.compile(r"(`[^`]*`)")
_BAR = r"\|"
MARK = "<!-- Generated: `make reference` writes this page. -->\n\n"


def table(headings: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    """Return a table; cells may hold bars and line ends."""
    head = f"{_line(headings)}|{'---|' * len(headings)}\n"
    return head + "".join(map(_line, rows))


def plain(text: str) -> str:
    """Return text in which the signs of Markdown stand for themselves; code stays code."""
    parts = _CODE.split(text)
    return "".join(it if at % 2 else re.sub(r"([*<_])", r"\\\1", it) for at, it in enumerate(parts))


def _line(cells: Sequence[str]) -> str:
    return f"| {' | '.join(' '.join(cell.split()).replace('|', _BAR) for cell in cells)} |\n"
