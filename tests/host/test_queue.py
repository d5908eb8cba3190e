import errno
import os
import signal
from collections.abc import Callable, Iterator
from datetime import datetime, timezone
from pathlib import Path

import pytest

from dlbricks_tui.host.queue import (
    HOST_LOCK_VARIABLE,
    HostQueue,
    Place,
    QueueError,
    WorkKind,
    host_queue,
    queued,
    waiting_words,
)
from tests.host.lines import Work, turn_of

RUN = queued(WorkKind.RUN, ["alexnet"], Path("/data"), "20261121-1")


@pytest.fixture
def line(tmp_path: Path) -> HostQueue:
    return HostQueue(tmp_path / "lock")


@pytest.fixture
def join(line: HostQueue) -> Iterator[Callable[[WorkKind, str], Work]]:
    """Return a function that starts a process, which joins the line."""
    there: list[Work] = []

    def joined(kind: WorkKind, model: str) -> Work:
        there.append(Work(line.path, kind, model))
        return there[-1]

    yield joined
    for work in there:
        work.kill()


def briefly(line: HostQueue) -> list[tuple[str, bool]]:
    return [(place.brief, place.measures) for place in line.places()]


def test_work_of_any_kind_has_its_turn_in_the_order_of_arrival(
    line: HostQueue, join: Callable[[WorkKind, str], Work]
) -> None:
    run = join(WorkKind.RUN, "squeezenet1.1")
    assert run.told() == "measures"
    trace, load = join(WorkKind.TRACE, "alexnet"), join(WorkKind.LOAD_TEST, "320n")
    assert briefly(line) == [("squeezenet1.1", True), ("trace of alexnet", False), ("load test of 320n", False)]
    assert f"run of squeezenet1.1 by {line.places()[0].user} (process {run.process.pid}, data in /their/data" in (
        trace.told()
    )
    assert load.told().endswith("; place 2 in the line, after trace of alexnet")
    for earlier, later in ((run, trace), (trace, load)):
        earlier.leave()
        while (said := later.told()) != "measures":
            assert said.startswith("waits for ")
        assert line.places()[0].pid == later.process.pid
    load.leave()
    assert line.places() == ()


def test_killed_processes_keep_nobody_waiting(line: HostQueue, join: Callable[[WorkKind, str], Work]) -> None:
    holder = join(WorkKind.RUN, "squeezenet1.1")
    assert holder.told() == "measures"
    waiter, last = join(WorkKind.TRACE, "alexnet"), join(WorkKind.PROBE, "320n")
    waiter.kill()
    assert [place.pid for place in line.places()] == [holder.process.pid, last.process.pid]
    holder.kill()
    while last.told() != "measures":
        pass
    last.kill()
    assert turn_of(line, "next", Path("/data")).ahead == ()
    assert len(list(line.path.with_name("lock.queue").iterdir())) == 1


def test_a_waiter_that_is_stopped_is_passed_by(line: HostQueue, join: Callable[[WorkKind, str], Work]) -> None:
    mine = turn_of(line, "mine", Path("/data"))
    stopped = join(WorkKind.TRACE, "alexnet")
    stopped.process.send_signal(signal.SIGSTOP)
    os.waitid(os.P_PID, stopped.process.pid, os.WSTOPPED)
    next_one = line.join(RUN)
    assert [place.id for place in next_one.ahead] == ["mine"]
    mine.leave()
    assert next_one.try_take()
    next_one.leave()
    stopped.process.send_signal(signal.SIGCONT)
    while stopped.told() != "measures":
        pass


def test_a_wait_that_is_broken_off_leaves_the_line(line: HostQueue) -> None:
    mine, theirs = turn_of(line, "mine", Path("/data")), line.join(RUN)
    told: list[str] = []

    def interrupted() -> None:
        raise KeyboardInterrupt

    with pytest.raises(KeyboardInterrupt):
        theirs.wait(told.append, interrupted)
    assert len(told) == 1 and "run mine of alexnet" in told[0]
    assert briefly(line) == [("alexnet", True)]
    mine.leave()


def test_a_change_of_the_line_is_told_once(line: HostQueue) -> None:
    first, second, third = turn_of(line, "first", Path("/data")), line.join(RUN), line.join(RUN)
    told: list[str] = []
    steps = iter([lambda: None, second.leave, lambda: None, first.leave])
    third.wait(told.append, lambda: next(steps)())
    assert [words[words.rindex("; ") :] for words in told] == [
        "; place 2 in the line, after alexnet",
        "; place 1 in the line",
    ]
    third.leave()


def test_others_see_how_far_the_work_is_and_the_time_left_passes(
    line: HostQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    now = [100.0]
    monkeypatch.setattr("dlbricks_tui.host.queue._clock", lambda: now[0])
    mine = turn_of(line, "mine", Path("/data"))
    mine.progress(0.25, 30.0)
    mine.progress(0.26, 29.0)
    now[0] += 10
    (place,) = line.places()
    assert place.share == pytest.approx(0.5)
    assert place.seconds_left == 20.0
    mine.progress(None, None)
    assert line.places()[0].seconds_left is None
    mine.leave()


@pytest.mark.parametrize("call", ["open", "pwrite"])
def test_a_full_disk_takes_words_or_the_order_but_never_the_lock(
    call: str, line: HostQueue, monkeypatch: pytest.MonkeyPatch
) -> None:
    real = getattr(os, call)

    def full(*arguments: object, **named: object) -> object:
        if call == "pwrite" or str(arguments[0]).endswith(".ticket"):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        return real(*arguments, **named)

    with monkeypatch.context() as patch:
        patch.setattr(f"dlbricks_tui.host.queue.os.{call}", full)
        first, second = line.join(RUN), line.join(RUN)
        assert first.try_take() and not second.try_take()
    if call == "pwrite":
        # The names of the tickets tell the order, and the processes.
        assert [place.pid for place in line.places()] == [os.getpid()] * 2
    first.leave()
    assert second.try_take()
    second.leave()


def test_a_folder_of_tickets_that_cannot_be_used_leaves_the_lock(line: HostQueue) -> None:
    line.path.with_name("lock.queue").write_text("no folder")
    mine, theirs = turn_of(line, "mine", Path("/data")), line.join(RUN)
    told: list[str] = []
    theirs.wait(told.append, mine.leave)
    assert told == ["another process; place 1 in the line"]
    theirs.leave()


def test_files_that_are_no_tickets_are_no_work(line: HostQueue) -> None:
    mine = turn_of(line, "mine", Path("/data"))
    folder = line.path.with_name("lock.queue")
    (folder / "00000000000000000001-7.ticket").write_text("{}")
    (folder / "notes").write_text("")
    os.mkfifo(folder / "00000000000000000002-7.ticket")
    (folder / "00000000000000000003-7.ticket").symlink_to("/etc/passwd")
    assert briefly(line) == [("alexnet", True)]
    mine.leave()


def test_the_words_of_a_place_fit_what_is_known() -> None:
    here = datetime(2026, 11, 21, 7, 55, 12, 532770).astimezone().astimezone(timezone.utc)
    known = Place(7, "trace", "alexnet", "", "/home/ada", "ada", here.isoformat())
    assert str(known) == "trace of alexnet by ada (process 7, data in /home/ada, since 21 Nov 07:55)"
    assert str(Place(7)) == "work (process 7)"
    assert Place(7).brief == "work of process 7"
    assert waiting_words([]) == "another process; place 1 in the line"
    assert queued(WorkKind.RUN, ["a", "b", "c", "d"], Path("/data")).title == "a, b, c and 1 more"


def test_every_user_of_the_host_can_join_the_line(line: HostQueue) -> None:
    before = os.umask(0o077)
    try:
        mine = turn_of(line, "mine", Path("/data"))
    finally:
        os.umask(before)
    folder = line.path.with_name("lock.queue")
    assert line.path.stat().st_mode & 0o777 == 0o666
    assert folder.stat().st_mode & 0o7777 == 0o1777
    assert [path.stat().st_mode & 0o777 for path in folder.iterdir()] == [0o644]
    mine.leave()


def test_a_turn_whose_file_is_deleted_is_taken_on_a_new_file(line: HostQueue) -> None:
    first = turn_of(line, "first", Path("/data"))
    line.path.unlink()
    # Fairness is in the tickets: the next one still waits.
    second = line.join(RUN)
    assert not second.try_take()
    first.leave()
    assert second.try_take() and line.path.exists()
    second.leave()


def test_a_lock_that_cannot_be_used_is_named_with_the_cure(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(tmp_path / "elsewhere")
    for path in (tmp_path / "link", tmp_path / "no" / "folder", tmp_path):
        with pytest.raises(QueueError, match=HOST_LOCK_VARIABLE):
            host_queue({HOST_LOCK_VARIABLE: str(path)}).join(RUN).try_take()
    assert not (tmp_path / "elsewhere").exists()
