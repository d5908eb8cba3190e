"""`dlbricks tree`: one model cut into layer sequences."""

from __future__ import annotations

import argparse
from typing import TYPE_CHECKING

from dlbricks_tui.cli.options import add_cutting_options, add_models_argument, cutting_of, level_of, shapes_of
from dlbricks_tui.cli.output import Json, data_console, narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, Status, UsageError, add_json_option
from dlbricks_tui.cli.store import open_loader

if TYPE_CHECKING:
    from dlbricks_tui.bricks.decomposition import Decomposition, Occurrence
    from dlbricks_tui.models.graph import Layer, TensorType


def register(groups: Groups) -> None:
    """Add `tree`."""
    parser = groups.add_parser("tree", help="show the layer sequences of a model, and which of them repeat")
    add_models_argument(parser, many=False)
    add_cutting_options(parser, level="written")
    add_json_option(parser)
    parser.set_defaults(handler=show_tree)


def show_tree(args: argparse.Namespace) -> int:
    """Cut one model and show the result."""
    from dlbricks_tui.answers.opening import library
    from dlbricks_tui.bricks.decomposition import decompose
    from dlbricks_tui.models.graph import Level

    sources = library(args.data).find(args.model)
    if len(sources) != 1:
        raise UsageError(f"{args.model} stands for {len(sources)} models; `tree` shows one, such as table1:14")
    with open_loader(args.data) as loader:
        graph = loader.load(sources[0], level_of(args) or Level.WRITTEN, shapes_of(args))
    decomposition = decompose(graph, cutting_of(args))
    if args.json:
        write_json(_document(decomposition))
    else:
        from dlbricks_tui.cli.tree_view import tree_view

        show(*tree_view(decomposition, data_console()))
    for layer in graph.layers:
        if layer.unmeasurable is not None:
            narrate(f"unmeasurable: layer {layer.index} {layer.name!r} ({layer.op}): {layer.unmeasurable}")
    return Status.DONE


def _document(decomposition: Decomposition) -> Json:
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
        "inputs": {entry.name: _shape(entry.type) for entry in graph.inputs},
        "sequences": [_sequence(decomposition, occurrence) for occurrence in decomposition.occurrences],
        "edges": [list(edge) for edge in graph.edges],
    }


def _sequence(decomposition: Decomposition, occurrence: Occurrence) -> Json:
    return {
        "index": occurrence.sequence.index,
        "brick": occurrence.brick.key,
        "context": occurrence.context,
        "layers": [_layer(decomposition.graph.layers[index]) for index in occurrence.sequence.layers],
    }


def _layer(layer: Layer) -> Json:
    return {
        "index": layer.index,
        "name": layer.name,
        "op": layer.op,
        "kind": layer.kind.value,
        "times": layer.times,
        "in_shapes": [_shape(it) for it in layer.data],
        "out_shapes": [_shape(it) for it in layer.outputs],
        "unmeasurable": layer.unmeasurable,
    }


def _shape(tensor: TensorType) -> Json:
    return None if tensor.shape is None else list(tensor.shape)
