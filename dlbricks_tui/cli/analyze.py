"""`dlbricks analyze`: how fast models could be, where their time goes, and what changes would gain."""

from __future__ import annotations

import argparse
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.analysis.kernels import KernelsError, TimedKernel
from dlbricks_tui.analysis.what_if import WhatIfKind
from dlbricks_tui.analysis.whole_models import Basis
from dlbricks_tui.answers.analyses import csv_rows, model_analysis, model_row
from dlbricks_tui.answers.analysing import Analyser, Analysis, MissingPart
from dlbricks_tui.answers.opening import library
from dlbricks_tui.bricks.decomposition import Cutting, decompose
from dlbricks_tui.bricks.programs import ProgramError
from dlbricks_tui.cli.options import (
    USUAL_RUNTIME,
    add_cutting_options,
    add_models_argument,
    add_variant_options,
    cutting_of,
    estimate_options_of,
)
from dlbricks_tui.cli.output import (
    data_console,
    narrate,
    narrate_some,
    narrate_waiting,
    worded,
    write_csv,
    write_json,
    write_lines,
)
from dlbricks_tui.cli.parser import (
    Parser,
    Status,
    Typed,
    UsageError,
    add_format_options,
    add_schema_option,
    add_setting,
)
from dlbricks_tui.cli.store import open_estimator
from dlbricks_tui.estimate.compositions import milliseconds
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.runtime.errors import WorkerError
from dlbricks_tui.settings.cutting import CUTTING, LEVEL
from dlbricks_tui.settings.setting import name, one_of, several
from dlbricks_tui.settings.variant import EXECUTION, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.wording.numbers import counted, in_ms, names_of

if TYPE_CHECKING:
    from dlbricks_tui.documents.parts import Part
    from dlbricks_tui.documents.pictures import Plot

_WIDEST = 120
# The picture, its legend and its sentence fit on one screen of 24 lines.
_PICTURE_LINES = 23


def register(parser: Parser) -> None:
    """Add the options of `analyze`."""
    add_models_argument(parser, many=True)
    add_setting(parser, RUNTIME, many=True, default=(), usual=USUAL_RUNTIME)
    add_setting(parser, THREADS, default=None)
    add_variant_options(parser, many=False)
    add_cutting_options(parser)
    add_setting(parser, SYSTEM)
    parser.add_argument(
        "--layers", action="store_true", help="show for each group of layers the execution in which it was fastest"
    )
    _add_measuring_options(parser)
    parser.add_argument(
        "--kernels",
        action="store_true",
        help="show which kernels compute the layers, and why others were refused; the runtime loads the model for it",
    )
    parser.add_argument(
        "--roofline", action="store_true", help="draw the layers under the peaks of the system, on logarithmic axes"
    )
    add_graph_options(parser)
    add_format_options(parser)
    add_schema_option(parser, "ModelAnalysis", module="analyses", many=True)
    parser.set_defaults(handler=analyze_models)


def _add_measuring_options(parser: Parser) -> None:
    """Take what is to be measured before models are analysed."""
    parser.add_argument(
        "--measure",
        action="store_true",
        help="first measure what is missing: other threads, kernels, runtimes, levels, precisions and batch sizes for "
        "the what-ifs, and the peaks of this host for the roofline",
    )
    parser.add_argument(
        "--prove",
        metavar="ID",
        type=Typed(several(name("an id"))),
        default=(),
        help="carry out the what-if with this id, or several with commas, or `all`: time the whole model before and "
        "after the change, in alternating rounds",
    )
    parser.add_argument(
        "--kinds",
        metavar="K",
        type=Typed(several(one_of(*WhatIfKind))),
        default=tuple(WhatIfKind),
        help="measure and prove only these kinds of what-ifs, with commas (default: all)",
    )


def analyze_models(args: argparse.Namespace) -> int:
    """Analyse each model on each runtime, from stored results and what is to be measured before."""
    found = list(_analyses(args))
    measured = Status.DONE
    if args.measure or args.prove:
        # Loaded here: stored results need no runs.
        from dlbricks_tui.cli.analyze_measuring import measure_lacking, prove_what_ifs

        for wanted, measure in ((args.measure, measure_lacking), (args.prove, prove_what_ifs)):
            if wanted:
                measured = max(measured, measure(args, found))
                if measured is Status.INTERRUPTED:
                    return measured
                found = list(_analyses(args))
    kernels = [_kernels(each, args.data) if args.kernels else () for each in found]
    write_graph_files(args, found)
    if args.json:
        write_json([model_analysis(it, its) for it, its in zip(found, kernels, strict=True)])
    elif args.csv:
        write_csv(csv_rows([model_row(it) for it in found]))
    else:
        _show(args, found, kernels)
    _narrate_missing(found)
    complete = all(it.best is not None for it in found) and (not args.kernels or all(kernels))
    return measured if complete and found else Status.DONE_WITH_FAILURES


def _show(args: argparse.Namespace, found: Sequence[Analysis], kernels: Sequence[Sequence[TimedKernel]]) -> None:
    # Loaded here: the other formats need no tables.
    from dlbricks_tui.cli.rendering import show_parts
    from dlbricks_tui.documents.analysis import AnalysisDocument, analyses_parts, kernels_table
    from dlbricks_tui.documents.parts import BLANK_LINE

    if len({it.source.name for it in found}) > 1 and not (args.layers or args.kernels or args.roofline or args.tree):
        show_parts(analyses_parts([model_row(it) for it in found]), _WIDEST)
        return
    for place, each in enumerate(found):
        one = AnalysisDocument(each)
        show_parts([BLANK_LINE] if place else [])
        show_parts(one.whole(with_layers=args.layers), _WIDEST)
        if kernels[place]:
            show_parts([BLANK_LINE, kernels_table(kernels[place])], _WIDEST)
        if args.roofline:
            show_parts(_roofline(one.roofline), _WIDEST)
        if args.tree:
            show_written_tree(each, cutting_of(args))


def _narrate_missing(found: Sequence[Analysis]) -> None:
    """Name what the analyses lack: once for all models that lack the same, such as the peaks."""
    lacking: dict[MissingPart, list[str]] = {}
    for each in found:
        for it in each.missing:
            lacking.setdefault(it, []).append(each.source.name)
    together: dict[tuple[str, ...], list[MissingPart]] = {}
    for it, models in lacking.items():
        together.setdefault(tuple(dict.fromkeys(models)), []).append(it)
    lines = []
    for named, held in together.items():
        told = "; ".join(f"{it.what}: `{it.command}`" for it in held)
        lines.append(f"{names_of(named)} {'lacks' if len(named) == 1 else 'lack'} {told}")
    narrate_some(lines, "models that lack something")


def _analyses(args: argparse.Namespace) -> Iterator[Analysis]:
    sources = library(args.data).find_all(args.models)
    options = estimate_options_of(args, *CUTTING, LEVEL, SYSTEM, THREADS, *EXECUTION)
    for runtime in args.runtime or (None,):
        with open_estimator(replace(options, runtime=runtime), args.data) as estimator:
            yield from Analyser(estimator, args.models).analyses(sources)


def _kernels(found: Analysis, data: DataFolder) -> Sequence[TimedKernel]:
    """Return the kernels of a model's layers; none, with a remark, if the runtime does not tell them."""
    # Loaded here: an analysis needs no worker.
    from dlbricks_tui.answers.analysing import kernels_of
    from dlbricks_tui.host.queue import host_queue

    try:
        return kernels_of(found, data, host_queue(), narrate_waiting)
    except (KernelsError, ProgramError, WorkerError) as error:
        narrate(f"no kernels of {found.source.name}: {worded(error)}")
        return ()


def _roofline(plot: Plot | None) -> Iterator[Part]:
    # Loaded here: the other formats need no parts.
    from dlbricks_tui.documents.parts import BLANK_LINE, Plots, Sentence

    yield BLANK_LINE
    if plot is None:
        yield Sentence("no roofline: the peaks of the system are not known for this number of threads and precision")
    else:
        yield Plots((plot,), _PICTURE_LINES, plot.says)


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
        from dlbricks_tui.report.graph_files import write_annotated_copy

        facts = {"system": found.system, "runtime": found.baseline.found.way.runtime}
        left = write_annotated_copy(args.onnx, found.written, found.times, facts)
        if left:
            narrate(f"{args.onnx}: {counted(left, 'node')} without a time, as no layer stands for them")


def _untimed(found: Analysis) -> str:
    how = f": `{found.missing[0].command}` measures them" if found.baseline.estimate.coverage.missing else ""
    return f"{found.source.name}: the times of its layers are not known{how}"
