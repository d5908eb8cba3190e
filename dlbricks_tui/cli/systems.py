"""`dlbricks systems`: list the systems of the store, and compare them by latency and cost."""

import argparse
from collections import Counter
from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from rich.console import Console, RenderableType
from rich.table import Table
from rich.text import Text

from dlbricks_tui.cli.doctor import peaks_document
from dlbricks_tui.cli.drawing import Pen, name_cell, pen_for, plain_table
from dlbricks_tui.cli.options import (
    add_composition_options,
    add_cutting_options,
    add_models_argument,
    estimate_options_of,
)
from dlbricks_tui.cli.output import data_console, narrate, show, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_action, add_json_option, add_listing, add_repeatable
from dlbricks_tui.cli.store import open_estimator, open_store
from dlbricks_tui.estimate.comparison import (
    PRICES_FILE,
    Candidate,
    Prices,
    candidates,
    cheapest,
    names_of,
    quickest,
    read_prices,
    remarks_on,
)
from dlbricks_tui.estimate.selection import find_system
from dlbricks_tui.host.peaks import MEMORY
from dlbricks_tui.models.graph import Level
from dlbricks_tui.printable import printable
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.records import Peaks, System
from dlbricks_tui.store.selections import Combination, by_id, combinations
from dlbricks_tui.wording import numbers
from dlbricks_tui.wording.answers import combination_words, figure_text

# Names of more models than these are not listed.
_MOST_TOLD = 5
# The width of the other columns, with short names.
_BESIDE_BARS = 92


def register(parser: Parser) -> None:
    """Add the actions of `systems`; without one it lists."""
    actions = add_listing(parser, "list the systems", list_systems)
    comparing = add_action(
        actions, "compare", "compare the systems for each model, by latency and by cost", compare_systems, json=False
    )
    add_models_argument(comparing, many=True)
    add_cutting_options(comparing, level=Level.FUSED)
    # None leaves the level to the results of each system.
    comparing.set_defaults(level=None)
    about = "only this system, by its id, name or instance type"
    add_repeatable(comparing, "--system", "S", about, dest="systems")
    add_composition_options(comparing)
    add_json_option(comparing)


def list_systems(args: argparse.Namespace) -> int:
    """List the systems with their prices and the numbers of their results."""
    prices = read_prices(args.data.path)
    with open_store(args.data) as store:
        known = by_id(store.systems())
        results, peaks = store.select(order=()), store.peaks()
        measured = combinations(results)
        origins = Counter(zip(results.values("system"), results.values("origin"), strict=True))
    if args.json:
        write_json([_system_document(system, known, measured, prices, peaks, origins) for system in known.values()])
    elif known:
        show(_systems_table(known, measured, prices, peaks))
        for system in known:
            if imported := [f"{count:,} {origin}" for (of, origin), count in _of_others(origins) if of == system]:
                narrate(f"imported results of {system}: {', '.join(imported)}")
        narrate(f"you can change the prices in {args.data.path / PRICES_FILE}")
    else:
        narrate("no system has results yet: `dlbricks run MODEL` measures this one")
    return Status.DONE


def compare_systems(args: argparse.Namespace) -> int:
    """Rank the systems for each model, by the answer of each system."""
    # Loaded here: the list of systems needs no models.
    from dlbricks_tui.answers.opening import library

    prices = read_prices(args.data.path)
    sources = library(args.data).find_all(args.models)
    with open_estimator(estimate_options_of(args), args.data) as estimator:
        known = by_id(estimator.store.systems())
        wanted = [find_system(name, known) for name in args.systems] or list(known)
        estimates = estimator.on_systems(sources, wanted)
    ranked = {name: found for name, held in estimates.items() if (found := candidates(held, known, prices))}
    if args.json:
        write_json([document for found in ranked.values() for document in _documents(found)])
    elif ranked:
        show(*_comparison(ranked, data_console()))
    without = [source.name for source in sources if source.name not in ranked]
    if without:
        narrate(f"these systems have no results of {numbers.names_of(without, _MOST_TOLD)}")
    return Status.DONE_WITH_FAILURES if without else Status.DONE


def _system_document(
    system: System,
    known: Mapping[str, System],
    measured: Sequence[Combination],
    prices: Prices,
    peaks: Sequence[Peaks],
    origins: Mapping[tuple[str, str], int],
) -> dict[str, Any]:
    return {
        "system": system.id,
        "name": system.name,
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_bytes": system.memory_bytes,
        "instance_type": system.instance_type or None,
        "dollars_per_hour": prices.of(names_of(system.id, known)),
        "peaks": [peaks_document(it) for it in peaks if it.system == system.id],
        "results": [
            {
                "runtime": it.runtime,
                "level": it.level,
                "protocol": it.protocol,
                "bricks": it.pairs,
                "models": it.models,
            }
            for it in measured
            if it.system == system.id
        ],
        # The number of results by their origin: `own`, `unsigned`, or `signed by` somebody.
        "origins": {origin: count for (of, origin), count in sorted(origins.items()) if of == system.id},
    }


def _of_others(origins: Mapping[tuple[str, str], int]) -> list[tuple[tuple[str, str], int]]:
    """Return the origins of systems' results without the own ones."""
    return [(each, count) for each, count in sorted(origins.items()) if each[1] != OWN]


def _documents(found: Sequence[Candidate]) -> Iterator[dict[str, Any]]:
    best, thrifty = quickest(found), cheapest(found)
    for it in found:
        one, way, composed = it.estimate, it.estimate.way, it.estimate.estimate.composed
        yield {
            "model": one.estimate.model,
            "system": way.system,
            "runtime": way.runtime,
            "level": way.level,
            "granularity": one.estimate.cutting.granularity,
            "latency_ms": it.latency_ms,
            "interval_ms": (composed.interval.low_ms, composed.interval.high_ms) if composed else None,
            "complete": it.complete,
            "predicted_share": one.estimate.predicted_share,
            "measured_ms": one.end_to_end.value_ms if one.end_to_end else None,
            "dollars_per_hour": it.dollars_per_hour,
            "dollars_per_million": it.dollars_per_million,
            "quickest": it is best,
            "cheapest": it is thrifty,
        }


def _systems_table(
    known: Mapping[str, System], measured: Sequence[Combination], prices: Prices, peaks: Sequence[Peaks]
) -> Table:
    # Most stores have no peaks.
    speeds = ("GFLOP/S", "GB/S") if peaks else ()
    table = plain_table("SYSTEM", "PROCESSOR", "CORES", "MEMORY", *speeds, "PRICE", "BRICKS", "MODELS")
    table.columns[1].justify = "left"
    for system in known.values():
        own = [it for it in measured if it.system == system.id]
        table.add_row(
            name_cell(system.id),
            Text(printable(system.cpu or "-")),
            str(system.cores or "-"),
            numbers.gibibytes(system.memory_bytes),
            *(_highest_speeds([it for it in peaks if it.system == system.id]) if peaks else ()),
            numbers.price_per_hour(prices.of(names_of(system.id, known))),
            str(sum(it.pairs for it in own)),
            str(max((it.models for it in own), default=0)),
        )
    return table


def _highest_speeds(peaks: Sequence[Peaks]) -> tuple[str, str]:
    """Return the peaks of arithmetic and of reading memory, at the number of threads with the highest ones."""
    arithmetic = [value for it in peaks for _, value in it.arithmetic]
    memory = [value for it in peaks for level, value in it.bandwidth if level == MEMORY]
    return numbers.speed(max(arithmetic, default=None)), numbers.speed(max(memory, default=None))


def _comparison(ranked: Mapping[str, Sequence[Candidate]], console: Console) -> Iterator[RenderableType]:
    """Yield one model on several systems, several models on one system, or a grid of both."""
    pen = pen_for(console, _BESIDE_BARS)
    compared = dict.fromkeys(it.estimate.way.system for found in ranked.values() for it in found)
    if len(ranked) == 1:
        ((model, found),) = ranked.items()
        yield Text(printable(model), style="bold")
        yield _list("SYSTEM", [(it.estimate.way.system, it) for it in found], pen)
    elif len(compared) == 1:
        yield Text(printable(next(iter(compared))), style="bold")
        everything = [(model, it) for model, found in ranked.items() for it in found]
        yield _list("MODEL", sorted(everything, key=lambda pair: pair[1].latency_ms), pen)
    else:
        yield _grid(ranked, tuple(compared))


def _list(heading: str, found: Sequence[tuple[str, Candidate]], pen: Pen) -> Table:
    table = plain_table(heading, "LATENCY", "", "$/MILLION", "BY", "REMARKS")
    table.columns[-2].justify = table.columns[-1].justify = "left"
    longest_ms = max(it.latency_ms for _, it in found) or 1.0
    remarks = remarks_on([it for _, it in found])
    for (name, it), remark in zip(found, remarks, strict=True):
        cost = "-" if it.dollars_per_million is None else f"{it.dollars_per_million:.2f}"
        by = name_cell(combination_words(it.estimate))
        table.add_row(name_cell(name), _latency(it), pen.bar(it.latency_ms / longest_ms), cost, by, remark)
    return table


def _grid(ranked: Mapping[str, Sequence[Candidate]], compared: Sequence[str]) -> Table:
    table = plain_table("MODEL", *compared, "QUICKEST", "CHEAPEST")
    for column in table.columns[-2:]:
        column.justify = "left"
    for model, found in ranked.items():
        by_system = {it.estimate.way.system: it for it in found}
        latencies = [_latency(by_system[system]) if system in by_system else "-" for system in compared]
        table.add_row(name_cell(model), *latencies, _system(quickest(found)), _system(cheapest(found)))
    return table


def _latency(it: Candidate) -> str:
    found = it.estimate.estimate
    return figure_text(it.estimate) or numbers.partly(it.latency_ms, part=True, predicted=found.coverage.predicted > 0)


def _system(found: Candidate | None) -> str:
    return "-" if found is None else found.estimate.way.system
