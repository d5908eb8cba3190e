"""Tables of systems, and of models on systems."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import TYPE_CHECKING

from rich.text import Text

from dlbricks_tui.cli.drawing import Pen, name_cell, pen_for, plain_table
from dlbricks_tui.estimate.comparison import Candidate, cheapest, names_of, quickest
from dlbricks_tui.printable import printable
from dlbricks_tui.wording.numbers import precise_milliseconds

if TYPE_CHECKING:
    from rich.console import Console, RenderableType
    from rich.table import Table

    from dlbricks_tui.estimate.prices import Prices
    from dlbricks_tui.store.queries import Combination
    from dlbricks_tui.store.records import System

# The width of the other columns, with short names.
_BESIDE_BARS = 66
_GIBIBYTE = 1 << 30


def systems_view(systems: Mapping[str, System], measured: Sequence[Combination], prices: Prices) -> RenderableType:
    """Return the systems, with the numbers of their results."""
    table = plain_table("SYSTEM", "PROCESSOR", "CORES", "MEMORY", "PRICE", "BRICKS", "MODELS")
    table.columns[1].justify = "left"
    for system in systems.values():
        own = [it for it in measured if it.system == system.id]
        price = prices.of(names_of(system.id, systems))
        table.add_row(
            name_cell(system.id),
            Text(printable(system.cpu or "-")),
            str(system.cores or "-"),
            f"{system.memory_bytes / _GIBIBYTE:.0f} GiB" if system.memory_bytes else "-",
            "-" if price is None else f"$ {price:g}/h",
            str(sum(it.pairs for it in own)),
            str(max((it.models for it in own), default=0)),
        )
    return table


def comparison_view(ranked: Mapping[str, Sequence[Candidate]], console: Console) -> Iterator[RenderableType]:
    """Yield one model on several systems, several models on one system, or a grid of both."""
    pen = pen_for(console, _BESIDE_BARS)
    systems = dict.fromkeys(it.estimate.way.system for found in ranked.values() for it in found)
    if len(ranked) == 1:
        ((model, found),) = ranked.items()
        yield Text(printable(model), style="bold")
        yield _list("SYSTEM", [(it.estimate.way.system, it) for it in found], pen)
    elif len(systems) == 1:
        yield Text(printable(next(iter(systems))), style="bold")
        everything = [(model, it) for model, found in ranked.items() for it in found]
        yield _list("MODEL", sorted(everything, key=lambda pair: pair[1].latency_ms), pen)
    else:
        yield _grid(ranked, tuple(systems))


def _list(heading: str, found: Sequence[tuple[str, Candidate]], pen: Pen) -> Table:
    table = plain_table(heading, "LATENCY", "", "$/MILLION", "REMARKS")
    table.columns[-1].justify = "left"
    longest_ms = max(it.latency_ms for _, it in found) or 1.0
    best, thrifty = quickest(it for _, it in found), cheapest(it for _, it in found)
    for name, it in found:
        remarks = ["quickest"] * (it is best) + ["cheapest"] * (it is thrifty) + ["incomplete"] * (not it.complete)
        table.add_row(name_cell(name), _latency(it), pen.bar(it.latency_ms / longest_ms), _cost(it), ", ".join(remarks))
    return table


def _grid(ranked: Mapping[str, Sequence[Candidate]], systems: Sequence[str]) -> Table:
    table = plain_table("MODEL", *systems, "QUICKEST", "CHEAPEST")
    for column in table.columns[-2:]:
        column.justify = "left"
    for model, found in ranked.items():
        by_system = {it.estimate.way.system: it for it in found}
        latencies = [_latency(by_system[system]) if system in by_system else "-" for system in systems]
        table.add_row(name_cell(model), *latencies, _system(quickest(found)), _system(cheapest(found)))
    return table


def _latency(it: Candidate) -> str:
    return f"{'' if it.complete else 'part: '}{precise_milliseconds(it.latency_ms)} ms"


def _cost(it: Candidate) -> str:
    return "-" if it.dollars_per_million is None else f"{it.dollars_per_million:.2f}"


def _system(found: Candidate | None) -> str:
    return "-" if found is None else found.estimate.way.system
