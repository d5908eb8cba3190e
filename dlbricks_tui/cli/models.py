"""`dlbricks models`, `tree` and `corpus`: the models of the library, their layer sequences, and what is the same."""

from __future__ import annotations

import argparse

from dlbricks_tui.cli.options import (
    add_cutting_options,
    add_models_argument,
    add_runtime_option,
    cutting_of,
    inputs_of,
    is_usual_runtime,
)
from dlbricks_tui.cli.output import data_console, narrate, show_parts, write_json
from dlbricks_tui.cli.parser import Arguments, Parser, Status, UsageError, path_in
from dlbricks_tui.errors import UserError
from dlbricks_tui.settings.variant import PRECISION
from dlbricks_tui.wording.numbers import counted


def register(parser: Parser) -> None:
    """Add the actions of `models`; without one it lists."""
    parser.add_listing("list the models", list_models)
    about = "add a model file, or a folder with *-symbol.json or *.onnx files"
    adding = parser.add_action("add", about, add, json=False)
    about = "forget a file or a folder; files stay where they are"
    removing = parser.add_action("remove", about, remove, json=False)
    for action in (adding, removing):
        action.add_argument("path", metavar="PATH", type=path_in)
    about = "forget the shapes and values that were given for the inputs of a model"
    resetting = parser.add_action("reset", about, reset, json=False)
    resetting.add_argument("model", metavar="MODEL", help="a name that `dlbricks models` lists, or a file")


def register_tree(parser: Parser) -> None:
    """Add the options of `tree`."""
    add_models_argument(parser, many=False)
    add_cutting_options(parser, level="written")
    add_runtime_option(parser)
    parser.add_setting(PRECISION)
    add_graph_files(parser, "the graph as a file, with latencies in ms as far as they are known on this host")
    parser.end(show_tree)


def register_corpus(parser: Parser) -> None:
    """Add the options of `corpus`."""
    add_models_argument(parser, many=True)
    add_cutting_options(parser, level="written")
    add_runtime_option(parser)
    parser.end(show_corpus)


def add_graph_files(parser: Parser, about: str) -> argparse._ArgumentGroup:
    """Take the files for a graph, and return their group."""
    graphs = parser.add_argument_group(about)
    parser.add_file("--graphml", about="write GraphML, which networkx, yEd and Gephi read", to=graphs)
    parser.add_file("--dot", about="write DOT, drawn by Graphviz", to=graphs)
    return graphs


def add(args: Arguments) -> int:
    """Add a model file to the library, or make it look into one more folder."""
    from dlbricks_tui.api.opening import add_to_library

    narrate(f"{args.path}: {counted(add_to_library(args.path, args.session.data), 'model')} added")
    return Status.DONE


def remove(args: Arguments) -> int:
    """Make the library forget a file or a folder."""
    args.session.library.remove(args.path)
    return Status.DONE


def reset(args: Arguments) -> int:
    """Forget the shapes and values that were given for the inputs of a model."""
    from dlbricks_tui.api.opening import forget_inputs

    narrate(*forget_inputs(args.model, args.session.data))
    return Status.DONE


def list_models(args: Arguments) -> int:
    """List every model; the reason why one cannot be read goes to standard error."""
    from dlbricks_tui.api.opening import model_document, with_counts

    models = args.session.library
    for path in models.missing():
        narrate(f"{path} is not there; `dlbricks models remove` makes the library forget it")
    sources = list(models.sources())
    if any(source.unique_layers is None for source in sources):
        with args.session.open_loader() as loader:
            for place, source in enumerate(sources):
                try:
                    sources[place] = source if source.unique_layers is not None else with_counts(source, loader)
                except UserError as error:
                    narrate(f"{source.path}: {error}")
    if args.json:
        write_json([model_document(source) for source in sources])
    else:
        from dlbricks_tui.documents.corpus import MODEL_COLUMNS
        from dlbricks_tui.documents.parts import Table

        show_parts([Table(MODEL_COLUMNS, sources)])
    return Status.DONE


def show_tree(args: Arguments) -> int:
    """Cut one model and show the result."""
    from dlbricks_tui.api.opening import (
        decomposed_model,
        files_for,
        files_named,
        runtime_here,
        runtime_in_precision,
        tree_document,
        unmeasurable_lines,
    )

    runtime, is_usual = runtime_here(args.runtime, args.session.data), is_usual_runtime(args)
    sources = files_named([args.model], runtime, args.session.data, is_usual=is_usual)
    if len(sources) != 1:
        raise UsageError(f"{args.model} stands for {len(sources)} models; `tree` shows one, such as table1:14")
    if args.precision is not None:
        runtime = runtime_in_precision(runtime, args.precision, sources, args.session.data, is_usual=is_usual)
        sources = files_for(sources, runtime)
    with args.session.open_loader(runtime) as loader:
        found = decomposed_model(loader, sources[0], args.level, cutting_of(args), inputs_of(args))
    if args.graphml or args.dot:
        from dlbricks_tui.api.estimating import estimates_here
        from dlbricks_tui.report.graph_files import drawable_digraph, write_digraph

        (estimate,) = estimates_here(args.session.data, args.runtime, args.config.threads, [found], args.precision)
        write_digraph(drawable_digraph(found, estimate), args.graphml, args.dot)
    if args.json:
        write_json(tree_document(found))
    else:
        from dlbricks_tui.documents.tree import tree

        show_parts(tree(found, data_console().width))
    narrate(*unmeasurable_lines(found.graph))
    return Status.DONE


def show_corpus(args: Arguments) -> int:
    """Cut all models, compare their layer sequences, and show the result."""
    from dlbricks_tui.api.opening import corpus_document, corpus_of, cut_all, files_named, runtime_here, speedup_here

    runtime, how = runtime_here(args.runtime, args.session.data), cutting_of(args)
    sources = files_named(args.models, runtime, args.session.data, is_usual=is_usual_runtime(args))
    with args.session.open_loader(runtime) as loader:
        models = cut_all(loader, sources, args.level, how, inputs_of(args), args.session.remarks)
    corpus, speedup = corpus_of(models), speedup_here(models, args.session.data, args.runtime, args.config.threads)
    if args.json:
        write_json(corpus_document(models, corpus, speedup))
    else:
        from dlbricks_tui.documents.corpus import corpus_parts

        known = [it.source for it in models]
        labels = [f"table1:{it.table1_id} {it.name}" if it.table1_id else it.name for it in known]
        show_parts(corpus_parts(corpus, labels, "layer" if how.granularity == 1 else "sequence", speedup))
    return Status.of(len(models) != len(sources))
