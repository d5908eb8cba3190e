"""The progress of a fleet run, derived from its events."""

from dataclasses import dataclass, field, replace

from dlbricks_tui.fleet.events import (
    FleetEnded,
    FleetStarted,
    HostBrickFailed,
    HostChanged,
    HostEstimate,
    HostProgress,
    HostState,
    ModelLeftOut,
    OrderFound,
    ResultStored,
)
from dlbricks_tui.measure.events import Event


@dataclass(frozen=True, slots=True)
class HostRow:
    """A host of a fleet run, as its newest events tell."""

    name: str
    state: HostState = HostState.CONNECTING
    message: str = ""
    system: str = ""
    system_name: str = ""
    bricks: int = 0
    of: int = 0
    failed: int = 0
    seconds_left: float | None = None
    disturbed_rounds: int = 0
    disturbed_seconds: float = 0.0

    @property
    def is_complete(self) -> bool:
        """True if it has done everything, without a failure."""
        return self.state is HostState.DONE and not self.failed


@dataclass(slots=True)
class FleetProgress:
    """A fleet run after all events so far; it starts again when the fleet run is resumed."""

    started: FleetStarted | None = None
    ended: FleetEnded | None = None
    # By name, in the order in which they became known.
    hosts: dict[str, HostRow] = field(default_factory=dict)
    # By model, runtime and host.
    estimates: dict[tuple[str, str, str], HostEstimate] = field(default_factory=dict)
    # By model and runtime.
    orders: dict[tuple[str, str], OrderFound] = field(default_factory=dict)
    left_out: list[ModelLeftOut] = field(default_factory=list)
    failed: list[HostBrickFailed] = field(default_factory=list)
    # The results that were stored since the fleet run was started or resumed.
    stored: int = 0

    def take(self, event: Event) -> None:
        """Add an event."""
        match event:
            case FleetStarted():
                self.started, self.ended = event, None
                self.hosts = {name: HostRow(name) for name in event.hosts}
                self.estimates, self.orders, self.left_out, self.failed, self.stored = {}, {}, [], [], 0
            case HostChanged():
                row = self._row(event.host)
                # A host keeps its system when it goes away.
                named = (event.system or row.system, event.system_name or row.system_name)
                self.hosts[event.host] = replace(
                    row, state=HostState(event.state), message=event.message, system=named[0], system_name=named[1]
                )
            case HostProgress():
                self.hosts[event.host] = replace(
                    self._row(event.host),
                    bricks=event.bricks,
                    of=event.of,
                    failed=event.failed,
                    seconds_left=event.seconds_left,
                    disturbed_rounds=event.disturbed_rounds,
                    disturbed_seconds=event.disturbed_seconds,
                )
            case HostEstimate():
                self.estimates[event.model, event.runtime, event.host] = event
            case OrderFound():
                self.orders[event.model, event.runtime] = event
            case ModelLeftOut():
                self.left_out.append(event)
            case HostBrickFailed():
                self.failed.append(event)
            case ResultStored():
                self.stored += 1
            case FleetEnded():
                self.ended = event

    def _row(self, host: str) -> HostRow:
        return self.hosts.get(host) or HostRow(host)
