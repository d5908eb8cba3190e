"""`dlbricks systems`: list the systems of the store, and compare them by latency and cost."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import (
    add_composition_options,
    add_cutting_options,
    add_models_argument,
    estimate_options_of,
)
from dlbricks_tui.cli.output import Json, narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, Status, add_json_option
from dlbricks_tui.cli.store import open_estimator

if TYPE_CHECKING:
    from collections.abc import Mapping, Sequence

    from dlbricks_tui.answers.estimating import Estimator
    from dlbricks_tui.estimate.comparison import Candidate
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import Level
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.store.records import System

# Names of more models than these are not listed.
_MOST_TOLD = 5


def register(groups: Groups) -> None:
    """Add `systems` with `list` and `compare`; without an action it lists."""
    parser = groups.add_parser("systems", help="list the systems of the store, or compare them for some models")
    add_json_option(parser)
    parser.set_defaults(handler=list_systems)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list the systems (as `systems` does by itself)")
    add_json_option(listing)
    listing.set_defaults(handler=list_systems)
    comparing = actions.add_parser("compare", help="compare the systems for each model, by latency and by cost")
    add_models_argument(comparing, many=True)
    add_cutting_options(comparing, level="fused")
    # None leaves the level to the results of each system.
    comparing.set_defaults(level=None)
    comparing.add_argument(
        "--system",
        dest="systems",
        metavar="S",
        action="append",
        default=[],
        help="only this system, by its id, name or instance type; repeatable",
    )
    add_composition_options(comparing)
    add_json_option(comparing)
    comparing.set_defaults(handler=compare_systems)


def list_systems(args: argparse.Namespace) -> int:
    """List the systems with their prices and the numbers of their results."""
    from dlbricks_tui.estimate.comparison import names_of
    from dlbricks_tui.estimate.prices import PRICES_FILE, read_prices
    from dlbricks_tui.store.queries import combinations, systems
    from dlbricks_tui.store.store import Store

    prices = read_prices(args.data.path)
    with Store(args.data.store) as store:
        known = systems(store.generation)
        measured = combinations(store.generation)
    if args.json:
        write_json(
            [
                {
                    "system": system.id,
                    "name": system.name,
                    "cpu": system.cpu,
                    "cores": system.cores,
                    "memory_bytes": system.memory_bytes,
                    "instance_type": system.instance_type or None,
                    "dollars_per_hour": prices.of(names_of(system.id, known)),
                    "results": [
                        {
                            "runtime": it.runtime,
                            "level": it.level.value,
                            "protocol": it.protocol,
                            "bricks": it.pairs,
                            "models": it.models,
                        }
                        for it in measured
                        if it.system == system.id
                    ],
                }
                for system in known.values()
            ]
        )
    elif known:
        from dlbricks_tui.cli.systems_view import systems_view

        show(systems_view(known, measured, prices))
        narrate(f"you can change the prices in {args.data.path / PRICES_FILE}")
    else:
        narrate("no system has results yet: `dlbricks run MODEL` measures this one")
    return Status.DONE


def compare_systems(args: argparse.Namespace) -> int:
    """Rank the systems for each model, by the runtime that covers most of the model there."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.estimate.comparison import candidates
    from dlbricks_tui.estimate.prices import read_prices
    from dlbricks_tui.store.queries import systems

    prices = read_prices(args.data.path)
    sources = library(args.data).find_all(args.models)
    with open_estimator(estimate_options_of(args), args.data) as estimator:
        known = systems(estimator.generation)
        estimates = _estimates(estimator, sources, _chosen(args.systems, known))
    ranked = {name: found for name, held in estimates.items() if (found := candidates(held, known, prices))}
    if args.json:
        write_json([document for found in ranked.values() for document in _documents(found)])
    elif ranked:
        from dlbricks_tui.cli.output import data_console
        from dlbricks_tui.cli.systems_view import comparison_view

        show(*comparison_view(ranked, data_console()))
    without = [source.name for source in sources if source.name not in ranked]
    if without:
        from dlbricks_tui.wording.runs import names_of

        narrate(f"these systems have no results of {names_of(without, _MOST_TOLD)}")
    return Status.DONE_WITH_FAILURES if without else Status.DONE


def _chosen(names: Sequence[str], known: Mapping[str, System]) -> tuple[str, ...]:
    from dlbricks_tui.estimate.selection import find_system

    return tuple(find_system(wanted, known) for wanted in names) or tuple(known)


def _estimates(
    estimator: Estimator, sources: Sequence[ModelSource], systems: Sequence[str]
) -> dict[str, list[SystemEstimate]]:
    """Return the estimates of each model on the systems, in the order of the models."""
    systems_at: dict[Level, list[str]] = {}
    for system in systems:
        systems_at.setdefault(estimator.level_on(system), []).append(system)
    found: dict[str, list[SystemEstimate]] = {source.name: [] for source in sources}
    for level, of_level in systems_at.items():
        for source, inquiry in estimator.inquiries(sources, level):
            found[source.name] += filter(None, (inquiry.on(system, None) for system in of_level))
    return found


def _documents(found: Sequence[Candidate]) -> list[Json]:
    from dlbricks_tui.estimate.comparison import cheapest, quickest

    best, thrifty = quickest(found), cheapest(found)
    return [
        {
            "model": it.estimate.estimate.model,
            "system": it.estimate.way.system,
            "runtime": it.estimate.way.runtime,
            "level": it.estimate.way.level.value,
            "granularity": it.estimate.estimate.cutting.granularity,
            "latency_ms": it.latency_ms,
            "complete": it.complete,
            "measured_ms": it.estimate.end_to_end.value_ms if it.estimate.end_to_end else None,
            "dollars_per_hour": it.dollars_per_hour,
            "dollars_per_million": it.dollars_per_million,
            "quickest": it is best,
            "cheapest": it is thrifty,
        }
        for it in found
    ]
