"""A connection to a host of a fleet, as the doctor and the installer use it: `fleet.ssh` opens them over SSH."""

from collections.abc import Callable
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol, TypeAlias

from dlbricks_tui.fleet.hosts import HostEntry

# No command of the doctor prints more.
MOST_OUTPUT_BYTES = 1 << 20


@dataclass(frozen=True, slots=True)
class Finished:
    """A command that has ended on a host: its exit status and what it printed."""

    status: int
    out: bytes
    err: bytes


class Connection(Protocol):
    """An open connection to one host. All its methods raise FleetError with one line that says what to do."""

    async def run(
        self, command: str, given: bytes = b"", *, seconds: float, most_bytes: int = MOST_OUTPUT_BYTES
    ) -> Finished:
        """Run a command line in the user's shell there, with `given` as its standard input.

        A command that runs longer or prints more is ended, and raises FleetError.
        """
        ...

    async def send(self, source: Path, target: str) -> None:
        """Copy a file of this machine to an absolute path there."""
        ...


# Open a connection to a host; leaving the context closes it. Raise FleetError if the host cannot be reached.
Connect: TypeAlias = Callable[[HostEntry], AbstractAsyncContextManager[Connection]]
