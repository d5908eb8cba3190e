"""Reads models and takes them apart; slow the first time, so that screens ask from threads."""

from collections import OrderedDict
from collections.abc import Mapping, Sequence
from pathlib import Path
from threading import Lock

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.sequence_regions import sequence_regions
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.framework import WorkerFramework
from dlbricks_tui.models.graph import LayerGraph, TensorType
from dlbricks_tui.models.library import Library
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.models.mxnet.loading import Answer
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Format
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.opened import Opened, Wish
from dlbricks_tui.tui.widgets.tree.nesting import Nesting

# Going to and fro between a few models is quick; all fifty at once would take the memory of a small host.
MOST_KEPT = 4


class NotReadBeforeError(ModelError):
    """Only the framework could tell, and this is not worth to start it."""


class Opener:
    """Opens one model at a time, whichever threads ask."""

    def __init__(self, data: DataFolder, samples: Path) -> None:
        self.library = Library(samples, data.path)
        self._cache = data.cache
        self._frameworks = {
            form: WorkerFramework(runtime, data.log / "framework.log")
            for form, runtime in Registry(data.path).one_of_each_format().items()
        }
        self._lock = Lock()
        self._read: OrderedDict[object, LayerGraph] = OrderedDict()

    def open(self, wish: Wish) -> Opened:
        """The model as wished."""
        with self._lock:
            graph = self._graph(wish)
            decomposition = decompose(graph, wish.cutting)
            return Opened(wish, graph, decomposition, Nesting(sequence_regions(decomposition)))

    def glance(self, wish: Wish) -> Decomposition | None:
        """The model if it can be had without the framework, which takes too long for a passing look."""
        with self._lock:
            known = self._read.get(_key(wish))
            absent = {form: _Absent(framework.identity) for form, framework in self._frameworks.items()}
            try:
                graph = known or self._load(wish, absent)
            except ModelError:
                return None
            return decompose(graph, wish.cutting)

    def decomposed(self, wish: Wish) -> Decomposition:
        """The model, read with the framework if need be, and no more made of it than is needed to compare it."""
        with self._lock:
            return decompose(self._read.get(_key(wish)) or self._load(wish, self._frameworks), wish.cutting)

    def close(self) -> None:
        """Ends the frameworks' processes, and with them whatever they are asked."""
        for framework in self._frameworks.values():
            framework.interrupt()

    def _graph(self, wish: Wish) -> LayerGraph:
        key = _key(wish)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = self._load(wish, self._frameworks)
            if len(self._read) > MOST_KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return found

    def _load(self, wish: Wish, asked: Mapping[Format, "WorkerFramework | _Absent"]) -> LayerGraph:
        return Loader(self._cache, asked[Format.MXNET], asked.get(Format.ONNX)).load(
            wish.source, wish.level, wish.shapes
        )


def _key(wish: Wish) -> object:
    return wish.source.path, wish.level, tuple(sorted(wish.shapes.items()))


class _Absent:
    """Stands for a framework that is not to be started."""

    def __init__(self, identity: str) -> None:
        self.identity = identity

    def infer(self, symbol: str, shapes: object) -> Answer:
        raise NotReadBeforeError("this model was not read before")

    def fuse(self, symbol: str, shapes: object) -> Answer:
        raise NotReadBeforeError("this model was not read before")

    def optimised(self, model: str, weights: object) -> str:
        raise NotReadBeforeError("this model was not read before")

    def output_types(self, model: str) -> Sequence[TensorType]:
        raise NotReadBeforeError("this model was not read before")
