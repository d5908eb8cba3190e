"""Options that several commands share: which models, and how they are cut."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING

from dlbricks_tui.cli.output import narrate, worded
from dlbricks_tui.cli.parser import FromConfig, Parser
from dlbricks_tui.settings import SAMPLE_MODELS

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.models.graph import LayerGraph, Shape
    from dlbricks_tui.models.library import Library, ModelSource
    from dlbricks_tui.models.loading import Loader
    from dlbricks_tui.runtime.runtime import Runtime

# Spelled out here, as importing the rooms that define them would slow `--help`; a test holds both together.
LEVELS = ("written", "fused")
CUTS = ("chain", "runnable", "overlap")
ORDERS = ("branch", "paper")
METHODS = ("inside", "alone")
MOST_MODELS_END_TO_END = 3


def add_models_argument(parser: Parser, *, many: bool) -> None:
    """Takes one MODEL or several."""
    explained = "a *-symbol.json or *.onnx file, a name that `dlbricks models` lists, or table1:ID"
    if many:
        explained += "; `table1` stands for all fifty"
        parser.add_argument("models", metavar="MODEL", nargs="+", help=explained)
    else:
        parser.add_argument("model", metavar="MODEL", help=explained)
    add_input_option(parser)


def add_input_option(parser: Parser) -> None:
    """Take the shapes of inputs whose shape is not in the file."""
    parser.add_argument(
        "--input",
        metavar="NAME=1,3,224,224",
        action="append",
        default=[],
        help="the shape of an input, where the file does not say it; repeatable",
    )


def add_cutting_options(parser: Parser, *, level: str) -> None:
    """Takes granularity, level, cut and order."""
    parser.add_argument(
        "-g",
        "--granularity",
        metavar="G",
        type=int,
        default=FromConfig("cutting.granularity"),
        help="the most layers of a sequence (default: 1)",
    )
    parser.add_argument(
        "--level",
        choices=LEVELS,
        default=level,
        help=f"layers as the model has them, or as the runtime fuses them (default: {level})",
    )
    parser.add_argument(
        "--cut",
        choices=CUTS,
        default=FromConfig("cutting.cut"),
        help="which windows of layers are sequences (default: chain)",
    )
    parser.add_argument(
        "--order",
        choices=ORDERS,
        default=FromConfig("cutting.order"),
        help="in which order layers are cut (default: branch)",
    )


def library(args: argparse.Namespace) -> Library:
    """The samples and the folders that this user has added."""
    from dlbricks_tui.models.library import Library

    return Library(SAMPLE_MODELS, args.data.path)


def cutting(args: argparse.Namespace) -> Cutting:
    """How the command line wants models cut."""
    from dlbricks_tui.bricks.cutting import Cut
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.bricks.ordering import Order

    return Cutting(args.granularity, Cut(args.cut), Order(args.order))


def given_shapes(args: argparse.Namespace) -> dict[str, Shape]:
    """The input shapes of the command line by input name."""
    from dlbricks_tui.models.input_shapes import parse_input

    return dict(parse_input(text) for text in args.input)


@contextmanager
def open_loader(args: argparse.Namespace, runtime: Runtime | None = None) -> Iterator[Loader]:
    """Loads models as a runtime has them, or the one that works where nobody names one.

    Its process starts when the first unknown model needs it, and ends here.
    """
    from dlbricks_tui.models.frameworks import open_loader_of
    from dlbricks_tui.models.shape_memory import ShapeMemory
    from dlbricks_tui.runtime.registry import Registry

    runtimes = Registry(args.data.path).one_of_each_format(runtime)
    memory = ShapeMemory(args.data.path, _tell_remembered)
    with open_loader_of(runtimes, args.data.cache, args.data.log / "framework.log", memory) as loader:
        yield loader


def _tell_remembered(source: ModelSource, shapes: Mapping[str, Shape]) -> None:
    from dlbricks_tui.models.input_shapes import spelled

    narrate(f"{source.name}: its inputs have the shapes given before: {spelled(shapes)}; --input gives others")


def loader_of_known(args: argparse.Namespace) -> Loader:
    """Loads what needs no framework."""
    from dlbricks_tui.models import frameworks
    from dlbricks_tui.runtime.registry import Registry

    runtimes = Registry(args.data.path).one_of_each_format()
    return frameworks.loader_of_known(runtimes, args.data.cache, args.data.log / "framework.log")


def load(loader: Loader, source: ModelSource, args: argparse.Namespace) -> LayerGraph:
    """One model at the level and with the input shapes of the command line."""
    from dlbricks_tui.models.graph import Level

    return loader.load(source, Level(args.level), given_shapes(args))


def load_all(
    loader: Loader, sources: Sequence[ModelSource], args: argparse.Namespace
) -> list[tuple[ModelSource, LayerGraph]]:
    """Several models like `load`; those that cannot be loaded are named on standard error and left out.

    Where none can be loaded, raises what is wrong with the first.
    """
    from dlbricks_tui.models.left_out import UNLOADABLE, LeftOut

    loaded: list[tuple[ModelSource, LayerGraph]] = []
    left_out = LeftOut(worded)
    # Of the fifty models of Table 1 some are the same network, in one file.
    known: dict[object, LayerGraph] = {}
    for source in sources:
        network = (source.path, *source.inputs.items())
        try:
            graph = known.get(network) or load(loader, source, args)
        except UNLOADABLE as refusal:
            left_out.add(source, refusal)
        else:
            known[network] = graph
            loaded.append((source, replace(graph, name=source.name)))
    if left_out.first is not None and not loaded:
        raise left_out.first
    for line in left_out.lines:
        narrate(f"left out: {line}")
    return loaded
