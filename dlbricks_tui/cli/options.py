"""Options that several commands share, and their values as types; everything else takes those, not the arguments."""

from __future__ import annotations

import argparse
import math
from enum import Enum
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.cli.parser import MOST_LAYERS, FromConfig, Parser, Whole, WholeNumbers, add_repeatable
from dlbricks_tui.models.graph import Level, Numbers, Shape
from dlbricks_tui.models.input_shapes import parse_input
from dlbricks_tui.models.input_values import parse_value_option
from dlbricks_tui.runtime.runtime import MOST_THREADS
from dlbricks_tui.runtime.variant import (
    CHOSEN_PRECISIONS,
    MOST_IN_A_BATCH,
    InstructionSet,
    Optimisation,
    Precision,
)

if TYPE_CHECKING:
    from collections.abc import Callable, Sequence

    from dlbricks_tui.answers.scope import EstimateOptions
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.runtime import Runtime

# The end of the help of options that take a runtime.
USUAL_RUNTIME = "(default: that of your settings, or the usual one of the model's format)"
# More sequences at once than any model has.
MOST_WORKERS = 64
_PRECISIONS = {each.value: each for each in CHOSEN_PRECISIONS}


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
    parser.add_argument(
        "--runtime",
        metavar="R",
        default=FromConfig("run.runtime"),
        help="a runtime that `dlbricks runtimes` lists, or a framework: it decides which file of a model is taken "
        + USUAL_RUNTIME,
    )


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


def add_cutting_options(parser: Parser, *, level: Level) -> None:
    """Take granularity, level, cut and order."""
    parser.add_argument(
        "-g",
        "--granularity",
        metavar="G",
        type=Whole(1, MOST_LAYERS),
        default=FromConfig("cutting.granularity"),
        help="the most layers of a sequence (default: 1)",
    )
    parser.add_argument(
        "--level",
        choices=values_of(Level),
        default=level.value,
        help=f"layers as the model has them, or as the runtime fuses them (default: {level.value})",
    )
    parser.add_argument(
        "--cut",
        choices=values_of(Cut),
        default=FromConfig("cutting.cut"),
        help=f"the windows of layers that are sequences (default: {Cut.CHAIN.value})",
    )
    parser.add_argument(
        "--order",
        choices=values_of(LayerOrder),
        default=FromConfig("cutting.order"),
        help=f"the order in which layers are cut (default: {LayerOrder.BRANCH.value})",
    )


def values_of(kind: type[Enum]) -> list[str]:
    """Return the words that an option allows."""
    return [each.value for each in kind]


class GivenRuntime(NamedTuple):
    """The runtime of the command line, or that of the settings, which counts only for models that it runs."""

    named: Any
    usual: Any


def add_measuring_runtime_options(parser: Parser, *, many: bool) -> None:
    """Take the runtime that measures and its threads, or several of each."""
    parser.add_argument(
        "--runtime",
        metavar="R",
        type=names if many else str,
        default=FromConfig("run.runtime"),
        help=f"a runtime that `dlbricks runtimes` lists{', or several with commas' * many} {USUAL_RUNTIME}",
    )
    parser.add_argument(
        "--threads",
        metavar="N",
        type=WholeNumbers(MOST_THREADS) if many else Whole(1, MOST_THREADS),
        default=FromConfig("run.threads"),
        help=f"number of threads that the framework computes with{', or several: 1,2,4' * many}",
    )


def given_runtime(args: argparse.Namespace) -> GivenRuntime:
    """Return the runtime that `add_measuring_runtime_options` takes."""
    return GivenRuntime(None, args.runtime) if "runtime" in args.from_config else GivenRuntime(args.runtime, None)


def add_variant_options(parser: Parser, *, many: bool = True) -> None:
    """Take batch sizes, precisions and limits on kernels, or one of each.

    The runtime and its threads are options of each command.
    """
    parser.add_argument(
        "--batch",
        metavar="N",
        type=WholeNumbers(MOST_IN_A_BATCH) if many else Whole(1, MOST_IN_A_BATCH),
        default=() if many else None,
        help=f"images, sentences or rows in an inference{', or several batch sizes: 1,2,4,8' * many} (default: that of "
        "the file, 1 where it is open)",
    )
    parser.add_argument(
        "--precision",
        metavar="P",
        type=precisions if many else precision,
        default=() if many else None,
        help="the numbers that the runtime computes with: f32, bf16, or int8 for a quantised copy of the model"
        f"{', or several' * many} (default: f32; models that are quantised already run as they are)",
    )
    add_kernel_options(parser, "all", many=many)


def add_kernel_options(parser: Parser, default: str, *, many: bool = True) -> None:
    """Take the limits on the kernels of a runtime, or one of each."""
    parser.add_argument(
        "--instructions",
        metavar="I",
        type=members_of(InstructionSet) if many else _member_of(InstructionSet),
        default=() if many else None,
        help=f"the widest vector instructions for the kernels of MXNet or OpenVINO{', or several' * many}, such as "
        f"avx2{',avx512_core,all' * many} (default: {default})",
    )
    parser.add_argument(
        "--optimisation",
        metavar="O",
        type=members_of(Optimisation) if many else _member_of(Optimisation),
        default=() if many else None,
        help=f"the level up to which ONNX Runtime optimises graphs{', or several' * many}: all, extended (without "
        f"NCHWc), basic or none (default: {default})",
    )


_Member = TypeVar("_Member", bound=Enum)


def members_of(kind: type[_Member]) -> Callable[[str], tuple[_Member, ...]]:
    """Return the type of an option that takes words of an enumeration between commas, each once."""
    known = {str(each.value): each for each in kind}

    def members(text: str) -> tuple[_Member, ...]:
        given = names(text)
        if not set(given) <= known.keys():
            raise argparse.ArgumentTypeError(f"{text[:40]!r}: give one of {', '.join(known)}, or several with commas")
        return tuple([known[each] for each in given])

    return members


def _member_of(kind: type[_Member]) -> Callable[[str], _Member]:
    """Return the type of an option that takes one word of an enumeration."""
    known = {str(each.value): each for each in kind}

    def member(text: str) -> _Member:
        if text not in known:
            raise argparse.ArgumentTypeError(f"{text[:40]!r}: give one of {', '.join(known)}")
        return known[text]

    return member


def precision(text: str) -> Precision:
    """Return a precision by its name; the type of an option."""
    if text not in _PRECISIONS:
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: give one of {', '.join(_PRECISIONS)}")
    return _PRECISIONS[text]


def precisions(text: str) -> tuple[Precision, ...]:
    """Return the precisions between commas, each once; the type of an option."""
    given = names(text)
    if not set(given) <= _PRECISIONS.keys():
        raise argparse.ArgumentTypeError(f"{text[:40]!r}: give one of {', '.join(_PRECISIONS)}, or several with commas")
    return tuple([_PRECISIONS[each] for each in given])


def names(text: str) -> tuple[str, ...]:
    """Return the names between commas, each once; the type of an option. An identity of a runtime has spaces."""
    found = [text] if " " in text else text.split(",")
    if not all(found):
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: give a name, or several with commas")
    return tuple(dict.fromkeys(found))


def share(text: str) -> float:
    """Return a share such as `5%` or `0.05`; the type of an option."""
    try:
        found = float(text.removesuffix("%")) / (100 if text.endswith("%") else 1)
    except ValueError:
        found = math.nan
    if not 0 < found < 1:
        raise argparse.ArgumentTypeError(f"{text[:80]!r}: give a share above 0 % and below 100 %, such as 5%")
    return found


def add_composition_options(parser: Parser) -> None:
    """Take workers, rules, and whether missing bricks are predicted."""
    parser.add_argument(
        "--workers",
        metavar="K",
        type=Whole(1, MOST_WORKERS),
        default=FromConfig("estimate.workers"),
        help="compose for K workers too",
    )
    parser.add_argument(
        "--rules", metavar="FILE", type=Path, help="a TOML file that says which layers may run in parallel"
    )
    add_measured_only_option(parser)


def add_measured_only_option(parser: Parser) -> None:
    """Take whether missing bricks are predicted."""
    parser.add_argument(
        "--measured-only",
        action="store_true",
        help="predict no missing brick: without predictions, the sum of a model with missing bricks is a part only",
    )


def cutting_of(args: argparse.Namespace) -> Cutting:
    """Return how models are to be cut."""
    return Cutting(args.granularity, Cut(args.cut), LayerOrder(args.order))


def shapes_of(args: argparse.Namespace) -> dict[str, Shape]:
    """Return the given input shapes by input name."""
    return dict(parse_input(text) for text in args.input)


def values_given(args: argparse.Namespace) -> dict[str, Numbers]:
    """Return the given values of inputs by input name."""
    return dict(parse_value_option(text) for text in args.value)


def given_options(args: argparse.Namespace) -> list[str]:
    """Return the options for inputs as they were given."""
    given = {"--input": args.input, "--value": args.value}
    return [word for option, texts in given.items() for text in texts for word in (option, text)]


def usual_cutting_of(config: Config) -> Cutting:
    """Return the cutting of the settings, which commands use unless they name another one."""
    return Cutting(config.granularity, Cut(config.cut), LayerOrder(config.order))


def estimate_options_of(
    args: argparse.Namespace, system: str | None = None, runtime: str | None = None
) -> EstimateOptions:
    """Return the options of estimates; the settings say which runtimes are the usual ones."""
    # Loaded here: other commands share options, and need no store.
    from dlbricks_tui.answers.scope import EstimateOptions

    cutting = cutting_of(args)
    return EstimateOptions(
        granularity=cutting.granularity,
        # Without a level, the stored results decide.
        level=None if args.level is None else Level(args.level),
        cut=cutting.cut,
        order=cutting.order,
        inputs=shapes_of(args),
        values=values_given(args),
        usual_cutting=usual_cutting_of(args.config),
        system=system,
        runtime=runtime,
        usual_runtime=args.config.runtime,
        usual_threads=args.config.threads,
        workers=args.workers,
        rules=args.rules,
        measured_only=args.measured_only or not args.config.predicts,
    )
