"""What a framework has to do for us: one implementation for each, and nothing else here knows which it is."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

from dlbricks_tui.runtime.protocol import ArrayType, Described, Fuse, Fused, Infer, Inferred, Network


class OperatorTime(NamedTuple):
    """When an operator of a network started in a run, and how long it took; `node` is its number in the network."""

    node: int
    start_ns: int
    duration_ns: int


class ProfiledNetwork(ABC):
    """A network that runs under the framework's profiler, operator by operator."""

    @abstractmethod
    def run(self, warm: int, repeat: int, before: Callable[[], None]) -> list[list[OperatorTime]]:
        """Run `warm` times, then `repeat` times profiled; one list of operators per profiled run, as they ran.

        Call `before` ahead of each run.
        """


class BoundNetwork(ABC):
    """A network ready to run any number of times; its results are always in the same arrays.

    `inputs` and `outputs` are arrays of the framework, in order; there are outputs once it has run.
    """

    inputs: Sequence[Any]
    outputs: Sequence[Any]

    @abstractmethod
    def run(self) -> None:
        """Computes the outputs and waits for them; nothing is copied out of the framework."""

    @abstractmethod
    def output_types(self) -> list[ArrayType]:
        """What the outputs are, once it has run."""

    @abstractmethod
    def refuse_infinite_values(self) -> None:
        """Objects where an output holds an infinity, or what is no number."""

    @abstractmethod
    def profiled(self) -> ProfiledNetwork:
        """The same network with the same arrays, ready for the profiler."""


class Backend(ABC):
    """A framework."""

    # Copies one number: as little as a graph can compute. And reads and writes an array of SWEPT, with all cores, or
    # one of EVICTING.
    nothing: Network
    sweep: Network
    evict: Network

    @abstractmethod
    def passing_over(self, size_bytes: int) -> Network:
        """A network that reads half of so many bytes and writes the other half, with all cores."""

    @abstractmethod
    def describe(self) -> Described:
        """What this interpreter has."""

    @abstractmethod
    def infer(self, request: Infer) -> Inferred:
        """The types of tensors."""

    @abstractmethod
    def fuse(self, request: Fuse) -> Fused:
        """The graph that the framework would run."""

    @abstractmethod
    def bind(self, network: Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False) -> BoundNetwork:
        """Makes a network ready; `fed` are the arrays that its inputs read, which are made where there are none.

        Of one that is bound `side_by_side` operators run at the same time where the settings of the runtime let them.
        """


ONE = ArrayType((1,), "float32")
_ROW_BYTES = 16 * 1024 * 4


def rows_of(size_bytes: int) -> ArrayType:
    """An array of about so many bytes."""
    return ArrayType((1, 16, 1024, max(1, size_bytes // _ROW_BYTES)), "float32")


# Reading and writing so much leaves nothing else in the caches of today's processors.
SWEPT = rows_of(64 << 20)
# And so much, in those that a core has for itself.
EVICTING = rows_of(2 << 20)
