"""The measurements of bricks on one system and runtime, and the speed of its host: the input of an estimate."""

import hashlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from numpy.typing import NDArray

from dlbricks_tui.store.change import Timing
from dlbricks_tui.store.database import ResultsDatabase
from dlbricks_tui.store.index import REFERENCE_COLUMN
from dlbricks_tui.store.selections import equal

# A brick and a context, by their keys.
Pair = tuple[str, str]


class Latency(NamedTuple):
    """A latency with its 95 % interval."""

    value_ms: float
    low_ms: float
    high_ms: float

    def timing(self, *, end_to_end: bool) -> Timing:
        """Return it as a latency to compare: of one process if it was timed end to end, or else estimated."""
        processes = 1 if end_to_end else None
        return Timing(value_ms=self.value_ms, low_ms=self.low_ms, high_ms=self.high_ms, processes=processes)


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
    # The carriers in which it was timed, by their keys; one that is not known has an empty one.
    carriers: frozenset[str] = frozenset()
    # Its mean in other models than the one that is estimated; None if it was timed in none.
    others_ms: float | None = None
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

# On a quiet host the reference varies by one or two percent. Neighbours on a shared host change it by a third, for
# minutes.
MOST_SLOWER = 1.15
# The usual speed follows a host that has changed for good.
_RUNS_REMEMBERED = 20


@dataclass(frozen=True, eq=False)
class HostSpeed:
    """The reference latencies of the results of one way of measuring on a system, in no order."""

    references_ms: NDArray[np.float64]
    # In microseconds since 1970.
    when: NDArray[np.int64]
    # The numbers of their runs.
    runs: NDArray[np.int32]

    @cached_property
    def usual_ms(self) -> float | None:
        """The reference latency of the quick host: a quarter of the latest runs had a lower one; None without results.

        A host has been quiet in at least some of its runs. A single quick run of five is chance.
        """
        newest = {run: int(self.when[self.runs == run].max()) for run in np.unique(self.runs).tolist()}
        latest = sorted(newest, key=newest.__getitem__)[-_RUNS_REMEMBERED:]
        found = sorted(float(np.median(self.references_ms[self.runs == run])) for run in latest)
        return found[(len(found) - 1) // 4] if found else None

    def was_slower(self, reference_ms: float) -> bool:
        """True if the host was clearly slower than usual when the reference took this long; 0: not known."""
        return self.usual_ms is not None and reference_ms > MOST_SLOWER * self.usual_ms

    def quicker_since(self, when: int, reference_ms: float) -> bool:
        """True if a result since then was measured on a clearly quicker host."""
        return bool(np.any(MOST_SLOWER * self.references_ms[self.when > when] < reference_ms))


def host_speed(store: ResultsDatabase, system: str, runtime: str, protocol: str) -> HostSpeed:
    """Return the speed of a system in all results of a way of measuring that state the reference."""
    found = store.select(equal(system=system, runtime=runtime, protocol=protocol), order=())
    references_ms = found.numbers(REFERENCE_COLUMN)
    known = references_ms > 0
    return HostSpeed(references_ms[known], found.numbers("when")[known], found.numbers("run")[known])
