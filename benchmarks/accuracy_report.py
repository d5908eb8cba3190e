"""The page docs/accuracy.md: a table of estimates beside end-to-end latencies, from the figures in docs/accuracy."""

import csv
import math
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import asdict, dataclass, fields
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

TITLES = {
    "table1": "The fifty of the paper",
    "gluon": "The Gluon zoo",
    "onnx": "Today's ONNX models",
    "made-up": "Random networks",
    "gluoncv": "GluonCV",
    "other": "Words, speech, tables",
}
HOSTS = {
    "amd-epyc-2c-c9a16c7c": "AMD-512",
    "amd-epyc-2c-11afb085": "AMD",
    "intel-xeon-2c-78e6b1a6": "Intel",
}
# The largest mean error, the limit of a single error, and the least share of models within it.
_OF_THE_FIFTY, _OF_OTHERS = (0.02, 0.06, 1.0), (0.03, 0.05, 0.8)
HELD = 0.85
BEGIN, END = "<!-- written by python -m benchmarks.accuracy --publish -->", "<!-- end of the table -->"
_DIGITS = 6


class Place(NamedTuple):
    """The row of the table that a figure belongs to."""

    group: str
    level: str
    runtime: str
    batch: int
    system: str


@dataclass(frozen=True)
class Figure:
    """The estimate of a model beside its end-to-end latency, with the command that measured both."""

    group: str
    model: str
    level: str
    system: str
    estimate_ms: float
    low_ms: float
    high_ms: float
    measured_ms: float
    # The number of models that are this network.
    models: int
    # What the command named: the model, the framework, and the number of threads; None: the usual.
    asked: str
    runtime: str
    framework: str | None
    threads: int | None
    batch: int
    method: str
    # The network is its own carrier, so that both latencies are measured in the same way.
    own_carrier: bool
    # The seconds that the command took.
    seconds: float

    @property
    def error(self) -> float:
        return self.estimate_ms / self.measured_ms - 1

    @property
    def holds(self) -> bool:
        """True if the interval holds the measured latency."""
        return self.low_ms <= self.measured_ms <= self.high_ms

    @property
    def place(self) -> tuple[Place, str]:
        """The row of the table that it belongs to, and its network."""
        return Place(self.group, self.level, self.runtime, self.batch, self.system), self.asked

    def answers(self, model: str, framework: str | None, threads: int | None, batch: int, level: str) -> bool:
        """Return true if a command with these options gave it."""
        name = model if model.startswith("table1") else Path(model).name
        asked = (self.asked, self.framework, self.threads, self.batch, self.level)
        return asked == (name, framework, threads, batch, level)


def read_figures(path: Path) -> list[Figure]:
    """Return the figures in a CSV file; none if it does not exist."""
    if not path.exists():
        return []
    with path.open(newline="", encoding="utf-8") as file:
        return [
            Figure(**{it.name: _value(it.type, row[it.name]) for it in fields(Figure)}) for row in csv.DictReader(file)
        ]


def write_figures(path: Path, figures: Sequence[Figure]) -> None:
    """Write figures as a CSV file."""
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="", encoding="utf-8") as file:
        writer = csv.writer(file, lineterminator="\n")
        writer.writerow([it.name for it in fields(figures[0])])
        writer.writerows([_cell(it) for it in asdict(figure).values()] for figure in figures)


def with_table(page: str, figures: Sequence[Figure]) -> str:
    """Return the page with its table written anew."""
    head, _, rest = page.partition(BEGIN)
    _, _, tail = rest.partition(END)
    return f"{head}{BEGIN}\n\n" + "\n".join(accuracy_table(figures)) + f"\n\n{END}{tail}"


def accuracy_table(figures: Iterable[Figure]) -> Iterator[str]:
    """Yield the lines of the table: one row for each group, host and execution."""
    heads = (
        "networks | runtime | batch | host | number | mean error | but own carriers | worst | within 5 % | in interval"
    )
    yield f"| {heads} |"
    yield "|---|---|--:|---|--:|--:|--:|--:|--:|--:|"
    ordered = sorted(figures, key=lambda it: it.place)
    for place, those in groupby(ordered, key=lambda it: it.place[0]):
        found = list(those)
        others = [it for it in found if not it.own_carrier]
        runtime = f"{place.runtime.split()[0]}{_threads(found[0].threads)}"
        yield (
            f"| {TITLES[place.group]} | {runtime} | {place.batch} | {HOSTS.get(place.system, place.system)} "
            f"| {len(found)} | {_mean_cell(place.group, found)} "
            f"| {f'{mean_error(others):.1%} of {len(others)}' if others else ''} | {worst(found):+.1%} "
            f"| {_within_cell(place.group, found)} | {_held_cell(found)} |"
        )


def mean_error(figures: Sequence[Figure]) -> float:
    """Return the mean of the absolute errors."""
    return math.fsum(abs(it.error) for it in figures) / len(figures)


def worst(figures: Sequence[Figure]) -> float:
    """Return the largest error, with its sign."""
    return max((it.error for it in figures), key=abs)


def within(limit: float, figures: Sequence[Figure]) -> float:
    """Return the share of models whose error is no larger."""
    return sum(abs(it.error) <= limit for it in figures) / len(figures)


def _mean_cell(group: str, figures: Sequence[Figure]) -> str:
    found = mean_error(figures)
    return _marked(f"{found:.1%}", found <= _promised(group)[0])


def _within_cell(group: str, figures: Sequence[Figure]) -> str:
    _, limit, share = _promised(group)
    return _marked(f"{within(0.05, figures):.0%}", within(limit, figures) >= share)


def _held_cell(figures: Sequence[Figure]) -> str:
    held = sum(it.holds for it in figures) / len(figures)
    return _marked(f"{held:.0%}", held >= HELD)


def _threads(threads: int | None) -> str:
    return "" if threads is None else f", {threads} thread{'s' if threads > 1 else ''}"


def _promised(group: str) -> tuple[float, float, float]:
    return _OF_THE_FIFTY if group == "table1" else _OF_OTHERS


def _marked(text: str, kept: bool) -> str:
    return text if kept else f"**{text}**"


def _cell(value: Any) -> str:
    if isinstance(value, float):
        return f"{value:.{_DIGITS}g}"
    return "" if value is None else str(value)


def _value(kind: Any, text: str) -> Any:
    """Return the value of a field in a CSV file, whose type may also be a text."""
    name = kind if isinstance(kind, str) else getattr(kind, "__name__", str(kind))
    if "None" in name and not text:
        return None
    if name == "bool":
        return {"True": True, "False": False}[text]
    return float(text) if name == "float" else int(text) if name.startswith("int") else text
