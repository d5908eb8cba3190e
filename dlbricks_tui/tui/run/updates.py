"""Watches runs from a thread and shows their state on the screens in sight."""

from __future__ import annotations

import math
import os
import threading
import time
from dataclasses import replace
from typing import TYPE_CHECKING, NamedTuple, Protocol, runtime_checkable
from weakref import WeakKeyDictionary

from textual.screen import ModalScreen

from dlbricks_tui.recorded_host import recorded_host
from dlbricks_tui.tui.messages import Failed, HostLoadSeen, NewResults, QueueSeen, ResultsStored, RunSeen
from dlbricks_tui.tui.run.status import HostNow, StatusLine
from dlbricks_tui.tui.widgets.screens import ThreadedScreen

if TYPE_CHECKING:
    from collections.abc import Callable, Iterator

    from textual.app import App
    from textual.message import Message
    from textual.screen import Screen

    from dlbricks_tui.folders import DataFolder
    from dlbricks_tui.host.load import LoadMeter
    from dlbricks_tui.host.queue import Place
    from dlbricks_tui.jobs.folder import RunFolders
    from dlbricks_tui.tui.run.follower import Follower, ReplayChange, ReplayFollower
    from dlbricks_tui.tui.run.snapshot import RunSnapshot

# Each look costs processor time, which disturbs measurements.
SECONDS_BETWEEN_LOOKS = 0.25
SECONDS_BETWEEN_IDLE_LOOKS = 1.0
SECONDS_BETWEEN_RESULTS = 1.0
# A run that reports nothing for so long still shows the load of the host.
SECONDS_BETWEEN_LOADS = 5.0
# Without a run, only words about the load are shown, which seldom change.
SECONDS_BETWEEN_IDLE_LOADS = 10.0
RECORDED = "recorded results"
# A younger folder may not have its state yet.
_SECONDS_TO_SETTLE = 2.0
# A run of half a minute is replayed in the time in which one looks at its screen.
REPLAY_SPEED = 4.0


class Replayed(NamedTuple):
    """A replay: its run, its speed, and the second of the run at which it begins."""

    run: str
    speed: float = REPLAY_SPEED
    begin: float = 0.0


class RunWatch:
    """Follows one run: the requested one, else one that is active or starts; posts news as messages.

    A replay takes the place of a run until the user asks for another one.
    """

    def __init__(
        self,
        data: DataFolder,
        post: Callable[[Message], object],
        clock: Callable[[], float] = time.monotonic,
        poll_factor: float = 1.0,
        meter: LoadMeter | None = None,
    ) -> None:
        self._data = data
        self._post = post
        self._clock = clock
        # Multiplies the time between two looks.
        self.poll_factor = poll_factor
        self._closed = False
        self._wake = threading.Event()
        self._lock = threading.Lock()
        self._wanted: str | None = None
        self._wanted_replay: Replayed | None = None
        self._wanted_changes: list[ReplayChange] = []
        # True if the user asked for the followed run; then only a new run replaces it.
        self._asked_for = False
        self._known: frozenset[str] = frozenset()
        self._follower: Follower | ReplayFollower | None = None
        # The time of change of the folder of runs, which is read when it changes, and while other runs are active.
        self._known_ns: int | None = None
        self._others_active = False
        self._first_look = True
        self._stored = 0
        # True once the end of the run was reported: other runs may have stored results while this one waited.
        self._told_of_end = False
        self._stored_told_at = -SECONDS_BETWEEN_RESULTS
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

    def follow(self, run: str) -> None:
        """Follow this run from now on, active or ended."""
        with self._lock:
            self._wanted, self._wanted_replay = run, None
        self._wake.set()

    def replay(self, replayed: Replayed) -> None:
        with self._lock:
            self._wanted, self._wanted_replay = None, replayed
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
        self._change_pace()
        self._look_at_load()
        if self._follower is None:
            return
        snapshot = self._with_load(self._follower.look())
        if snapshot is not None:
            if snapshot.state.value == "interrupted":
                states = RunFolders(self._data.runs).states()
                snapshot = replace(snapshot, interrupted=sum(it.state is snapshot.state for it in states))
            self._seen, self._seen_at = snapshot, self._clock()
            self._post(RunSeen(snapshot))
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
            self._post(QueueSeen(places))

    def _look_at_load(self) -> None:
        """Report how busy the host is while no run is followed that tells it; a demonstration has no host."""
        is_followed = self._follower is not None and self._follower.active
        if self._clock() < self._load_again_at or is_followed or recorded_host() is not None:
            return
        from dlbricks_tui.host.load import LoadMeter
        from dlbricks_tui.wording.runs import host_in_words

        self._load_again_at = self._clock() + SECONDS_BETWEEN_IDLE_LOADS
        self._meter = self._meter or LoadMeter()
        load = self._meter.look()
        words = "" if load is None else host_in_words(load)
        if words != self._load_seen and not self._closed:
            self._load_seen = words
            self._post(HostLoadSeen(words))

    def _with_load(self, snapshot: RunSnapshot | None) -> RunSnapshot | None:
        """Return the snapshot with the load of the host; without one, the last one if its load is old."""
        if snapshot is None:
            seen, follower = self._seen, self._follower
            if seen is None or follower is None or seen.run != follower.folder.run or not seen.active or seen.replay:
                return None
            return self._loaded(seen) if self._clock() - self._seen_at >= SECONDS_BETWEEN_LOADS else None
        # The load now says nothing about events of the past.
        return self._loaded(snapshot) if snapshot.active and snapshot.replay is None else snapshot

    def _loaded(self, snapshot: RunSnapshot) -> RunSnapshot:
        from dlbricks_tui.host.load import LoadMeter

        self._meter = self._meter or LoadMeter()
        return replace(snapshot, load=self._meter.look())

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
                    self._post(Failed(error))
            except Exception as error:  # noqa: BLE001 - the top of a thread: no caller would report it
                # An application that has ended takes no messages.
                if not self._closed:
                    self._post(Failed(error))
                return
            going_on = self._follower is not None and self._follower.active
            self._wake.wait(SECONDS_BETWEEN_LOOKS * self.poll_factor if going_on else SECONDS_BETWEEN_IDLE_LOOKS)
            self._wake.clear()

    def _choose(self) -> None:
        from dlbricks_tui.jobs.folder import RunFolders
        from dlbricks_tui.tui.run.follower import Follower

        with self._lock:
            wanted, self._wanted = self._wanted, None
            replayed, self._wanted_replay = self._wanted_replay, None
        folders = RunFolders(self._data.runs)
        if replayed is not None:
            # An interrupted run is no news any more when the replay has ended.
            self._asked_for, self._first_look = True, False
            self._follow(self._replay_of(replayed))
            return
        if wanted is not None:
            self._asked_for = True
        elif self._follower is None or not self._follower.active:
            wanted = self._found(folders)
        if wanted is not None and not (isinstance(self._follower, Follower) and self._follower.folder.run == wanted):
            self._follow(Follower(folders.find(wanted)))
        elif wanted is not None and self._follower is not None:
            # A repeated request gets an answer even if nothing has changed.
            self._follower.forget()

    def _change_pace(self) -> None:
        """Carry out what the user has asked for since the last look, after `_choose`: the replay may begin only now."""
        with self._lock:
            changes, self._wanted_changes = self._wanted_changes, []
        if changes:
            from dlbricks_tui.tui.run.follower import ReplayFollower

            if isinstance(self._follower, ReplayFollower):
                for change in changes:
                    self._follower.change(change)

    def _follow(self, follower: Follower | ReplayFollower) -> None:
        self._follower = follower
        self._stored, self._told_of_end = 0, False

    def _replay_of(self, replayed: Replayed) -> ReplayFollower:
        from dlbricks_tui.jobs.folder import RunFolders
        from dlbricks_tui.tui.run.follower import ReplayFollower

        return ReplayFollower(RunFolders(self._data.runs).find(replayed.run), replayed.speed, begin=replayed.begin)

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
        if self._follower is None:
            return
        stored, ended, now = self._follower.stored, not self._follower.active, self._clock()
        new = stored != self._stored or ended is not self._told_of_end
        if new and now - self._stored_told_at >= SECONDS_BETWEEN_RESULTS:
            self._stored, self._told_of_end, self._stored_told_at = stored, ended, now
            self._post(ResultsStored())


@runtime_checkable
class ShowsQueue(Protocol):
    """A screen that shows the line of work on this host."""

    def show_queue(self, places: tuple[Place, ...]) -> None:
        """Show the line as it is now."""


@runtime_checkable
class ShowsRun(Protocol):
    """A screen that shows the state of the run."""

    def show_run(self, run: RunSnapshot) -> None:
        """Show the current state of the run."""


class RunUpdates:
    """Passes the state of the run to the screens in sight; hidden screens wait until they are shown."""

    def __init__(self, app: App[None], data: DataFolder, poll_factor: float) -> None:
        self._app = app
        self.watch = RunWatch(data, app.post_message, poll_factor=poll_factor)
        self._run: RunSnapshot | None = None
        # What the status lines show, and the run whose end the user has seen.
        self._now = HostNow(load=RECORDED if recorded_host() is not None else "")
        self._seen = ""
        # Counts the messages about new results, and which of them each screen knows.
        self._news = 0
        self._known: WeakKeyDictionary[Screen[object], int] = WeakKeyDictionary()

    def take(self, run: RunSnapshot) -> None:
        """Keep the state of the run and show it on the screens in sight."""
        self._run = run
        if run.active:
            self._seen = ""
        self._now = self._now._replace(run=None if run.run == self._seen else run)
        for screen in self._in_sight:
            self._show(screen)

    def take_queue(self, places: tuple[Place, ...]) -> None:
        """Show the line of work on the box that is about it, and in the status lines."""
        for screen in self._app.screen_stack:
            if isinstance(screen, ShowsQueue):
                screen.show_queue(places)
        self._show_now(self._now._replace(places=places))

    def take_load(self, words: str) -> None:
        """Show how busy the host is."""
        self._show_now(self._now._replace(load=words))

    def take_end_seen(self, run: str) -> None:
        """Tell nothing more of a run that has ended; a new or resumed run is shown again."""
        self._seen = run
        self._show_now(self._now._replace(run=None))

    def _show_now(self, now: HostNow) -> None:
        self._now = now
        for screen in self._in_sight:
            self._show_status(screen)

    def _show_status(self, screen: Screen[object]) -> None:
        for line in screen.query(StatusLine):
            line.show(self._now)

    def take_results(self) -> None:
        """Note that there are new results, and tell the screen in front if it shows estimates."""
        self._news += 1
        self._tell_of_results(self._in_front)

    def catch_up(self, screen: Screen[object]) -> None:
        """Update a screen that has come to the front; a new one has just read the store."""
        self._show(screen)
        self._known.setdefault(screen, self._news)
        self._tell_of_results(screen)

    @property
    def _in_front(self) -> Screen[object] | None:
        """The screen in front; None while the application exits."""
        screens = self._app.screen_stack
        return screens[-1] if screens else None

    @property
    def _in_sight(self) -> Iterator[Screen[object]]:
        """The screen in front and, behind a box, the screen below it."""
        for screen in reversed(self._app.screen_stack):
            yield screen
            if not isinstance(screen, ModalScreen):
                return

    def _show(self, screen: Screen[object] | None) -> None:
        if screen is None:
            return
        if self._run is not None and isinstance(screen, ShowsRun):
            screen.show_run(self._run)
        self._show_status(screen)

    def _tell_of_results(self, screen: Screen[object] | None) -> None:
        if not isinstance(screen, ThreadedScreen) or not screen.WANTS_NEW_RESULTS:
            return
        # Reading them over and over would disturb the run.
        has_to_wait = screen.WAITS_FOR_RUN and self._run is not None and self._run.measures
        if self._known.get(screen, 0) < self._news and not has_to_wait:
            self._known[screen] = self._news
            screen.post_message(NewResults())
