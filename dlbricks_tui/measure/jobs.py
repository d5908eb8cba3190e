"""Programs to time: bricks in a context, or whole models, and how long they are expected to take."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.bricks.contexts import is_cold_in
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.identity import as_optimised, whole_model
from dlbricks_tui.estimate.bridging import features_of
from dlbricks_tui.measure.warming import untimed_runs
from dlbricks_tui.models.graph import Feed, Layer, LayerGraph

# The throughput of any current machine with two cores, within a factor of some tens.
_MULTIPLICATIONS_PER_MS = 5e7
_ELEMENTS_PER_MS = 1e6
_CALL_MS = 0.01


class JobKey(NamedTuple):
    """The keys under which the store knows a brick in a context, or (brick empty) a whole model."""

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
        """The model's name."""
        return self.decomposition.graph.name


class Earlier(NamedTuple):
    """The samples that an earlier run took of a job, too few, and the reference latency then (0: not known)."""

    samples_ms: tuple[float, ...]
    reference_ms: float


class Use(NamedTuple):
    """A model, by name, and the number of times that it runs a brick."""

    model: str
    times: int


@dataclass(frozen=True, slots=True, eq=False)
class Job:
    """A program to time: `layers` of `graph`, which are one occurrence of a brick, or all layers of a model."""

    key: JobKey
    label: str
    canonical: str
    graph: LayerGraph
    layers: tuple[int, ...]
    uses: tuple[Use, ...]
    expected_ms: float
    memory_bytes: int
    # The uncertainty of all models that measuring it removes; 1 is all the uncertainty of one model.
    gain: float = 0.0
    # Its expected share of a model's latency, in the model where that is largest; 1 is all of it.
    share: float = 1.0
    # The tensors that it must not overwrite; None: those that the graph needs afterwards.
    kept: frozenset[Feed] | None = None
    # True if its weights are in no cache; None: as the graph shows.
    cold: bool | None = None
    # The file of a whole model: run as it stands if the model cannot be run layer by layer, or if `from_file` is set.
    file: Path | None = None
    from_file: bool = False
    # Samples to go on from; None: there are none.
    earlier: Earlier | None = None
    # Its place in the plan: events and the worker know the job by that.
    number: int = 0

    @property
    def whole(self) -> bool:
        """True for a whole model."""
        return not self.key.brick

    @property
    def name(self) -> str:
        """The program's name in the worker."""
        return str(self.number)

    @property
    def about(self) -> dict[str, Any]:
        """The fields by which events name the job."""
        return {"program": self.number, **self.key._asdict(), "label": self.label}

    def untimed_runs(self, latency_ms: float) -> int:
        """Return the number of untimed runs before each timed run, for a program of about this latency."""
        return untimed_runs(latency_ms, whole=self.whole, cold=is_cold_in(self.key.context))


def subject_of(decomposition: Decomposition, file: Path | None = None, *, lowered: bool = False) -> Subject:
    """Return a decomposed model as something to be estimated.

    A model with a file that is `lowered` to its written layers is timed end to end as the runtime optimises the file.
    """
    graph = decomposition.graph
    whole = as_optimised(graph) if lowered and file is not None else graph
    return Subject(decomposition, whole, whole_model(whole).key, file)


def expected_ms(canonical: str) -> float:
    """Guess the latency of a brick from its shapes: to order jobs, to share out memory, to detect hanging programs."""
    features = features_of(canonical)
    if features is None:
        return _CALL_MS
    # Without a matrix of weights the work is as many elements as the data has.
    work_ms = math.exp(features.work) / _MULTIPLICATIONS_PER_MS
    return _CALL_MS + work_ms + (math.exp(features.data) + math.exp(features.weights)) / _ELEMENTS_PER_MS


def memory_bytes(layers: Sequence[Layer]) -> int:
    """Return the bytes of all weights, inputs and results of some layers."""
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
