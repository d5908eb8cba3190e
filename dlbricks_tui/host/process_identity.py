"""A process by its number and the moment at which it started: numbers alone are given out again."""

import os
import subprocess
import sys
from dataclasses import dataclass
from pathlib import Path

_PROC = Path("/proc")
# In /proc/PID/stat, counted from behind the name of the program, which may hold anything.
_STATE, _START_TICKS = 0, 19
_ENDED_STATES = frozenset("ZX")


@dataclass(frozen=True, slots=True)
class ProcessIdentity:
    """One process, never to be mistaken for a later one of the same number."""

    pid: int
    started: str

    @property
    def alive(self) -> bool:
        """Whether it still runs."""
        return _started(self.pid) == self.started


def this_process() -> ProcessIdentity:
    """The process that asks."""
    return ProcessIdentity(os.getpid(), _started(os.getpid()) or "")


def _started(pid: int) -> str | None:
    return _from_proc(pid) if sys.platform == "linux" else _from_ps(pid)


def _from_proc(pid: int) -> str | None:
    try:
        # Ticks count from the start of the host, so that it takes the one to know the other.
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
