"""Systems or versions side by side: the latencies of models, relative to the first one."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial

from dlbricks_tui.answers.comparisons.changes import (
    GroupComparison,
    ResultPair,
    compare,
    not_compared_lines,
    overall,
    regrouped,
)
from dlbricks_tui.answers.comparisons.side_facts import system_in_words
from dlbricks_tui.answers.comparisons.sides import Found, Side, Subject, executions_of
from dlbricks_tui.runtime.traits import runtime_title
from dlbricks_tui.store.change import Verdict

# Later rows have no estimates, which take long.
MOST_ESTIMATED = 60

EstimateOf = Callable[[Found], float | None]


@dataclass(frozen=True, slots=True)
class ComparedColumn:
    """A system or version, relative to the first one."""

    name: str
    ratio: float | None
    interval: tuple[float, float] | None
    models: int


@dataclass(frozen=True, slots=True)
class ComparedCell:
    """A model on a system or by a version, with its latency over that of the first one."""

    column: str
    ms: float
    estimate_ms: float | None
    ratio: float
    interval: tuple[float, float]
    verdict: Verdict


@dataclass(frozen=True, slots=True)
class ComparedRow:
    """A model in an execution on the first system or by the first version, and on each other one that has it."""

    model: str
    execution: str
    ms: float
    estimate_ms: float | None
    others: tuple[ComparedCell, ...]


@dataclass(frozen=True, slots=True)
class Columns:
    """Systems or versions side by side; the first one is what the others are relative to."""

    what: str
    first: str
    others: tuple[ComparedColumn, ...]
    models: tuple[ComparedRow, ...]
    # What is not compared.
    remarks: tuple[str, ...]


def hosts_of(sides: Sequence[Side], estimate: EstimateOf) -> Columns | None:
    """Return the systems side by side; None for one system."""
    names = {system: system_in_words(side, system) for side in sides for system in side.systems}
    return _side_by_side("system", sides, lambda it: names[it.execution.system], estimate)


def versions_of(sides: Sequence[Side], estimate: EstimateOf) -> Iterator[Columns]:
    """Yield the frameworks, the versions of each, and those of dlbricks side by side, wherever there are several."""
    frameworks = sorted({it.framework for side in sides for it in executions_of(side.results)})
    labels: dict[str, Callable[[Found], str]] = {
        "framework": lambda it: runtime_title(it.execution.framework),
        **{f"version of {runtime_title(it)}": partial(_version_of, it) for it in frameworks},
        "version of dlbricks": lambda it: it.release and f"dlbricks {it.release}",
    }
    for what, label in labels.items():
        found = _side_by_side(what, sides, label, estimate)
        if found is not None:
            yield found


def _version_of(framework: str, it: Found) -> str:
    """Return the framework with its version; empty for a result of another framework."""
    return f"{runtime_title(framework)} {it.execution.version}" if it.execution.framework == framework else ""


def _side_by_side(
    what: str, sides: Sequence[Side], label: Callable[[Found], str], estimate: EstimateOf
) -> Columns | None:
    """Return the results of each label, compared with those of the first one; None for one label."""
    held = regrouped(sides, label)
    if len(held) < 2:
        return None
    first, *others = held
    compared = [compare(first, it, bricks=False) for it in others]
    rows = [
        _row(pairs, estimate if place < MOST_ESTIMATED else lambda _: None)
        for place, pairs in enumerate(_by_model(compared))
    ]
    remarks = [line for it in compared for line in _remarks(it)]
    return Columns(what, first.name, tuple(map(_column, compared)), tuple(rows), tuple(remarks))


def _column(found: GroupComparison) -> ComparedColumn:
    change = overall(found.models)
    if change is None:
        return ComparedColumn(found.second.name, None, None, 0)
    return ComparedColumn(found.second.name, change.ratio, change.ratios, len(found.models))


def _by_model(compared: Iterable[GroupComparison]) -> list[Mapping[str, ResultPair]]:
    """Return the pairs of each model and execution by the column, in the order of the names."""
    found: dict[tuple[str, str, Subject], dict[str, ResultPair]] = {}
    for each in compared:
        for pair in each.models:
            one = pair.first[-1]
            found.setdefault((one.name, one.execution.in_words, one.subject), {})[each.second.name] = pair
    return [pairs for _, pairs in sorted(found.items(), key=lambda it: str(it[0]))]


def _row(pairs: Mapping[str, ResultPair], estimate: EstimateOf) -> ComparedRow:
    pair = next(iter(pairs.values()))
    one = pair.first[-1]
    cells = [
        ComparedCell(
            name,
            it.change.is_ms,
            estimate(it.second[-1]),
            it.change.ratio,
            it.change.ratios,
            it.change.verdict,
        )
        for name, it in pairs.items()
    ]
    return ComparedRow(one.name, one.execution.in_words, pair.change.was_ms, estimate(one), tuple(cells))


def _remarks(found: GroupComparison) -> Iterator[str]:
    """Yield what is not compared in a column."""
    first, second = found.first, found.second
    if first.methods & second.methods:
        yield from not_compared_lines(found, first.name, second.name)
    else:
        yield f"{second.name} was measured by another method than {first.name}, and is not compared."
