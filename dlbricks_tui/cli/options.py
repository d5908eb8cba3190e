"""Options that several commands share, and the models and the store that they name."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING, Any

from dlbricks_tui.cli.parser import Arguments, Parser
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.variant import RUNTIME, THREADS

if TYPE_CHECKING:
    from collections.abc import Iterable

    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.settings.setting import Setting

# The runtime that counts where none is named.
USUAL_RUNTIME = "that of your settings, or the usual one of the model's format"


def add_models_argument(parser: Parser, *, many: bool, needed: bool = True, more: str = "") -> None:
    """Take one MODEL or several, and the shapes and values of their inputs."""
    explained = "a *-symbol.json or *.onnx file, a name that `dlbricks models` lists, or table1:ID"
    if many:
        explained += "; `table1` stands for all fifty"
        parser.add_argument("models", metavar="MODEL", nargs="+" if needed else "*", help=explained + more)
    else:
        parser.add_argument("model", metavar="MODEL", nargs=None if needed else "?", help=explained + more)
    add_input_options(parser)


def add_input_options(parser: Parser) -> None:
    """Take the shapes of inputs whose shape is not in the file, and the values of inputs that are settings."""
    about = "the shape of an input, where the file does not say it; nothing after = is a single number"
    parser.add_repeatable("--input", "NAME=1,3,224,224", about)
    about = "the value of an input that is a setting, such as a sampling rate: a number or a text, or several with "
    parser.add_repeatable("--value", "NAME=16000", f"{about}commas")


def add_runtime_option(parser: Parser) -> None:
    """Take the runtime, which decides about the files of models that have several."""
    parser.add_setting(
        RUNTIME, about=f"{RUNTIME.about}: it decides which file of a model is taken", usual=USUAL_RUNTIME
    )


def add_cutting_options(parser: Parser, *, level: str = "", usual_level: str = "") -> None:
    """Take granularity, level, cut and order. Without a level the results of the system decide."""
    parser.add_settings(*CUTTING)
    usual = usual_level or level or "that of the results"
    parser.add_setting(LEVEL, default=LEVEL.kind.read(level) if level else None, usual=usual)


def add_measuring_runtime_options(parser: Parser, *, many: bool) -> None:
    """Take the runtime that measures and its threads, or several of each."""
    parser.add_setting(RUNTIME, many=many, usual=USUAL_RUNTIME)
    parser.add_setting(THREADS, many=many)


def add_measured_only_option(parser: Parser) -> None:
    """Take whether missing bricks are predicted."""
    about = "predict no missing brick: without predictions, the sum of a model with missing bricks is a part only"
    parser.add_flag("--measured-only", about=about)


def is_usual_runtime(args: Arguments) -> bool:
    """Return whether the runtime is that of the settings, which counts only for models that it runs."""
    return "runtime" in args.from_config


def runtime_given(args: Arguments) -> dict[str, Any]:
    """Return the runtime that measures and its threads, by their fields in options classes."""
    named, usual = (None, args.runtime) if is_usual_runtime(args) else (args.runtime, None)
    return {"runtime": named, "usual_runtime": usual, "threads": args.threads}


def values_of(args: argparse.Namespace, settings: Iterable[Setting[Any]]) -> dict[str, Any]:
    """Return what the command line says of settings, by their fields in options classes."""
    given = vars(args)
    return {it.field: given[it.dest] for it in settings}


def inputs_of(args: Arguments) -> dict[str, Any]:
    """Return the shapes and values of inputs by their fields in options classes."""
    from dlbricks_tui.api.opening import parsed_inputs

    return parsed_inputs(args.input, args.value)


def given_options(args: Arguments) -> list[str]:
    """Return the options for inputs as they were given."""
    given = {"--input": args.input, "--value": args.value}
    return [word for option, texts in given.items() for text in texts for word in (option, text)]


def cutting_of(given: Arguments | Config) -> Cutting:
    """Return how models are to be cut: by the command line, or by the settings."""
    # Loaded here, as below: other commands share options, and need no store.
    from dlbricks_tui.api.opening import CutOptions

    return CutOptions(granularity=given.granularity, cut=given.cut, order=given.order).cutting


def usual_of(args: Arguments) -> dict[str, Any]:
    """Return what the settings say of estimates, by its fields in options classes."""
    config = args.config
    return {
        **inputs_of(args),
        "usual_cutting": cutting_of(config),
        "usual_runtime": config.runtime,
        "usual_threads": config.threads,
        "measured_only": vars(args).get("measured_only", False) or not config.predicts,
    }


def estimate_options_of(args: Arguments, *settings: Setting[Any], **given: Any) -> EstimateOptions:
    """Return the options of estimates that have these settings; those of the user say which runtimes are usual."""
    from dlbricks_tui.api.scope import EstimateOptions

    return EstimateOptions(**values_of(args, settings), **usual_of(args), **given)
