"""The report docs/accuracy.md: estimates beside end-to-end latencies, and the promises about them."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

from benchmarks.promises import Promise

TITLES = {
    "table1": "The fifty models of the paper",
    "gluon": "The Gluon zoo",
    "onnx": "Today's ONNX models",
    "made-up": "Networks of random structure",
    "other": "Networks for words, speech and tables",
}
# The largest mean error, the limit of a single error, and the least share of models within it.
PROMISES = {"table1": (0.02, 0.06, 1.0), **dict.fromkeys(("gluon", "onnx", "made-up", "other"), (0.03, 0.05, 0.8))}
HELD = 0.85


class Place(NamedTuple):
    """What a section of the report is about."""

    group: str
    level: str
    runtime: str
    batch: int
    system: str


@dataclass(frozen=True)
class Figure:
    """The estimate and the latency of one network."""

    group: str
    model: str
    # The number of models that are this network.
    models: int
    # What the command named: the model, the framework, and the number of threads; None: the usual.
    asked: str
    runtime: str
    framework: str | None
    threads: int | None
    batch: int
    level: str
    system: str
    method: str
    estimate_ms: float
    low_ms: float
    high_ms: float
    measured_ms: float
    # The network is its own carrier, so that both latencies are measured in the same way.
    own_carrier: bool
    # The seconds that the command took.
    seconds: float

    @property
    def place(self) -> tuple[Place, str]:
        """The section that it belongs to, and its row."""
        return Place(self.group, self.level, self.runtime, self.batch, self.system), self.asked

    @property
    def error(self) -> float:
        return self.estimate_ms / self.measured_ms - 1

    @property
    def holds(self) -> bool:
        """True if the interval holds the measured latency."""
        return self.low_ms <= self.measured_ms <= self.high_ms

    def answers(self, model: str, framework: str | None, threads: int | None, batch: int, level: str) -> bool:
        """Return true if a command with these options gave it."""
        name = model if model.startswith("table1") else Path(model).name
        return (self.asked, self.framework, self.threads, self.batch, self.level) == (
            name,
            framework,
            threads,
            batch,
            level,
        )


def report(figures: Sequence[Figure]) -> Iterator[str]:
    """Yield the lines of the report."""
    yield "# Accuracy"
    yield ""
    yield "Estimates beside end-to-end latencies, written by `python -m benchmarks.accuracy` from"
    yield "[accuracy.json](accuracy.json). Each network was measured by `dlbricks run MODEL --end-to-end` with an empty"
    yield "store. [Measuring](measuring.md) tells how. A network that is its own carrier is an easy case: both"
    yield "latencies are those of the whole network. Older figures are in [accuracy of alone](accuracy-alone.md)."
    yield ""
    sections = [
        (place, list(those))
        for place, those in groupby(sorted(figures, key=lambda it: it.place), key=lambda it: it.place[0])
    ]
    yield (
        "| networks | runtime | batch | level | system | number | own carriers | mean error | without own carriers "
        "| worst | within 5 % | interval holds | seconds each |"
    )
    yield "|---|---|--:|---|---|--:|--:|--:|--:|--:|--:|--:|--:|"
    for place, those in sections:
        yield summary(place, those)
    yield ""
    yield "| of | promised | found | |"
    yield "|---|---|---|---|"
    for place, those in sections:
        for it in promises(place, those):
            yield f"| {title(place)} | {it.what} {it.wanted} | {it.found} | {'kept' if it.kept else '**missed**'} |"
    yield ""
    for place, those in sections:
        yield f"## {title(place)}"
        yield ""
        yield f"`{place.system}`, method {', '.join(sorted({it.method for it in those}))}"
        yield ""
        yield "| network | models | estimate ms | 95 % interval | end to end ms | error |"
        yield "|---|--:|--:|--:|--:|--:|"
        for figure in those:
            interval = f"{figure.low_ms:.4g} to {figure.high_ms:.4g}"
            name = f"{figure.model}{' (own carrier)' if figure.own_carrier else ''}"
            yield (
                f"| {name} | {figure.models} | {figure.estimate_ms:.4g} | {interval} | {figure.measured_ms:.4g} "
                f"| {figure.error:+.1%} |"
            )
        yield ""


def title(place: Place) -> str:
    """Return the heading of a section."""
    batch = "" if place.batch == 1 else f", batch {place.batch}"
    return f"{TITLES[place.group]}, {place.runtime}{batch}, {place.level}"


def summary(place: Place, figures: Sequence[Figure]) -> str:
    """Return the row of a section in the first table."""
    others = [it for it in figures if not it.own_carrier]
    without = f"{mean_error(others):.1%}" if others else ""
    held = sum(it.holds for it in figures) / len(figures)
    seconds = math.fsum(it.seconds for it in figures) / len(figures)
    return (
        f"| {TITLES[place.group]} | {place.runtime} | {place.batch} | {place.level} | `{place.system}` "
        f"| {len(figures)} | {len(figures) - len(others)} | {mean_error(figures):.1%} | {without} "
        f"| {worst(figures):+.1%} | {within(0.05, figures):.0%} | {held:.0%} | {seconds:.0f} |"
    )


def promises(place: Place, figures: Sequence[Figure]) -> Iterator[Promise]:
    """Yield what was promised of a group, and what was found."""
    if place.group not in PROMISES:
        return
    mean, limit, share = PROMISES[place.group]
    found, near = mean_error(figures), within(limit, figures)
    yield Promise("mean error", f"at most {mean:.0%}", f"{found:.1%}", found <= mean)
    yield Promise(f"within {limit:.0%}", f"at least {share:.0%}", f"{near:.0%}", near >= share)
    held = sum(it.holds for it in figures) / len(figures)
    yield Promise("interval holds", f"at least {HELD:.0%}", f"{held:.0%}", held >= HELD)


def mean_error(figures: Sequence[Figure]) -> float:
    """Return the mean of the absolute errors."""
    return math.fsum(abs(it.error) for it in figures) / len(figures)


def worst(figures: Sequence[Figure]) -> float:
    """Return the largest error, with its sign."""
    return max((it.error for it in figures), key=abs)


def within(limit: float, figures: Sequence[Figure]) -> float:
    """Return the share of networks whose error is no larger."""
    return sum(abs(it.error) <= limit for it in figures) / len(figures)
