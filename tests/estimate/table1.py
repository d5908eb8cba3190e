"""The networks of Table 1, from the types that are delivered with them."""

import os
from collections.abc import Iterator, Mapping
from functools import cache
from pathlib import Path

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.cache import GraphAnswer
from dlbricks_tui.models.graph import LayerGraph, Shape
from dlbricks_tui.models.library import Library, ModelSource
from dlbricks_tui.models.loading import Loader


class NoFramework:
    """Nobody to ask: what is delivered has to do."""

    identity = "none"

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        raise AssertionError("the types of the samples are delivered with them")

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        raise AssertionError("nothing is fused here")


class _Graphs(Mapping[str, LayerGraph]):
    """Layer graphs by number, each read when it is first asked for: all of them take seconds."""

    def __init__(self, sources: Mapping[str, ModelSource], loader: Loader) -> None:
        self._sources, self._loader = sources, loader
        self._read: dict[str, LayerGraph] = {}

    def __getitem__(self, number: str) -> LayerGraph:
        if number not in self._read:
            self._read[number] = self._loader.load(self._sources[number])
        return self._read[number]

    def __iter__(self) -> Iterator[str]:
        return iter(self._sources)

    def __len__(self) -> int:
        return len(self._sources)


@cache
def table1() -> Mapping[str, LayerGraph]:
    """The layer graphs of the fifty by number; models that are the same network are in it once."""
    # A folder that cannot be made.
    nowhere = Path(os.devnull, "folder")
    sources = {(it.path, *it.inputs.items()): it for it in reversed(Library(SAMPLE_MODELS, nowhere).find("table1"))}
    return _Graphs({it.table1_id or "": it for it in reversed(sources.values())}, Loader(nowhere, NoFramework()))
