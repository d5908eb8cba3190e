"""The models of a data folder: the library, loaders with a framework where needed, and the command to run one."""

import shlex
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager
from dataclasses import dataclass, field
from typing import NamedTuple

from dlbricks_tui.bricks.cutting import Cut
from dlbricks_tui.bricks.decomposition import Cutting
from dlbricks_tui.bricks.ordering import LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.folders import SAMPLE_MODELS, DataFolder
from dlbricks_tui.models import frameworks
from dlbricks_tui.models.errors import WrongRuntimeError
from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
from dlbricks_tui.models.input_shapes import ShapeMemory, spelled
from dlbricks_tui.models.library import MODEL_SUFFIXES, Library, ModelSource
from dlbricks_tui.models.loading import UNLOADABLE, Loader, UnloadedModels
from dlbricks_tui.runtime.registry import Registry
from dlbricks_tui.runtime.runtime import Runtime
from dlbricks_tui.runtime.traits import Format
from dlbricks_tui.runtime.variant import AskedVariant, stated_variant
from dlbricks_tui.wording.doubts import options_of

# Of the files that can be opened.
FILE_ENDINGS = MODEL_SUFFIXES


@dataclass(frozen=True, kw_only=True)
class InputOptions:
    """Shapes and values of inputs, by input name, for model files that lack them."""

    inputs: Mapping[str, Shape] = field(default_factory=dict)
    # The numbers in inputs that are settings, such as a sampling rate.
    values: Mapping[str, Numbers] = field(default_factory=dict)


@dataclass(frozen=True, kw_only=True)
class RuntimeOptions(AskedVariant):
    """A runtime and the variant in which it runs a model."""

    # A registered runtime by its name; for estimates also one of the store.
    runtime: str | None = None
    # That of the settings, which counts only for models that it runs.
    usual_runtime: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class CutOptions(InputOptions):
    """Options of everything that cuts models into bricks."""

    granularity: int = 1
    cut: Cut = Cut.CHAIN
    order: LayerOrder = LayerOrder.BRANCH
    # The cutting of runs whose command does not name it.
    usual_cutting: Cutting = field(default_factory=Cutting)

    @property
    def cutting(self) -> Cutting:
        """Granularity, cut and order."""
        return Cutting(self.granularity, self.cut, self.order)


# Called for each model whose input shapes or values are those given in an earlier session.
InputsUsed = Callable[[ModelSource, Mapping[str, Numbers]], None]


class LoadedModel(NamedTuple):
    """A model with its layer graph, which has the name of the model."""

    source: ModelSource
    graph: LayerGraph


class LoadedModels(NamedTuple):
    """The models that could be loaded, and a line for each reason why others could not."""

    models: tuple[LoadedModel, ...]
    left_out: tuple[str, ...]


def library(data: DataFolder, preferred: Format | None = None) -> Library:
    """Return the library of a user: the samples, and what the user has added.

    Without a preferred format, models with files of several formats have that of the preferred runtime.
    """
    return Library(SAMPLE_MODELS, data.path, preferred or Registry(data.path).preferred_format)


def files_for(sources: Sequence[ModelSource], runtime: Runtime) -> tuple[ModelSource, ...]:
    """Return the models with the files that a runtime reads; raise WrongRuntimeError for a model without one."""
    needed = runtime.traits.format
    for source in sources:
        if needed not in source.formats:
            raise WrongRuntimeError(
                f"{source.name} is an {source.format.value} model, and runtime {runtime.name} runs those of "
                f"{needed.value}; choose another runtime, or none"
            )
    return tuple([source.in_format(needed) for source in sources])


class ModelLoaders(ExitStack):
    """Loaders of models, one for each runtime that reads them; each is opened at its first use."""

    def __init__(
        self,
        data: DataFolder,
        inputs_used: InputsUsed,
        *runtimes: Runtime,
        most_bytes: int | None = None,
        tell: Callable[[str], None] | None = None,
    ) -> None:
        """The runtimes read the models of their formats if no other one is named.

        `most_bytes` is the memory for the tensors of a model at a given batch size. `tell` takes a line about a model
        that takes long.
        """
        super().__init__()
        named = {it.traits.format: it for it in runtimes}
        self.usual: Mapping[Format, Runtime] = {**Registry(data.path).one_of_each_format(), **named}
        memory, log = ShapeMemory(data.path, inputs_used), data.log / "framework.log"
        self._how = data.cache, log, memory, most_bytes, tell
        self._loaders: dict[Runtime | None, Loader] = {}

    def loader(self, runtime: Runtime | None = None) -> Loader:
        """Return the loader of models as a runtime has them; None is the usual one of each format.

        Its process starts when the first unknown model needs it.
        """
        if runtime not in self._loaders:
            taken = self.usual if runtime is None else {**self.usual, runtime.traits.format: runtime}
            opened = self.enter_context(closing(frameworks.Frameworks(taken, *self._how)))
            self._loaders[runtime] = opened.loader()
        return self._loaders[runtime]


@contextmanager
def open_loader(
    data: DataFolder,
    inputs_used: InputsUsed,
    *runtimes: Runtime,
    most_bytes: int | None = None,
    tell: Callable[[str], None] | None = None,
) -> Iterator[Loader]:
    """Open a loader of models as these runtimes have them, or as the usual runtime of their format does."""
    with ModelLoaders(data, inputs_used, *runtimes, most_bytes=most_bytes, tell=tell) as loaders:
        yield loaders.loader()


def loader_from_cache(data: DataFolder) -> Loader:
    """Return a loader that starts no framework; it refuses models that need one."""
    runtimes = Registry(data.path).one_of_each_format()
    return frameworks.Frameworks(runtimes, data.cache, data.log / "framework.log").loader_from_cache()


def load_all(
    sources: Sequence[ModelSource],
    load: Callable[[ModelSource], LayerGraph],
    word_error: Callable[[UserError], str] = str,
) -> LoadedModels:
    """Load several models, and list those that cannot be loaded; raise the first refusal where none can."""
    models: list[LoadedModel] = []
    left_out = UnloadedModels(word_error)
    # Some models of Table 1 are the same network, in one file.
    known: dict[object, LayerGraph] = {}
    for source in sources:
        network = (source.path, *source.inputs.items())
        try:
            graph = known.get(network) or load(source)
        except UNLOADABLE as refusal:
            left_out.add(source, refusal)
        else:
            known[network] = graph
            models.append(LoadedModel(source, graph.named(source.name)))
    if left_out.first is not None and not models:
        raise left_out.first
    return LoadedModels(tuple(models), tuple(left_out.lines))


def reference_to(source: ModelSource, *, has_name: bool) -> str:
    """Return a model as commands name it: by its number in Table 1, its name if they know it, or its path."""
    if source.table1_id:
        return f"table1:{source.table1_id}"
    return source.name if has_name else str(source.path)


def run_command(named: str, runtime: Runtime, level: Level, batch: int | None, options: CutOptions, *more: str) -> str:
    """Return the `dlbricks run` for a model of that name, cut and with inputs as the options say, and more words."""
    variant = AskedVariant(**stated_variant(runtime.identity).parts | {"batch": batch})
    words = options_of(runtime.name, variant, level, options.cutting, options.usual_cutting)
    for option, numbers in (("--input", options.inputs), ("--value", options.values)):
        words += [word for name, value in numbers.items() for word in (option, spelled({name: value}))]
    return shlex.join(["dlbricks", "run", named, *words, *more])
