"""Loading of models in any format: from the source to the layer graph."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sized
from dataclasses import replace
from functools import cached_property
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.cache import QUANTISED, Cache, ReadModel, cache_key
from dlbricks_tui.models.content import open_model_file
from dlbricks_tui.models.errors import (
    InconsistentModelError,
    MissingShapeError,
    ModelError,
    NotInCacheError,
    UnreadableModelError,
)
from dlbricks_tui.models.graph import Feed, LayerGraph, Level, Numbers, Shape, type_of
from dlbricks_tui.models.input_shapes import ShapeMemory, StatedInputs, spelled
from dlbricks_tui.models.library import ONNX_SUFFIX, ModelSource, source_of
from dlbricks_tui.models.mxnet_file import Framework, MXNetLoader
from dlbricks_tui.runtime.errors import FrameworkMissingError, WorkerLostError, WorkerRefusedError
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import Precision

if TYPE_CHECKING:
    from numpy.typing import NDArray

    from dlbricks_tui.models.frameworks import WorkerFramework
    from dlbricks_tui.models.onnx_loading import OnnxLoader

_MEBIBYTE, _GIBIBYTE = 1 << 20, 1 << 30


class Loader:
    """Loads models of each format at either level."""

    def __init__(
        self,
        cache: Path,
        framework: Framework,
        optimiser: "WorkerFramework | None" = None,
        memory: ShapeMemory | None = None,
        most_bytes: int | None = None,
    ) -> None:
        """`memory` holds the shapes that users gave for models whose files do not declare them.

        `most_bytes` is the memory for the tensors of a model at a given batch size; None: it does not matter.
        """
        self.cache = Cache(cache)
        self._framework = framework
        self._mxnet = MXNetLoader(self.cache, framework)
        self._optimiser = optimiser
        self._memory = memory
        self._most_bytes = most_bytes

    def without_optimiser(self) -> "Loader":
        """Return a loader that reads ONNX files as they are written, without any runtime."""
        return Loader(self.cache.folder, self._framework)

    @cached_property
    def _onnx(self) -> "OnnxLoader":
        # Loaded here, for models of this format only.
        from dlbricks_tui.models.onnx_loading import OnnxLoader

        return OnnxLoader(self.cache, self._optimiser)

    def load(
        self,
        source: ModelSource,
        level: Level = Level.WRITTEN,
        given: Mapping[str, Shape] | None = None,
        values: Mapping[str, Numbers] | None = None,
        batch_size: int | None = None,
    ) -> LayerGraph:
        """Return the layer graph of a model. `given` are input shapes by name, and `values` the values of inputs.

        A batch size replaces that of the file and of the given shapes.
        """
        given, values, memory = given or {}, values or {}, self._memory
        remembered = {} if memory is None else memory.recall_values(source)
        recalled = {name: value for name, value in remembered.items() if name not in values}
        stated = StatedInputs(given, {**source.values, **recalled, **values})
        try:
            found = self._read_at(batch_size, source, level, stated)
        except MissingShapeError as missing:
            remembered_shapes = {} if memory is None else memory.recall_shapes(source)
            if memory is None or not missing.examples.keys() <= remembered_shapes.keys():
                raise self._suggesting(missing, source, stated) from None
            shapes = {name: remembered_shapes[name] for name in missing.examples}
            # Given shapes also count for axes of equal names in remembered ones.
            known = replace(source, inputs={**source.inputs, **shapes})
            if better := self._other_shapes(known, missing.examples, stated):
                memory.forget(source)
                failure, working = better
                raise MissingShapeError(
                    f"{missing}; {spelled(shapes)}, given before, is forgotten, as the model does not run with it: "
                    f"{failure}",
                    working,
                    tried=True,
                ) from None
            found = self._read_at(batch_size, known, level, stated)
            memory.used(source, shapes)
            given = {}
        if memory is not None:
            if given and (better := self._other_shapes(source, given, stated)):
                failure, working = better
                raise MissingShapeError(
                    f"{source.name} does not run with {spelled(given)}: {failure}", working, tried=True
                )
            memory.remember(source, given, values)
            if recalled:
                memory.used(source, recalled)
        return found

    def _suggesting(self, missing: MissingShapeError, source: ModelSource, stated: StatedInputs) -> MissingShapeError:
        """Return the error with shapes that the model runs with, if a runtime can try some."""
        found = self._tried(source, missing.examples, stated, self._onnx.suggested)
        if found is None:
            return missing
        if not found:
            return MissingShapeError(f"{missing} (it runs with none of the shapes that were tried)", missing.examples)
        return MissingShapeError(str(missing), found, tried=True)

    def _other_shapes(
        self, source: ModelSource, asked: Iterable[str], stated: StatedInputs
    ) -> tuple[str, Mapping[str, Shape]] | None:
        """Return why the model fails with the stated shapes, and shapes of these inputs that it runs with."""
        failure = self._tried(source, (), stated, lambda it, content, _, given: self._onnx.failure(it, content, given))
        found = self._tried(source, asked, stated, self._onnx.suggested) if failure else None
        return (failure or "", found) if found else None

    def _tried(
        self, source: ModelSource, asked: Iterable[str], stated: StatedInputs, attempt: Callable[..., Any]
    ) -> Any:
        """Return the result of runs with some shapes, also of earlier ones; None if no runtime can tell."""
        if source.format is not Format.ONNX or self._optimiser is None:
            return None
        names, content = tuple(asked), self._onnx.read(source)
        shapes = [sorted(it.items()) for it in (source.inputs, *stated)]
        key = cache_key(source.name, "tried", names, *shapes, *self._onnx.facts(source, Level.WRITTEN), content=content)
        found = self.cache.read(key)
        if found is None:
            try:
                found = attempt(source, content, names, stated)
            except (FrameworkMissingError, NotInCacheError):
                return None
            self.cache.write(key, found)
        return found

    def _read_at(self, batch_size: int | None, source: ModelSource, level: Level, stated: StatedInputs) -> LayerGraph:
        """Return the layer graph at a batch size, unless its tensors would take too much memory."""
        if self._optimiser is not None and self._optimiser.precision is Precision.INT8 and source.format is Format.ONNX:
            written = self._read(source, Level.WRITTEN, stated)
            source = quantised_copy(source, self._onnx.read(source), written, self.cache, self._optimiser)
            # The copy has all shapes, and states no values.
            stated = StatedInputs({}, {it.name: it.value for it in written.inputs if it.value} | dict(stated.values))
        if batch_size is None:
            return self._read(source, level, stated)
        usual = self._read(source, Level.WRITTEN, stated)
        if self._most_bytes is not None:
            refuse_too_large_batch(usual, batch_size, self._most_bytes)
        try:
            found = self._read(source, level, stated, batch_size)
            for layer in found.layers:
                # A layer that reshapes to other sizes than it reads, which are of another batch.
                shapes = [tensor.shape for tensor in (*layer.data[:1], *layer.outputs)]
                if layer.op == "reshape" and None not in shapes and len({prod(shape or ()) for shape in shapes}) > 1:
                    raise InconsistentModelError(f"{found.name}: layer {layer.name[:80]!r} reshapes to fixed sizes")
            return found
        except InconsistentModelError as contradiction:
            raise InconsistentModelError(
                f"{contradiction}; its file can be read at batch size {usual.batch_size}: keep that batch size"
            ) from None

    def _read(
        self, source: ModelSource, level: Level, stated: StatedInputs, batch_size: int | None = None
    ) -> LayerGraph:
        """Return the layer graph from the cache, or else from the file."""
        loader = self._onnx if source.format is Format.ONNX else self._mxnet
        content = loader.read(source)
        shapes = [sorted(it.items()) for it in (source.inputs, *stated)]
        facts = source.format.value, level.value, batch_size, *shapes, *loader.facts(source, level)
        key = cache_key(source.name, *facts, content=content)
        found = self.cache.read(key)
        if isinstance(found, MissingShapeError):
            raise found
        if not (isinstance(found, ReadModel) and found.holds_for(source.path)):
            try:
                found = loader.load(source, content, level, stated, batch_size)
            except MissingShapeError as missing:
                self.cache.write(key, missing)
                raise
            self.cache.write(key, found)
        return found.graph.with_key(key, source.path)

    def refuse_no_model(self, source: ModelSource) -> None:
        """Raise UnreadableModelError if the file is not a model. A model without shapes or framework passes."""
        try:
            self.load(source)
        except UnreadableModelError:
            raise
        except ModelError:
            return


def refuse_too_large_batch(graph: LayerGraph, batch_size: int, most_bytes: int) -> None:
    """Raise ModelError if a model at this batch size needs more memory; `graph` is the model at any batch size."""
    needed = forecast_bytes(graph, batch_size)
    if needed > most_bytes:
        shown = [
            f"{it / _MEBIBYTE:,.0f} MiB" if it < _GIBIBYTE else f"{it / _GIBIBYTE:,.1f} GiB"
            for it in (needed, most_bytes)
        ]
        raise ModelError(
            f"{graph.name} at batch size {batch_size:,} needs about {shown[0]} of memory, and {shown[1]} are allowed: "
            "give a smaller --batch"
        )


def forecast_bytes(graph: LayerGraph, batch_size: int) -> int:
    """Return the least memory that a model needs at a batch size: its weights, and the tensors that exist at once."""
    last_read = {feed: layer.index for layer in graph.layers for feed in layer.feeds}
    # Outputs of the model stay until its end.
    last_read |= dict.fromkeys(graph.heads, len(graph.layers))
    inputs = [Feed(None, number) for number in range(len(graph.inputs))]
    alive = {feed: type_of(graph, feed).size_bytes for feed in inputs}
    total, most = sum(alive.values()), 0
    for layer in graph.layers:
        made = {Feed(layer.index, number): tensor.size_bytes for number, tensor in enumerate(layer.outputs)}
        alive |= made
        total += sum(made.values())
        most = max(most, total)
        over = [feed for feed in {*layer.feeds, *made} if last_read.get(feed, layer.index) <= layer.index]
        total -= sum(alive.pop(feed, 0) for feed in over)
    return graph.weight_bytes + most * batch_size // max(1, graph.batch_size)


# The quantiser holds several copies of the weights in memory, and a model file has less than 2 GiB.
MOST_WEIGHT_BYTES = _GIBIBYTE


def quantised_copy(
    source: ModelSource, content: bytes, written: LayerGraph, cache: Cache, framework: "WorkerFramework"
) -> ModelSource:
    """Return a model with a quantised copy of its file, which is written unless the cache has it.

    `content` is that of the file without large arrays, and `written` its layers.
    """
    _require_quantisable(source.name, written)
    inputs = {it.name: it.type for it in written.inputs if it.type.shape is not None}
    values = {it.name: it.value for it in written.inputs if it.value}
    name = f"{cache_key(framework.quantiser, content=content)}{ONNX_SUFFIX}"
    try:
        path = cache.copy(name, lambda copy: framework.quantise(source.path.absolute(), copy, inputs, values))
    except (WorkerRefusedError, WorkerLostError) as refused:
        raise ModelError(f"{source.name} cannot be quantised: {refused}") from None
    except OSError as error:
        problem = f"{cache.folder / QUANTISED} cannot be written: {error.strerror}"
        raise ModelError(f"{source.name} cannot be quantised: {problem}") from None
    return replace(source, path=path, inputs={name: it.shape or () for name, it in inputs.items()}, twin=None)


def _require_quantisable(name: str, written: LayerGraph) -> None:
    """Raise ModelError for a model that the quantiser cannot take."""
    if written.is_quantised:
        raise ModelError(f"{name} is quantised in its file, and runs as it is: choose precision f32")
    dtypes = {weight.dtype for layer in written.layers for weight in layer.weights}
    if half := dtypes & {"float16", "bfloat16"}:
        raise ModelError(
            f"{name} has weights of type {half.pop()}, and the quantiser needs float32: give the file that it was "
            "made from, or choose precision f32"
        )
    arrays = {layer.array(place): it.size_bytes for layer in written.layers for place, it in enumerate(layer.weights)}
    if sum(arrays.values()) > MOST_WEIGHT_BYTES:
        held, most = sum(arrays.values()) / _GIBIBYTE, MOST_WEIGHT_BYTES / _GIBIBYTE
        raise ModelError(
            f"{name} has {held:.1f} GiB of weights, and models of at most {most:g} GiB can be quantised here: quantise "
            "its file yourself, and measure that file in precision f32"
        )


# Errors that concern one model, or the models of one format.
UNLOADABLE = (ModelError, FrameworkMissingError)
_MOST_NAMED = 5


class UnloadedModels:
    """The models that cannot be loaded, with the reasons."""

    def __init__(self, worded: Callable[[UserError], str] = str) -> None:
        """`worded` turns an error into a message that also says what to do."""
        self._worded = worded
        self._refusals: list[ModelError] = []
        self._missing: dict[Format, tuple[FrameworkMissingError, list[str]]] = {}
        self.first: ModelError | FrameworkMissingError | None = None

    def add(self, source: ModelSource, refusal: ModelError | FrameworkMissingError) -> None:
        """Add a model."""
        self.first = self.first or refusal
        if isinstance(refusal, ModelError):
            self._refusals.append(refusal)
        else:
            self._missing.setdefault(source.format, (refusal, []))[1].append(source.name)

    def conclude(self, loaded: Sized, tell: Callable[[str], None]) -> None:
        """Tell of these models beside those that were loaded; raise the first refusal where none was."""
        if self.first is not None and not loaded:
            raise self.first
        for line in self.lines:
            tell(f"left out: {line}")

    @property
    def lines(self) -> list[str]:
        """One line for each model, and one for all models that lack the same framework."""
        lines = [self._worded(refusal) for refusal in self._refusals]
        for missing, names in self._missing.values():
            more = len(names) - _MOST_NAMED
            named = ", ".join(names[:_MOST_NAMED]) + (f" and {more} others" if more > 0 else "")
            lines.append(f"{named}: {missing}")
        return lines


def weights_in(path: Path) -> Iterator[tuple[str, "Iterator[NDArray[Any]]"]]:
    """Yield each array of a `.params` file, or each weight in a model file: its name, and its values in pieces."""
    if source_of(path).format is Format.ONNX:
        from dlbricks_tui.models.onnx_arrays import onnx_weights

        yield from onnx_weights(path)
        return
    from dlbricks_tui.models.mxnet_params import ParamsFile

    with open_model_file(path) as file:
        params = ParamsFile(path, file)
        for name, array in params.arrays:
            yield name, params.values(array)
