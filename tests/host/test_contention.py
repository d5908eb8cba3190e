import os
from pathlib import Path

import pytest

from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.load import (
    Contention,
    competing_threads,
    contention,
    contention_between,
    wait_until_idle,
)


def thread(root: Path, number: int, waited_ns: str, stops: str, computed_ns: str = "123456") -> None:
    folder = root / "proc" / "7" / "task" / str(number)
    folder.mkdir(parents=True)
    (folder / "schedstat").write_text(f"{computed_ns} {waited_ns} 99\n")
    (folder / "status").write_text(f"Name:\tpython\nnonvoluntary_ctxt_switches:\t{stops}\n")


def test_all_threads_of_a_process_count(tmp_path: Path) -> None:
    thread(tmp_path, 7, "1500000000", "20")
    thread(tmp_path, 8, "250000000", "3")
    assert contention(7, HostFiles(tmp_path)) == Contention(1.75, 23)


def test_contention_excludes_the_processor_time_of_the_process(tmp_path: Path) -> None:
    thread(tmp_path, 7, "0", "0", computed_ns="1500000000")
    thread(tmp_path, 8, "0", "0", computed_ns="500000000")
    (tmp_path / "proc" / "stat").write_text("cpu 100 50 30 5000 600 7 8 5 0 0\ncpu0 1 1 1 1 1 1 1 1 0 0\n")
    found = contention(7, HostFiles(tmp_path))
    assert found is not None
    assert found.others_seconds == pytest.approx(200 / os.sysconf("SC_CLK_TCK") - 2.0)


def test_a_kernel_without_counts_gives_no_contention(tmp_path: Path) -> None:
    assert contention(7, HostFiles(tmp_path)) is None
    thread(tmp_path, 7, "-", "20")
    assert contention(7, HostFiles(tmp_path)) is None


def test_contention_between_two_moments_is_never_negative() -> None:
    assert contention_between(Contention(1.0, 10), Contention(1.5, 25)) == Contention(0.5, 15)
    # A thread with its counts is gone.
    assert contention_between(Contention(1.0, 10), Contention(0.5, 5)) == Contention(0.0, 0)
    assert contention_between(Contention(1.0, 10, 3.0), Contention(1.5, 25, 2.5)) == Contention(0.5, 15, 0.0)
    assert contention_between(Contention(1.0, 10, 3.0), Contention(1.5, 25)) == Contention(0.5, 15)
    assert contention_between(None, Contention(1.0, 1)) is None
    assert contention_between(Contention(1.0, 1), None) is None


def test_contention_counts_of_this_process_can_be_read() -> None:
    if Path("/proc/self/schedstat").exists():
        found = contention(os.getpid())
        assert found is not None
        assert found.preemptions >= 0


def test_the_calling_thread_does_not_compete_with_itself(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    stat = tmp_path / "proc" / "stat"
    counts = iter(["1", "3", "99999", "1"])

    def wait(_: float) -> None:
        stat.write_text(f"cpu 1 2 3\nprocs_running {next(counts)}\nprocs_blocked 7\n")

    stat.write_text("procs_running 3\n")
    assert competing_threads(HostFiles(tmp_path), wait) == min(3.0, 2 / (os.cpu_count() or 1))
    stat.write_text("cpu 1 2 3\n")
    assert competing_threads(HostFiles(tmp_path), wait) == 0


def test_waiting_ends_when_the_threads_of_a_process_stop_computing(tmp_path: Path) -> None:
    """Its threads spin for three readings after their work."""
    folder = tmp_path / "proc/7/task/7"
    folder.mkdir(parents=True)
    computed_ns = 10**9
    naps: list[float] = []

    def wait(seconds: float) -> None:
        nonlocal computed_ns
        naps.append(seconds)
        computed_ns += round(seconds * 1e9) if len(naps) <= 3 else 0
        (folder / "schedstat").write_text(f"{computed_ns} 5 6\n")

    (folder / "schedstat").write_text(f"{computed_ns} 5 6\n")
    wait_until_idle(7, HostFiles(tmp_path), wait)
    assert len(naps) == 4
    naps.clear()
    wait_until_idle(7, HostFiles(tmp_path), wait, most_seconds=0.02)
    assert len(naps) == 2


def test_a_kernel_that_does_not_count_ends_the_waiting_at_once(tmp_path: Path) -> None:
    naps: list[float] = []
    wait_until_idle(7, HostFiles(tmp_path), naps.append)
    assert len(naps) == 1
