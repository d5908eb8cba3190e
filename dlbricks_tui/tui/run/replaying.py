"""A replay in the terminal UI: a run's events again, at a pace that keys change."""

from __future__ import annotations

import time
from dataclasses import replace
from enum import Enum
from typing import TYPE_CHECKING

from dlbricks_tui.runs.replaying import Replay, events_so_far
from dlbricks_tui.tui.run.follower import SnapshotBuilder
from dlbricks_tui.tui.run.snapshot import ReplayPace

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.runs.run_folder import RunFolder
    from dlbricks_tui.tui.run.snapshot import RunSnapshot

_FACTOR = 2.0


class ReplayChange(Enum):
    """The effect of a key on a replay."""

    PAUSE = "pause"
    FASTER = "faster"
    SLOWER = "slower"
    STOP = "stop"


class ReplayFollower:
    """Passes the events of a run when they are due; stands where a `Follower` passes those of a live run."""

    # A replay stores nothing.
    stored = 0

    def __init__(
        self, folder: RunFolder, speed: float, clock: Callable[[], float] = time.monotonic, *, begin: float = 0.0
    ) -> None:
        self.folder = folder
        self._replay = Replay(events_so_far(folder), speed, clock, begin)
        self._builder = SnapshotBuilder(folder.run, folder.state().models)
        self._stopped = False
        self._shown: RunSnapshot | None = None

    @property
    def active(self) -> bool:
        """Return whether more events are to be passed."""
        return self._shown is None or self._shown.active

    def forget(self) -> None:
        """Make the next look return a snapshot even if nothing has changed."""
        self._shown = None

    def change(self, change: ReplayChange) -> None:
        """Do what the user asks for."""
        replay = self._replay
        match change:
            case ReplayChange.PAUSE:
                (replay.go_on if replay.paused else replay.pause)()
            case ReplayChange.FASTER:
                replay.change_speed(_FACTOR)
            case ReplayChange.SLOWER:
                replay.change_speed(1 / _FACTOR)
            case ReplayChange.STOP:
                self._stopped = True

    def look(self) -> RunSnapshot | None:
        """Return the state of the run at this point of the replay; None if nothing has changed since the last look."""
        events = () if self._stopped else self._replay.due()
        pace = ReplayPace(self._replay.speed, self._replay.paused, self._stopped or self._replay.ended)
        if not events and self._shown is not None and self._shown.replay == pace:
            return None
        if events:
            self._builder.take(events)
        self._shown = replace(self._builder.snapshot(), replay=pace)
        return self._shown
