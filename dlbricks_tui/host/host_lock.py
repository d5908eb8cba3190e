"""One measuring run per host: two at a time would measure each other. A lock file names the process that holds it."""

import fcntl
import getpass
import json
import os
import subprocess
import sys
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from datetime import datetime
from pathlib import Path

from dlbricks_tui.errors import UserError

_PROC = Path("/proc")
# In /proc/PID/stat, counted from behind the name of the program, which may hold anything.
_STATE, _START_TICKS = 0, 19
_ENDED_STATES = frozenset("ZX")
# Outside the data folder: all users of the host share it, and containers can.
HOST_LOCK_VARIABLE = "DLBRICKS_HOST_LOCK"
DEFAULT_PATH = Path("/tmp/dlbricks-measuring.lock")
_MOST_BYTES = 1 << 14


class HostLockError(UserError):
    """The lock that allows one measuring run per host cannot be taken."""


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """A process by its number and its start time: numbers are reused."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """True while it runs."""
        return _started(self.pid) == self.started


def this_process() -> ProcessIdentity:
    return ProcessIdentity(os.getpid(), _started(os.getpid()) or "")


def _started(pid: int) -> str | None:
    return _from_proc(pid) if sys.platform == "linux" else _from_ps(pid)


def _from_proc(pid: int) -> str | None:
    try:
        # Ticks count from the start of the host, so the id of the boot belongs to them.
        boot = (_PROC / "sys/kernel/random/boot_id").read_text(encoding="ascii").strip()
        fields = (_PROC / str(pid) / "stat").read_text(errors="replace").rpartition(")")[2].split()
    except OSError:
        return None
    return None if fields[_STATE] in _ENDED_STATES else f"{boot}/{fields[_START_TICKS]}"


def _from_ps(pid: int) -> str | None:
    asked = subprocess.run(
        ["ps", "-o", "stat=,lstart=", "-p", str(pid)], capture_output=True, text=True, env={"LC_ALL": "C"}, check=False
    )
    state, _, started = asked.stdout.strip().partition(" ")
    return started.strip() if started and state[0] not in _ENDED_STATES else None


@dataclass(frozen=True, slots=True)
class Holder:
    """The run that holds the lock."""

    pid: int
    user: str
    data_folder: str
    run: str
    since: str

    def __str__(self) -> str:
        since = _readable(self.since)
        return f"run {self.run} of {self.user} (process {self.pid}, data in {self.data_folder}, since {since})"


def _readable(when: str) -> str:
    """Return a time in the local time zone, and any other text unchanged."""
    try:
        return datetime.fromisoformat(when).astimezone().strftime("%d %b %H:%M")
    except ValueError:
        return when


class HostLock:
    """An exclusive lock on a file that is never replaced; it ends with the process that holds it."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self._file: int | None = None

    def try_hold(self, run: str, data_folder: Path) -> bool:
        """Take the lock if it is free, and write into it who holds it."""
        file = self._locked_file()
        if file is None:
            return False
        self._file = file
        # The first screen needs the states of runs, but no records of the store.
        from dlbricks_tui.store.records import utc_now

        self._write(json.dumps(asdict(Holder(this_process().pid, _user(), str(data_folder), run, utc_now()))))
        return True

    def release(self) -> None:
        if self._file is not None:
            self._write("")
            os.close(self._file)
            self._file = None

    def holder(self) -> Holder | None:
        """Return who holds the lock, as far as the file says so."""
        try:
            note = json.loads(self.path.read_bytes()[:_MOST_BYTES])
            return Holder(int(note["pid"]), *(str(note[name]) for name in ("user", "data_folder", "run", "since")))
        except (OSError, ValueError, KeyError, TypeError):
            return None

    def _locked_file(self) -> int | None:
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
        flags = os.O_CLOEXEC | os.O_NOFOLLOW
        while True:
            try:
                # Without O_CREAT: the kernel refuses it for files of other users in world-writable folders.
                return os.open(self.path, os.O_RDWR | flags)
            except FileNotFoundError:
                pass
            except PermissionError:
                return self._open_to_read(flags)
            except OSError as error:
                raise self._unusable(error) from error
            try:
                file = os.open(self.path, os.O_RDWR | os.O_CREAT | os.O_EXCL | flags, 0o666)
            except FileExistsError:
                continue
            except OSError as error:
                raise self._unusable(error) from error
            # Other users of the host have to be able to write to it, whatever the umask of this one.
            os.fchmod(file, 0o666)
            return file

    def _open_to_read(self, flags: int) -> int:
        try:
            return os.open(self.path, os.O_RDONLY | flags)
        except OSError as error:
            raise self._unusable(error) from error

    def _write(self, note: str) -> None:
        if self._file is None:
            return
        try:
            os.ftruncate(self._file, 0)
            os.pwrite(self._file, note.encode(), 0)
        except OSError:
            # The lock works without the note, which a full disk or a file of another user prevents.
            return

    def _unusable(self, error: OSError) -> HostLockError:
        return HostLockError(
            f"the lock {self.path}, by which runs of one host take turns, cannot be used: {error.strerror}; "
            f"name another file with {HOST_LOCK_VARIABLE}"
        )


def host_lock(environment: Mapping[str, str] = os.environ) -> HostLock:
    """Return the lock of this host, or the one that the environment names."""
    return HostLock(Path(environment.get(HOST_LOCK_VARIABLE) or DEFAULT_PATH))


def _user() -> str:
    try:
        return getpass.getuser()
    except (KeyError, OSError):
        # A container may run as a user id without a name.
        return str(os.getuid())
