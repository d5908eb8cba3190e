"""`dlbricks models`: list the models of the library, add and remove files and folders, and forget given inputs."""

import argparse
from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

from rich.table import Table

from dlbricks_tui.answers.opening import library, loader_from_cache
from dlbricks_tui.bricks.decomposition import decompose
from dlbricks_tui.cli.drawing import name_cell
from dlbricks_tui.cli.output import data_console, narrate, show, write_json
from dlbricks_tui.cli.parser import Parser, Status, add_action, add_listing
from dlbricks_tui.cli.store import open_loader
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import DataFolder
from dlbricks_tui.models.input_shapes import ShapeMemory, spelled
from dlbricks_tui.models.library import ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.wording.numbers import counted, percent, task_words

_NARROWEST = 12
# Format, layers and share with the gaps between all columns.
_COUNTS_WIDTH = 6 + 6 + 7 + 6 * 2


def register(parser: Parser) -> None:
    """Add the actions of `models`; without one it lists."""
    actions = add_listing(parser, "list the models", list_models)
    about = "add a model file, or a folder with *-symbol.json or *.onnx files"
    adding = add_action(actions, "add", about, add, json=False)
    about = "forget a file or a folder; files stay where they are"
    removing = add_action(actions, "remove", about, remove, json=False)
    for action in (adding, removing):
        action.add_argument("path", metavar="PATH", type=Path)
    about = "forget the shapes and values that were given for the inputs of a model"
    resetting = add_action(actions, "reset", about, reset, json=False)
    resetting.add_argument("model", metavar="MODEL", help="a name that `dlbricks models` lists, or a file")


def add(args: argparse.Namespace) -> int:
    """Add a model file to the library, or make it look into one more folder."""
    if args.path.is_file():
        loader_from_cache(args.data).refuse_no_model(source_of(args.path))
        library(args.data).add_model(args.path)
        count = 1
    else:
        count = library(args.data).add_folder(args.path)
    narrate(f"{args.path}: {counted(count, 'model')} added")
    return Status.DONE


def remove(args: argparse.Namespace) -> int:
    """Make the library forget a file or a folder."""
    library(args.data).remove(args.path)
    return Status.DONE


def reset(args: argparse.Namespace) -> int:
    """Forget the shapes and values that were given for the inputs of a model."""
    memory = ShapeMemory(args.data.path)
    for source in library(args.data).find(args.model):
        given = " ".join(filter(None, map(spelled, (memory.recall_shapes(source), memory.recall_values(source)))))
        memory.forget(source)
        narrate(f"{source.name}: forgot {given}" if given else f"{source.name}: nothing was given for its inputs")
    return Status.DONE


def list_models(args: argparse.Namespace) -> int:
    """List every model; the reason why one cannot be read goes to standard error."""
    models = library(args.data)
    for path in models.missing():
        narrate(f"{path} is not there; `dlbricks models remove` makes the library forget it")
    sources = _with_counts(models.sources(), args.data)
    if args.json:
        write_json([_document(source) for source in sources])
    else:
        _show(sources)
    return Status.DONE


def _with_counts(sources: Sequence[ModelSource], data: DataFolder) -> list[ModelSource]:
    """Return the sources with their layer counts: the manifest has those of the samples, other models are loaded."""
    if all(source.unique_layers is not None for source in sources):
        return list(sources)
    with open_loader(data) as loader:
        return [source if source.unique_layers is not None else _count(source, loader) for source in sources]


def _count(source: ModelSource, loader: Loader) -> ModelSource:
    try:
        graph = loader.load(source)
    except UserError as error:
        narrate(f"{source.path}: {error}")
        return source
    return replace(
        source,
        layers=len(graph.layers),
        unique_layers=len(decompose(graph, cache=loader.cache).bricks),
        inputs={it.name: it.type.shape for it in graph.inputs if it.type.shape is not None},
    )


def _document(source: ModelSource) -> dict[str, Any]:
    return {
        "name": source.name,
        "path": source.path,
        "task": source.task,
        "table1_id": source.table1_id,
        "layers": source.layers,
        "unique_layers": source.unique_layers,
        "formats": [form.value for form in source.formats],
        "inputs": dict(source.inputs),
    }


def _show(sources: Sequence[ModelSource]) -> None:
    width = data_console().width
    models = [f"table1:{it.table1_id}" if it.table1_id else it.name for it in sources]
    inputs, tasks = [_inputs(it) for it in sources], [task_words(it.task) for it in sources]
    model_width = min(max(map(len, models)), max(_NARROWEST, width // 4))
    name_width = width - model_width - max(map(len, inputs)) - _COUNTS_WIDTH - max(map(len, tasks))
    if name_width < _NARROWEST:
        name_width, tasks = name_width + max(map(len, tasks)), []
    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("MODEL", overflow="ellipsis", no_wrap=True, max_width=model_width)
    table.add_column("NAME", overflow="ellipsis", no_wrap=True, max_width=max(_NARROWEST, name_width))
    if tasks:
        table.add_column("TASK", no_wrap=True)
    table.add_column("FORMAT", no_wrap=True)
    table.add_column("LAYERS", justify="right", no_wrap=True)
    table.add_column("UNIQUE", justify="right", no_wrap=True)
    table.add_column("INPUTS", overflow="ellipsis", no_wrap=True)
    for at, (source, model, shapes) in enumerate(zip(sources, models, inputs, strict=True)):
        table.add_row(
            name_cell(model),
            name_cell(source.name if source.table1_id else "" if source.task else str(source.path)),
            *tasks[at : at + 1],
            "both" if len(source.formats) > 1 else source.format.value,
            "?" if source.layers is None else f"{source.layers:,}",
            _share(source),
            shapes,
        )
    show(table)


def _inputs(source: ModelSource) -> str:
    """Return the shape of the first input, and the number of others."""
    first, *others = ["x".join(map(str, shape)) for shape in source.inputs.values()] or [""]
    return f"{first} +{len(others)}" if others else first


def _share(source: ModelSource) -> str:
    if source.unique_layers is None or not source.layers:
        return "?"
    return percent(source.unique_layers / source.layers, 1)
