"""`dlbricks systems`: list the systems of the store, and compare them by latency and cost."""

import argparse
from collections.abc import Iterator, Sequence
from typing import Any

from dlbricks_tui.answers.store_contents import KnownSystem, known_systems
from dlbricks_tui.cli.doctor import peaks_document
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measured_only_option,
    add_models_argument,
    estimate_options_of,
)
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_action, add_json_option, add_listing, add_repeatable
from dlbricks_tui.cli.rendering import show_parts
from dlbricks_tui.cli.store import open_estimator, open_store
from dlbricks_tui.documents.parts import Table
from dlbricks_tui.documents.systems import comparison_parts, system_columns
from dlbricks_tui.estimate.comparison import (
    PRICES_FILE,
    Candidate,
    against_quickest,
    candidates,
    cheapest,
    quickest,
    read_prices,
)
from dlbricks_tui.estimate.system_estimate import find_system
from dlbricks_tui.models.graph import Level
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.store.index import OWN
from dlbricks_tui.store.selections import by_id
from dlbricks_tui.wording.numbers import names_of

# Names of more models than these are not listed.
_MOST_TOLD = 5


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
    add_measured_only_option(comparing)
    add_json_option(comparing)


def list_systems(args: argparse.Namespace) -> int:
    """List the systems with their prices and the numbers of their results."""
    with open_store(args.data) as store:
        known = known_systems(store, read_prices(args.data.path))
    if args.json:
        write_json([_system_document(it) for it in known])
    elif known:
        show_parts([Table(system_columns(known), known)])
        for it in known:
            if imported := [f"{count:,} {origin}" for origin, count in it.origins.items() if origin != OWN]:
                narrate(f"imported results of {it.system.id}: {', '.join(imported)}")
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
    with open_estimator(estimate_options_of(args, *CUTTING, LEVEL), args.data) as estimator:
        known = by_id(estimator.store.systems())
        wanted = [find_system(name, known) for name in args.systems] or list(known)
        estimates = estimator.on_systems(sources, wanted)
    ranked = {name: found for name, held in estimates.items() if (found := candidates(held, known, prices))}
    if args.json:
        write_json([document for found in ranked.values() for document in _documents(found)])
    elif ranked:
        show_parts(comparison_parts(ranked))
    without = [source.name for source in sources if source.name not in ranked]
    if without:
        narrate(f"these systems have no results of {names_of(without, _MOST_TOLD)}")
    return Status.DONE_WITH_FAILURES if without else Status.DONE


def _system_document(known: KnownSystem) -> dict[str, Any]:
    system = known.system
    return {
        "system": system.id,
        "name": system.name,
        "cpu": system.cpu,
        "cores": system.cores,
        "memory_bytes": system.memory_bytes,
        "instance_type": system.instance_type or None,
        "dollars_per_hour": known.dollars_per_hour,
        "peaks": [peaks_document(it) for it in known.peaks],
        "results": [
            {
                "runtime": it.runtime,
                "level": it.level,
                "protocol": it.protocol,
                "bricks": it.pairs,
                "models": it.models,
            }
            for it in known.ways
        ],
        "origins": known.origins,
    }


def _documents(found: Sequence[Candidate]) -> Iterator[dict[str, Any]]:
    best, thrifty = quickest(found), cheapest(found)
    for it, change in zip(found, against_quickest(found), strict=True):
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
            # Against the quickest; null for that itself, and for a sum of some layers.
            "verdict": None if change is None else change.verdict.value,
            "reason": "" if change is None else change.reason,
            "cheapest": it is thrifty,
        }
