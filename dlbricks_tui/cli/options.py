"""Options that several commands share; everything else takes their values, not the arguments."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.cli.parser import Parser, add_repeatable, add_setting, add_settings
from dlbricks_tui.models.input_shapes import parse_input, parse_value_option
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.variant import EXECUTION, RUNTIME, THREADS

if TYPE_CHECKING:
    from collections.abc import Iterable, Sequence

    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.graph import Level, Numbers, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.settings.setting import Setting

# The runtime that counts where none is named.
USUAL_RUNTIME = "that of your settings, or the usual one of the model's format"


def add_models_argument(parser: Parser, *, many: bool, needed: bool = True) -> None:
    """Take one MODEL or several, and the shapes and values of their inputs."""
    explained = "a *-symbol.json or *.onnx file, a name that `dlbricks models` lists, or table1:ID"
    if many:
        explained += "; `table1` stands for all fifty"
        parser.add_argument("models", metavar="MODEL", nargs="+" if needed else "*", help=explained)
    else:
        parser.add_argument("model", metavar="MODEL", help=explained)
    add_input_options(parser)


def add_runtime_option(parser: Parser) -> None:
    """Take the runtime, which decides about the files of models that have several."""
    about = f"{RUNTIME.about}: it decides which file of a model is taken"
    add_setting(parser, RUNTIME, about=about, usual=USUAL_RUNTIME)


def runtime_of(args: argparse.Namespace) -> Runtime | None:
    """Return the runtime that `add_runtime_option` takes."""
    from dlbricks_tui.runtime.registry import Registry

    return None if args.runtime is None else Registry(args.data.path).find(args.runtime)


def sources_of(args: argparse.Namespace, names: Sequence[str]) -> tuple[ModelSource, ...]:
    """Return models of the library with the files that the runtime reads; a runtime of the settings may read none."""
    from dlbricks_tui.answers.opening import files_for, library

    runtime = runtime_of(args)
    sources = library(args.data, None if runtime is None else runtime.traits.format).find_all(names)
    return sources if runtime is None or "runtime" in args.from_config else files_for(sources, runtime)


def add_input_options(parser: Parser) -> None:
    """Take the shapes of inputs whose shape is not in the file, and the values of inputs that are settings."""
    add_repeatable(
        parser,
        "--input",
        "NAME=1,3,224,224",
        "the shape of an input, where the file does not say it; nothing after = is a single number",
    )
    add_repeatable(
        parser,
        "--value",
        "NAME=16000",
        "the value of an input that is a setting, such as a sampling rate: a number or a text, or several with commas",
    )


def add_cutting_options(parser: Parser, *, level: Level | None = None, usual_level: str = "") -> None:
    """Take granularity, level, cut and order. Without a level the results of the system decide."""
    add_settings(parser, *CUTTING)
    usual = usual_level or ("that of the results" if level is None else level.value)
    add_setting(parser, LEVEL, default=level, usual=usual)


def add_measuring_runtime_options(parser: Parser, *, many: bool) -> None:
    """Take the runtime that measures and its threads, or several of each."""
    add_setting(parser, RUNTIME, many=many, usual=USUAL_RUNTIME)
    add_setting(parser, THREADS, many=many)


def runtime_given(args: argparse.Namespace) -> dict[str, Any]:
    """Return the runtime that measures and its threads, by their fields in options classes.

    The runtime of the settings counts only for models that it runs.
    """
    is_usual = "runtime" in args.from_config
    named, usual = (None, args.runtime) if is_usual else (args.runtime, None)
    return {"runtime": named, "usual_runtime": usual, "threads": args.threads}


def add_variant_options(parser: Parser, *, many: bool = True) -> None:
    """Take batch sizes, precisions and limits on kernels, or one of each.

    The runtime and its threads are options of each command.
    """
    add_settings(parser, *EXECUTION, many=many)


def values_of(args: argparse.Namespace, settings: Iterable[Setting[Any]]) -> dict[str, Any]:
    """Return what the command line says of settings, by their fields in options classes."""
    given = vars(args)
    return {it.field: given[it.dest] for it in settings}


def add_measured_only_option(parser: Parser) -> None:
    """Take whether missing bricks are predicted."""
    parser.add_argument(
        "--measured-only",
        action="store_true",
        help="predict no missing brick: without predictions, the sum of a model with missing bricks is a part only",
    )


def shapes_of(args: argparse.Namespace) -> dict[str, Shape]:
    """Return the given input shapes by input name."""
    return dict(parse_input(text) for text in args.input)


def values_given(args: argparse.Namespace) -> dict[str, Numbers]:
    """Return the given values of inputs by input name."""
    return dict(parse_value_option(text) for text in args.value)


def inputs_of(args: argparse.Namespace) -> dict[str, Any]:
    """Return the shapes and values of inputs by their fields in options classes."""
    return {"inputs": shapes_of(args), "values": values_given(args)}


def given_options(args: argparse.Namespace) -> list[str]:
    """Return the options for inputs as they were given."""
    given = {"--input": args.input, "--value": args.value}
    return [word for option, texts in given.items() for text in texts for word in (option, text)]


def cutting_of(given: argparse.Namespace | Config) -> Cutting:
    """Return how models are to be cut: by the command line, or by the settings."""
    return Cutting(given.granularity, given.cut, given.order)


def estimate_options_of(args: argparse.Namespace, *settings: Setting[Any], **given: Any) -> EstimateOptions:
    """Return the options of estimates that have these settings; those of the user say which runtimes are usual."""
    # Loaded here: other commands share options, and need no store.
    from dlbricks_tui.answers.scope import EstimateOptions

    return EstimateOptions(
        **values_of(args, settings),
        **inputs_of(args),
        usual_cutting=cutting_of(args.config),
        usual_runtime=args.config.runtime,
        usual_threads=args.config.threads,
        measured_only=vars(args).get("measured_only", False) or not args.config.predicts,
        **given,
    )
