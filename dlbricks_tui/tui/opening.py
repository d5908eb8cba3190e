"""Reads models and takes them apart; slow the first time, so that screens ask from threads."""

from collections import OrderedDict
from dataclasses import replace
from pathlib import Path
from threading import Lock

from dlbricks_tui.bricks.decomposition import Decomposition, decompose
from dlbricks_tui.bricks.regions import sequence_regions
from dlbricks_tui.models.errors import MissingShapeError, ModelError
from dlbricks_tui.models.frameworks import Frameworks
from dlbricks_tui.models.graph import LayerGraph, Level
from dlbricks_tui.models.input_shapes import ShapeMemory
from dlbricks_tui.models.library import Library, ModelSource, source_of
from dlbricks_tui.models.loading import Loader
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.settings import DataFolder
from dlbricks_tui.tui.opened import AskedShape, Opened, Wish, input_shapes
from dlbricks_tui.tui.widgets.tree.nesting import Nesting

# Going to and fro between a few models is quick; all fifty at once would take the memory of a small host.
MOST_KEPT = 4


class Opener:
    """Opens one model at a time, whichever threads ask."""

    def __init__(self, data: DataFolder, samples: Path) -> None:
        self.library = Library(samples, data.path)
        runtimes = Registry(data.path).one_of_each_format()
        memory = ShapeMemory(data.path)
        self._frameworks = Frameworks(runtimes, data.cache, data.log / "framework.log", memory)
        self._lock = Lock()
        self._read: OrderedDict[object, LayerGraph] = OrderedDict()

    @property
    def frameworks(self) -> tuple[str, ...]:
        """What decides which layers a model has at the fused level."""
        return self._frameworks.identities

    def open(self, wish: Wish) -> Opened:
        """The model as wished."""
        with self._lock:
            self._frameworks.retry_missing()
            graph = self._graph(wish)
            decomposition = decompose(graph, wish.cutting)
            return Opened(wish, graph, decomposition, Nesting(sequence_regions(decomposition)))

    def inputs(self, wish: Wish) -> dict[str, AskedShape]:
        """Return the inputs of a model with what is known of their shapes.

        They are read at the written level: a model that cannot be fused has them too.
        """
        as_written = replace(wish, level=Level.WRITTEN, shapes={})
        with self._lock:
            self._frameworks.retry_missing()
            try:
                found = {
                    name: AskedShape(shape, shape) for name, shape in input_shapes(self._graph(as_written)).items()
                }
            except MissingShapeError as error:
                found = {name: AskedShape(None, example) for name, example in error.examples.items()}
        return {**found, **{name: AskedShape(shape, shape) for name, shape in wish.shapes.items()}}

    def glance(self, wish: Wish) -> Decomposition | None:
        """The model if it can be had without the framework, which takes too long for a passing look."""
        with self._lock:
            known = self._read.get(_key(wish))
            try:
                graph = known or _loaded(wish, self._frameworks.loader_from_cache())
            except ModelError:
                return None
            return decompose(graph, wish.cutting)

    def decomposed(self, wish: Wish) -> Decomposition:
        """The model, read with the framework if need be, and no more made of it than is needed to compare it."""
        with self._lock:
            return decompose(self._read.get(_key(wish)) or _loaded(wish, self._frameworks.loader()), wish.cutting)

    def add_model(self, path: Path) -> ModelSource:
        """Adds a file to the library; one that is no model is refused."""
        with self._lock:
            self._frameworks.loader_from_cache().refuse_no_model(source_of(path))
        return self.library.add_model(path)

    def close(self) -> None:
        """Ends the frameworks' processes, and with them whatever they are asked."""
        self._frameworks.interrupt()

    def _graph(self, wish: Wish) -> LayerGraph:
        key = _key(wish)
        found = self._read.get(key)
        if found is None:
            found = self._read[key] = _loaded(wish, self._frameworks.loader())
            if len(self._read) > MOST_KEPT:
                self._read.popitem(last=False)
        self._read.move_to_end(key)
        return found


def _loaded(wish: Wish, loader: Loader) -> LayerGraph:
    return loader.load(wish.source, wish.level, wish.shapes)


def _key(wish: Wish) -> object:
    return wish.source.path, wish.level, tuple(sorted(wish.shapes.items()))
