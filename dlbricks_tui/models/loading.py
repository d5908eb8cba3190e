"""From a model's source to its layer graph, whatever it is written in."""

from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.models.errors import MissingShapeError, ModelError, UnreadableModelError
from dlbricks_tui.models.graph import LayerGraph, Level, Shape
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.models.mxnet.loading import Framework, MXNetLoader
from dlbricks_tui.models.onnx.loading import OnnxLoader, Optimiser
from dlbricks_tui.models.shape_memory import ShapeMemory
from dlbricks_tui.runtime.traits import Format


class Loader:
    """Loads models of each format at either level."""

    def __init__(
        self,
        cache: Path,
        framework: Framework,
        optimiser: Optimiser | None = None,
        memory: ShapeMemory | None = None,
    ) -> None:
        """`memory` has the shapes that were given for models whose files do not say them."""
        self._mxnet = MXNetLoader(cache, framework)
        self._onnx = OnnxLoader(cache, optimiser)
        self._memory = memory

    def load(
        self, source: ModelSource, level: Level = Level.WRITTEN, given: Mapping[str, Shape] | None = None
    ) -> LayerGraph:
        """The layer graph of a model; `given` are input shapes that a person says, by name."""
        loader, given = self._onnx if source.format is Format.ONNX else self._mxnet, given or {}
        try:
            found = loader.load(source, level, given)
        except MissingShapeError as missing:
            remembered = self._memory.recall(source, missing.inputs) if self._memory is not None else None
            if self._memory is None or remembered is None:
                raise
            found = loader.load(source, level, {**remembered, **given})
            self._memory.used(source, remembered)
        else:
            if self._memory is not None and given:
                self._memory.remember(source, given)
        return found

    def refuse_no_model(self, source: ModelSource) -> None:
        """Raise where a file is no model; a model that only lacks something, like shapes or a framework, passes."""
        try:
            self.load(source)
        except UnreadableModelError:
            raise
        except ModelError:
            return
