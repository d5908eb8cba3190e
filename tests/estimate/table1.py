"""The networks of Table 1, from the types that are delivered with them."""

import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from dlbricks_tui.folders import SAMPLE_MODELS
from dlbricks_tui.models.graph import LayerGraph, Shape
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet.loading import GraphAnswer


class NoFramework:
    """Nobody to ask: what is delivered has to do."""

    identity = "none"

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        raise AssertionError("the types of the samples are delivered with them")

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        raise AssertionError("nothing is fused here")


@cache
def table1() -> dict[str, LayerGraph]:
    """The layer graphs of the fifty by number; models that are the same network are in it once."""
    # A folder that cannot be made.
    nowhere = Path(os.devnull, "folder")
    loader = Loader(nowhere, NoFramework())
    sources = {(it.path, *it.inputs.items()): it for it in reversed(Library(SAMPLE_MODELS, nowhere).find("table1"))}
    return {source.table1_id or "": loader.load(source) for source in reversed(sources.values())}
