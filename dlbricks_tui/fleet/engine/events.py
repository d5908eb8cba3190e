"""Events of the engine of a fleet, and the calls that it makes for a driver."""

from dataclasses import dataclass, field
from typing import Protocol, TypeAlias

from dlbricks_tui.fleet.messages import Parcel


@dataclass(frozen=True, slots=True)
class HostJoined:
    """A host is there; `fault` says why it can get no tasks, if it cannot."""

    host: str
    fault: str = ""


@dataclass(frozen=True, slots=True)
class HostLeft:
    """A host went away. Its calls are answered with an error before."""

    host: str


@dataclass(frozen=True, slots=True)
class HostSaid:
    """A message of a host during a call."""

    host: str
    call: str
    text: str = field(repr=False)


@dataclass(frozen=True, slots=True)
class Answered:
    """The end of a call: the answer as JSON, or why there is none."""

    host: str
    call: str
    text: str = field(default="", repr=False)
    error: str = ""
    # True: the host went away during the call.
    lost: bool = False


EngineEvent: TypeAlias = HostJoined | HostLeft | HostSaid | Answered


class Calls(Protocol):
    """The calls that a driver makes; each returns the id under which exactly one answer comes."""

    def report(self, host: str) -> str:
        """Ask for the report of a host."""

    def missing(self, host: str, hashes: list[str]) -> str:
        """Ask which parcels a host lacks."""

    def send(self, host: str, parcel: Parcel) -> str:
        """Send a parcel."""

    def carry_out(self, host: str, task: str) -> str:
        """Give a host a task, as JSON."""

    def control(self, host: str, task: str, what: str) -> None:
        """Pause, resume or cancel a task by its id; a host that is gone ignores it."""
