"""Bars as text, the bins of histograms, and tables as Markdown, CSV and JSON."""

from __future__ import annotations

import csv
import io
import json
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import NamedTuple

from dlbricks_tui.printable import printable

# Parts of a cell, so that a bar ends where its number says.
_PARTS = "▏▎▍▌▋▊▉"


class Bin(NamedTuple):
    """A range of latencies and the number of samples in it; a `tail` holds all slower samples too."""

    low_ms: float
    high_ms: float
    samples: int
    tail: bool = False


def bins(samples_ms: Sequence[float], most: int = 12) -> tuple[Bin, ...]:
    """Return at most `most` bins: equal widths by the Freedman-Diaconis rule, then one tail of outliers."""
    # Loaded here: bars need no numpy.
    import numpy as np

    samples = np.sort(np.asarray(samples_ms, dtype=np.float64))
    if not samples.size:
        return ()
    quarter, three_quarters = np.quantile(samples, (0.25, 0.75))
    middle = float(three_quarters - quarter)
    # A first run ten times as slow as the others would leave all of them in one bin.
    fence = float(three_quarters) + 3.0 * middle
    body = samples[samples <= fence]
    low, high = float(body[0]), float(body[-1])
    if high > low:
        # Where half of the samples are equal the rule asks for bins without end.
        wanted = (high - low) * float(np.cbrt(samples.size)) / (2.0 * middle) if middle else most
        counts, edges = np.histogram(body, bins=int(min(most - 1, np.ceil(wanted))))
        found = [
            Bin(float(start), float(end), int(count))
            for start, end, count in zip(edges, edges[1:], counts, strict=False)
        ]
    else:
        found = [Bin(low, high, body.size)]
    if body.size < samples.size:
        found.append(Bin(float(samples[body.size]), float(samples[-1]), samples.size - body.size, tail=True))
    return tuple(found)


def bar(share: float, width: int, full: str = "█", parts: str = _PARTS) -> str:
    """Return a bar of at most `width` cells; any share above zero is visible."""
    steps = len(parts) + 1
    filled = round(min(1.0, max(0.0, share)) * width * steps)
    if share > 0:
        filled = max(1, filled)
    whole, part = divmod(filled, steps)
    return full * whole + (parts[part - 1] if part else "")


def divided(found: Sequence[Bin], samples_ms: Sequence[float], bound_ms: float) -> tuple[Bin, ...]:
    """Return the bins with the one around a bound divided in two, so that each is on one side of it."""
    parts: list[Bin] = []
    above = [it for it in samples_ms if it > bound_ms]
    for place, each in enumerate(found):
        if not each.low_ms <= bound_ms < each.high_ms:
            parts.append(each)
            continue
        slower = len(above) - sum(it.samples for it in found[place + 1 :])
        if each.samples > slower:
            parts.append(Bin(each.low_ms, bound_ms, each.samples - slower, each.tail))
        if slower:
            parts.append(Bin(min(above), each.high_ms, slower, each.tail))
    return tuple(parts)


class TableFormat(Enum):
    """The formats in which a table is copied; the value ends the names of files."""

    MARKDOWN = "md"
    CSV = "csv"
    JSON = "json"


@dataclass(frozen=True, slots=True)
class TextTable:
    """The titles of the columns, and a text for each of them in each row."""

    titles: tuple[str, ...]
    # Long tables make their rows when these are read, which happens once.
    rows: Iterable[Sequence[str]]


def written(table: TextTable, how: TableFormat) -> str:
    """Return the table in a format, with control codes escaped."""
    rows = [[printable(cell) for cell in row] for row in table.rows]
    titles: list[str] = []
    for title in map(printable, table.titles):
        # Repeated titles get numbers: JSON would keep only the last of equal keys.
        numbered = (f"{title} {number}" for number in range(2, len(table.titles) + 1))
        titles.append(next((it for it in numbered if it not in titles), title) if title in titles else title)
    if how is TableFormat.MARKDOWN:
        # `|` ends a cell, also in code spans.
        cells = [[cell.replace("\\", "\\\\").replace("|", "\\|") for cell in row] for row in (titles, *rows)]
        head, *body = (f"| {' | '.join(row)} |" for row in cells)
        return "\n".join([head, f"|{'---|' * len(titles)}", *body]) + "\n"
    if how is TableFormat.JSON:
        return json.dumps([dict(zip(titles, row, strict=True)) for row in rows], indent=2, ensure_ascii=False) + "\n"
    file = io.StringIO()
    csv.writer(file, lineterminator="\n").writerows([titles, *rows])
    return file.getvalue()
