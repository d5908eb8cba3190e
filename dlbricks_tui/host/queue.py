"""The line of work that needs this host for itself: two measurements at a time would measure each other.

All processes of the host share it, of any user and data folder. The turn is a lock on one file. Each process in line
has a ticket: a file that it keeps locked, named after its arrival. Work takes its turn when no earlier one is locked.
The kernel releases the locks of a process that ends, even if it is killed. Where tickets cannot be written, the lock
alone keeps work apart, without an order.
"""

import fcntl
import getpass
import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from datetime import datetime, timezone
from enum import Enum
from pathlib import Path

from dlbricks_tui.errors import UserError

_PROC = Path("/proc")
# In /proc/PID/stat, counted from behind the name of the program, which may hold anything.
_STATE, _START_TICKS = 0, 19
_ENDED_STATES = frozenset("ZX")
_STOPPED_STATES = frozenset("Tt")
# Outside the data folder: all users of the host share it, and containers can.
HOST_LOCK_VARIABLE = "DLBRICKS_HOST_LOCK"
DEFAULT_PATH = Path("/tmp/dlbricks-measuring.lock")
# Tickets are in a folder beside the lock.
_TICKETS, _TICKET = ".queue", ".ticket"
_FLAGS = os.O_CLOEXEC | os.O_NOFOLLOW
# A ticket is written over in place: its blocks are there already when the disk is full.
_TICKET_BYTES, _MOST_BYTES = 1 << 10, 1 << 14
_MOST_NAMED, _MOST_CHARACTERS = 3, 100
_SECONDS_BETWEEN_PROGRESS = 1.0
# Work that takes longer than expected is not at its end yet.
_MOST_SHARE = 0.99
# Between two looks at the line: each takes processor time from the work that measures.
NAP_SECONDS = 0.25
_NS_PER_SECOND = 1e9


class QueueError(UserError):
    """The lock by which work takes turns on this host cannot be used."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process by its number and its start time: numbers are reused."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return _started(self.pid) == self.started

    @property
    def stopped(self) -> bool:
        """True while job control has stopped it, as with ctrl+z; always False where there is no /proc."""
        fields = _stat(self.pid)
        return bool(fields) and fields[_STATE] in _STOPPED_STATES and self.alive


def identity_of(pid: int) -> ProcessIdentity:
    return ProcessIdentity(pid, _started(pid) or "")


def this_process() -> ProcessIdentity:
    return identity_of(os.getpid())


def _started(pid: int) -> str | None:
    """Return when a process started; None if it has ended."""
    if sys.platform != "linux":
        command = ["ps", "-o", "stat=,lstart=", "-p", str(pid)]
        asked = subprocess.run(command, capture_output=True, text=True, env={"LC_ALL": "C"}, check=False)
        state, _, started = asked.stdout.strip().partition(" ")
        return started.strip() if started and state[0] not in _ENDED_STATES else None
    fields = _stat(pid)
    try:
        # Ticks count from the start of the host, so the id of the boot belongs to them.
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
    except OSError:
        return None
    return f"{boot}/{fields[_START_TICKS]}" if fields and fields[_STATE] not in _ENDED_STATES else None


def _stat(pid: int) -> Sequence[str]:
    try:
        return (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return ()


class WorkKind(str, Enum):
    """The kinds of work; all but fleet runs and exports need the host for themselves."""

    RUN = "run"
    PROBE = "probe"
    PROOF = "proof"
    LOAD_TEST = "load test"
    TRACE = "trace"
    PEAKS = "peaks"
    KERNELS = "kernels"
    LANGUAGE = "language model"
    FLEET = "fleet run"
    EXPORT = "suite export"


@dataclass(frozen=True, slots=True)
class Place:
    """Work in the line, as its ticket describes it to other processes."""

    pid: int
    kind: str = ""
    title: str = ""
    # The name of its folder in the data folder, if it has one.
    id: str = ""
    data_folder: str = ""
    user: str = ""
    # When it joined the line, or began to measure.
    since: str = ""
    # When its process started, as `ProcessIdentity` tells it.
    started: str = ""
    measures: bool = False
    # How far it is, as a share of all work, and the seconds that it still takes; None if that is not known.
    share: float | None = None
    seconds_left: float | None = None
    # The reading of the host's clock to which they refer, in seconds.
    told_at: float = 0.0

    def __str__(self) -> str:
        name = " ".join(filter(None, (self.kind or "work", self.id)))
        title = f" of {self.title}" if self.title else ""
        user = f" by {self.user}" if self.user else ""
        facts = [f"process {self.pid}"]
        facts += [f"data in {self.data_folder}"] if self.data_folder else []
        facts += [f"since {_readable(self.since)}"] if self.since else []
        return f"{name}{title}{user} ({', '.join(facts)})"

    @property
    def brief(self) -> str:
        """Its title with its kind, unless it is a run: `alexnet`, `trace of alexnet`."""
        if self.kind in ("", WorkKind.RUN.value) and self.title:
            return self.title
        return f"{self.kind or 'work'} of {self.title or f'process {self.pid}'}"

    @property
    def process(self) -> ProcessIdentity:
        return ProcessIdentity(self.pid, self.started)


def queued(kind: WorkKind, models: Sequence[str], data_folder: Path, run: str = "") -> Place:
    """Return work of this process that needs the host; its title has the first few of many models."""
    more = len(models) - _MOST_NAMED
    names = ", ".join(name[:_MOST_CHARACTERS] for name in models[:_MOST_NAMED])
    title, process = f"{names} and {more} more" if more > 0 else names, this_process()
    folder = str(data_folder.absolute())
    return Place(process.pid, kind.value, title, run, folder, _user(), started=process.started)


def _readable(when: str) -> str:
    """Return a time in the local time zone, and any other text unchanged."""
    try:
        return datetime.fromisoformat(when).astimezone().strftime("%d %b %H:%M")
    except ValueError:
        return when


def waiting_words(ahead: Sequence[Place]) -> str:
    """Return what work waits for: the work that measures, and its own place in the line."""
    first, between = (str(ahead[0]) if ahead else "another process"), ahead[1:]
    after = f", after {', '.join(it.brief for it in between)}" if between else ""
    return f"{first}; place {len(between) + 1} in the line{after}"


class HostQueue:
    """The line of a host, whose lock is a file that is never replaced."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._folder = path.with_name(path.name + _TICKETS)

    def join(self, task: Place, arrived_ns: int | None = None) -> "Ticket":
        """Return a place in the line: at its end, or before all that has arrived after that reading of `arrival`."""
        return Ticket(self, task, arrival() if arrived_ns is None else arrived_ns)

    def places(self) -> tuple[Place, ...]:
        """Return all work in the line: first that which measures, then that which waits, in the order of arrival."""
        places = [place for _, place in self._held()]
        return tuple(sorted(places, key=lambda place: not place.measures))

    def ahead_of(self, ticket: str) -> tuple[Place, ...]:
        """Return the work before a ticket, without processes that are stopped while they wait."""
        earlier = [place for name, place in self._held() if name < ticket]
        # One that measures keeps the host even when it is stopped.
        found = [it for it in earlier if it.measures or not (it.started and it.process.stopped)]
        return tuple(sorted(found, key=lambda place: not place.measures))

    def _held(self) -> Iterator[tuple[str, Place]]:
        """Yield the tickets of processes that run, by their names, in the order of arrival."""
        try:
            names = sorted(name for name in os.listdir(self._folder) if name.endswith(_TICKET))  # noqa: PTH208
        except OSError:
            return
        for name in names:
            place = self._place(name)
            if place is not None:
                yield name, place

    def _place(self, name: str) -> Place | None:
        """Return what a ticket says; None, and no such ticket any more, if its process has ended."""
        path = self._folder / name
        try:
            file = os.open(path, os.O_RDONLY | os.O_NONBLOCK | _FLAGS)
        except OSError:
            return None
        try:
            fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
            # Only the owner of a ticket may remove it.
            with suppress(OSError):
                path.unlink()
            return None
        except BlockingIOError:
            return _place_from(name, os.pread(file, _MOST_BYTES, 0))
        except OSError:
            return None
        finally:
            os.close(file)

    def open_ticket(self, arrived_ns: int) -> tuple[str, int] | None:
        """Create a ticket with that time of arrival, and lock it; None where that is not possible."""
        try:
            with suppress(FileExistsError):
                self._folder.mkdir()
                # All users of the host add tickets, and remove their own ones only.
                self._folder.chmod(0o1777)
            while True:
                name = f"{arrived_ns:020d}-{os.getpid()}{_TICKET}"
                arrived_ns += 1
                try:
                    file = os.open(self._folder / name, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o644)
                except FileExistsError:
                    continue
                fcntl.flock(file, fcntl.LOCK_EX)
                # Another process may have found it before it was locked, and removed it.
                with suppress(FileNotFoundError):
                    if os.path.samestat(os.fstat(file), (self._folder / name).stat()):
                        os.fchmod(file, 0o644)
                        return name, file
                os.close(file)
        except OSError:
            return None

    def close_ticket(self, name: str, file: int) -> None:
        with suppress(OSError):
            (self._folder / name).unlink()
        os.close(file)

    def take_turn(self) -> int | None:
        """Return the locked file if no other process measures."""
        while True:
            file = self._open()
            try:
                fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
                # The file may have been deleted before it was locked; then others lock a new one.
                if os.path.samestat(os.fstat(file), self.path.stat()):
                    return file
            except BlockingIOError:
                os.close(file)
                return None
            except FileNotFoundError:
                pass
            except OSError as error:
                os.close(file)
                raise self._unusable(error) from error
            os.close(file)

    def _open(self) -> int:
        while True:
            try:
                # Without O_CREAT: the kernel refuses it for files of other users in world-writable folders.
                with suppress(FileNotFoundError):
                    try:
                        return os.open(self.path, os.O_RDWR | _FLAGS)
                    except PermissionError:
                        return os.open(self.path, os.O_RDONLY | _FLAGS)
                with suppress(FileExistsError):
                    file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | _FLAGS, 0o666)
                    # Other users of the host have to be able to lock it, whatever the umask of this one.
                    os.fchmod(file, 0o666)
                    return file
            except OSError as error:
                raise self._unusable(error) from error

    def _unusable(self, error: OSError) -> QueueError:
        return QueueError(
            f"the lock {self.path}, by which work on one host takes turns, cannot be used: {error.strerror}; "
            f"name another file with {HOST_LOCK_VARIABLE}"
        )


class Ticket:
    """A place in the line, from the arrival to the end of the work."""

    def __init__(self, queue: HostQueue, task: Place, arrived_ns: int) -> None:
        self._queue = queue
        self._opened = queue.open_ticket(arrived_ns)
        self._turn: int | None = None
        self._place = replace(task, since=_now())
        self._write_again_at = 0.0
        self._write()

    @property
    def ahead(self) -> tuple[Place, ...]:
        """The work before it in the line."""
        # Without a ticket of its own, all others come first.
        return self._queue.ahead_of(self._opened[0] if self._opened else "~")

    def try_take(self) -> bool:
        """Take the turn if no other work comes first, and return whether this is so."""
        if not self.ahead:
            self._turn = self._queue.take_turn()
        if self._turn is None:
            return False
        self._place = replace(self._place, measures=True, since=_now())
        self._write()
        return True

    def wait(self, tell: Callable[[str], None], nap: Callable[[], None] = lambda: time.sleep(NAP_SECONDS)) -> None:
        """Wait for the turn, and tell what it waits for whenever that changes; leave the line if `nap` raises."""
        told = None
        try:
            while not self.try_take():
                ahead = self.ahead
                known = [(it.pid, it.id, it.kind, it.measures) for it in ahead]
                if known != told:
                    told = known
                    tell(waiting_words(ahead))
                nap()
        except BaseException:
            self.leave()
            raise

    def progress(self, share: float | None, seconds_left: float | None) -> None:
        """Tell other processes how far the work is, at most once a second."""
        now = _clock()
        if now >= self._write_again_at:
            self._write_again_at = now + _SECONDS_BETWEEN_PROGRESS
            self._place = replace(self._place, share=share, seconds_left=seconds_left, told_at=now)
            self._write()

    def leave(self) -> None:
        """Leave the line, and end the turn."""
        opened, self._opened = self._opened, None
        if opened is not None:
            self._queue.close_ticket(*opened)
        if self._turn is not None:
            os.close(self._turn)
            self._turn = None

    def _write(self) -> None:
        if self._opened is not None:
            line = json.dumps(asdict(self._place)).encode().ljust(_TICKET_BYTES) + b"\n"
            # The order of the line is in the names: a full disk takes the words only.
            with suppress(OSError):
                os.pwrite(self._opened[1], line, 0)


def _place_from(name: str, content: bytes) -> Place:
    """Return what a ticket says, as far as it can be read."""
    pid = name.removesuffix(_TICKET).rpartition("-")[2]
    bare = Place(int(pid) if pid.isdigit() else 0)
    try:
        found = json.loads(content.partition(b"\n")[0])
        texts = {key: str(found[key]) for key in ("kind", "title", "id", "data_folder", "user", "since", "started")}
        share, left = (None if found[key] is None else float(found[key]) for key in ("share", "seconds_left"))
        told_at = float(found["told_at"])
    except (ValueError, KeyError, TypeError):
        return bare
    if left is not None:
        passed = min(left, max(0.0, _clock() - told_at))
        # A share goes on with the time, until the next one is told.
        if share is not None and left > 0:
            share = min(_MOST_SHARE, share + (1 - share) * passed / left)
        left -= passed
    return Place(
        bare.pid, **texts, measures=found.get("measures") is True, share=share, seconds_left=left, told_at=told_at
    )


def host_queue(environment: Mapping[str, str] = os.environ) -> HostQueue:
    """Return the queue of this host, or the one that the environment names."""
    return HostQueue(Path(environment.get(HOST_LOCK_VARIABLE) or DEFAULT_PATH))


def arrival() -> int:
    """Return the time of arrival of work that joins the line now or later, in nanoseconds."""
    # All processes of the host read the same clock, which is never set.
    return time.monotonic_ns()


def _clock() -> float:
    return time.monotonic_ns() / _NS_PER_SECOND


def _now() -> str:
    return datetime.now(timezone.utc).isoformat(timespec="seconds")


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user id without a name.
        return str(os.getuid())
