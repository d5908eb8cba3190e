"""`dlbricks llm`: how fast language models read a prompt and make tokens on this host, and whether they fit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dlbricks_tui.cli.jobs import detach
from dlbricks_tui.cli.options import values_of
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import Parser, Status, UsageError
from dlbricks_tui.settings.language import AT_LEAST, CACHE, FLASH_ATTENTION, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.variant import RUNTIME, THREADS

if TYPE_CHECKING:
    from dlbricks_tui.api.language_models import LanguageAnswer, LanguageOptions
    from dlbricks_tui.documents.parts import Part

# Pictures are no wider.
_WIDEST = 100


def register(parser: Parser) -> None:
    """Add the options of `llm`."""
    # Loaded here, as all that follows: the help needs no store, and documents need no tables.
    from dlbricks_tui.api.language_models import LanguageOptions

    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help="a name that --list shows, a config.json of Hugging Face or its folder, a GGUF file, or a folder of "
        "onnxruntime-genai: the sizes of a model are enough, no weights are read",
    )
    parser.add_flag("--list", about="show every model of the library on this host: nothing is measured")
    parser.add_settings(AT_LEAST, PROMPT, GENERATE)
    parser.add_setting(WEIGHTS, many=True, default=LanguageOptions().precisions)
    parser.add_setting(CACHE, many=True, default=())
    parser.add_setting(FLASH_ATTENTION, many=True, default=())
    parser.add_setting(THREADS, many=True)
    parser.add_setting(RUNTIME, many=True, default=(), usual="ONNX Runtime")
    how = parser.add_mutually_exclusive_group()
    about = "measure nothing: predict what the store lacks from other measurements"
    parser.add_flag("--predict", about=about, to=how)
    about = "measure one block for seconds, and predict the rest, also from other systems of the store"
    parser.add_flag("--probe", about=about, to=how)
    about = "build the whole model with random weights, too, and time it by onnxruntime-genai, if it fits"
    parser.add_flag("--end-to-end", about=about, to=how)
    parser.add_detach()
    parser.end(answer_models, "language_models.LanguageAnswer", many=True, quiet=True)


def answer_models(args: argparse.Namespace) -> int:
    """Answer for some models or for the library; measure what the store lacks unless predictions are enough."""
    from dlbricks_tui.api.language_models import LanguageOptions, library_answers
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.language import comparison_parts, fastest_first, language_parts, library_parts

    if args.list == bool(args.models):
        what = "MODEL and --list do not go together" if args.list else "no model is named"
        raise UsageError(f"{what}: give a MODEL, or --list (see `dlbricks llm --help`)")
    if args.list and (args.end_to_end or args.probe):
        given = "--probe" if args.probe else "--end-to-end"
        raise UsageError(f"--list measures nothing: give {given} with a MODEL")
    if args.at_least is not None and not args.list:
        raise UsageError("--at-least filters the library: give --list with it")
    threads = args.threads if isinstance(args.threads, tuple) else (args.threads,) * (args.threads is not None)
    values = values_of(args, (PROMPT, GENERATE, WEIGHTS, CACHE, FLASH_ATTENTION))
    options = LanguageOptions(**values, threads=threads, runtimes=args.runtime)
    parts: list[Part] = []
    failures = 0
    if args.detach and (args.list or args.predict):
        raise UsageError(f"--{'list' if args.list else 'predict'} measures nothing: leave --detach out")
    if args.detach:
        return _detach(args, options)
    if args.list:
        found, at_least = library_answers(options, args.data), args.at_least or 0.0
        answers: Sequence[LanguageAnswer] = fastest_first(found, at_least)
        parts += library_parts(found, at_least)
    else:
        answers, failures = _answers(args, options)
        for _, of_model in groupby(answers, lambda it: it.model):
            first, *others = of_model
            parts += comparison_parts([first, *others]) if others else language_parts(first)
    if args.json:
        write_json(answers)
    else:
        show_parts(parts, _WIDEST)
    return Status.of(failures)


def _detach(args: argparse.Namespace, options: LanguageOptions) -> int:
    from dlbricks_tui.api import language_models as language

    models = language.opened_models(args.models, options, narrate)
    order = language.language_order(models, options, args.data, end_to_end=args.end_to_end, probe=args.probe)
    return detach("language model", order, [it.name for it in models], args)


def _answers(args: argparse.Namespace, options: LanguageOptions) -> tuple[Sequence[LanguageAnswer], int]:
    """Return the answers, and the number of failures; each was narrated, and what it lacks is predicted."""
    from dlbricks_tui.api import language_models as language

    failures: list[str] = []
    models = language.opened_models(args.models, options, failures.append)
    for failure in failures:
        narrate(failure)
    if args.predict:
        return language.stored_answers(models, options, args.data), len(failures)
    from dlbricks_tui.api.jobs import words_of
    from dlbricks_tui.api.measuring import variant_remarks
    from dlbricks_tui.cli.progress import JobNarration
    from dlbricks_tui.cli.signals import signals_interrupt

    for remark in variant_remarks(options.threads):
        narrate(remark)
    narration = JobNarration(words_of("language model", None), quiet=args.quiet)
    ended_early: list[str] = []
    with signals_interrupt():
        how = {"end_to_end": args.end_to_end, "probe": args.probe}
        found = language.measured_or_predicted(models, options, args.data, narration.take, ended_early.append, **how)
    for line in ended_early:
        narrate(line)
    return found, len(failures) + len(ended_early) + narration.failed
