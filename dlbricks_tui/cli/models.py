"""`dlbricks models`: what the library holds, and which folders it looks into."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING

from dlbricks_tui.cli.choices import library, open_loader
from dlbricks_tui.cli.output import Json, narrate, show, write_json
from dlbricks_tui.cli.parser import Groups, add_json_option
from dlbricks_tui.cli.status import Status

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.models.loading import Loader


def register(groups: Groups) -> None:
    """Adds `models` with `list`, `add` and `remove`; without either it lists."""
    parser = groups.add_parser("models", help="list the models of the library, add or remove folders")
    add_json_option(parser)
    parser.set_defaults(handler=list_models)
    actions = parser.add_subparsers(title="actions", metavar="ACTION")
    listing = actions.add_parser("list", help="list the models (what `models` does by itself)")
    add_json_option(listing)
    listing.set_defaults(handler=list_models)
    adding = actions.add_parser("add", help="add a folder with *-symbol.json files to the library")
    adding.add_argument("folder", metavar="FOLDER", type=Path)
    adding.set_defaults(handler=add_folder)
    removing = actions.add_parser("remove", help="forget a folder; its files stay")
    removing.add_argument("folder", metavar="FOLDER", type=Path)
    removing.set_defaults(handler=remove_folder)


def add_folder(args: argparse.Namespace) -> int:
    """Makes the library look into one more folder."""
    count = library(args).add_folder(args.folder)
    narrate(f"{args.folder}: {count} model{'' if count == 1 else 's'} added")
    return Status.DONE


def remove_folder(args: argparse.Namespace) -> int:
    """Makes the library forget a folder."""
    library(args).remove_folder(args.folder)
    return Status.DONE


def list_models(args: argparse.Namespace) -> int:
    """Lists every model; one that cannot be read is listed too, and named on standard error."""
    with open_loader(args) as loader:
        described = [_described(source, loader) for source in library(args).sources()]
    if args.json:
        write_json([_document(source) for source in described])
    else:
        _show(described)
    return Status.DONE


def _described(source: ModelSource, loader: Loader) -> ModelSource:
    """The source with its layer counts, which the manifest has for the samples only."""
    from dataclasses import replace

    from dlbricks_tui.bricks.decomposition import decompose
    from dlbricks_tui.errors import UserError

    if source.unique_layers is not None:
        return source
    try:
        graph = loader.load(source)
    except UserError as error:
        narrate(f"{source.name}: {error}")
        return source
    return replace(
        source,
        layers=len(graph.layers),
        unique_layers=len(decompose(graph).bricks),
        inputs={it.name: it.type.shape for it in graph.inputs if it.type.shape is not None},
    )


def _document(source: ModelSource) -> Json:
    return {
        "name": source.name,
        "path": str(source.path),
        "task": source.task,
        "table1_id": source.table1_id,
        "layers": source.layers,
        "unique_layers": source.unique_layers,
        "inputs": {name: list(shape) for name, shape in source.inputs.items()},
    }


def _show(sources: Sequence[ModelSource]) -> None:
    from rich.table import Table

    table = Table(box=None, pad_edge=False, header_style="bold")
    table.add_column("MODEL", overflow="ellipsis", no_wrap=True)
    table.add_column("NAME", overflow="ellipsis", no_wrap=True, ratio=1)
    table.add_column("TASK", no_wrap=True)
    table.add_column("INPUTS", no_wrap=True, overflow="ellipsis")
    table.add_column("LAYERS", justify="right")
    table.add_column("UNIQUE", justify="right")
    for source in sources:
        shapes = " ".join("x".join(map(str, shape)) for shape in source.inputs.values())
        counted = source.layers is not None and source.unique_layers is not None
        table.add_row(
            f"table1:{source.table1_id}" if source.table1_id else source.name,
            source.name if source.table1_id else "",
            source.task or "",
            shapes,
            str(source.layers or "?"),
            f"{100 * (source.unique_layers or 0) / source.layers:.1f} %" if counted and source.layers else "?",
        )
    show(table)
