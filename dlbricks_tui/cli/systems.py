"""`dlbricks systems`: list the systems of the store, and compare them by latency and cost, also for language models."""

import argparse

from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measured_only_option,
    add_models_argument,
    estimate_options_of,
    open_estimator,
    values_of,
)
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import Parser, Status
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.language import CACHE, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.wording.numbers import names_of

# Names of more models than these are not listed.
_MOST_TOLD = 5
_ONLY = "only this system, by its id, name or instance type"


def register(parser: Parser) -> None:
    """Add the actions of `systems`; without one it lists."""
    parser.add_listing("list the systems", list_systems)
    about = "compare the systems for each model, by latency and by cost"
    comparing = parser.add_action("compare", about, compare_systems, json=False)
    add_models_argument(comparing, many=True)
    add_cutting_options(comparing, level="fused")
    # None leaves the level to the results of each system.
    comparing.set_defaults(level=None)
    comparing.add_repeatable("--system", "S", _ONLY, dest="systems")
    add_measured_only_option(comparing)
    comparing.add_json()
    about = "compare the systems for language models: tokens per second, memory, and the cost of a million tokens"
    asking = parser.add_action("llm", about, compare_for_language_models, json=False)
    asking.add_argument("models", metavar="MODEL", nargs="+", help="as `dlbricks llm` takes it")
    _add_language_settings(asking)
    asking.add_repeatable("--system", "S", _ONLY, dest="systems")
    asking.add_json()
    asking.add_schema("language_models.LanguageOnSystem", many=True)


def _add_language_settings(parser: Parser) -> None:
    """Take what language models are asked to do, and how they are executed."""
    parser.add_settings(PROMPT, GENERATE)
    parser.add_setting(WEIGHTS, many=True, default=(WEIGHTS.kind.read(WEIGHTS.usual),))
    parser.add_setting(CACHE, many=True, default=())
    parser.add_setting(THREADS, many=True, default=(), usual="the usual number of each system")
    parser.add_setting(RUNTIME, many=True, default=(), usual="ONNX Runtime")


def list_systems(args: argparse.Namespace) -> int:
    """List the systems with their prices and the numbers of their results."""
    # Loaded here, as below: the help needs no store.
    from dlbricks_tui.api.opening import open_store
    from dlbricks_tui.api.store_contents import known_system_document, known_systems, prices_file
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.parts import Table
    from dlbricks_tui.documents.systems import system_columns

    with open_store(args.data, narrate) as store:
        known = known_systems(store, args.data)
    if args.json:
        write_json([known_system_document(it) for it in known])
    elif known:
        show_parts([Table(system_columns(known), known)])
        for it in known:
            if it.imported:
                narrate(f"imported results of {it.system.id}: {', '.join(it.imported)}")
        narrate(f"you can change the prices in {prices_file(args.data)}")
    else:
        narrate("no system has results yet: `dlbricks run MODEL` measures this one")
    return Status.DONE


def compare_systems(args: argparse.Namespace) -> int:
    """Rank the systems for each model, by the answer of each system."""
    from dlbricks_tui.api.opening import library
    from dlbricks_tui.api.store_contents import candidate_documents, ranked_systems
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.systems import comparison_parts

    sources = library(args.data).find_all(args.models)
    with open_estimator(estimate_options_of(args, *CUTTING, LEVEL), args.data) as estimator:
        ranked = ranked_systems(estimator, sources, args.systems)
    if args.json:
        write_json([document for found in ranked.values() for document in candidate_documents(found)])
    elif ranked:
        show_parts(comparison_parts(ranked))
    without = [source.name for source in sources if source.name not in ranked]
    if without:
        narrate(f"these systems have no results of {names_of(without, _MOST_TOLD)}")
    return Status.of(without)


def compare_for_language_models(args: argparse.Namespace) -> int:
    """Rank this host and the systems of the store for each language model; nothing is measured."""
    from dlbricks_tui.api.language_answers import LanguageOptions, opened_models
    from dlbricks_tui.api.language_models import language_on_systems
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.systems import language_systems_parts

    options = LanguageOptions(
        **values_of(args, (PROMPT, GENERATE, WEIGHTS, CACHE)), threads=args.threads, runtimes=args.runtime
    )
    refused: list[str] = []
    models = opened_models(args.models, options, refused.append)
    found = language_on_systems(models, options, args.data, args.systems)
    if args.json:
        write_json(found)
    else:
        show_parts(language_systems_parts(found))
    for refusal in refused:
        narrate(refusal)
    return Status.of(refused)
