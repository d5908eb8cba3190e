"""The options of `dlbricks analyze` that show times on the graph of the file: as a tree, and as files."""

import argparse
from collections.abc import Sequence
from pathlib import Path

from dlbricks_tui.analysis.written_times import Basis
from dlbricks_tui.answers.analysis.analysing import Analysis
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.cli.options import cutting_of
from dlbricks_tui.cli.output import data_console, narrate, write_lines
from dlbricks_tui.cli.parser import Parser, UsageError
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.wording.numbers import counted, in_ms


def add_graph_options(parser: Parser) -> None:
    """Take how times are shown on the graph of the file."""
    parser.add_argument(
        "--tree", action="store_true", help="show the layers of the file as a tree, with the time that each part takes"
    )
    graphs = parser.add_argument_group("the layers of the file as a graph file, with the time of each in ms")
    graphs.add_argument(
        "--graphml", type=Path, metavar="FILE", help="write GraphML, which networkx, yEd and Gephi read"
    )
    graphs.add_argument("--dot", type=Path, metavar="FILE", help="write DOT, drawn by Graphviz")
    graphs.add_argument(
        "--onnx", type=Path, metavar="FILE", help="write a copy of an ONNX file with times in its metadata"
    )


def show_written_tree(found: Analysis, cutting: Cutting) -> None:
    """Show the layers of the file as a tree, with times."""
    if found.times is None or found.written is None:
        narrate(_untimed(found))
        return
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.tree import SequenceTime, tree

    times = found.times.layers
    decomposition = decompose(found.written, cutting)
    spent = [
        SequenceTime(
            sum(times[layer].latency_ms for layer in it.sequence.layers),
            any(times[layer].basis is Basis.ROOFLINE for layer in it.sequence.layers),
        )
        for it in decomposition.occurrences
    ]
    write_lines([""])
    show_parts(tree(decomposition, data_console().width, spent))
    if found.times.inserted_ps:
        narrate(f"{in_ms(milliseconds(found.times.inserted_ps))} more in layers that the runtime inserts")


def write_graph_files(args: argparse.Namespace, analyses: Sequence[Analysis]) -> None:
    """Write the graph files that the options name."""
    if not (args.graphml or args.dot or args.onnx):
        return
    if len(analyses) != 1:
        raise UsageError("--graphml, --dot and --onnx write one model: name one, and one --runtime")
    (found,) = analyses
    if found.times is None or found.written is None:
        raise UsageError(_untimed(found))
    if args.graphml or args.dot:
        from dlbricks_tui.report.graph_files import add_written_times, drawable_digraph, write_dot, write_graphml

        digraph = drawable_digraph(decompose(found.written, cutting_of(args)), None)
        add_written_times(digraph, found.times)
        if args.graphml:
            write_graphml(args.graphml, digraph)
        if args.dot:
            write_dot(args.dot, digraph)
    if args.onnx:
        from dlbricks_tui.report.annotated_file import write_annotated_copy

        facts = {"system": found.system, "runtime": found.baseline.found.way.runtime}
        left = write_annotated_copy(args.onnx, found.written, found.times, facts)
        if left:
            narrate(f"{args.onnx}: {counted(left, 'node')} without a time, as no layer stands for them")


def _untimed(found: Analysis) -> str:
    how = f": `{found.missing[0].command}` measures them" if found.baseline.estimate.coverage.missing else ""
    return f"{found.source.name}: the times of its layers are not known{how}"
