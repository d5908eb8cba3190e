"""Loads MXNet models at either level. A known model needs no module that reads symbol files."""

import hashlib
from collections.abc import Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, Protocol

from dlbricks_tui.models.cache import ReadModel
from dlbricks_tui.models.content import read_content
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level, Numbers, Shape, TensorType
from dlbricks_tui.models.library import ModelSource
from dlbricks_tui.regular_files import read_bytes


class GraphAnswer(NamedTuple):
    """A framework's answer about a graph: the types of all outputs of all nodes, and the nodes that it does not know.

    After fusing, also the fused graph, and the nodes of the model file behind each of its nodes.
    """

    types: Sequence[Sequence[TensorType]]
    unknown: frozenset[int] = frozenset()
    symbol: str | None = None
    parts: Sequence[Sequence[int]] = ()


class Framework(Protocol):
    """The interface of a framework that infers types and fuses graphs.

    Both methods may raise WorkerRefusedError.
    """

    @property
    def identity(self) -> str:
        """The framework with its version. The cache separates their answers."""

    def infer(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Return the types of all outputs, given the shapes of inputs by name."""

    def fuse(self, symbol: str, shapes: Mapping[str, Shape]) -> GraphAnswer:
        """Return the graph after the framework's optimiser, with its types."""


class MXNetLoader:
    """Loads symbol files at either level."""

    def __init__(self, cache: Path, framework: Framework) -> None:
        self._cache = cache
        self._framework = framework

    def read(self, source: ModelSource) -> bytes:
        """Return the content of a model file."""
        return read_content(source.path)

    def facts(self, source: ModelSource, level: Level) -> tuple[object, ...]:
        """Return the facts beside the file and its shapes on which a layer graph depends."""
        delivered = b""
        if source.types is not None:
            with suppress(OSError):
                delivered = read_bytes(source.types)
        return self._framework.identity, hashlib.sha256(delivered).hexdigest()

    def load(
        self,
        source: ModelSource,
        content: bytes,
        level: Level,
        given: Mapping[str, Shape],
        values: Mapping[str, Numbers],
        batch_size: int | None,
    ) -> ReadModel:
        """Return the layer graph of a model file. Its inputs cannot have given values."""
        if values:
            raise ModelError(f"{source.name}: only the inputs of ONNX models take a --value; leave it out")
        # Imported here, for models that are not in the cache only.
        from dlbricks_tui.models.mxnet.inference import InferredGraphs

        return InferredGraphs(self._cache, self._framework).read(source, content, level, given, batch_size)
