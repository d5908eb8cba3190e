"""Watches the runs of a data folder from a thread, and tells what there is to be seen."""

from __future__ import annotations

import os
import threading
import time
from typing import TYPE_CHECKING, NamedTuple

if TYPE_CHECKING:
    from collections.abc import Callable

    from dlbricks_tui.runs.run_folder import RunFolders
    from dlbricks_tui.settings import DataFolder
    from dlbricks_tui.tui.live.follower import Follower
    from dlbricks_tui.tui.live.snapshot import RunSnapshot

# While bricks run, everything that we do disturbs them.
SECONDS_BETWEEN_LOOKS = 0.25
SECONDS_BETWEEN_IDLE_LOOKS = 1.0
SECONDS_BETWEEN_RESULTS = 1.0
# A folder that is younger may be without its state still.
_SECONDS_TO_SETTLE = 2.0


class Listener(NamedTuple):
    """Who is told, from the thread."""

    seen: Callable[[RunSnapshot], object]
    results_grew: Callable[[], object]
    failed: Callable[[BaseException], object]


class RunWatch:
    """Follows one run: the one that it is told to, else the one that is under way or begins."""

    def __init__(
        self,
        data: DataFolder,
        listener: Listener,
        clock: Callable[[], float] = time.monotonic,
        rarely: float = 1.0,
    ) -> None:
        self._data = data
        self._listener = listener
        self._clock = clock
        # How many times longer than usual the time between two looks is.
        self.rarely = rarely
        self._closed = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._wanted: str | None = None
        # Whether the person has asked for the run that is followed; then only one that begins takes its place.
        self._asked_for = False
        self._known: frozenset[str] = frozenset()
        self._follower: Follower | None = None
        # What is known of the folder of runs, so that it is read only when there are others in it.
        self._known_ns: int | None = None
        self._first_look = True
        self._stored = 0
        # Whether it was told that the run has ended: while it waited for another one, that one has stored results.
        self._told_of_end = False
        self._stored_told_at = -SECONDS_BETWEEN_RESULTS

    def start(self) -> None:
        """Begins to watch; the thread ends with the process at the latest."""
        threading.Thread(target=self._watch, name="run watch", daemon=True).start()

    def follow(self, run: str) -> None:
        """Has the run of that id followed from now on, whether it goes on or has ended."""
        with self._lock:
            self._wanted = run
        self._wake.set()

    def close(self) -> None:
        """Ends the thread."""
        self._closed = True
        self._wake.set()

    def look(self) -> None:
        """Looks once, and tells what is new."""
        self._choose()
        if self._follower is None:
            return
        snapshot = self._follower.look()
        if snapshot is not None:
            self._listener.seen(snapshot)
        self._tell_results()

    def _watch(self) -> None:
        from dlbricks_tui.errors import UserError

        told = ""
        while not self._closed:
            try:
                self.look()
            except UserError as error:
                # A folder that cannot be read is told of once, and not four times a second.
                if str(error) != told:
                    told = str(error)
                    self._listener.failed(error)
            except Exception as error:  # noqa: BLE001 - the top of a thread: nobody else would ever hear of it
                self._listener.failed(error)
                return
            going_on = self._follower is not None and self._follower.active
            self._wake.wait(SECONDS_BETWEEN_LOOKS * self.rarely if going_on else SECONDS_BETWEEN_IDLE_LOOKS)
            self._wake.clear()

    def _choose(self) -> None:
        from dlbricks_tui.runs.run_folder import RunFolders
        from dlbricks_tui.tui.live.follower import Follower

        with self._lock:
            wanted, self._wanted = self._wanted, None
        folders = RunFolders(self._data.runs)
        if wanted is not None:
            self._asked_for = True
        elif self._follower is None or not self._follower.active:
            wanted = self._found(folders)
        if wanted is not None and (self._follower is None or self._follower.folder.run != wanted):
            self._follower = Follower(folders.find(wanted))
            self._stored, self._told_of_end = 0, False
        elif wanted is not None and self._follower is not None:
            # Asked for again: whoever asks wants to hear of it even if nothing has changed.
            self._follower.forget()

    def _found(self, folders: RunFolders) -> str | None:
        """A run that is under way; at the first look also the newest one if it waits to be taken up again."""
        try:
            changed_ns = os.stat(self._data.runs).st_mtime_ns  # noqa: PTH116
        except FileNotFoundError:
            self._first_look = False
            return None
        if changed_ns == self._known_ns:
            return None
        settled = time.time() - changed_ns / 1e9 > _SECONDS_TO_SETTLE
        self._known_ns = changed_ns if settled else None
        states = folders.states()
        known, self._known = self._known, frozenset(state.run for state in states)
        active = [state for state in states if state.active and not (self._asked_for and state.run in known)]
        first, self._first_look = self._first_look, False
        if active:
            self._asked_for = False
            return active[-1].run
        interrupted = first and states and states[-1].state.value == "interrupted"
        return states[-1].run if interrupted else None

    def _tell_results(self) -> None:
        if self._follower is None:
            return
        stored, ended, now = self._follower.stored, not self._follower.active, self._clock()
        new = stored != self._stored or ended is not self._told_of_end
        if new and now - self._stored_told_at >= SECONDS_BETWEEN_RESULTS:
            self._stored, self._told_of_end, self._stored_told_at = stored, ended, now
            self._listener.results_grew()
