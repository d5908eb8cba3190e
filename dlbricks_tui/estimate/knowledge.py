"""The measurements of bricks on one system and runtime: the input of an estimate."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import NamedTuple, Protocol

# A brick and a context, by their keys.
Pair = tuple[str, str]


class Latency(NamedTuple):
    """A latency with its 95 % interval."""

    value_ms: float
    low_ms: float
    high_ms: float


class MeasuredLatency(NamedTuple):
    """A measured latency, and the results that it comes from."""

    latency: Latency
    pair: Pair
    samples: int
    # The ids of its results.
    results: tuple[str, ...] = ()
    # The latency of the reference in the same rounds; 0 if not known.
    reference_ms: float = 0.0
    # Half of the interval, as a share of the latency, that all results of the same rounds have in common; None: all.
    shared: float | None = None
    # In microseconds since 1970.
    when: int = 0
    # The key of the model in which it was timed, if that was one whole model; else empty.
    carrier: str = ""
    # Of a sequence that was timed layer by layer: its layers, each with the number of times that it holds it.
    layers: tuple[tuple[int, "MeasuredLatency"], ...] = ()


class Unmeasured(NamedTuple):
    """A brick in a context whose latency is to be predicted, by its canonical form."""

    canonical: str
    context: str

    @property
    def key(self) -> str:
        """The key of the brick."""
        return hashlib.sha256(self.canonical.encode()).hexdigest()


class Predictor(Protocol):
    """Predicts latencies of bricks from measured ones."""

    @property
    def shared(self) -> float:
        """The share of the half intervals that all predictions of a model have in common."""

    def predict(self, bricks: Sequence[Unmeasured]) -> Sequence[Latency | None]:
        """Return the latency of each brick; None if it is unlike all measured ones."""


@dataclass(frozen=True, slots=True)
class Knowledge:
    """Measurements by brick and context, with all else that an estimate uses."""

    measured: Mapping[Pair, MeasuredLatency] = field(default_factory=dict)
    # Bricks that failed, with the reason.
    failed: Mapping[Pair, str] = field(default_factory=dict)
    # Half of the 95 % interval of the method, as a share of an estimate.
    method_doubt: float = 0.0
    # Called if bricks lack a measurement; None: nothing is predicted.
    predictor: Callable[[], Predictor] | None = None


NOTHING_KNOWN = Knowledge()
