"""Writes only the cells that have changed, for slow connections.

Textual redraws whole lines, and the whole screen when a panel changes its frame: 37 KB, of which 2 KB are new.
"""

import re
from functools import lru_cache
from typing import NamedTuple

from rich.cells import cell_len
from textual.drivers.linux_driver import LinuxDriver

# The output of Textual: styles, positions, line ends and text. All other sequences pass unchanged.
_TOKENS = re.compile(
    r"\x1b\[(?P<style>[0-9;]*)m"
    r"|\x1b\[(?P<row>\d+);(?P<column>\d+)H"
    r"|(?P<line>\r?\n)"
    r"|(?P<text>[^\x00-\x1f\x7f]+)"
    r"|(?P<other>\x1b\][^\x07\x1b]*(?:\x07|\x1b\\)|\x1bP(?:[^\x1b]|\x1b\x1b)*\x1b\\"
    r"|\x1b\[[0-?]*[ -/]*[@-~]|\x1b[^\[\]P]|.)",
    re.DOTALL,
)
# After these sequences the content of the terminal is unknown.
_UNKNOWN_AFTER = re.compile(r"\x1b\[(?:\?1049[hl]|[0-9;]*[JKLMPSTX@rq])|\x1bc|[\r\x08\x0b\x0c]")
_ENDED_BY = {"22": {"1", "2"}, "23": {"3"}, "24": {"4", "21"}, "25": {"5"}, "27": {"7"}, "28": {"8"}, "29": {"9"}}
_SHOWS_ON_BLANKS = frozenset({"4", "7", "9", "21"})


class _Look(NamedTuple):
    """Flags and colours of a cell; None is a colour that does not show."""

    flags: frozenset[str] = frozenset()
    ink: str | None = "39"
    ground: str = "49"


class _Cell(NamedTuple):
    text: str
    look: _Look


_PLAIN = _Look()


class ScreenDiff:
    """A copy of what the terminal shows, made from all that was written to it."""

    def __init__(self) -> None:
        self._rows: dict[int, dict[int, _Cell]] = {}
        # The position and style that the writer assumes.
        self._place = (0, 0)
        self._style = ""
        # The real position and style of the cursor; None if unknown.
        self._cursor: tuple[int, int] | None = None
        self._look: _Look | None = None

    def forget(self) -> None:
        """Assume nothing about the terminal."""
        self._rows.clear()
        self._cursor = self._look = None

    def reduced(self, data: str) -> str:
        """Return the shortest output that has the same effect as the data."""
        written: list[str] = []
        for token in _TOKENS.finditer(data):
            kind = token.lastgroup
            if kind == "text":
                self._draw(token["text"], written)
            elif kind == "style":
                more = token["style"]
                self._style = "" if more in ("", "0") else f"{self._style};{more}" if self._style else more
            elif kind == "column":
                self._place = (int(token["row"]) - 1, int(token["column"]) - 1)
            elif kind == "line":
                self._place = (self._place[0] + 1, 0)
            else:
                self._let_through(token["other"], written)
        self._move(written)
        return "".join(written)

    def _draw(self, text: str, written: list[str]) -> None:
        look = look_of(self._style)
        blank = look if look.flags & _SHOWS_ON_BLANKS else look._replace(flags=frozenset(), ink=None)
        number, column = self._place
        row = self._rows.setdefault(number, {})
        narrow = text.isascii() or all(cell_len(character) == 1 for character in set(text))
        for character in text:
            width = 1 if narrow else cell_len(character)
            cell = _Cell(character, blank if character == " " else look)
            if width == 1 and row.get(column) == cell:
                column += 1
                continue
            self._place = (number, column)
            self._move(written)
            self._dress(cell.look, written)
            written.append(character)
            if width == 1:
                row[column] = cell
                self._cursor = (number, column + 1)
            else:
                # Terminals disagree about where wide and combining characters end.
                for each in range(column - 1, column + width + 1):
                    row.pop(each, None)
                self._cursor = None
            column += width
        self._place = (number, column)

    def _move(self, written: list[str]) -> None:
        if self._cursor == self._place:
            return
        row, column = self._place
        ahead = column - self._cursor[1] if self._cursor is not None and self._cursor[0] == row else 0
        if ahead > 0:
            written.append(f"\x1b[{ahead}C")
        else:
            written.append(f"\x1b[{row + 1};{column + 1}H")
        self._cursor = self._place

    def _dress(self, look: _Look, written: list[str]) -> None:
        before = self._look
        if before is None or before.flags - look.flags:
            parts = ["0", *sorted(look.flags)]
            before = _PLAIN
        else:
            parts = sorted(look.flags - before.flags)
        ink = before.ink if look.ink is None else look.ink
        parts += [] if ink == before.ink or ink is None else [ink]
        parts += [] if look.ground == before.ground else [look.ground]
        if parts:
            written.append(f"\x1b[{';'.join(parts)}m")
        self._look = _Look(look.flags, ink, look.ground)

    def _let_through(self, sequence: str, written: list[str]) -> None:
        if _UNKNOWN_AFTER.match(sequence):
            self.forget()
        written.append(sequence)


@lru_cache(1024)
def look_of(style: str) -> _Look:
    """Return the look that the parameters of a style sequence describe."""
    flags: set[str] = set()
    ink, ground = "39", "49"
    parts = iter(style.split(";"))
    for part in parts:
        if part in ("38", "48"):
            kind = next(parts, "")
            colour = ";".join([part, kind, *(next(parts, "") for _ in range(3 if kind == "2" else 1))])
            ink, ground = (colour, ground) if part == "38" else (ink, colour)
        elif part in ("", "0"):
            flags.clear()
            ink, ground = "39", "49"
        elif part in _ENDED_BY:
            flags -= _ENDED_BY[part]
        elif len(part) > 1 and part[0] in "39":
            ink = part
        elif len(part) > 1 and part[0] in "41":
            ground = part
        else:
            flags.add(part)
    return _Look(frozenset(flags), ink, ground)


class DiffDriver(LinuxDriver):
    """Writes only changes to the terminal."""

    # Created at the first write, which happens before the driver is initialised.
    _diff: ScreenDiff | None = None

    def write(self, data: str) -> None:
        """Write the difference that the data makes."""
        if self._diff is None:
            self._diff = ScreenDiff()
        reduced = self._diff.reduced(data)
        if reduced:
            super().write(reduced)

    def forget(self) -> None:
        """Redraw everything next time: the terminal may have changed."""
        if self._diff is not None:
            self._diff.forget()
