import os
import signal
import sys
import time
from contextlib import suppress

import pytest
from textual.drivers.headless_driver import HeadlessDriver

from dlbricks_tui.folders import DataFolder
from dlbricks_tui.tui import app
from dlbricks_tui.tui.door import is_hung_up
from tests.runs.killing import eventually
from tests.tui.application import MEASURED_ONLY, app_on, press, running

# Python's handlers stop and resume the process later than the kernel would.
INNER = """
import os, signal, sys, time
from dlbricks_tui.tui.door import stop_job

def stop_late(*_):
    time.sleep(0.5)
    os.kill(os.getpid(), signal.SIGSTOP)

def resume_late(*_):
    os._exit(2)

signal.signal(signal.SIGTSTP, stop_late)
signal.signal(signal.SIGCONT, resume_late)
stop_job()
restored = signal.getsignal(signal.SIGTSTP) is stop_late and signal.getsignal(signal.SIGCONT) is resume_late
sys.exit(7 if restored else 1)
"""


def test_a_job_that_is_resumed_at_once_continues() -> None:
    # A job of two processes, like a script and its child: the shell is told of the outer one only.
    outer = ["sh", "-c", f'{sys.executable} -c "$0"; exit $?', INNER]
    pid = os.posix_spawn("/bin/sh", outer, os.environ, setpgroup=0)
    try:
        assert os.WIFSTOPPED(os.waitpid(pid, os.WUNTRACED)[1])
        # Long enough that the signal has reached the inner process, too short for its handler.
        time.sleep(0.1)
        os.killpg(pid, signal.SIGCONT)
        ended: list[int] = []

        def has_ended() -> bool:
            found, status = os.waitpid(pid, os.WNOHANG)
            ended.extend([os.waitstatus_to_exitcode(status)] if found else [])
            return bool(found)

        eventually(has_ended)
        assert ended == [7]
    finally:
        with suppress(ProcessLookupError):
            os.killpg(pid, signal.SIGKILL)


def test_a_terminal_with_a_closed_peer_counts_as_hung_up() -> None:
    terminal, ours = os.openpty()
    try:
        assert not is_hung_up(ours)
        os.close(terminal)
        assert is_hung_up(ours)
    finally:
        os.close(ours)


async def test_the_terminal_is_restored_while_the_job_is_stopped(
    new: DataFolder, monkeypatch: pytest.MonkeyPatch
) -> None:
    did: list[str] = []
    monkeypatch.setattr(app, "has_shell", lambda: True)
    monkeypatch.setattr(app, "stop_job", lambda: did.append("the job stops"))
    monkeypatch.setattr(HeadlessDriver, "can_suspend", True)
    monkeypatch.setattr(HeadlessDriver, "suspend_application_mode", lambda _: did.append("the terminal is restored"))
    monkeypatch.setattr(HeadlessDriver, "resume_application_mode", lambda _: did.append("the screen is back"))
    async with running(app_on(new, MEASURED_ONLY)) as pilot:
        await press(pilot, "ctrl+z")
        assert did == ["the terminal is restored", "the job stops", "the screen is back"]
        monkeypatch.setattr(app, "has_shell", lambda: False)
        await press(pilot, "ctrl+z")
        assert did[3:] == [] and [it.message for it in pilot.app._notifications] == [
            "No shell can resume dlbricks here."
        ]
