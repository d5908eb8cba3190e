"""`dlbricks llm`: how fast language models read a prompt and make tokens on this host, and whether they fit."""

from __future__ import annotations

import argparse
from collections.abc import Sequence
from itertools import groupby
from typing import TYPE_CHECKING

from dlbricks_tui.answers.language import LanguageOptions
from dlbricks_tui.cli.options import values_of
from dlbricks_tui.cli.output import narrate, write_json
from dlbricks_tui.cli.parser import (
    Parser,
    Status,
    UsageError,
    add_json_option,
    add_quiet_option,
    add_schema_option,
    add_setting,
    add_settings,
)
from dlbricks_tui.errors import UserError
from dlbricks_tui.language.architecture import LanguageError
from dlbricks_tui.settings.language import AT_LEAST, GENERATE, PROMPT, WEIGHTS
from dlbricks_tui.settings.variant import RUNTIME, THREADS
from dlbricks_tui.wording.numbers import too_many_threads

if TYPE_CHECKING:
    from dlbricks_tui.answers.language import LanguageAnswer
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.language.opening import NamedModel

_USUAL = LanguageOptions()
# Pictures are no wider.
_WIDEST = 100


def register(parser: Parser) -> None:
    parser.add_argument(
        "models",
        metavar="MODEL",
        nargs="*",
        help="a name that --list shows, a config.json of Hugging Face or its folder, a GGUF file, or a folder of "
        "onnxruntime-genai: the sizes of a model are enough, no weights are read",
    )
    parser.add_argument(
        "--list", action="store_true", help="show every model of the library on this host: nothing is measured"
    )
    add_settings(parser, AT_LEAST, PROMPT, GENERATE)
    add_setting(parser, WEIGHTS, many=True, default=_USUAL.precisions)
    add_setting(parser, THREADS, many=True)
    add_setting(parser, RUNTIME, many=True, default=(), usual="ONNX Runtime")
    how = parser.add_mutually_exclusive_group()
    how.add_argument(
        "--predict", action="store_true", help="measure nothing: predict what the store lacks from other measurements"
    )
    how.add_argument(
        "--end-to-end",
        action="store_true",
        help="build the whole model with random weights, too, and time it by onnxruntime-genai, if it fits",
    )
    add_quiet_option(parser)
    add_json_option(parser)
    add_schema_option(parser, "LanguageAnswer", module="language", many=True)
    parser.set_defaults(handler=answer_models)


def answer_models(args: argparse.Namespace) -> int:
    """Answer for some models or for the library; measure what the store lacks unless predictions are enough."""
    # Loaded here: the help needs no store, and documents need no tables.
    from dlbricks_tui.answers.language import library_answers
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.language import comparison_parts, fastest_first, language_parts, library_parts

    if args.list == bool(args.models):
        what = "MODEL and --list do not go together" if args.list else "no model is named"
        raise UsageError(f"{what}: give a MODEL, or --list (see `dlbricks llm --help`)")
    if args.list and args.end_to_end:
        raise UsageError("--list measures nothing: give --end-to-end with a MODEL")
    if args.at_least is not None and not args.list:
        raise UsageError("--at-least filters the library: give --list with it")
    threads = args.threads if isinstance(args.threads, tuple) else (args.threads,) * (args.threads is not None)
    options = LanguageOptions(**values_of(args, (PROMPT, GENERATE, WEIGHTS)), threads=threads, runtimes=args.runtime)
    parts: list[Part] = []
    failures = 0
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
    return Status.DONE_WITH_FAILURES if failures else Status.DONE


def _opened(given: Sequence[str], options: LanguageOptions) -> tuple[list[NamedModel], int]:
    """Return the models, each once, and how many are left out; raise the first refusal where none can be opened."""
    from dlbricks_tui.language.opening import open_language_model

    models: dict[NamedModel, None] = {}
    refusals: list[UserError] = []
    for name in dict.fromkeys(given):
        try:
            model = open_language_model(name)
            options.require_context(model.name, model.architecture.positions)
            models[model] = None
        except UserError as error:
            refusals.append(error)
    if not models:
        raise refusals[0]
    for refusal in refusals:
        narrate(f"left out: {refusal}")
    return list(models), len(refusals)


def _answers(args: argparse.Namespace, options: LanguageOptions) -> tuple[Sequence[LanguageAnswer], int]:
    """Return the answers, and the number of failures; each was narrated, and what it lacks is predicted."""
    # Loaded here: predictions need no processes.
    from dlbricks_tui.answers import language as asking
    from dlbricks_tui.cli.job_progress import JobNarration
    from dlbricks_tui.cli.signals import signals_interrupt
    from dlbricks_tui.host.fingerprint import fingerprint
    from dlbricks_tui.jobs.errors import JobError
    from dlbricks_tui.language.orders import LanguageFailed, LanguageRound
    from dlbricks_tui.wording.jobs import language_line

    models, left_out = _opened(args.models, options)
    if args.predict:
        return asking.stored_answers(models, options, args.data), left_out
    if warning := too_many_threads(options.threads, fingerprint().cores):
        narrate(warning)
    narration = JobNarration(language_line, (LanguageRound,), quiet=args.quiet, failures=(LanguageFailed,))
    failures = left_out
    try:
        with signals_interrupt():
            found = asking.measure(models, options, args.data, narration.take, end_to_end=args.end_to_end)
    except (JobError, LanguageError) as error:
        narrate(str(error))
        failures += 1
        found = asking.stored_answers(models, options, args.data)
    return found, failures + sum(isinstance(it, LanguageFailed) for it in narration.taken)
