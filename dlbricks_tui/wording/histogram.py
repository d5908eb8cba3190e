"""Histograms of samples, drawn with characters."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from dlbricks_tui.wording.numbers import precise_milliseconds

# Eighths of a cell, so that a bar ends where its number says.
_EIGHTHS = "▏▎▍▌▋▊▉█"


class Bin(NamedTuple):
    """A range of latencies and the number of samples in it; a `tail` holds all slower samples too."""

    low_ms: float
    high_ms: float
    samples: int
    tail: bool = False


def bins(samples_ms: Sequence[float], most: int = 12) -> tuple[Bin, ...]:
    """Return at most `most` bins: equal widths by the Freedman-Diaconis rule, then one tail of outliers."""
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


def bar(share: float, width: int) -> str:
    """Return a bar of at most `width` cells; any share above zero is visible."""
    eighths = round(max(0.0, min(1.0, share)) * width * 8)
    if not eighths:
        return _EIGHTHS[0] if share > 0 else ""
    full, rest = divmod(eighths, 8)
    return _EIGHTHS[-1] * full + (_EIGHTHS[rest - 1] if rest else "")


def histogram_lines(samples_ms: Sequence[float], width: int = 60, most: int = 12) -> list[str]:
    """Return a line per bin: its start, a bar, its number of samples; `>=` marks the tail."""
    found = bins(samples_ms, most)
    if not found:
        return []
    tallest = max(each.samples for each in found)
    starts = [(">= " if each.tail else "") + precise_milliseconds(each.low_ms) + " ms" for each in found]
    counts = [str(each.samples) for each in found]
    start_width, count_width = max(map(len, starts)), max(map(len, counts))
    room = max(1, width - start_width - count_width - 2)
    return [
        f"{start:>{start_width}} {bar(each.samples / tallest, room):<{room}} {count:>{count_width}}"
        for start, count, each in zip(starts, counts, found, strict=True)
    ]
