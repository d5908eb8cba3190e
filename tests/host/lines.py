"""Work in the line of a host: in this process, and in processes of their own."""

import subprocess
import sys
from pathlib import Path

from dlbricks_tui.host.queue import HostQueue, Ticket, WorkKind, queued

ROOT = Path(__file__).parents[2]
# Joins the line, tells what it waits for, takes its turn, and leaves when its input ends or has a line.
_WORK = """
import sys
from pathlib import Path
from dlbricks_tui.host.queue import HostQueue, WorkKind, queued
ticket = HostQueue(Path(sys.argv[1])).join(queued(WorkKind(sys.argv[2]), [sys.argv[3]], Path(sys.argv[4])))
print("joined", flush=True)
ticket.wait(lambda ahead: print("waits for " + ahead, flush=True))
print("measures", flush=True)
sys.stdin.readline()
ticket.leave()
print("left", flush=True)
sys.stdin.readline()
"""


def turn_of(queue: HostQueue, run: str, data_folder: Path) -> Ticket:
    """Return the ticket of a run of alexnet that measures on this host."""
    ticket = queue.join(queued(WorkKind.RUN, ["alexnet"], data_folder, run))
    assert ticket.try_take()
    return ticket


class Work:
    """Another process that has joined the line by the time this returns."""

    def __init__(self, path: Path, kind: WorkKind, model: str, data_folder: Path = Path("/their/data")) -> None:
        self.process = subprocess.Popen(
            [sys.executable, "-c", _WORK, str(path), kind.value, model, str(data_folder)],
            cwd=ROOT,
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=subprocess.DEVNULL,
            text=True,
        )
        assert self.told() == "joined"

    def told(self) -> str:
        """Return the next line that it tells; wait for it."""
        assert self.process.stdout is not None
        return self.process.stdout.readline().removesuffix("\n")

    def leave(self) -> None:
        """Let it end its work, and go on living."""
        assert self.process.stdin is not None
        self.process.stdin.write("\n")
        self.process.stdin.flush()
        assert self.told() == "left"

    def kill(self) -> None:
        self.process.kill()
        self.process.communicate()
