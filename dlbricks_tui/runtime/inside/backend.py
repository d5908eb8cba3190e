"""The interface of a framework. The rest of this folder asks a framework only through it."""

from __future__ import annotations

import importlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Sequence
from typing import Any

from dlbricks_tui.runtime import protocol
from dlbricks_tui.runtime.protocol import TracedOperator


class RefusalError(Exception):
    """The request is answered with `refused`."""

    def __init__(self, reason: protocol.Reason, message: str, node: int | None = None) -> None:
        super().__init__(message)
        self.refused = protocol.Refused(reason, message, node)


def imported(module: str, title: str) -> Any:
    """Import a module, or raise RefusalError, which names it by its title."""
    try:
        return importlib.import_module(module)
    except Exception as error:
        # A broken installation raises anything, such as ValueError for another numpy, and tells it in some paragraphs.
        told = " ".join(str(error).split()) or type(error).__name__
        raise RefusalError(protocol.Reason.NO_FRAMEWORK, f"{title} cannot be imported: {told}") from error


# Runs a network once, and returns the moment from which its operators' starts count, by the host's clock.
Watch = Callable[[Callable[[], None]], int]


def unwatched(run: Callable[[], None]) -> int:
    """Run a network whose operators may start at any number."""
    run()
    return 0


class ProfiledNetwork(ABC):
    """A network that runs under the framework's profiler.

    One that has no starts only adds up: it tells the mean of all runs as a single run.
    """

    has_starts = True

    @abstractmethod
    def run(self, warm: int, repeat: int, before: Callable[[], Any], watch: Watch) -> list[list[TracedOperator]]:
        """Run `warm` times unprofiled, then `repeat` times profiled by `watch`; return the operators of each profiled
        run in order.

        Call `before` ahead of each run.
        """

    def with_owners(self, lines: tuple[protocol.Said, ...]) -> tuple[protocol.Said, ...]:
        """Return lines of oneDNN from one run with the operators that they belong to, as far as that is known."""
        return lines


class BoundNetwork(ABC):
    """A network ready to run. Its results are always in the same arrays, unless it `allocates`.

    `inputs` and `outputs` are arrays of the framework, in order. `outputs` is filled by the first run. A network
    begins to allocate new outputs in each run as soon as those of the first run do not fit: sizes that vary from run
    to run, or that contradict the file.
    """

    inputs: Sequence[Any]
    outputs: Sequence[Any]
    allocates = False

    @property
    def may_allocate(self) -> bool:
        """False if the second run fills the outputs of the first one for certain."""
        return False

    @abstractmethod
    def run(self) -> None:
        """Compute the outputs and wait for them. Nothing is copied out of the framework."""

    def prepare(self) -> None:  # noqa: B027
        """Run something else that an engine runs ahead of each run, if that changes how long the run takes."""

    def begin(self) -> None:  # noqa: B027
        """Make what runs have changed as it was before the first run, ahead of several runs."""

    @abstractmethod
    def refuse_infinite_values(self) -> None:
        """Raise RefusalError if an output holds an infinity or a NaN."""

    @abstractmethod
    def profiled(self) -> ProfiledNetwork:
        """Return the same network with the same arrays, ready for the profiler."""


class Backend(ABC):
    """One framework."""

    # `nothing` copies one number. `sweep` reads and writes an array of SWEPT with all cores.
    nothing: protocol.Network
    sweep: protocol.Network
    # The version of the framework.
    version: str
    # Its threads sleep after a while without work, and take some time to wake up.
    falls_asleep = False

    @abstractmethod
    def passing_over(self, size_bytes: int) -> protocol.Network:
        """Return a network that reads half of that many bytes and writes the other half, with all cores."""

    def chosen(self) -> dict[str, str]:
        """Return settings that the framework has chosen itself."""
        return {}

    @abstractmethod
    def infer(self, request: protocol.Infer) -> protocol.Inferred:
        """Return the types of tensors."""

    @abstractmethod
    def fuse(self, request: protocol.Fuse) -> protocol.Fused:
        """Return the graph that the framework would run."""

    def record(self, request: protocol.Record) -> protocol.Recorded:
        """Return the types of a network's outputs in one run."""
        raise RefusalError(protocol.Reason.MALFORMED, "this framework does not record tensors")

    def explain(self, request: protocol.Explain) -> protocol.Explained:
        """Return what oneDNN prints about the kernels of a network."""
        raise RefusalError(protocol.Reason.MALFORMED, "this framework does not compute with oneDNN")

    @abstractmethod
    def bind(
        self, network: protocol.Network, fed: Sequence[Any] | None = None, *, side_by_side: bool = False
    ) -> BoundNetwork:
        """Prepare a network. `fed` are the arrays that its inputs read; without them, new ones are filled.

        With `side_by_side`, operators run at the same time as far as the settings of the runtime allow it.
        """


ONE = protocol.ArrayType((1,), "float32")
_ROW_BYTES = 16 * 1024 * 4


def rows_of(size_bytes: int) -> protocol.ArrayType:
    """Return the type of an array of about that many bytes."""
    return protocol.ArrayType((1, 16, 1024, max(1, size_bytes // _ROW_BYTES)), "float32")


# Reading and writing this much replaces the contents of all caches of today's processors.
SWEPT = rows_of(64 << 20)
