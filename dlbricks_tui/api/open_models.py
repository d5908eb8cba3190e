"""Models in view: which one is wanted, the shapes of its inputs, what is known of its latency; rows to compare."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.errors import UserError
from dlbricks_tui.models.errors import ModelError
from dlbricks_tui.runtime.variant import USUAL_KERNELS, Kernels, Precision

if TYPE_CHECKING:
    from collections.abc import Hashable, Mapping, Sequence
    from pathlib import Path

    from dlbricks_tui.api.choices import Choices
    from dlbricks_tui.api.estimating import ModelReading
    from dlbricks_tui.api.pairs import EstimatedSide
    from dlbricks_tui.api.sides import NamedSelection
    from dlbricks_tui.bricks.decomposition import Cutting
    from dlbricks_tui.estimate.system_estimate import SystemEstimate
    from dlbricks_tui.models.graph import LayerGraph, Level, Numbers, Shape
    from dlbricks_tui.models.library import ModelSource
    from dlbricks_tui.runtime.runtime import Runtime


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
        figure_number(one),
        whole_ms,
        found.coverage.measured if one.is_measured else 0,
        found.coverage.layers,
        not found.obstacle or figure is not None,
        figure is not None and not figure.is_measured,
        None if timed is None else timed.value_ms,
        one.variant.batch / whole_ms * 1000 if whole_ms else None,
        combination_words(one),
        figure.between[0] if figure is not None and figure.between is not None else None,
    )


@dataclass(frozen=True, slots=True)
class ComparableRow:
    """A row that can be marked, and compared with another one of its kind.

    `subject` is a model, an estimate in a variant, results, or the id of a system, a run, a result or a what-if.
    """

    # One of `KINDS`, or `model`, `variant`, `result` or `what-if`.
    kind: str
    identity: Hashable
    name: str
    subject: ModelSource | EstimatedSide | NamedSelection | str
