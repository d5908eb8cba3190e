"""The state of a fleet run in its folder, and the files by which its user controls it."""

import time
from collections.abc import Callable
from dataclasses import replace

from dlbricks_tui.fleet.folder import COMMANDS, FleetFolder
from dlbricks_tui.host.queue import this_process
from dlbricks_tui.measure.events import Event
from dlbricks_tui.runs.events import EventReader
from dlbricks_tui.runs.run_folder import RunState, State, Tally

# A state is a file that is made durable.
_SECONDS_BETWEEN_STATES = 1.0


class FleetControl:
    """Keeps the stored state of a fleet run up to date, and reads what its user asks for."""

    def __init__(self, folder: FleetFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self._folder = folder
        self._clock = clock
        before = folder.state()
        self._began = clock() - before.seconds
        self._not_before = 0.0
        # A resumed fleet run goes on, even if it was paused when its last process died.
        folder.unpause()
        self._commands = EventReader(folder.commands_file, COMMANDS)
        # Earlier commands were to an earlier process; the hosts that were added then are read apart.
        self._commands.new()
        self._state = replace(before, state=State.STARTING, process=this_process(), message="")
        folder.set_state(self._state)

    @property
    def state(self) -> RunState:
        """The state."""
        return self._state

    @property
    def seconds(self) -> float:
        """Seconds for which the fleet run has been driven, by this process and earlier ones."""
        return self._clock() - self._began

    @property
    def is_paused(self) -> bool:
        """True while the user wants all hosts to pause."""
        return self._folder.pause_file.exists()

    def new_commands(self) -> tuple[Event, ...]:
        """Return the commands about single hosts since the last call."""
        return self._commands.new()

    def change(self, state: State, message: str = "") -> None:
        """Store another state."""
        if (state, message) != (self._state.state, self._state.message):
            self._state = replace(self._state, state=state, message=message, seconds=self.seconds)
            self._folder.set_state(self._state)

    def count(self, bricks: Tally, *, at_once: bool = False) -> None:
        """Store the bricks of all hosts, at once or now and then.

        Those that an earlier process has counted stay until as many are known again: hosts join one after another.
        """
        if bricks.total < self._state.bricks.total or bricks == self._state.bricks:
            return
        if at_once or self._clock() >= self._not_before:
            self._not_before = self._clock() + _SECONDS_BETWEEN_STATES
            self._state = replace(self._state, bricks=bricks, seconds=self.seconds)
            self._folder.set_state(self._state)

    def end(self, state: State, message: str) -> RunState:
        """Store the end."""
        self._state = replace(self._state, state=state, message=message, seconds=self.seconds)
        self._folder.set_state(self._state)
        return self._state
