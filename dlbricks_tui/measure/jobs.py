"""Programs to time (bricks in a context, or whole models), their expected latencies and numbers of untimed runs."""

import math
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import chain
from pathlib import Path
from typing import Any, NamedTuple

from dlbricks_tui.bricks.contexts import is_cold_in
from dlbricks_tui.bricks.decomposition import Decomposition
from dlbricks_tui.bricks.identity import as_optimised, whole_model
from dlbricks_tui.estimate.features import features_of
from dlbricks_tui.models.graph import Layer, LayerGraph
from dlbricks_tui.store.records import ANY_CONTEXT, Result

# The throughput of any current machine with two cores, within a factor of some tens.
_MULTIPLICATIONS_PER_MS = 5e7
_BYTES_PER_MS = 4e6
_CALL_MS = 0.01

# The programs before a model leave the caches in a foreign state, and wide vector units slow down the processor for a
# while. A model needs some runs to settle, for about 40 ms if it is quick; one that takes longer than 150 ms settles
# within a run (docs/log/hosts.md).
_FEWEST_RUNS_OF_A_MODEL, _MODEL_SETTLES_MS, _MODEL_FILLS_CACHES_MS = 3, 40.0, 150.0
_MOST_RUNS_OF_A_MODEL = 2_000
_RUNS = 1
# A short brick runs several times until its data and its inputs' copies are in the caches, as in the middle of a model
# (docs/log/bricks.md).
_RUNS_OF_A_SHORT_BRICK, _SHORT_BRICK_MS = 3, 3.0
# A short network runs several times in a round, for about this long, and the median counts: a single run of it is often
# interrupted, or slower by chance.
_TIMED_MS, _MOST_TIMED_RUNS = 10.0, 9
# Longer programs need no untimed run.
_LONG_MODEL_MS, _LONG_BRICK_MS = 1000.0, 50.0


class JobKey(NamedTuple):
    """The keys under which the store knows a brick in a context, or (brick empty) a whole model."""

    brick: str = ""
    context: str = ""
    model: str = ""


@dataclass(frozen=True, slots=True)
class CutModel:
    """A model that is cut into bricks, and how it is timed end to end."""

    decomposition: Decomposition
    # The model as it is timed end to end, and the key of all its layers taken as one brick.
    whole: LayerGraph
    key: str
    # The model file, if the runtime can run it unchanged.
    file: Path | None = None
    # Its name in the run where that is not its own: the variant may be part of it.
    label: str = ""
    # The layers that do not stand for their bricks, as their surroundings are not those of a model.
    edges: frozenset[int] = frozenset()

    @property
    def needs_file(self) -> bool:
        """True if only its file can be timed: its fused layers are unknown, or some layer cannot run alone."""
        graph = self.decomposition.graph
        unknown = self.whole.level is not graph.level
        return self.file is not None and (unknown or any(layer.unmeasurable is not None for layer in graph.layers))

    @property
    def name(self) -> str:
        return self.label or self.decomposition.graph.name


class Earlier(NamedTuple):
    """The samples that an earlier run took of a job, too few, and the reference latency then (0: not known)."""

    samples_ms: tuple[float, ...]
    reference_ms: float
    # All results of that run: one for each place in a carrier.
    results: tuple[Result, ...] = ()


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
    # The expected share of a model's latency, in the model where it is largest; 1 is all of it.
    share: float = 1.0
    # The file of a whole model, which runs as it stands. A model without one, or whose file fails, runs layer by layer,
    # unless it `needs_file`.
    file: Path | None = None
    needs_file: bool = False
    # Samples to go on from; None: there are none.
    earlier: Earlier | None = None
    # The place in the plan: events and the worker identify the job by it.
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


def cut_model(
    decomposition: Decomposition, file: Path | None = None, *, lowered: bool = False, label: str = ""
) -> CutModel:
    """Return a decomposed model with its key.

    A model with a file that is `lowered` to its written layers is timed end to end as the runtime optimises the file.
    """
    graph = decomposition.graph
    whole = as_optimised(graph) if lowered and file is not None else graph
    return CutModel(decomposition, whole, whole_model(whole).key, file, label)


def expected_ms(canonical: str) -> float:
    """Guess the latency of a brick from its shapes: to order jobs, to share out memory, to detect hanging programs."""
    features = features_of(canonical, ANY_CONTEXT)
    if features is None:
        return _CALL_MS
    arithmetic, *moved_bytes = map(math.exp, features.sizes[:4])
    return _CALL_MS + arithmetic / _MULTIPLICATIONS_PER_MS + sum(moved_bytes) / _BYTES_PER_MS


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


def untimed_runs(latency_ms: float, *, whole: bool, cold: bool = False) -> int:
    """Return the number for a brick or whole model of this latency; cold bricks get a cache sweep instead."""
    if not whole:
        if cold or latency_ms >= _LONG_BRICK_MS:
            return 0
        return _RUNS if latency_ms >= _SHORT_BRICK_MS else _RUNS_OF_A_SHORT_BRICK
    if latency_ms >= _LONG_MODEL_MS:
        return 0
    if latency_ms >= _MODEL_FILLS_CACHES_MS:
        return _RUNS
    if latency_ms * _MOST_RUNS_OF_A_MODEL <= _MODEL_SETTLES_MS:
        return _MOST_RUNS_OF_A_MODEL
    return max(_FEWEST_RUNS_OF_A_MODEL, math.ceil(_MODEL_SETTLES_MS / latency_ms))


def timed_runs(latency_ms: float) -> int:
    """Return the number of timed runs of a network in a round; the median of them is one sample."""
    return max(1, int(min(_MOST_TIMED_RUNS, _TIMED_MS / latency_ms))) if latency_ms else _MOST_TIMED_RUNS
