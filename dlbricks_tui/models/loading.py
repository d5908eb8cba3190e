"""From a model's source to its layer graph, whatever it is written in."""

from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.models.errors import ModelError, UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.mxnet.loading import Framework, MXNetLoader
from dlbricks_tui.models.onnx.loading import OnnxLoader, Optimiser
from dlbricks_tui.runtime.runtime import Format


class Loader:
    """Loads models of each format at either level."""

    def __init__(self, cache: Path, framework: Framework, optimiser: Optimiser | None = None) -> None:
        self._mxnet = MXNetLoader(cache, framework)
        self._onnx = OnnxLoader(cache, optimiser)

    def load(
        self, source: ModelSource, level: Level = Level.WRITTEN, given: Mapping[str, Shape] | None = None
    ) -> LayerGraph:
        """The layer graph of a model; `given` are input shapes that a person says, by name."""
        loader = self._onnx if source.format is Format.ONNX else self._mxnet
        return loader.load(source, level, given or {})

    def refuse_no_model(self, source: ModelSource) -> None:
        """Raise where a file is no model; a model that only lacks something, like shapes or a framework, passes."""
        try:
            self.load(source)
        except UnreadableModelError:
            raise
        except ModelError:
            return
