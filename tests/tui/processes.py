"""A small script that stands for the processes of jobs that screens follow."""

import os
from pathlib import Path
from typing import TypeVar

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.jobs.events import Event, JobEnded, to_line
from dlbricks_tui.jobs.folder import stored_request

Request = TypeVar("Request")
# It keeps its request, writes each file of lines that appears, and ends with the status, or the error, in another file.
SCRIPT = """
import os, pathlib, sys, time
folder, job = map(pathlib.Path, sys.argv[1:3])
number = len(list(folder.glob("order*"))) + 1
(folder / "part-order").write_bytes((job / "request.json").read_bytes())
(folder / f"pid{number}").write_text(str(os.getpid()))
(folder / "part-order").rename(folder / f"order{number}")
events = (job / "events.jsonl").open("ab", 0)
written = 0
while not (folder / "over").exists():
    ends = (folder / f"end{number}").exists()
    if (folder / f"lines{number}.{written}").exists():
        events.write((folder / f"lines{number}.{written}").read_bytes())
        written += 1
    elif ends:
        break
    time.sleep(0.005)
else:
    sys.exit("the test is over")
status = (folder / f"end{number}").read_text()
if status == "0":
    events.write(b'{"event": "JobEnded", "when": "2026-11-27T00:00:00+00:00", ')
    events.write(b'"state": "finished", "message": "", "seconds": 1.0}\\n')
sys.exit(int(status) if status.isdigit() else status)
"""


class Process:
    """The processes of the script, one after the other."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._written: dict[int, int] = {}

    def write(self, *messages: Event | bytes, number: int = 1) -> None:
        """Let a process write messages; they appear at once."""
        written = self._written.get(number, 0)
        self._written[number] = written + 1
        part = self._folder / "part"
        part.write_bytes(b"".join(it if isinstance(it, bytes) else to_line(it) for it in messages))
        part.rename(self._folder / f"lines{number}.{written}")

    def kill(self) -> None:
        """End all that a test has left running or starting: processes outlive the program."""
        (self._folder / "over").touch()

    def end(self, status: int | str = 0, number: int = 1) -> None:
        (self._folder / "part").write_text(str(status))
        (self._folder / "part").rename(self._folder / f"end{number}")

    def has_begun(self, number: int = 1) -> bool:
        return (self._folder / f"order{number}").exists()

    def order(self, kind: type[Request], number: int = 1) -> Request:
        return stored_request(self._folder / f"order{number}", kind)

    def has_ended(self, number: int = 1) -> bool:
        try:
            os.kill(int((self._folder / f"pid{number}").read_text()), 0)
        except ProcessLookupError:
            return True
        return False


def failed(reason: str) -> JobEnded:
    return JobEnded(state="failed", message=reason, seconds=1.0)


def all_seen(data: DataFolder) -> bool:
    """Return whether all jobs were followed to their ends."""
    return all((it / "seen").exists() for it in data.jobs.iterdir())
