"""The models in view: the settings that count for them, their inputs and estimates, and the rows to compare."""

from __future__ import annotations

from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, Any, NamedTuple, TypeAlias

from dlbricks_tui.bricks.cutting import Cut, LayerOrder
from dlbricks_tui.errors import UserError
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.models.graph import Level
from dlbricks_tui.runtime.errors import RegistryError
from dlbricks_tui.runtime.traits import TRAITS
from dlbricks_tui.runtime.variant import (
    USUAL_KERNELS,
    Kernels,
    Precision,
    stated_kernels,
    stated_precision,
    stated_threads,
    threads_in_words,
)
from dlbricks_tui.settings.cutting import CUTTING, GRANULARITY, LEVEL, WORKERS
from dlbricks_tui.settings.setting import Setting, fields_of, next_of, with_own
from dlbricks_tui.settings.variant import BATCH, PRECISION, RUNTIME, SYSTEM, THREADS
from dlbricks_tui.settings.workbench import PREDICTIONS, Switch

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from dlbricks_tui.api.estimating import ModelReading
    from dlbricks_tui.api.pairs import EstimatedSide
    from dlbricks_tui.api.scope import EstimateOptions
    from dlbricks_tui.api.sides import NamedSelection
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.config.config import Config
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.models.graph import LayerGraph, Numbers, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.runtime import Runtime
    from dlbricks_tui.runtime.traits import Format
    from dlbricks_tui.store.records import RuntimeRecord, System


CutAt: TypeAlias = "tuple[Level, Cutting, Format | None, int | None, Precision, Kernels]"


@dataclass(frozen=True, slots=True)
class Choices:
    """The settings of all panels; `system` and `runtime` None mean this host and its best-covered runtime.

    `format` is that of the runtime. It selects the files of models that have several; None is that of the library.
    """

    granularity: int = 1
    level: Level = Level.FUSED
    cut: Cut = Cut.CHAIN
    order: LayerOrder = LayerOrder.BRANCH
    system: str | None = None
    runtime: str | None = None
    workers: int = 2
    format: Format | None = None
    # The images, sentences or rows in an inference; None: as many as the file says.
    batch: int | None = None
    # None: any number of threads that the framework computes with.
    threads: int | None = None
    precision: Precision = Precision.F32
    predictions: Switch = Switch.ON
    # The runtime and threads of the settings, as `EstimateOptions` has them.
    usual_runtime: str | None = None
    usual_threads: int | None = None

    @property
    def cutting(self) -> Cutting:
        from dlbricks_tui.bricks.decomposition import Cutting

        return Cutting(self.granularity, self.cut, self.order)

    @property
    def cut_at(self) -> CutAt:
        """The choices on which the bricks of a model depend."""
        return self.level, self.cutting, self.format, self.batch, self.precision, self.kernels

    @property
    def measured_only(self) -> bool:
        """True if the latencies of bricks that were not measured are not predicted."""
        return self.predictions is Switch.OFF

    @property
    def kernels(self) -> Kernels:
        """The limits on the kernels of the runtime."""
        return USUAL_KERNELS if self.runtime is None else stated_kernels(self.runtime)

    def options(self, **others: Any) -> EstimateOptions:
        """Return them as the options of estimates, with other options beside them."""
        # Loaded here: the first screen estimates nothing.
        from dlbricks_tui.api.scope import EstimateOptions

        return EstimateOptions(
            **fields_of(self, (*CUTTING, LEVEL, SYSTEM, RUNTIME, BATCH, WORKERS)),
            # A runtime that was chosen has its own number of threads.
            threads=self.threads if self.runtime is None else None,
            precision=None if self.precision is Precision.F32 else self.precision,
            measured_only=self.measured_only,
            usual_runtime=self.usual_runtime,
            usual_threads=self.usual_threads,
            **others,
        )

    def of_single_layers(self) -> Choices:
        """Return the choices with single layers as the file of a model has them, which the paper counts."""
        return replace(self, level=Level.WRITTEN, granularity=1, cut=Cut.CHAIN)

    def of_precision(self, precision: Precision) -> Choices:
        """Return the choices with a precision, and a format whose runtimes have it; a runtime has its own precision."""
        computed = (it.format for it in TRAITS.values() if precision in it.precisions)
        form = None if precision is Precision.F32 else next(computed, None)
        return replace(self, precision=precision, format=form, runtime=None)


def choices_from(config: Config, data: DataFolder) -> Choices:
    by_default, form, usual = Choices(), None, None
    if config.runtime is not None:
        from dlbricks_tui.runtime.registry import Registry

        # A run names an unknown runtime in the config.
        with suppress(RegistryError):
            form, usual = Registry(data.path).find(config.runtime).traits.format, config.runtime
    return Choices(
        format=form,
        granularity=config.granularity,
        cut=config.cut,
        order=config.order,
        workers=by_default.workers if config.workers is None else config.workers,
        predictions=config.predictions,
        usual_runtime=usual,
        usual_threads=config.threads,
    )


@dataclass(frozen=True, slots=True)
class Available:
    """The systems and runtimes that have measurements."""

    host: str = ""
    systems: tuple[System, ...] = ()
    runtimes: tuple[RuntimeRecord, ...] = ()
    results: int = 0

    def system_name(self, id_: str) -> str:
        return next((it.name for it in self.systems if it.id == id_), id_)

    def runtime_name(self, id_: str) -> str:
        """Return the name of a runtime, with its threads and limits on kernels if others have the same name."""
        name = next((it.name for it in self.runtimes if it.id == id_), id_)
        several = sum(it.name == name for it in self.runtimes) > 1
        words = threads_in_words(stated_threads(id_)), *stated_kernels(id_).words
        return ", ".join([name, *words]) if several else name


NONE_AVAILABLE = Available()
# A newcomer understands these; the others are expert settings.
BASIC_SETTINGS: tuple[Setting[Any], ...] = (RUNTIME, THREADS, BATCH, SYSTEM)
# In the order of their rows.
CHOSEN: tuple[Setting[Any], ...] = (*BASIC_SETTINGS, PRECISION, PREDICTIONS, LEVEL, *CUTTING, WORKERS)


def shown_settings(choices: Choices, *, expert: bool) -> tuple[Setting[Any], ...]:
    """Return the settings to show: all of them to an expert, else the basic ones and those that are not as usual."""
    usual = Choices()
    return tuple(
        it for it in CHOSEN if expert or it in BASIC_SETTINGS or getattr(choices, it.field) != getattr(usual, it.field)
    )


def setting_named(name: str) -> Setting[Any]:
    return next(it for it in CHOSEN if it.name == name)


def change_setting(
    setting: Setting[Any], choices: Choices, step: int, available: Available = NONE_AVAILABLE
) -> Choices:
    """Return the choices with a setting at its next value, or the previous one for `step` -1."""
    value = getattr(choices, setting.field)
    if setting in (GRANULARITY, WORKERS):
        value = value + step if setting.kind.accepts(value + step) else value
    else:
        value = next_of(_values(setting, choices, available), value, step)
    changed = replace(choices, **{setting.field: value})
    if setting is THREADS:
        # A runtime of the store has its own number of threads.
        return replace(changed, runtime=None)
    if setting is RUNTIME:
        # Loaded here: the first screen needs no store.
        from dlbricks_tui.estimate.system_estimate import format_of

        runtime = next((it for it in available.runtimes if it.id == value), None)
        return replace(changed, threads=None, format=None if runtime is None else format_of(runtime))
    if setting is PRECISION:
        return changed.of_precision(changed.precision)
    # Another system has other runtimes.
    return replace(changed, runtime=None, format=None) if setting is SYSTEM else changed


def _values(setting: Setting[Any], choices: Choices, available: Available) -> tuple[Any, ...]:
    if setting is SYSTEM:
        return (None, *(it.id for it in available.systems if it.id != available.host))
    if setting is RUNTIME:
        return (None, *(it.id for it in available.runtimes if stated_precision(it.id) is choices.precision))
    if setting is THREADS:
        measured = (stated_threads(it.id) for it in available.runtimes)
        return (None, *with_own((it for it in measured if it is not None), choices.threads))
    if setting is BATCH:
        return (None, *with_own(setting.kind.offered, choices.batch))
    return setting.kind.offered


class ModelId(NamedTuple):
    """The identity of a model: models of Table 1 may share a file, and files may share a name.

    The path is that of its first format.
    """

    path: Path
    name: str


def id_of(source: ModelSource) -> ModelId:
    return ModelId(source.in_format(source.formats[0]).path, source.name)


@dataclass(frozen=True, slots=True)
class LayerPlace:
    """A layer: its index in the layer graph of a level, and its name, as other runtimes have other graphs."""

    index: int
    name: str
    level: Level


def index_of(place: LayerPlace, names: Sequence[str]) -> int | None:
    """Return the index of a layer in a graph with layers of these names; None if the graph does not have it."""
    if place.index < len(names) and names[place.index] == place.name:
        return place.index
    return names.index(place.name) if place.name in names else None


class AskedShape(NamedTuple):
    """The known shape of an input, an example of how to write one, and its known value."""

    known: Shape | None
    example: Shape | None
    value: Numbers = ()

    @property
    def is_number(self) -> bool:
        """True for an input without axes, of which only the value can be chosen."""
        return () in (self.known, self.example)


class WrongInputError(UserError):
    """A text is no shape of an input, or no value of one that is a single number."""


class GivenInputs(NamedTuple):
    """The shapes and values that the user gives for the inputs of a model; without shapes, the remembered ones go."""

    shapes: Mapping[str, Shape]
    values: Mapping[str, Numbers]

    def with_text(self, name: str, asked: AskedShape, text: str) -> GivenInputs:
        """Return them with what a text tells of one more input; raise WrongInputError if it tells nothing."""
        # Loaded here: the first screen asks for no inputs.
        from dlbricks_tui.models.input_shapes import parse_input, parse_value_option

        if not text and not asked.is_number:
            raise WrongInputError(f"{name} has no shape")
        try:
            if not asked.is_number:
                return self._replace(shapes={**self.shapes, name: parse_input(f"{name}={text}")[1]})
            numbers = parse_value_option(f"{name}={text}")[1] if text else ()
        except ModelError as error:
            raise WrongInputError(str(error)) from error
        if text and (len(numbers) != 1 or isinstance(numbers[0], str)):
            raise WrongInputError(f"{name} is a single number")
        values = {**self.values, name: numbers} if text else self.values
        return GivenInputs({**self.shapes, name: ()}, values)


@dataclass(frozen=True, slots=True, eq=False)
class ModelSpec:
    """A model and how to read and cut it; compared by identity, so that outdated answers are recognised."""

    source: ModelSource
    level: Level
    cutting: Cutting
    shapes: Mapping[str, Shape] = field(default_factory=dict)
    # None: that of the file.
    batch_size: int | None = None
    precision: Precision = Precision.F32
    kernels: Kernels = USUAL_KERNELS
    # The runtime that fuses it; None: the usual one of the format.
    runtime: Runtime | None = None
    values: Mapping[str, Numbers] = field(default_factory=dict)

    def read_as(self, reading: ModelReading) -> ModelSpec:
        """Return how the model is read by a runtime."""
        source = self.source.in_format(reading.form)
        return replace(self, source=source, level=reading.level, runtime=reading.runtime)


def asked_inputs(graph: LayerGraph) -> dict[str, AskedShape]:
    """Return what is known of a model's inputs by name."""
    return {it.name: AskedShape(it.type.shape, it.type.shape, it.value) for it in graph.inputs}


class ListedModels:
    """The models of the library with the shapes and values that the user has given."""

    def __init__(self) -> None:
        self.sources: tuple[ModelSource, ...] = ()
        self.shapes: dict[ModelId, Mapping[str, Shape]] = {}
        self.values: dict[ModelId, Mapping[str, Numbers]] = {}

    def shapes_of(self, source: ModelSource) -> Mapping[str, Shape]:
        """Return the known shapes of a model's inputs."""
        return {**source.inputs, **self.shapes.get(id_of(source), {})}

    def is_sample(self, model: ModelId) -> bool:
        """Return whether a model is one of the samples, so not in a file of the user's own."""
        return any(id_of(it) == model and it.task is not None for it in self.sources)

    def named(self, name: str) -> ModelSource | None:
        return next((source for source in self.sources if source.name == name), None)

    def listed(self, source: ModelSource) -> ModelSource:
        """Return a model as the library lists it, so with its file of the library's format."""
        return next((it for it in self.sources if id_of(it) == id_of(source)), source)

    def spec(self, source: ModelSource, choices: Choices) -> ModelSpec:
        file = source if choices.format is None else source.in_format(choices.format)
        shapes, values = self.shapes.get(id_of(source), {}), self.values.get(id_of(source), {})
        return ModelSpec(
            file,
            choices.level,
            choices.cutting,
            shapes,
            choices.batch,
            choices.precision,
            choices.kernels,
            values=values,
        )

    def take(self, source: ModelSource, given: GivenInputs) -> None:
        """Keep what the user gives for the inputs of a model, in place of earlier shapes and values."""
        self.shapes[id_of(source)], self.values[id_of(source)] = given

    def specs(self, choices: Choices) -> list[ModelSpec]:
        return [self.spec(source, choices) for source in self.sources]


@dataclass(frozen=True, slots=True)
class KnownLatency:
    """The answer of a model, for the cells of its row."""

    # In milliseconds: `16.70`, `~8.1-15`; empty if there is none.
    figure: str
    # The latency that the list is sorted by; None without a figure.
    whole_ms: float | None
    # The number of measured layers.
    measured: int
    layers: int
    # True if an estimate is possible at all.
    possible: bool = True
    # True if the figure is a prediction.
    predicted: bool = False
    end_to_end_ms: float | None = None
    per_second: float | None = None
    # The runtime and its variant: `MXNet, 2 threads, batch 1`.
    combination: str = ""
    # The time of the oldest measurement in it, in seconds since 1970; None if nothing was measured.
    since: float | None = None


def known_latency(one: SystemEstimate) -> KnownLatency:
    """Return an answer as the list shows it."""
    # Loaded here: the first screen knows no latencies.
    from dlbricks_tui.wording.answers import combination_words, figure_number

    found, timed, figure = one.estimate, one.end_to_end, one.figure
    whole_ms = None if figure is None else figure.latency.value_ms
    return KnownLatency(
        figure=figure_number(one),
        whole_ms=whole_ms,
        measured=found.coverage.measured if one.is_measured else 0,
        layers=found.coverage.layers,
        possible=not found.obstacle or figure is not None,
        predicted=figure is not None and not figure.is_measured,
        end_to_end_ms=None if timed is None else timed.value_ms,
        per_second=one.per_second,
        combination=combination_words(one),
        since=figure.between[0] if figure is not None and figure.between is not None else None,
    )


class PairKind:
    """The kind of both things that are compared: A and B are of the same kind."""

    MODEL = "model"
    VARIANT = "variant"
    SYSTEM = "system"
    RUNTIME = "runtime"
    DAY = "day"
    RUN = "run"
    RESULT = "result"
    # Of several words, such as a run and a filter.
    SELECTION = "selection"


@dataclass(frozen=True, slots=True)
class ComparableRow:
    """A row that can be marked, and compared with another one of its kind.

    `subject` is a model, an estimate in a variant, results, or the id of a system, a run, a result or a what-if.
    """

    # One of `PairKind`, or `what-if`.
    kind: str
    identity: Hashable
    name: str
    subject: ModelSource | EstimatedSide | NamedSelection | str
