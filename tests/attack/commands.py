"""Commands in this process, and the faults that no command may have."""

import io
import re
import signal
from contextlib import redirect_stderr, redirect_stdout
from dataclasses import dataclass
from types import FrameType

from dlbricks_tui.cli.main import main
from dlbricks_tui.cli.parser import Status
from dlbricks_tui.folders import DataFolder

# Far longer than any of the commands takes, so that only a command that hangs is stopped.
PATIENCE_SECONDS = 120
# Messages quote paths and reasons, and never a whole file.
_LONGEST_LINE = 1500
_CONTROL_CODES = re.compile(r"[\x00-\x08\x0b-\x1f\x7f-\x9f]")
_KNOWN = frozenset(map(int, Status))


class Hung(BaseException):
    """A command that waits for ever."""


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a command: its status and output, and its fault if it has one."""

    status: int
    out: str
    told: str
    fault: str = ""


def run_command(data: DataFolder, words: str) -> Outcome:
    """Run a command on a data folder. A traceback, a hang and an unreadable message are faults."""
    out, told = io.StringIO(), io.StringIO()
    status, fault = -1, ""
    before = signal.signal(signal.SIGALRM, _stop)
    signal.alarm(PATIENCE_SECONDS)
    try:
        with redirect_stdout(out), redirect_stderr(told):
            status = main(["--data-dir", str(data.path), *words.split()])
    except Hung:
        fault = "it hangs"
    except (Exception, SystemExit) as error:  # noqa: BLE001 - each is a fault, and is counted
        fault = f"it raises {error!r}"
    finally:
        signal.alarm(0)
        signal.signal(signal.SIGALRM, before)
    return Outcome(status, out.getvalue(), told.getvalue(), fault or _fault(status, out.getvalue(), told.getvalue()))


def _stop(_number: int, _frame: FrameType | None) -> None:
    raise Hung


def _fault(status: int, out: str, told: str) -> str:
    if status not in _KNOWN:
        return f"its status is {status}"
    if "fault of dlbricks" in told or "Traceback" in out + told:
        return f"it says: {told.strip()[-_LONGEST_LINE:]}"
    if status == Status.BAD_INPUT and not told.strip():
        return "it refuses without a word"
    if _CONTROL_CODES.search(out + told):
        return "it prints control codes"
    if any(len(line) > _LONGEST_LINE for line in told.splitlines()):
        return "a line of its messages is too long to read"
    return ""
