"""Compare sides, and make the page of the comparison."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path

from dlbricks_tui.models.content import without_cycle_search
from dlbricks_tui.report.comparing.changes import Comparison, Group, compare, methods_of
from dlbricks_tui.report.comparing.columns import (
    SideBySide,
    hosts_of,
    hosts_section,
    shown_results,
    versions_of,
    versions_section,
)
from dlbricks_tui.report.comparing.facts import SideFact, facts_of, facts_section
from dlbricks_tui.report.comparing.regressions import regressions_section
from dlbricks_tui.report.comparing.sides import ComparisonError, Found, Side
from dlbricks_tui.report.page import Heading
from dlbricks_tui.report.writing import Report, written

_TITLE = "Results side by side"
_ABOUT_FILES = "Rows of changes have the ids of the results behind them; `dlbricks results show ID` shows a result."


@dataclass(frozen=True, slots=True)
class ComparedSides:
    """Sides with the facts about them, the changes from the first to each other one, and hosts and versions."""

    sides: tuple[Side, ...]
    facts: tuple[SideFact, ...]
    comparisons: tuple[Comparison, ...]
    hosts: SideBySide | None
    versions: tuple[SideBySide, ...]
    # Estimates of timed models in ms, by the ids of their results.
    estimates: Mapping[str, float]


@without_cycle_search()
def compare_sides(sides: Sequence[Side], estimate: Callable[[Found], float | None] = lambda _: None) -> ComparedSides:
    """Compare the first side with each other one; raise ComparisonError if two are the same or have other methods.

    `estimate` returns the estimate of a timed model; None if there is none.
    """
    groups = [Group(it.name, it.results, it.contents) for it in sides]
    _refuse_equal(sides)
    first, *others = groups
    for other in others:
        if not methods_of(first) & methods_of(other):
            raise ComparisonError(
                f"{first.name} was measured by {_listed(first)}, and {other.name} by {_listed(other)}: results of "
                "different methods are not compared; measure one of them again by the method of the other"
            )
    comparisons = [compare(first, it) for it in others]
    hosts, versions = hosts_of(sides, groups), versions_of(groups)
    shown = {it.id: it for found in (*([hosts] if hosts else []), *versions) for it in shown_results(found)}
    estimates = {name: value for name, it in shown.items() if (value := estimate(it)) is not None}
    return ComparedSides(tuple(sides), facts_of(sides), tuple(comparisons), hosts, tuple(versions), estimates)


def make_comparison(compared: ComparedSides, folder: Path) -> Report:
    """Draw the figures of a comparison and write its page into a folder."""
    sections = (
        facts_section(compared.sides, compared.facts),
        regressions_section(compared.comparisons),
        hosts_section(compared.hosts, compared.estimates),
        versions_section(compared.versions, compared.estimates),
    )
    lead = " · ".join(it.name for it in compared.sides)
    return written(folder, Heading(_TITLE, (lead,), _ABOUT_FILES), None, sections)


def _refuse_equal(sides: Sequence[Side]) -> None:
    known: dict[str, Side] = {}
    for side in sides:
        digest = side.digest
        if digest in known:
            raise ComparisonError(f"{known[digest].name} and {side.name} have the same results: name different ones")
        known[digest] = side


def _listed(group: Group) -> str:
    return "method " + ", ".join(sorted(methods_of(group)))
