import os
import signal
import subprocess
import sys
from datetime import datetime, timezone
from pathlib import Path

import pytest

from dlbricks_tui.host.host_lock import (
    HOST_LOCK_VARIABLE,
    Holder,
    HostLock,
    HostLockError,
    ProcessIdentity,
    host_lock,
    this_process,
)

ROOT = Path(__file__).parents[2]
HOLD = """
import sys
from pathlib import Path
from dlbricks_tui.host.host_lock import HostLock
lock = HostLock(Path(sys.argv[1]))
print(lock.try_hold("their-run", Path("/their/data")), flush=True)
sys.stdin.read()
"""


def holding_process(path: Path) -> "subprocess.Popen[str]":
    """Another process that holds the lock by the time this returns."""
    process = subprocess.Popen(
        [sys.executable, "-c", HOLD, str(path)], cwd=ROOT, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdout is not None
    assert process.stdout.readline() == "True\n"
    return process


def test_one_run_at_a_time_holds_the_lock_and_is_named_to_the_next(tmp_path: Path) -> None:
    path = tmp_path / "lock"
    with holding_process(path) as theirs:
        mine = HostLock(path)
        assert not mine.try_hold("mine", tmp_path)
        holder = mine.holder()
        assert holder is not None
        assert (holder.pid, holder.run, holder.data_folder) == (theirs.pid, "their-run", "/their/data")
        assert "run their-run" in str(holder)
        theirs.send_signal(signal.SIGKILL)
        theirs.wait()
        assert mine.try_hold("mine", tmp_path)
        mine.release()


def test_the_holder_is_shown_with_its_start_in_local_time() -> None:
    def told(since: str) -> str:
        return str(Holder(7, "ada", "/home/ada", "20261121-0755-99aa", since))

    here = datetime(2026, 11, 21, 7, 55, 12, 532770).astimezone().astimezone(timezone.utc)
    assert told(here.isoformat()).endswith("(process 7, data in /home/ada, since 21 Nov 07:55)")
    assert told("lately").endswith("since lately)")


def test_a_released_lock_names_no_holder(tmp_path: Path) -> None:
    lock, other = HostLock(tmp_path / "lock"), HostLock(tmp_path / "lock")
    assert lock.try_hold("a", tmp_path)
    lock.release()
    assert lock.holder() is None
    assert other.try_hold("b", tmp_path)
    assert (holder := lock.holder()) is not None
    assert holder.run == "b"
    other.release()


def test_every_user_of_the_host_can_take_the_lock(tmp_path: Path) -> None:
    before = os.umask(0o077)
    try:
        lock = HostLock(tmp_path / "lock")
        assert lock.try_hold("a", tmp_path)
    finally:
        os.umask(before)
    assert (tmp_path / "lock").stat().st_mode & 0o777 == 0o666
    lock.release()


def test_a_lock_with_a_deleted_file_is_taken_on_a_new_file(tmp_path: Path) -> None:
    first, second, third = (HostLock(tmp_path / "lock") for _ in range(3))
    assert first.try_hold("a", tmp_path)
    (tmp_path / "lock").unlink()
    assert second.try_hold("b", tmp_path)
    assert not third.try_hold("c", tmp_path)
    first.release()
    second.release()


def test_a_lock_that_cannot_be_used_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "link", tmp_path / "no" / "folder", tmp_path):
        with pytest.raises(HostLockError, match=HOST_LOCK_VARIABLE):
            HostLock(path).try_hold("a", tmp_path)
    assert not (tmp_path / "elsewhere").exists()


def test_the_environment_may_name_another_file(tmp_path: Path) -> None:
    assert host_lock({HOST_LOCK_VARIABLE: str(tmp_path / "shared")}).path == tmp_path / "shared"
    assert host_lock({}).path.is_absolute()


def test_a_process_is_identified_by_its_start_time_and_number() -> None:
    me = this_process()
    assert me.alive
    assert not ProcessIdentity(me.pid, "at another time").alive
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as child:
        assert not ProcessIdentity(child.pid, me.started).alive
        child.kill()
