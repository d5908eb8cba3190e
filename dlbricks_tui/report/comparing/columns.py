"""The sections of hosts and of versions: the latencies of models side by side, relative to the first."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

from dlbricks_tui.report.comparing.changes import Comparison, Group, Mean, Pair, compare, mean_of, methods_of, regrouped
from dlbricks_tui.report.comparing.facts import system_in_words
from dlbricks_tui.report.comparing.picture import Dot, DotSeries, picture
from dlbricks_tui.report.comparing.regressions import labels_of, mean_words
from dlbricks_tui.report.comparing.sides import Execution, Found, Side, Subject, executions_of
from dlbricks_tui.report.drawing import series_style
from dlbricks_tui.report.exhibits import Cell, Exhibit, Section, table
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.wording.numbers import counted, names_of

_MOST_DRAWN = 60
_MOST_ROWS = 200
_MOST_NAMED = 10
_SPREAD = 0.5
_CELLS = 6


@dataclass(frozen=True, slots=True)
class Column:
    """A group of results, compared with the first group; None for the first one."""

    group: Group
    compared: Comparison | None
    mean: Mean | None


class Row(NamedTuple):
    """A model in an execution, and its pair in each column after the first; None where it has no result."""

    model: str
    execution: Execution
    pairs: list[Pair | None]


@dataclass(frozen=True, slots=True)
class SideBySide:
    """Groups of results by one circumstance, such as the system, with what the circumstance is called."""

    what: str
    columns: tuple[Column, ...]

    @property
    def rows(self) -> list[Row]:
        """The models in the order of their names."""
        found: dict[tuple[str, str, Subject], Row] = {}
        later = self.columns[1:]
        for number, column in enumerate(later):
            for pair in column.compared.models if column.compared else ():
                one = pair.first[-1]
                key = one.name, one.execution.in_words, one.subject
                found.setdefault(key, Row(one.name, one.execution, [None] * len(later))).pairs[number] = pair
        return [row for _, row in sorted(found.items(), key=lambda it: str(it[0]))]


def side_by_side(what: str, groups: Sequence[Group], label: Callable[[Found], str]) -> SideBySide | None:
    """Return the groups of results of one label each, compared with the first; None if there is one only."""
    held = regrouped(groups, label)
    if len(held) < 2:
        return None
    first, *others = held
    compared = [compare(first, it, bricks=False) for it in others]
    columns = [Column(it.second, it, mean_of(it.models)) for it in compared]
    return SideBySide(what, (Column(first, None, None), *columns))


def hosts_of(sides: Sequence[Side], groups: Sequence[Group]) -> SideBySide | None:
    """Return the systems side by side; None for one system."""
    names = {system: system_in_words(side, system) for side in sides for system in side.systems}
    return side_by_side("system", groups, lambda it: names[it.execution.system])


def versions_of(groups: Sequence[Group]) -> list[SideBySide]:
    """Return the frameworks, the versions of each, and those of dlbricks side by side, wherever there are several."""
    frameworks = sorted({it.framework for group in groups for it in executions_of(group.results)})
    found = [side_by_side("framework", groups, lambda it: _title(it.execution.framework))]
    found += [side_by_side(f"version of {_title(it)}", groups, partial(_version_of, it)) for it in frameworks]
    found += [side_by_side("version of dlbricks", groups, lambda it: it.release and f"dlbricks {it.release}")]
    return [it for it in found if it is not None]


def _version_of(framework: str, it: Found) -> str:
    """Return the framework with its version; empty for a result of another framework."""
    return f"{_title(framework)} {it.execution.version}" if it.execution.framework == framework else ""


def shown_results(found: SideBySide) -> Iterator[Found]:
    """Yield the timed models of the picture, which have estimates too."""
    for row in found.rows[:_MOST_DRAWN]:
        for pair in row.pairs:
            if pair is not None:
                yield pair.first[-1]
                yield pair.second[-1]


def hosts_section(hosts: SideBySide | None, estimates: Mapping[str, float]) -> Section:
    """Return the section of the systems side by side."""
    return _section(
        "Which host is how fast?",
        "hosts",
        "The end-to-end latency of each model on each system, over that on the first, in the same execution. A system "
        "counts with the results of the first side that has it.",
        [] if hosts is None else [hosts],
        "All results are of one system.",
        estimates,
    )


def versions_section(versions: Sequence[SideBySide], estimates: Mapping[str, float]) -> Section:
    """Return the section of the versions side by side."""
    return _section(
        "Which version is how fast?",
        "versions",
        "The end-to-end latency of each model by framework, by the version of each framework, and by the version of "
        "dlbricks, over that by the first one, in the same execution.",
        versions,
        "All results are of one version of one framework, as far as they tell.",
        estimates,
    )


def _section(
    heading: str,
    anchor: str,
    explanation: str,
    found: Sequence[SideBySide],
    nothing: str,
    estimates: Mapping[str, float],
) -> Section:
    answers = [line for it in found for line in _answers(it)]
    return Section(
        heading,
        anchor,
        explanation,
        tuple([_exhibit(anchor, number, it, estimates) for number, it in enumerate(found, 1) if it.rows]),
        missing=tuple([line for it in found for line in (*_missing(it), *_unestimated(it, estimates))]),
        answer=" ".join(answers) or nothing,
    )


def _answers(found: SideBySide) -> Iterator[str]:
    first = found.columns[0].group.name
    for column in found.columns[1:]:
        if column.mean is None:
            yield f"{column.group.name} has no model to compare with {first}."
        else:
            yield (
                f"{column.group.name} takes {mean_words(column.mean)}, as {first} (geometric mean of "
                f"{counted(column.mean.of, 'result')})."
            )


def _exhibit(anchor: str, number: int, found: SideBySide, estimates: Mapping[str, float]) -> Exhibit:
    name, rows, first = f"figure-{anchor}-{number}", found.rows, found.columns[0].group.name
    title = f"By {found.what}"
    drawn = rows[:_MOST_DRAWN]
    labels = labels_of([(it.model, it.execution) for it in drawn])
    later = found.columns[1:]
    series = [
        DotSeries(
            column.group.name, *series_style(number), tuple(_dots(number, len(later), [it.pairs for it in drawn]))
        )
        for number, column in enumerate(later)
    ]
    about = f"A row for each of {len(drawn)} models, with the latency over that of {first} and its 95 % interval."
    svg = picture(name, title, about, labels, series, f"latency over that of {first}")
    columns: list[str] = ["model", "execution", f"{first} ms", f"{first} estimate ms"]
    details: list[str] = []
    for column in later:
        own = column.group.name
        columns += [f"{own} ms", f"{own} estimate ms", f"{own} ratio", f"{own} low", f"{own} high", f"{own} verdict"]
        details += [f"{own} low", f"{own} high"]
    means = [cell for it in later for cell in _mean_cells(it.mean)]
    numbers = table(
        columns,
        [
            (
                it.model,
                it.execution.in_words,
                *_first_cells(it.pairs, estimates),
                *(cell for pair in it.pairs for cell in _cells(pair, estimates)),
            )
            for it in rows
        ],
        details,
        ("geometric mean", None, None, None, *means),
        _MOST_ROWS,
    )
    cut = f" The picture has the first {len(drawn)} of {len(rows):,} rows." if len(drawn) < len(rows) else ""
    estimated = sum(it.id in estimates for it in shown_results(found))
    told = f" Estimates are from bricks, for models of the library: {estimated:,} of them." if estimated else ""
    return Exhibit(name, title, f"{counted(len(rows), 'row')}, relative to {first}.{cut}{told}", numbers, svg)


def _dots(number: int, of: int, rows: Sequence[Sequence[Pair | None]]) -> Iterator[Dot]:
    # Marks of several columns stand a little below one another.
    shift = _SPREAD * ((number + 0.5) / of - 0.5)
    for row, held in enumerate(rows):
        pair = held[number]
        if pair is not None:
            yield Dot(row + shift, pair.ratio, 1.0 + pair.change.low, 1.0 + pair.change.high)


def _first_cells(held: Sequence[Pair | None], estimates: Mapping[str, float]) -> tuple[Cell, Cell]:
    pair = next(it for it in held if it is not None)
    return pair.change.was_ms, estimates.get(pair.first[-1].id)


def _cells(pair: Pair | None, estimates: Mapping[str, float]) -> tuple[Cell, ...]:
    if pair is None:
        return (None,) * _CELLS
    change, estimate_ms = pair.change, estimates.get(pair.second[-1].id)
    return change.is_ms, estimate_ms, pair.ratio, 1.0 + change.low, 1.0 + change.high, change.verdict.value


def _mean_cells(mean: Mean | None) -> tuple[Cell, ...]:
    return (None,) * _CELLS if mean is None else (None, None, mean.ratio, mean.low, mean.high, None)


def _missing(found: SideBySide) -> Iterator[str]:
    first = found.columns[0].group
    for column in found.columns[1:]:
        if not methods_of(first) & methods_of(column.group):
            yield f"{column.group.name} was measured by another method than {first.name}, and is not compared."
        elif column.compared is not None:
            for place, (own, other) in enumerate(((first, column.group), (column.group, first))):
                names = list(dict.fromkeys(it.name for it in column.compared.alone if it.of == place))
                if names:
                    models = f"{counted(len(names), 'model')} ({names_of(names, _MOST_NAMED)})"
                    yield f"Of {own.name} and not compared with {other.name}: {models}."


def _unestimated(found: SideBySide, estimates: Mapping[str, float]) -> Iterator[str]:
    lacking = list(dict.fromkeys(it.name for it in shown_results(found) if it.id not in estimates))
    if lacking:
        yield (
            f"No estimate by {found.what} of {counted(len(lacking), 'model')} ({names_of(lacking, _MOST_NAMED)}): they "
            "are not in the library, or not all of their bricks are among the results."
        )


def _title(framework: str) -> str:
    return TRAITS[framework].title if framework in TRAITS else framework
