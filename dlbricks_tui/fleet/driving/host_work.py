"""The work of one host in a fleet run: its state, its pools of bricks, and the task that it carries out."""

from dataclasses import dataclass, replace

from dlbricks_tui.fleet.driving.pools import BrickPool
from dlbricks_tui.fleet.driving.validation import Allowed, MessageMeter
from dlbricks_tui.fleet.events import HostChanged, HostProgress, HostState
from dlbricks_tui.fleet.hosts import HostEntry
from dlbricks_tui.fleet.messages import Task, TaskEnded, TaskProgress
from dlbricks_tui.store.records import System

# A host in one of these states gets no more work in this fleet run.
FINAL = frozenset({HostState.DONE, HostState.CANCELLED, HostState.REFUSED, HostState.DISTRUSTED, HostState.FAILED})


@dataclass(slots=True, eq=False)
class CurrentTask:
    """The task of a host, what the host may return for it, and what it has told so far."""

    task: Task
    pool: BrickPool
    allowed: Allowed
    meter: MessageMeter
    is_probe: bool
    began: float
    progress: TaskProgress | None = None
    note: str = ""
    ended: TaskEnded | None = None
    # True once the host has returned a result or a failure of a brick.
    has_results: bool = False


@dataclass(slots=True, eq=False)
class HostWork:
    """A host of a fleet run, as its driver knows it."""

    entry: HostEntry
    # Counts messages that are about no current task.
    stray: MessageMeter
    # The time at which it came into its state.
    since: float
    state: HostState = HostState.CONNECTING
    message: str = ""
    is_there: bool = False
    is_paused: bool = False
    # When to ask it again, after a call that was lost.
    ask_after: float = 0.0
    system: System | None = None
    # One for each part of the fleet run.
    pools: tuple[BrickPool, ...] = ()
    current: CurrentTask | None = None
    # The task that it had when it went away, or when the driver before this one ended.
    task_before: str = ""
    # The most bricks of a task; None: as many as fit in its time.
    most_bricks: int | None = None
    # Tasks that failed one after another without a result.
    failures: int = 0
    spent_seconds: float = 0.0
    disturbed_rounds: int = 0
    disturbed_seconds: float = 0.0
    told: HostProgress | None = None

    @property
    def name(self) -> str:
        """Its name in the fleet."""
        return self.entry.name

    @property
    def is_over(self) -> bool:
        """True if it gets no more work."""
        return self.state in FINAL

    @property
    def has_work(self) -> bool:
        """True if bricks are left that it may have to measure."""
        return any(pool.left for pool in self.pools)

    @property
    def working_state(self) -> HostState:
        """The state that its task amounts to."""
        if self.current is None:
            return HostState.IDLE
        return HostState.PROBING if self.current.is_probe else HostState.MEASURING

    def seconds_spent(self, now: float) -> float:
        """Return the seconds that it has had tasks for."""
        return self.spent_seconds + (now - self.current.began if self.current else 0.0)

    def change(self, state: HostState, message: str, now: float) -> bool:
        """Change its state, and return True if it was another one."""
        if (state, message) == (self.state, self.message):
            return False
        if state is not self.state:
            self.since = now
        self.state, self.message = state, message
        return True

    def changed(self) -> HostChanged:
        """Return the event that tells its state."""
        system = self.system
        return HostChanged(
            host=self.name,
            state=self.state.value,
            message=self.message,
            system="" if system is None else system.id,
            system_name="" if system is None else system.name,
        )

    def new_progress(self, seconds_left: float | None) -> HostProgress | None:
        """Return the event that tells its progress; None if that has been told."""
        now = None if self.current is None else self.current.progress
        found = HostProgress(
            host=self.name,
            bricks=sum(pool.done for pool in self.pools),
            of=sum(pool.total for pool in self.pools),
            failed=sum(len(pool.failed) for pool in self.pools),
            seconds_left=seconds_left,
            disturbed_rounds=self.disturbed_rounds + (now.disturbed_rounds if now else 0),
            disturbed_seconds=self.disturbed_seconds + (now.disturbed_seconds if now else 0.0),
        )
        if self.told is not None and replace(self.told, when=found.when) == found:
            return None
        self.told = found
        return found

    def end_task(self, now: float) -> CurrentTask | None:
        """Forget the current task, and return it."""
        ended, self.current = self.current, None
        if ended is not None:
            self.spent_seconds += now - ended.began
            if ended.progress is not None:
                self.disturbed_rounds += ended.progress.disturbed_rounds
                self.disturbed_seconds += ended.progress.disturbed_seconds
        return ended

    def shrink(self, bricks: int) -> None:
        """Halve its next task after a loss during one of so many bricks: one of them may be the cause."""
        self.most_bricks = max(1, bricks // 2)

    def grow(self) -> None:
        """Double its next task, after one that went well."""
        if self.most_bricks is not None:
            self.most_bricks *= 2
