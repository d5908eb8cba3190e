"""One run, followed by what it leaves in its folder."""

import time
from collections.abc import Callable
from dataclasses import replace

from dlbricks_tui.runs.events import EventReader, ProgramMeasured, ProgramUnfinished
from dlbricks_tui.runs.run_folder import RunFolder, State
from dlbricks_tui.tui.live.folding import Folding
from dlbricks_tui.tui.live.snapshot import RunSnapshot
from dlbricks_tui.wording.numbers import duration

# A run that was killed tells nobody: its process has to be looked for.
_SECONDS_BETWEEN_CHECKS = 1.0
# After so long without a word from the run its time left counts down; sooner, drawing would disturb the rounds.
COUNTDOWN_AFTER_SECONDS = 2.0


class Follower:
    """Reads on whenever it is asked; that costs next to nothing while nothing happens."""

    def __init__(self, folder: RunFolder, clock: Callable[[], float] = time.monotonic) -> None:
        self.folder = folder
        # How many results it has told to be in the store.
        self.stored = 0
        self._clock = clock
        self._events = EventReader(folder.events_file)
        self._state = folder.state()
        self._checked = clock()
        self._folding = Folding(folder.run, self._state.models)
        self._shown: RunSnapshot | None = None
        # When the run last told something: its time left is of that moment.
        self._heard = clock()

    @property
    def active(self) -> bool:
        """Whether more is to be expected."""
        return self._shown is None or self._shown.active

    def forget(self) -> None:
        """Has the next look tell what there is, even if that is as it was."""
        self._shown = None

    def look(self) -> RunSnapshot | None:
        """The run as it is seen now; None where that is as it was seen last."""
        # Asked before reading, so that what a run tells last is read.
        if self._clock() - self._checked >= _SECONDS_BETWEEN_CHECKS:
            self._state = self.folder.state()
            self._checked = self._clock()
        events = self._events.new()
        pausing = self.folder.pause_file.exists()
        if events:
            self._heard = self._clock()
            self.stored += sum(isinstance(event, ProgramMeasured | ProgramUnfinished) for event in events)
            self._folding.take(events)
        elif self._shown is not None and (pausing, self._ended_otherwise) == (
            self._shown.pausing,
            self._shown.state is not self._folding.progress.state,
        ):
            return self._counted_down(self._shown)
        self._shown = self._counted(self._corrected(replace(self._folding.snapshot(), pausing=pausing)))
        return self._shown

    def _counted_down(self, shown: RunSnapshot) -> RunSnapshot | None:
        """The same run with less time left; None where that reads as before."""
        now = self._counted(replace(shown, seconds_left=self._folding.progress.seconds_left))
        if now.seconds_left is None or shown.seconds_left is None or shown.state is not State.RUNNING:
            return None
        if duration(now.seconds_left) == duration(shown.seconds_left):
            return None
        self._shown = now
        return now

    def _counted(self, snapshot: RunSnapshot) -> RunSnapshot:
        """The snapshot with the time left of now: a run tells nothing while it loads a program or takes a sample."""
        if snapshot.seconds_left is None or snapshot.state is not State.RUNNING:
            return snapshot
        silent_seconds = self._clock() - self._heard
        if silent_seconds < COUNTDOWN_AFTER_SECONDS:
            return snapshot
        return replace(snapshot, seconds_left=max(0.0, snapshot.seconds_left - silent_seconds))

    @property
    def _ended_otherwise(self) -> bool:
        """Whether its process is gone without a word in the event file."""
        return self._folding.progress.ended is None and not self._state.active

    def _corrected(self, snapshot: RunSnapshot) -> RunSnapshot:
        if not self._ended_otherwise:
            return snapshot
        return replace(
            snapshot,
            state=self._state.state,
            message=self._state.message,
            at_work="",
            calibrating=False,
            seconds_left=None,
        )
