"""What the fleet screen shows: a fleet run after all of its events so far, by model and host."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING

from dlbricks_tui.fleet.events import EVENTS
from dlbricks_tui.fleet.progress import FleetProgress
from dlbricks_tui.runs.events import EventReader

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dlbricks_tui.fleet.events import HostEstimate, OrderFound
    from dlbricks_tui.fleet.folder import FleetFolder
    from dlbricks_tui.fleet.progress import HostRow
    from dlbricks_tui.runs.run_folder import RunState


@dataclass(frozen=True, slots=True)
class ModelView:
    """A model by one runtime: its estimates on all hosts, the fastest first, and the order of the hosts."""

    model: str
    runtime: str
    estimates: tuple[HostEstimate, ...]
    order: OrderFound | None

    @property
    def is_settled(self) -> bool:
        """True if the order of the hosts is certain."""
        return self.order is not None and self.order.settled

    @property
    def fastest(self) -> tuple[str, ...]:
        """The hosts that are fastest, which may be equally fast; none while no host has an estimate."""
        if self.order is not None and self.order.order:
            return self.order.order[0]
        known = [it for it in self.estimates if it.sequential_ms is not None]
        return (known[0].host,) if known else ()


@dataclass(frozen=True, slots=True)
class FleetView:
    """A fleet run at a moment."""

    state: RunState
    question: str
    runtimes: tuple[str, ...]
    hosts: tuple[HostRow, ...]
    models: tuple[ModelView, ...]
    left_out: tuple[str, ...]


class FleetReader:
    """Reads a fleet run again and again; cheap while nothing happens."""

    def __init__(self, folder: FleetFolder) -> None:
        self.folder = folder
        self._events = EventReader(folder.events_file, EVENTS)
        self._progress = FleetProgress()
        self._last: FleetView | None = None

    def read(self) -> FleetView | None:
        """Return the fleet run if anything has changed since the last call."""
        state, news = self.folder.state(), self._events.new()
        if self._last is not None and not news and state == self._last.state:
            return None
        for event in news:
            self._progress.take(event)
        self._last = _view(state, self._progress)
        return self._last


def _view(state: RunState, progress: FleetProgress) -> FleetView:
    started = progress.started
    groups: dict[tuple[str, str], list[HostEstimate]] = {}
    for (model, runtime, _), estimate in progress.estimates.items():
        groups.setdefault((model, runtime), []).append(estimate)
    models = (
        ModelView(model, runtime, tuple(sorted(found, key=_by_latency)), progress.orders.get((model, runtime)))
        for (model, runtime), found in groups.items()
    )
    return FleetView(
        state,
        "" if started is None else started.question,
        () if started is None else started.runtimes,
        tuple(progress.hosts.values()),
        tuple(models),
        tuple(f"{it.model}: {it.reason}" for it in progress.left_out),
    )


def _by_latency(it: HostEstimate) -> tuple[bool, float]:
    return it.sequential_ms is None, it.sequential_ms or 0.0


def by_cost(estimates: Sequence[HostEstimate]) -> list[HostEstimate]:
    """Return estimates with the cheapest first, and those without a price last."""
    return sorted(estimates, key=lambda it: (it.dollars_per_million is None, it.dollars_per_million or 0.0))
