"""Lines of text for both terminals: spans with named styles, measured in terminal cells, and charts in text."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

from dlbricks_tui.printable import printable
from dlbricks_tui.wording.plain_text import bar as bar_text

ELLIPSIS = "…"


class Span(NamedTuple):
    """Text in one style; the theme gives the style its colours."""

    text: str
    style: str = "text"


Line = tuple[Span, ...]
BLANK: Line = ()


def line(*parts: str | Span) -> Line:
    """Return a line of spans and plain texts."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def width_of(spans: Iterable[Span]) -> int:
    """Return the number of cells of a line."""
    return sum(cell_len(span.text) for span in spans)


def spelled(spans: Line) -> Line:
    """Return the line with line breaks and control codes escaped; names in files may contain them."""
    if all(span.text.isprintable() for span in spans):
        return spans
    return tuple(Span(printable(span.text), span.style) for span in spans)


def cut(text: str, width: int) -> str:
    """Return the escaped text in at most `width` cells; a longer text ends in an ellipsis."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    return _beginning(text, width - 1) + ELLIPSIS if width > 0 else ""


def cut_start(text: str, width: int) -> str:
    """Return the escaped text in at most `width` cells; of a longer text the end, after an ellipsis."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    return ELLIPSIS + _beginning(text[::-1], width - 1)[::-1] if width > 0 else ""


def names_in(names: Sequence[str], width: int) -> str:
    """Return as many names as fit, and the number of the others; of a longer name the end."""
    # A name and its comma take three cells at least.
    for count in range(min(len(names), width // 3 + 1), 0, -1):
        left = len(names) - count
        text = ", ".join(map(printable, names[:count])) + (f" and {left:,} more" if left else "")
        if cell_len(text) <= width:
            return text
    more = f" +{len(names) - 1:,}" if len(names) > 1 else ""
    return cut_start(names[0], width - len(more)) + more


def fitted(spans: Line, width: int) -> Line:
    """Return the escaped line in exactly `width` cells."""
    spans = spelled(spans)
    used = width_of(spans)
    if used < width:
        return (*spans, Span(" " * (width - used)))
    if used == width:
        return spans
    kept: list[Span] = []
    left = max(0, width - len(ELLIPSIS))
    for span in spans:
        length = cell_len(span.text)
        if length > left:
            kept.append(Span(_beginning(span.text, left) + ELLIPSIS, span.style))
            break
        kept.append(span)
        left -= length
    # A wide character that did not fit leaves one cell empty.
    return fitted(tuple(kept), width) if width > 0 else ()


def _beginning(text: str, width: int) -> str:
    return chop_cells(text, width)[0] if width > 0 else ""


def spread(left: Line, right: Line, width: int) -> Line:
    """Return a line with a left and a right part; the left part is shortened if necessary."""
    right = spelled(right)
    room = width - width_of(right)
    return fitted(right, width) if room <= 0 else (*fitted(left, room), *right)


def column(text: str, width: int, style: str = "text", *, right: bool = False) -> Span:
    """Return the text as a table cell of exactly `width` cells."""
    shown = cut(text, width)
    gap = " " * (width - cell_len(shown))
    return Span(gap + shown if right else shown + gap, style)


def bar(share: float, width: int, track: str = " ") -> Line:
    """Return a share as a bar, to an eighth of a cell; any positive share is visible."""
    drawn = bar_text(share, width)
    return (Span(drawn, "bar"), Span(track * (width - len(drawn)), "rest"))


def highlighted(text: str, words: Iterable[str], style: str = "text") -> Line:
    """Return the text with the first occurrence of each word highlighted."""
    folded = text.casefold()
    hits = sorted((folded.find(word.casefold()), len(word)) for word in words if word.casefold() in folded)
    spans, done = list[Span](), 0
    for start, length in hits:
        if start >= done and len(folded) == len(text):
            spans += [Span(text[done:start], style), Span(text[start : start + length], "match")]
            done = start + length
    return (*spans, Span(text[done:], style))


def contains_all(text: str, words: Iterable[str]) -> bool:
    """Return whether a text contains all of the lower-case words."""
    folded = text.casefold()
    return all(word in folded for word in words)


def wrapped(spans: Line, width: int, *, commands_whole: bool = False) -> list[Line]:
    """Return the line wrapped to `width` cells, with its indent repeated; control codes are escaped.

    Of several spans the first is a column and sets the indent. Otherwise the leading blanks do. Commands between
    backticks are broken, too, unless they are to stay whole: a shell would run the first line of what is pasted.
    """
    spans = spelled(spans)
    width = max(1, width)
    if width_of(spans) <= width:
        return [spans]
    first = spans[0].text
    indent = cell_len(first) if len(spans) > 1 else len(first) - len(first.lstrip())
    indent = indent if indent < width // 2 else 0
    margin = [Span(" " * indent)] if indent else []
    lines: list[list[Span]] = [[]]
    used, room = 0, width - indent
    words = r"\s*(?:`[^`]*`|\S)+\s*|\s+" if commands_whole else r"\s*\S+\s*|\s+"
    for span in spans:
        # The words with the blanks around them; words wider than a line are split.
        for word in re.findall(words, span.text):
            is_split = cell_len(word) > room and not (commands_whole and "`" in word)
            for piece in chop_cells(word, room) if is_split else [word]:
                if lines[-1] and used + cell_len(piece.rstrip()) > width:
                    lines.append([*margin])
                    used = indent
                lines[-1].append(Span(piece, span.style))
                used += cell_len(piece)
    return [(*rest, last._replace(text=last.text.rstrip())) for *rest, last in lines]


def wrapped_lines(lines: Iterable[Line], width: int) -> tuple[Line, ...]:
    return tuple(each for long in lines for each in wrapped(long, width))


_BLOCKS = "▁▂▃▄▅▆▇█"


def block(share: float) -> str:
    """Return a block that fills this share of a line from below."""
    return _BLOCKS[round(share * (len(_BLOCKS) - 1))]


def sparkline(values: Sequence[float], width: int) -> str:
    """Return the newest values as blocks between the least and the greatest of them."""
    shown = values[-width:] if width > 0 else ()
    if not shown:
        return ""
    least, span = min(shown), max(shown) - min(shown)
    return "".join(block((value - least) / (span or 1.0)) for value in shown)
