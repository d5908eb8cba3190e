import os
import subprocess
import sys
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import pytest

from dlbricks_tui.traces.perf_events import EVENTS, PerfEvents
from dlbricks_tui.traces.threads import WAITS, ThreadsError, ThreadWatch

pytestmark = pytest.mark.skipif(sys.platform != "linux", reason="reads /proc of Linux")

# Computes for so much processor time whenever it reads a line, in a thread of its own beside one that sleeps.
COMPUTE_SECONDS = 0.1
PROGRAM = f"""
import sys, threading, time
threading.Thread(target=time.sleep, args=(60,), daemon=True).start()
def compute():
    began = time.thread_time()
    while time.thread_time() - began < {COMPUTE_SECONDS}:
        pass
for line in sys.stdin:
    thread = threading.Thread(target=compute)
    thread.start()
    thread.join()
    print("done", flush=True)
"""


@contextmanager
def computing() -> Iterator["subprocess.Popen[str]"]:
    with subprocess.Popen(
        [sys.executable, "-c", PROGRAM], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    ) as process:
        try:
            compute(process)
            yield process
        finally:
            process.kill()


def compute(process: "subprocess.Popen[str]") -> None:
    assert process.stdin is not None and process.stdout is not None
    process.stdin.write("go\n")
    process.stdin.flush()
    assert process.stdout.readline() == "done\n"


def test_the_spans_of_a_thread_that_computes_last_as_long_as_its_processor_time() -> None:
    with computing() as process:
        with ThreadWatch(process.pid) as watch:
            start_ns = time.monotonic_ns()
            compute(process)
            compute(process)
            end_ns = time.monotonic_ns()
        found = watch.activity(start_ns, end_ns)
    ran_ns = [sum(it.duration_ns for it in track.spans if it.name != WAITS) for track in found.tracks]
    # New threads are found within 32 readings. What they did before is not seen.
    assert 0.1 * 2 * COMPUTE_SECONDS <= sum(ran_ns) / 1e9 <= 1.2 * 2 * COMPUTE_SECONDS
    for track in found.tracks:
        assert all(0 <= it.start_ns <= it.start_ns + it.duration_ns <= end_ns - start_ns for it in track.spans)
        processors = {value for span in track.spans for name, value in span.details if name == "processor"}
        assert processors <= set(range(os.cpu_count() or 1))
    running = next(it for it in found.counters if it.name == "running")
    assert list(running.values) == sorted(running.values)
    switches = next(it for it in found.counters if it.name == "voluntary context switches")
    assert switches.values[-1] > 0


def test_the_threads_of_this_process_are_watched_until_the_block_ends() -> None:
    with ThreadWatch(os.getpid(), interval_seconds=0.005) as watch:
        time.sleep(0.02)
    assert "thread watch" not in [it.name for it in threading.enumerate()]
    assert watch.activity(0, time.monotonic_ns()).tracks


def test_a_process_that_is_gone_is_refused_in_one_line() -> None:
    with computing() as process:
        pid = process.pid
    with pytest.raises(ThreadsError, match="no thread can be read in /proc/"):
        ThreadWatch(pid).__enter__()


def test_a_process_that_ends_meanwhile_ends_no_watch() -> None:
    with computing() as process, ThreadWatch(process.pid) as watch:
        process.kill()
        process.wait()
        time.sleep(0.1)
    assert watch.activity(0, time.monotonic_ns()).counters


def test_a_linux_that_counts_no_run_times_is_refused(tmp_path: Path) -> None:
    thread = tmp_path / "7" / "task" / "7"
    thread.mkdir(parents=True)
    for name in ("comm", "stat", "status"):
        (thread / name).write_text("")
    with pytest.raises(ThreadsError, match="does not count the run time of threads"):
        ThreadWatch(7, proc=tmp_path).__enter__()


def test_other_systems_than_linux_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(ThreadsError, match="the thread level needs /proc of Linux"):
        ThreadWatch(os.getpid()).__enter__()
    with PerfEvents(os.getpid()) as events:
        pass
    assert events.totals.totals == ()
    assert len(events.totals.missing) == 1 and events.totals.missing[0].endswith("only Linux has perf events")


def test_each_perf_event_is_counted_or_named_with_the_reason() -> None:
    with computing() as process:
        with PerfEvents(process.pid) as events:
            compute(process)
        found = events.totals
    counted = [name.replace("_", "-") for name, _ in found.totals]
    refused = [name for line in found.missing for name in line.partition(":")[0].split(", ")]
    assert sorted((*counted, *refused)) == sorted(it.name for it in EVENTS)
    assert all(isinstance(value, int) and value >= 0 for _, value in found.totals)
    assert all(line.partition(": ")[2] for line in found.missing)


def test_the_events_of_a_process_without_threads_are_refused(tmp_path: Path) -> None:
    with PerfEvents(1, proc=tmp_path) as events:
        pass
    assert events.totals.totals == ()
    assert [line.partition(": ")[2] for line in events.totals.missing] == ["No such process"]
