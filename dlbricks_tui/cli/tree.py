"""`dlbricks tree`: one model cut into layer sequences."""

import argparse
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dlbricks_tui.answers.opening import files_for
from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence, decompose
from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_models_argument,
    add_runtime_option,
    cutting_of,
    runtime_of,
    shapes_of,
    sources_of,
    values_given,
)
from dlbricks_tui.cli.output import data_console, narrate, write_json
from dlbricks_tui.cli.parser import Parser, Status, UsageError, add_json_option, add_setting
from dlbricks_tui.cli.store import open_loader
from dlbricks_tui.models.graph import Layer, Level, unmeasurable_layers
from dlbricks_tui.models.input_shapes import listed
from dlbricks_tui.models.library import ModelSource, shared_formats
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.variant import Precision
from dlbricks_tui.settings.variant import PRECISION


def register(parser: Parser) -> None:
    """Add the options of `tree`."""
    add_models_argument(parser, many=False)
    add_cutting_options(parser, level=Level.WRITTEN)
    add_runtime_option(parser)
    add_setting(parser, PRECISION)
    graphs = parser.add_argument_group(
        "the graph as a file, with latencies in ms as far as they are known on this host"
    )
    graphs.add_argument(
        "--graphml", type=Path, metavar="FILE", help="write GraphML, which networkx, yEd and Gephi read"
    )
    graphs.add_argument("--dot", type=Path, metavar="FILE", help="write DOT, drawn by Graphviz")
    add_json_option(parser)
    parser.set_defaults(handler=show_tree)


def show_tree(args: argparse.Namespace) -> int:
    """Cut one model and show the result."""
    sources = sources_of(args, [args.model])
    if len(sources) != 1:
        raise UsageError(f"{args.model} stands for {len(sources)} models; `tree` shows one, such as table1:14")
    runtime = runtime_of(args)
    if args.precision is not None:
        runtime = _computing_in(args.precision, args, sources)
        sources = files_for(sources, runtime)
    with open_loader(args.data, runtime) as loader:
        graph = loader.load(sources[0], args.level, shapes_of(args), values_given(args))
    decomposition = decompose(graph, cutting_of(args), loader.cache)
    if args.graphml or args.dot:
        _write_files(args, decomposition)
    if args.json:
        write_json(_document(decomposition))
    else:
        from dlbricks_tui.cli.rendering import show_parts
        from dlbricks_tui.documents.tree import tree

        show_parts(tree(decomposition, data_console().width))
    for reason, layers in unmeasurable_layers(graph).items():
        named = listed([f"{layer.index} {layer.name!r} ({layer.op})" for layer in layers])
        narrate(f"unmeasurable: {'layer' if len(layers) == 1 else 'layers'} {named}: {reason}")
    return Status.DONE


def _computing_in(precision: Precision, args: argparse.Namespace, sources: Sequence[ModelSource]) -> Runtime:
    """Return the runtime that `--runtime` names, or the usual one of those with the precision, in that precision."""
    named, registry, formats = runtime_of(args), Registry(args.data.path), shared_formats(sources)
    if named is None or ("runtime" in args.from_config and not named.computes_in(precision)):
        named = registry.preferred_for(formats, precision) or registry.runtime_for(formats)
    return named.with_precision(precision)


def _write_files(args: argparse.Namespace, decomposition: Decomposition) -> None:
    from dlbricks_tui.answers.estimating import estimates_here
    from dlbricks_tui.report.graph_files import drawable_digraph, write_dot, write_graphml

    (estimate,) = estimates_here(args.data, args.runtime, args.config.threads, [decomposition], args.precision)
    digraph = drawable_digraph(decomposition, estimate)
    if args.graphml:
        write_graphml(args.graphml, digraph)
    if args.dot:
        write_dot(args.dot, digraph)


def _document(decomposition: Decomposition) -> dict[str, Any]:
    graph, how = decomposition.graph, decomposition.cutting
    return {
        "model": graph.name,
        "level": graph.level.value,
        "granularity": how.granularity,
        "cut": how.cut.value,
        "order": how.order.value,
        "layers": len(graph.layers),
        "unique_layers": len(decomposition.bricks),
        "contexts": len(decomposition.suite),
        "inputs": {entry.name: entry.type.shape for entry in graph.inputs},
        "sequences": [_sequence(decomposition, occurrence) for occurrence in decomposition.occurrences],
        "edges": graph.edges,
    }


def _sequence(decomposition: Decomposition, occurrence: Occurrence) -> dict[str, Any]:
    return {
        "index": occurrence.sequence.index,
        "brick": occurrence.brick.key,
        "context": occurrence.context,
        "layers": [_layer(decomposition.graph.layers[index]) for index in occurrence.sequence.layers],
    }


def _layer(layer: Layer) -> dict[str, Any]:
    return {
        "index": layer.index,
        "name": layer.name,
        "op": layer.op,
        "kind": layer.kind.value,
        "times": layer.times,
        "in_shapes": [it.shape for it in layer.data],
        "out_shapes": [it.shape for it in layer.outputs],
        "unmeasurable": layer.unmeasurable,
        "recorded": layer.is_recorded,
    }
