"""`dlbricks compare` and `systems`: a model in several variants, two things of one kind, or systems with each other."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_measured_only_option,
    add_models_argument,
    estimate_options_of,
    usual_of,
    values_of,
)
from dlbricks_tui.cli.output import narrate, show_parts, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, UsageError
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.language import CACHE, FLASH_ATTENTION, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.variant import RUNTIME, SYSTEM, THREADS, VARIANT
from dlbricks_tui.wording.numbers import counted, names_of

if TYPE_CHECKING:
    from dlbricks_tui.api.scope import EstimateOptions

EXPLAINED = """\
With one MODEL, all combinations of runtime and variant that were measured are compared. With OTHER, the two are
compared with each other: two models, two systems, runtimes, days (2026-11-26), runs (id or its beginning), or results
(id). Several words in one argument all have to hold: 'onnxruntime threads=1'. Nothing is measured.
"""
_PARTS = 10
# Names of more models than these are not listed.
_MOST_TOLD = 5
_ONLY = "only this system, by its id, name or instance type"


def register(parser: Parser) -> None:
    """Add the options of `compare`."""
    parser.epilog = EXPLAINED
    add_models_argument(parser, many=False)
    about = "what to compare the first with; then that may be a system, a runtime, a day, a run or a result, too"
    parser.add_argument("other", metavar="OTHER", nargs="?", help=about)
    about = f"with OTHER: show the N largest differences between bricks or layers (default: {_PARTS})"
    parser.add_count("--limit", about, least=0, default=_PARTS)
    for setting in VARIANT:
        parser.add_setting(setting, many=True, default=(), usual="all that were measured")
    parser.add_setting(SYSTEM)
    add_cutting_options(parser)
    add_measured_only_option(parser)
    of_two = "is for two things: give OTHER, too, or leave it out"
    parser.only("--limit", where=lambda it: it.other is not None, why=of_two)
    parser.end(compare_combinations, "pairs.CompareDocument")


def compare_combinations(args: Arguments) -> int:
    """Print the combinations of one model, and the runs that measure what is missing; or compare two things."""
    if args.other is not None:
        return compare_two(args)
    # Loaded here, as below: the help needs no store.
    from dlbricks_tui.api.combinations import CompareOptions
    from dlbricks_tui.api.estimates import comparison

    options = CompareOptions(**_model_options(args), **values_of(args, VARIANT))
    ranking = args.session.ranking(args.model, options)
    if args.json:
        write_json(comparison(ranking))
    else:
        from dlbricks_tui.documents.parts import BLANK_LINE, Heading, Sentence
        from dlbricks_tui.documents.ranking import matrix_parts, ranking_answer, ranking_heading, ranking_parts

        heading = Heading(ranking.model), Sentence(ranking_heading(ranking)), BLANK_LINE
        matrix = [*parts, BLANK_LINE] if (parts := list(matrix_parts(ranking))) else []
        show_parts([*heading, *matrix, *ranking_parts(ranking)])
        narrate(ranking_answer(ranking))
    for refusal in ranking.refusals:
        narrate(f"left out: {refusal}")
    if not ranking.on_this_host and any(it.point.cure for it in ranking.combinations):
        narrate(f"run what is missing on {ranking.system}")
    if ranking.left_out:
        narrate(
            f"{counted(ranking.left_out, 'combination')} with results of only some of the model's layers left out: "
            "name the runtime, threads or batch size to see what measures the rest"
        )
    for it in ranking.combinations if ranking.on_this_host else ():
        if it.point.is_predicted and it.point.cure:
            narrate(f"predicted: run `{it.point.cure}` to measure it")
    measured = all(it.ratio is not None and not it.point.is_predicted for it in ranking.combinations)
    return Status.of(ranking.refusals or not measured)


def compare_two(args: Arguments) -> int:
    """Print two things of one kind side by side."""
    from dlbricks_tui.api.opening import model_or_none
    from dlbricks_tui.api.pairs import compare_models, compare_named, named_side
    from dlbricks_tui.documents.comparison import comparison_parts

    names = args.model, args.other
    models = [model_or_none(name, args.session.data) for name in names]
    if models[0] is not None and models[1] is not None:
        found = compare_models(models[0], models[1], _one_variant(args), args.session.data, args.session.remarks)
    elif models[0] is not None or models[1] is not None:
        model, other = names if models[0] is not None else names[::-1]
        raise UsageError(
            f"{model} is a model, and {other} is none: compare two of one kind; `dlbricks models` lists the models"
        )
    else:
        _refuse_variants(args)
        with args.session.open_store() as store:
            found = compare_named(store, *(named_side(store, name) for name in names))
    if args.json:
        write_json(found)
    else:
        show_parts(comparison_parts(found, args.limit))
        if (more := len(found.parts) - args.limit) > 0:
            narrate(f"{counted(more, 'smaller difference')}: --limit N shows N of them, --json all")
    return Status.DONE


def _one_variant(args: Arguments) -> EstimateOptions:
    """Return the options of an estimate with one value each."""
    from dlbricks_tui.api.scope import EstimateOptions

    given = values_of(args, VARIANT)
    for field, values in given.items():
        if len(values) > 1:
            raise UsageError(f"--{field}: two models are compared in one variant: give one value")
    one: dict[str, Any] = {field: next(iter(values), None) for field, values in given.items()}
    return EstimateOptions(**_model_options(args), **one)


def _model_options(args: Arguments) -> dict[str, Any]:
    """Return the options of both comparisons that are not those of a variant."""
    return {**values_of(args, (*CUTTING, LEVEL, SYSTEM)), **usual_of(args)}


def _refuse_variants(args: Arguments) -> None:
    given = [it.option for it in (*VARIANT, LEVEL, SYSTEM) if getattr(args, it.dest)]
    if given:
        raise UsageError(
            f"{given[0]} is for models: write it into the words, such as '{args.model} threads=1' (filters are those "
            "of `dlbricks results list`)"
        )
    others = {"--input": args.input, "--value": args.value, "--measured-only": args.measured_only}
    others |= {it.option: it.config not in args.from_config.values() for it in CUTTING}
    for option in (option for option, is_given in others.items() if is_given):
        raise UsageError(f"{option} is for models: leave it out")


def register_systems(parser: Parser) -> None:
    """Add the actions of `systems`; without one it lists."""
    parser.add_listing("list the systems", list_systems)
    about = "compare the systems for each model, by latency and by cost"
    comparing = parser.add_action("compare", about, compare_systems, json=False)
    add_models_argument(comparing, many=True)
    add_cutting_options(comparing)
    comparing.add_repeatable("--system", "S", _ONLY, dest="systems")
    add_measured_only_option(comparing)
    comparing.add_json()
    about = "compare the systems for language models: tokens per second, memory, and the cost of a million tokens"
    asking = parser.add_action("llm", about, compare_for_language_models, json=False)
    asking.add_argument("models", metavar="MODEL", nargs="+", help="as `dlbricks llm` takes it")
    asking.add_settings(PROMPT, GENERATE)
    asking.add_setting(WEIGHTS, many=True, default=(WEIGHTS.kind.read(WEIGHTS.usual),))
    asking.add_setting(CACHE, many=True, default=())
    asking.add_setting(FLASH_ATTENTION, many=True, default=())
    usual = "that of your settings on this host, the usual number of each other system"
    asking.add_setting(THREADS, many=True, default=(), usual=usual)
    asking.add_setting(RUNTIME, many=True, default=(), usual="ONNX Runtime")
    asking.add_repeatable("--system", "S", _ONLY, dest="systems")
    asking.add_json()
    asking.add_schema("language_models.LanguageOnSystem", many=True)


def list_systems(args: Arguments) -> int:
    """List the systems with their prices and the numbers of their results."""
    # Loaded here, as below: the help needs no store.
    from dlbricks_tui.api.store_contents import known_system_document, known_systems, prices_file
    from dlbricks_tui.documents.parts import Table
    from dlbricks_tui.documents.systems import system_columns

    with args.session.open_store() as store:
        known = known_systems(store, args.session.data)
    if args.json:
        write_json([known_system_document(it) for it in known])
    elif known:
        show_parts([Table(system_columns(known), known)])
        for it in known:
            if it.imported:
                narrate(f"imported results of {it.system.id}: {', '.join(it.imported)}")
        narrate(f"you can change the prices in {prices_file(args.session.data)}")
    else:
        narrate("no system has results yet: `dlbricks run MODEL` measures this one")
    return Status.DONE


def compare_systems(args: Arguments) -> int:
    """Rank the systems for each model, by the answer of each system."""
    from dlbricks_tui.api.store_contents import candidate_documents, ranked_systems
    from dlbricks_tui.documents.systems import comparison_parts

    sources = args.session.sources(args.models)
    with args.session.open_estimator(estimate_options_of(args, *CUTTING, LEVEL)) as estimator:
        ranked = ranked_systems(estimator, sources, args.systems)
    if args.json:
        write_json([document for found in ranked.values() for document in candidate_documents(found)])
    elif ranked:
        show_parts(comparison_parts(ranked))
    without = [source.name for source in sources if source.name not in ranked]
    if without:
        which = "none of these systems" if args.systems else "no system"
        narrate(f"{which} has results of {names_of(without, _MOST_TOLD)}: `dlbricks run MODEL` measures this one")
    return Status.of(without)


def compare_for_language_models(args: Arguments) -> int:
    """Rank this host and the systems of the store for each language model; nothing is measured."""
    from dlbricks_tui.api.language_answers import LanguageOptions, left_out, opened_models
    from dlbricks_tui.api.language_models import language_on_systems
    from dlbricks_tui.documents.systems import language_systems_parts

    options = LanguageOptions(
        **values_of(args, (PROMPT, GENERATE, WEIGHTS, CACHE, FLASH_ATTENTION)),
        threads=args.threads,
        runtimes=args.runtime,
    )
    refused: list[str] = []
    models = opened_models(args.models, options, refused.append)
    narrate(*left_out(models, replace(options, threads=()), args.session.data))
    found = language_on_systems(models, options, args.session.data, args.systems, args.config.threads)
    if args.json:
        write_json(found)
    else:
        show_parts(language_systems_parts(found))
    narrate(*refused)
    return Status.of(refused)
