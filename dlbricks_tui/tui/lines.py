"""Lines as panels show them: spans of text with the names of their styles, measured in terminal cells."""

import re
from collections.abc import Iterable
from typing import NamedTuple

from rich.cells import cell_len, chop_cells

from dlbricks_tui.printable import printable

STYLES = ("text", "strong", "muted", "accent", "good", "warn", "bad", "bar", "rest", "mark", "match", "heading")

ELLIPSIS = "…"
_EIGHTHS = " ▏▎▍▌▋▊▉█"


class Span(NamedTuple):
    """Text in one style; which colours that is, the theme says."""

    text: str
    style: str = "text"


Line = tuple[Span, ...]
BLANK: Line = ()


def line(*parts: str | Span) -> Line:
    """A line of spans and of plain texts."""
    return tuple(Span(part) if isinstance(part, str) else part for part in parts)


def width_of(spans: Iterable[Span]) -> int:
    """How many cells a line takes."""
    return sum(cell_len(span.text) for span in spans)


def spelled(spans: Line) -> Line:
    """Return the line with line breaks and control codes, which names in files may hold, spelled out."""
    if all(span.text.isprintable() for span in spans):
        return spans
    return tuple(Span(printable(span.text), span.style) for span in spans)


def cut(text: str, width: int) -> str:
    """Return the text, spelled out, in at most so many cells; a longer one ends in an ellipsis."""
    text = printable(text)
    if cell_len(text) <= width:
        return text
    return _beginning(text, width - 1) + ELLIPSIS if width > 0 else ""


def fitted(spans: Line, width: int) -> Line:
    """Return the line, spelled out, in exactly so many cells."""
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
    # A wide character that did not fit leaves a cell over.
    return fitted(tuple(kept), width) if width > 0 else ()


def _beginning(text: str, width: int) -> str:
    return chop_cells(text, width)[0] if width > 0 else ""


def spread(left: Line, right: Line, width: int) -> Line:
    """Return one part at the left and one at the right; the left one gives way."""
    right = spelled(right)
    room = width - width_of(right)
    return fitted(right, width) if room <= 0 else (*fitted(left, room), *right)


def column(text: str, width: int, style: str = "text", *, right: bool = False) -> Span:
    """The text as a table's cell of exactly so many cells."""
    shown = cut(text, width)
    gap = " " * (width - cell_len(shown))
    return Span(gap + shown if right else shown + gap, style)


def figure(text: str, width: int, style: str = "text") -> Span:
    """The text at the right of a cell, with a blank before it: figures of neighbouring cells never touch."""
    cell = column(text, max(0, width - 1), style, right=True)
    return cell._replace(text=" " * min(1, width) + cell.text)


def bar(share: float, width: int, track: str = " ") -> Line:
    """A share of one as a bar, to an eighth of a cell, on a track; what is not nothing is seen."""
    eighths = round(min(1.0, max(0.0, share)) * width * 8)
    if share > 0:
        eighths = max(1, eighths)
    full, rest = divmod(eighths, 8)
    drawn = "█" * full + (_EIGHTHS[rest] if rest else "")
    return (Span(drawn, "bar"), Span(track * (width - len(drawn)), "rest"))


def highlighted(text: str, words: Iterable[str], style: str = "text") -> Line:
    """The text with the first place of each word made visible."""
    folded = text.casefold()
    hits = sorted((folded.find(word.casefold()), len(word)) for word in words if word.casefold() in folded)
    spans, done = list[Span](), 0
    for start, length in hits:
        if start >= done and len(folded) == len(text):
            spans += [Span(text[done:start], style), Span(text[start : start + length], "match")]
            done = start + length
    return (*spans, Span(text[done:], style))


def wrapped(spans: Line, width: int) -> list[Line]:
    """The line as lines of at most so many cells, broken between words as far as words fit; the indent is kept.

    The indent is what the first span of several takes, as it is a column of its own; else what the blanks at the
    beginning take. Line breaks and control codes are spelled out.
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
    used = 0
    for span in spans:
        for word in _words(span.text, width - indent):
            if lines[-1] and used + cell_len(word.rstrip()) > width:
                _trim_end(lines[-1])
                lines.append([*margin])
                used = indent
            lines[-1].append(Span(word, span.style))
            used += cell_len(word)
    _trim_end(lines[-1])
    return [tuple(each) for each in lines]


def _trim_end(spans: list[Span]) -> None:
    if spans:
        spans[-1] = spans[-1]._replace(text=spans[-1].text.rstrip())


def _words(text: str, width: int) -> list[str]:
    """The words, each with the blanks around it; such as are wider than a line in pieces."""
    words = re.findall(r"\s*\S+\s*|\s+", text)
    return [piece for word in words for piece in (chop_cells(word, width) if cell_len(word) > width else [word])]
