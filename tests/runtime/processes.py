"""The operating system's view of a process."""

import time
from pathlib import Path

PATIENCE_SECONDS = 120.0


def is_alive(pid: int) -> bool:
    """Return true if the process still runs; one that has ended but was not waited for does not."""
    try:
        status = Path(f"/proc/{pid}/stat").read_text()
    except FileNotFoundError:
        return False
    return status.rpartition(")")[2].split()[0] not in ("Z", "X")


def is_listed(pid: int) -> bool:
    """Return true if the process table still lists the process."""
    return Path(f"/proc/{pid}").exists()


def ends(pid: int) -> bool:
    """Return true if the process ends by itself, soon."""
    give_up = time.monotonic() + PATIENCE_SECONDS
    while is_alive(pid) and time.monotonic() < give_up:
        time.sleep(0.01)
    return not is_alive(pid)
