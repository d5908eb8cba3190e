"""Watches the runs of a data folder, and this host, from a thread."""

from __future__ import annotations

import math
import os
import threading
import time
from contextlib import suppress
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple

from dlbricks_tui.recorded_host import recorded_host

if TYPE_CHECKING:
    from collections.abc import Callable
    from typing import TypeAlias

    from dlbricks_tui.api.followed_runs import Follower, ReplayChange, RunSnapshot
    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.noise import HostLoad, LoadMeter
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.jobs.folder import RunFolders

    # What a watch tells; an error that is no UserError is a defect of the program, and ends it.
    News: TypeAlias = "RunSnapshot | LineSeen | LoadSeen | ResultsGrown | Exception"

# Each look costs processor time, which disturbs measurements.
SECONDS_BETWEEN_LOOKS = 0.25
SECONDS_BETWEEN_IDLE_LOOKS = 1.0
SECONDS_BETWEEN_RESULTS = 1.0
# A run that reports nothing for so long still shows the load of the host.
SECONDS_BETWEEN_LOADS = 5.0
# Without a run, only words about the load are shown, which seldom change.
SECONDS_BETWEEN_IDLE_LOADS = 10.0
# A younger folder may not have its state yet.
_SECONDS_TO_SETTLE = 2.0
# A run of half a minute is replayed in the time in which one looks at its screen.
REPLAY_SPEED = 4.0


class Replayed(NamedTuple):
    """A replay: its run, its speed, and the second of the run at which it begins."""

    run: str
    speed: float = REPLAY_SPEED
    begin: float = 0.0


class LineSeen(NamedTuple):
    """The line of work on this host."""

    places: tuple[Place, ...]


class LoadSeen(NamedTuple):
    """How busy the host is, in words."""

    words: str


class ResultsGrown(NamedTuple):
    """The files of the store have changed: by the followed run, or by a command elsewhere."""


class RunWatch:
    """Follows one run: the requested one, else one that is active or starts; tells what is new.

    A replay takes the place of a run until the user asks for another one.
    """

    def __init__(
        self,
        data: DataFolder,
        tell: Callable[[News], object],
        clock: Callable[[], float] = time.monotonic,
        poll_factor: float = 1.0,
        meter: LoadMeter | None = None,
    ) -> None:
        self._data = data
        self._tell = tell
        self._clock = clock
        # Multiplies the time between two looks.
        self.poll_factor = poll_factor
        self._closed = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._wanted: str | Replayed | None = None
        self._wanted_changes: list[ReplayChange] = []
        # True if the user asked for the followed run; then only a new run replaces it.
        self._asked_for = False
        self._known: frozenset[str] = frozenset()
        self._follower: Follower | None = None
        # The time of change of the folder of runs, which is read when it changes, and while other runs are active.
        self._known_ns: int | None = None
        self._others_active = False
        self._first_look = True
        self._stored_told_at = -SECONDS_BETWEEN_RESULTS
        # The files of the store as they were told of; None before the first look.
        self._files: frozenset[tuple[str, int, int]] | None = None
        # Made at the first look at an active run: the first screen needs none.
        self._meter = meter
        # The last snapshot that was posted, and when.
        self._seen: RunSnapshot | None = None
        self._seen_at = 0.0
        # What was posted of the line of work on this host, and when to look at it again.
        self._queue_seen: tuple[object, ...] = ()
        self._queue_again_at = -math.inf
        # The same of the load without a run.
        self._load_seen = ""
        self._load_again_at = -math.inf

    def start(self) -> None:
        """Start the thread. It ends at `close`, or with the process."""
        threading.Thread(target=self._watch, name="run watch", daemon=True).start()

    def follow(self, wanted: str | Replayed) -> None:
        """Follow this run from now on, active or ended, or replay one."""
        with self._lock:
            self._wanted = wanted
        self._wake.set()

    def change_replay(self, change: ReplayChange) -> None:
        """Change the pace of the replay, or stop it; without a replay there is nothing to do."""
        with self._lock:
            self._wanted_changes.append(change)
        self._wake.set()

    def close(self) -> None:
        self._closed = True
        self._wake.set()

    def look(self) -> None:
        """Look once and report the news."""
        from dlbricks_tui.jobs.folder import RunFolders

        self._look_at_queue()
        self._choose()
        with self._lock:
            # After the choice: the replay may begin only now.
            changes, self._wanted_changes = self._wanted_changes, []
        self._look_at_load()
        if self._follower is None:
            self._tell_results()
            return
        for change in changes:
            self._follower.change(change)
        snapshot = self._with_load(self._follower.look())
        if snapshot is not None:
            if snapshot.is_interrupted:
                states = RunFolders(self._data.runs).states()
                snapshot = replace(snapshot, interrupted=sum(it.state is snapshot.state for it in states))
            self._seen, self._seen_at = snapshot, self._clock()
            self._tell(snapshot)
        self._tell_results()

    def _look_at_queue(self) -> None:
        """Report the line of work on this host where its words have changed; a demonstration has none."""
        from dlbricks_tui.host.queue import host_queue
        from dlbricks_tui.wording.runs import line_of_work

        if self._clock() < self._queue_again_at or recorded_host() is not None:
            return
        self._queue_again_at = self._clock() + SECONDS_BETWEEN_IDLE_LOOKS
        places = host_queue().places()
        seen = (line_of_work(places), *[place.process for place in places]) if places else ()
        if seen != self._queue_seen and not self._closed:
            self._queue_seen = seen
            self._tell(LineSeen(places))

    def _look_at_load(self) -> None:
        """Report how busy the host is while no run is followed that tells it; a demonstration has no host."""
        is_followed = self._follower is not None and self._follower.active
        if self._clock() < self._load_again_at or is_followed or recorded_host() is not None:
            return
        from dlbricks_tui.wording.runs import host_in_words

        self._load_again_at = self._clock() + SECONDS_BETWEEN_IDLE_LOADS
        load = self._load()
        words = "" if load is None else host_in_words(load)
        if words != self._load_seen and not self._closed:
            self._load_seen = words
            self._tell(LoadSeen(words))

    def _with_load(self, snapshot: RunSnapshot | None) -> RunSnapshot | None:
        """Return the snapshot with the load of the host; without one, the last one if its load is old."""
        if snapshot is None:
            seen, follower = self._seen, self._follower
            is_followed = seen is not None and follower is not None and seen.run == follower.folder.run
            if not is_followed or self._clock() - self._seen_at < SECONDS_BETWEEN_LOADS:
                return None
        found = snapshot or self._seen
        # The load now says nothing about events of the past.
        if found is None or not found.active or found.replay is not None:
            return snapshot
        return replace(found, load=self._load())

    def _load(self) -> HostLoad | None:
        from dlbricks_tui.host.noise import LoadMeter

        self._meter = self._meter or LoadMeter()
        return self._meter.look()

    def _watch(self) -> None:
        from dlbricks_tui.errors import UserError

        told = ""
        while not self._closed:
            try:
                self.look()
            except UserError as error:
                # A folder that cannot be read is reported once.
                if str(error) != told:
                    told = str(error)
                    self._tell(error)
            except Exception as error:  # noqa: BLE001 - the top of a thread: no caller would report it
                # An application that has ended takes no messages.
                if not self._closed:
                    self._tell(error)
                return
            going_on = self._follower is not None and self._follower.active
            self._wake.wait(SECONDS_BETWEEN_LOOKS * self.poll_factor if going_on else SECONDS_BETWEEN_IDLE_LOOKS)
            self._wake.clear()

    def _choose(self) -> None:
        from dlbricks_tui.api.followed_runs import Follower, ReplayFollower
        from dlbricks_tui.jobs.folder import RunFolders

        with self._lock:
            wanted, self._wanted = self._wanted, None
        folders = RunFolders(self._data.runs)
        if isinstance(wanted, Replayed):
            # An interrupted run is no news any more when the replay has ended.
            self._asked_for, self._first_look = True, False
            self._follower = ReplayFollower(folders.find(wanted.run), wanted.speed, begin=wanted.begin)
            return
        if wanted is not None:
            self._asked_for = True
        elif self._follower is None or not self._follower.active:
            wanted = self._found(folders)
        if wanted is None:
            return
        follower = self._follower
        if follower is None or isinstance(follower, ReplayFollower) or follower.folder.run != wanted:
            self._follower = Follower(folders.find(wanted))
        else:
            # A repeated request gets an answer even if nothing has changed.
            follower.forget()

    def _found(self, folders: RunFolders) -> str | None:
        """Return an active run; at the first look also the newest run if it was interrupted."""
        try:
            changed_ns = os.stat(self._data.runs).st_mtime_ns  # noqa: PTH116
        except FileNotFoundError:
            self._first_look = False
            return None
        if changed_ns == self._known_ns and not self._others_active:
            return None
        settled = time.time() - changed_ns / 1e9 > _SECONDS_TO_SETTLE
        self._known_ns = changed_ns if settled else None
        states = folders.states()
        known, self._known = self._known, frozenset(state.run for state in states)
        active = [state for state in states if state.active and not (self._asked_for and state.run in known)]
        first, self._first_look = self._first_look, False
        self._others_active = len(active) > 1
        if active:
            self._asked_for = False
            # The one that measures; those that wait have their turns later.
            return min(active, key=lambda it: (it.state.value in ("starting", "waiting"), it.started)).run
        interrupted = first and states and states[-1].state.value == "interrupted"
        return states[-1].run if interrupted else None

    def _tell_results(self) -> None:
        files, now = self._files_of_store(), self._clock()
        if self._files is None:
            self._files = files
        if files != self._files and now - self._stored_told_at >= SECONDS_BETWEEN_RESULTS:
            self._files, self._stored_told_at = files, now
            self._tell(ResultsGrown())

    def _files_of_store(self) -> frozenset[tuple[str, int, int]]:
        """Return the names, times of change and sizes of the files with results."""
        with suppress(OSError), os.scandir(self._data.store) as found:
            stats = [(it.name, it.stat()) for it in found if it.name.endswith((".json", ".jsonl"))]
            return frozenset((name, it.st_mtime_ns, it.st_size) for name, it in stats)
        return frozenset()
