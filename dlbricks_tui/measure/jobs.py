"""Programs to time: bricks in a context, or whole models, and what they are expected to take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.bricks.coldness import Caches
from dlbricks_tui.bricks.contexts import caches_in
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.whole_model import as_optimised, whole_model
from dlbricks_tui.estimate.bridging import features_of
from dlbricks_tui.measure.warming import untimed_runs
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph

# What any of today's machines manages with two cores, within a factor of some tens.
_MULTIPLICATIONS_PER_MS = 5e7
_ELEMENTS_PER_MS = 1e6
_CALL_MS = 0.01


class Target(NamedTuple):
    """A brick in a context by their keys, or (brick empty) a whole model by its key."""

    brick: str = ""
    context: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class Subject:
    """A model to be estimated, and how it is timed end to end."""

    decomposition: Decomposition
    # The model as it is timed end to end, and the key of all its layers taken as one brick.
    whole: LayerGraph
    key: str
    # Its file, where the runtime can run that as it stands.
    file: Path | None = None

    @property
    def optimised_from_file(self) -> bool:
        """True if the runtime optimises the file by itself, since the fused layers are not known."""
        return self.whole.level is not self.decomposition.graph.level

    @property
    def name(self) -> str:
        """What people call it."""
        return self.decomposition.graph.name


class Earlier(NamedTuple):
    """Samples that a run has taken of a job and that are too few, and what the reference took then (0: not known)."""

    samples_ms: tuple[float, ...]
    reference_ms: float


class Use(NamedTuple):
    """How often a model, by name, pays for a brick."""

    model: str
    times: int


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A program to be timed. `layers` stand in `graph`: one place of many for a brick, all of them for a model."""

    target: Target
    label: str
    canonical: str
    graph: LayerGraph
    layers: tuple[int, ...]
    uses: tuple[Use, ...]
    expected_ms: float
    memory_bytes: int
    # How much of the doubt about all models it takes away, 1 being all the doubt about one model.
    gain: float = 0.0
    # How much of a model it is expected to be, of that model of which it is most; 1 is all of it.
    share: float = 1.0
    # What it must not write over; None: what the graph shows to be needed afterwards.
    kept: frozenset[Feed] | None = None
    # What the caches hold of it; None: as the graph shows.
    caches: Caches | None = None
    # The file of a whole model: run as it stands if the model cannot be run layer by layer, or if `from_file` is set.
    file: Path | None = None
    from_file: bool = False
    # What was sampled before and is not to be sampled again; None: nothing.
    earlier: Earlier | None = None

    @property
    def whole(self) -> bool:
        """Whether it is a model and no brick."""
        return not self.target.brick

    def untimed_runs(self, latency_ms: float) -> int:
        """How often it runs untimed before each time that it is timed, if it takes about so long."""
        return untimed_runs(latency_ms, whole=self.whole, caches=caches_in(self.target.context))


class Entry(NamedTuple):
    """A job under the number by which events and the worker know it."""

    number: int
    job: Job

    @property
    def name(self) -> str:
        """What the worker calls it."""
        return str(self.number)

    @property
    def about(self) -> dict[str, Any]:
        """How events speak of it."""
        return {"program": self.number, **self.job.target._asdict(), "label": self.job.label}


def subject_of(decomposition: Decomposition, file: Path | None = None, *, lowered: bool = False) -> Subject:
    """A model that has been taken apart, as something to be estimated.

    A model with a file that is `lowered` to its written layers is timed end to end as the runtime optimises the file.
    """
    graph = decomposition.graph
    whole = as_optimised(graph) if lowered and file is not None else graph
    return Subject(decomposition, whole, whole_model(whole).key, file)


def expected_ms(canonical: str) -> float:
    """A guess from the shapes of a brick alone."""
    features = features_of(canonical)
    if features is None:
        return _CALL_MS
    # Where there is no matrix of weights, the work is as many elements as the data has.
    work_ms = math.exp(features.work) / _MULTIPLICATIONS_PER_MS
    return _CALL_MS + work_ms + (math.exp(features.data) + math.exp(features.weights)) / _ELEMENTS_PER_MS


def memory_bytes(layers: Sequence[Layer]) -> int:
    """What the weights of some layers, what they are fed and all that they make take, at the same time."""
    own = {layer.index for layer in layers}
    fed = {
        feed: tensor
        for layer in layers
        for feed, tensor in zip(layer.feeds, layer.data, strict=True)
        if feed.layer not in own
    }
    made = (tensor for layer in layers for operator in layer.operators for tensor in operator.outputs)
    learned = (tensor for layer in layers for tensor in layer.weights)
    return sum(tensor.size_bytes for tensor in chain(learned, fed.values(), made))
