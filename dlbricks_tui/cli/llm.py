"""`dlbricks llm`: how fast language models read a prompt and make tokens on this host, and whether they fit."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import groupby
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.jobs import detach
from dlbricks_tui.cli.options import values_of
from dlbricks_tui.cli.output import narrate, show_parts, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, Typed, UsageError
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.language import AT_LEAST, BEST_FOR, CACHE, FLASH_ATTENTION, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.setting import name, several
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.wording.numbers import counted, duration

if TYPE_CHECKING:
    from dlbricks_tui.api.language_answers import LanguageAnswer, LanguageOptions
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.language.opening import NamedModel
    from dlbricks_tui.language.orders import LanguageOrder

# Pictures are no wider.
_WIDEST = 100


def register(parser: Parser) -> None:
    """Add the options of `llm`."""
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help="a name that --list shows, a config.json of Hugging Face or its folder, a GGUF file, or a folder of "
        "onnxruntime-genai: the sizes of a model are enough, no weights are read",
    )
    parser.add_flag("--list", about="show every model of the library on this host: nothing is measured")
    parser.add_settings(AT_LEAST, PROMPT, GENERATE)
    parser.add_setting(WEIGHTS, many=True, default=())
    parser.add_setting(CACHE, many=True, default=())
    parser.add_setting(FLASH_ATTENTION, many=True, default=())
    parser.add_setting(THREADS, many=True)
    parser.add_setting(RUNTIME, many=True, default=(), usual="ONNX Runtime")
    what = parser.add_mutually_exclusive_group()
    about = "compare all installed runtimes, precisions, and one thread with all cores, unless these are named"
    parser.add_flag("--compare", about=about, to=what)
    about = "show what changes of the execution would gain, such as fewer bits or other threads"
    parser.add_flag("--what-if", about=about, to=what)
    parser.add_argument(
        "--prove",
        metavar="ID",
        type=Typed(several(name("an id"))),
        default=(),
        help="measure the what-if with this id, or several with commas, or `all`",
    )
    parser.add_setting(BEST_FOR)
    how = parser.add_mutually_exclusive_group()
    about = "measure nothing: predict what the store lacks from other measurements"
    parser.add_flag("--predict", about=about, to=how)
    about = "measure one block for seconds, and predict the rest, also from other systems of the store"
    parser.add_flag("--probe", about=about, to=how)
    about = "build the whole model with random weights, too, and time it by onnxruntime-genai, if it fits"
    parser.add_flag("--end-to-end", about=about, to=how)
    parser.add_detach()
    parser.only(AT_LEAST.option, where=lambda it: it.list, why="filters the library: give --list with it")
    of_one = "measures nothing: give --probe and --end-to-end with a MODEL"
    parser.only("--list", where=lambda it: not (it.probe or it.end_to_end), why=of_one)
    of_one = "shows all models: give --compare, --what-if and --prove with a MODEL"
    parser.only("--list", where=lambda it: not (it.compare or it.what_if or it.prove), why=of_one)
    either = "measures nothing, and --prove measures: give one of them"
    parser.only("--predict", where=lambda it: not it.prove, why=either)
    idle = "measures nothing: leave --detach out"
    parser.only("--list", "--predict", where=lambda it: not it.detach, why=idle)
    every = "measures changes of one execution, and --compare all of them: give one of them"
    parser.only("--prove", where=lambda it: not it.compare, why=every)
    best = "decides between executions: name several threads, precisions, caches or runtimes, or give --compare"
    parser.only(BEST_FOR.option, where=_has_several, why=best)
    shown = "shows what changes would gain, and --detach shows nothing: leave one of them out"
    parser.only("--what-if", where=lambda it: not it.detach, why=shown)
    parser.end(answer_models, "language_answers.LanguageAnswer", many=True, quiet=True)


def _has_several(args: Arguments) -> bool:
    given = (getattr(args, it.dest) for it in (WEIGHTS, CACHE, FLASH_ATTENTION, THREADS, RUNTIME))
    return args.compare or any(isinstance(it, tuple) and len(it) > 1 for it in given)


def answer_models(args: Arguments) -> int:
    """Answer for some models or for the library; measure what the store lacks unless predictions are enough."""
    # Loaded here: the help needs no store, and documents need no tables.
    from dlbricks_tui.api.language_models import left_out_of_library, library_answers
    from dlbricks_tui.documents.language import fastest_first, language_parts, library_parts
    from dlbricks_tui.documents.language_comparison import comparison_parts, what_ifs_parts

    if args.list == bool(args.models):
        what = "MODEL and --list do not go together" if args.list else "no model is named"
        raise UsageError(f"{what}: give a MODEL, or --list (see `dlbricks llm --help`)")
    options = _options(args)
    parts: list[Part] = []
    failures = 0
    if args.detach:
        return _detach(args, options)
    if args.list:
        found, at_least = library_answers(options, args.session.data), args.at_least or 0.0
        narrate(*left_out_of_library(options, args.session.data))
        answers: Sequence[LanguageAnswer] = fastest_first(found, at_least)
        parts += library_parts(found, at_least)
    else:
        answers, failures = _answers(args, options)
        for _, of_model in groupby(answers, lambda it: (it.model, it.path)):
            executions = list(of_model)
            if len(executions) > 1:
                parts += comparison_parts(executions, options.best_for)
            else:
                parts += (*language_parts(executions[0]), *what_ifs_parts(executions[0]))
    if args.json:
        write_json(answers)
    else:
        show_parts(parts, _WIDEST)
    return Status.of(failures)


def _options(args: Arguments) -> LanguageOptions:
    from dlbricks_tui.api.language_answers import LanguageOptions, runtimes_here

    threads = args.threads if isinstance(args.threads, tuple) else (args.threads,) * (args.threads is not None)
    named: dict[str, Any] = {"precisions": args.precision, "runtimes": args.runtime, "caches": args.cache}
    named["flash_attention"] = args.flash_attention
    # One number may be that of the config file.
    named["threads"] = threads if isinstance(args.threads, tuple) else ()
    named = {field: given for field, given in named.items() if given}
    options = LanguageOptions(**{**values_of(args, (PROMPT, GENERATE, BEST_FOR)), "threads": threads, **named})
    if args.compare:
        return replace(options.with_every_execution(runtimes_here(args.session.data)), **named)
    wants = bool(args.what_if or args.prove)
    chosen = options.precisions, options.threads, options.runtimes, options.caches, options.flash_attention
    if wants and max(map(len, chosen)) > 1:
        raise UsageError("what-ifs change one execution: name one precision, cache, number of threads and runtime")
    return replace(options, what_ifs=wants, prove=args.prove)


def _detach(args: Arguments, options: LanguageOptions) -> int:
    from dlbricks_tui.api.language_answers import opened_models

    models = opened_models(args.models, options, narrate)
    return detach("language model", _order(args, models, options), [it.name for it in models], args)


def _order(args: Arguments, models: Sequence[NamedModel], options: LanguageOptions) -> LanguageOrder:
    from dlbricks_tui.api.language_models import language_order

    return language_order(models, options, args.session.data, end_to_end=args.end_to_end, probe=args.probe)


def _answers(args: Arguments, options: LanguageOptions) -> tuple[Sequence[LanguageAnswer], int]:
    """Return the answers, and the number of failures; each was narrated, and what it lacks is predicted."""
    from dlbricks_tui.api import language_answers
    from dlbricks_tui.api import language_models as language
    from dlbricks_tui.api.language_answers import opened_models

    failures: list[str] = []
    models = opened_models(args.models, options, failures.append)
    narrate(*failures)
    narrate(*language_answers.left_out(models, options, args.session.data, models_only=args.compare))
    if args.predict:
        return language.stored_answers(models, options, args.session.data), len(failures)
    from dlbricks_tui.api.jobs import words_of
    from dlbricks_tui.api.measuring import variant_remarks
    from dlbricks_tui.cli.progress import JobNarration, signals_interrupt

    narrate(*variant_remarks(options.threads))
    if args.compare:
        before = language.stored_answers(models, options, args.session.data)
        lacking = [it for it in before if not it.is_measured]
        takes = f"{len(lacking)} to measure"
        takes += "" if args.probe else f", about {duration(language.seconds_to_measure(before))}"
        narrate(f"{counted(len(before), 'execution')}: {takes if lacking else 'all are measured'}")
    narration = JobNarration(words_of("language model", None), quiet=args.quiet)
    failed = len(failures)
    order = _order(args, models, options)
    try:
        with signals_interrupt():
            language.measure(order, args.session.data, narration.take)
    except UserError as error:
        narrate(str(error))
        failed += 1
    return language.stored_answers(models, options, args.session.data), failed + narration.failed
