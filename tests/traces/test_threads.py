"""Tests of watched threads, with recorded texts of Linux and with a real process."""

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import pairwise
from pathlib import Path

import pytest

from dlbricks_tui.traces.threads import (
    EVENTS,
    WAITS,
    PerfEvents,
    Reading,
    ThreadHistory,
    ThreadState,
    ThreadWatch,
    counters,
    running_spans,
    state_in,
    switches_in,
    times_in,
    tracks,
)
from dlbricks_tui.traces.trace import TraceError, TraceSpan, TrackKind

# As Linux 6.1 wrote them for a thread whose name is chosen to mislead.
STAT = (
    b"4711 (a) R (b) S) R 4700 4711 4711 0 -1 4194368 2091 17 3 0 912 44 0 0 20 0 9 0 88123 1840128000 41234 "
    b"18446744073709551615 1 1 0 0 0 0 0 16781312 16386 0 0 0 -1 5 0 0 0 0 0 0 0 0 0 0 0 0 0\n"
)
SCHEDSTAT = b"9561273118 48121733 1290\n"
STATUS = (
    b"Name:\tpython\nUmask:\t0022\nState:\tS (sleeping)\nThreads:\t9\nCpus_allowed_list:\t0-1\n"
    b"voluntary_ctxt_switches:\t1250\nnonvoluntary_ctxt_switches:\t40\n"
)


def reading(at: int, ran: int, *, runnable: bool = True, waited: int = 0, processor: int = 0) -> Reading:
    return Reading(at, ran, waited, runnable, processor)


def asleep(at: int, ran: int, **more: int) -> Reading:
    return reading(at, ran, runnable=False, **more)


def placed(spans: tuple[TraceSpan, ...]) -> list[tuple[str, int, int]]:
    return [(it.name, it.start_ns, it.duration_ns) for it in spans]


def test_the_texts_of_linux_are_read() -> None:
    assert times_in(SCHEDSTAT) == (9_561_273_118, 48_121_733)
    assert state_in(STAT) == ThreadState(runnable=True, processor=5, faults=(2091, 3))
    assert switches_in(STATUS) == (1250, 40)


@pytest.mark.parametrize("text", [b"", b"1 2", b"no numbers here", STAT[:60]])
def test_another_text_is_refused(text: bytes) -> None:
    for parse in (times_in, state_in, switches_in):
        with pytest.raises(ValueError):
            parse(text)


def test_a_thread_that_ran_between_two_sleeps_ran_as_long_as_linux_says_and_within_them() -> None:
    spans = running_spans([asleep(0, 0), asleep(1000, 0), asleep(2000, 300), asleep(3000, 300)])
    assert placed(spans) == [("running on cpu 0", 1350, 300)]
    assert spans[0].details == (("processor", 0),)


def test_a_thread_whose_run_time_is_added_up_late_is_one_span() -> None:
    # While it goes on, Linux adds to its time every four readings only.
    running = [reading(1000 * at, 4000 * (at // 4)) for at in range(1, 10)]
    spans = running_spans([asleep(0, 0), *running, asleep(10_000, 9500)])
    assert placed(spans) == [("running on cpu 0", 250, 9500)]


def test_a_wait_for_a_processor_parts_the_spans_where_it_ended() -> None:
    ran = [(1000, 500, 0), (2000, 1400, 0), (3000, 1600, 700), (4000, 2500, 700)]
    running = [reading(at, took, waited=waited) for at, took, waited in ran]
    spans = running_spans([asleep(0, 0), *running, asleep(5000, 4100, waited=700)])
    assert placed(spans) == [("running on cpu 0", 100, 1700), (WAITS, 1800, 700), ("running on cpu 0", 2500, 2400)]
    assert sum(it.duration_ns for it in spans if it.name != WAITS) == 4100


def test_spans_never_overlap_and_last_as_long_as_the_thread_ran() -> None:
    history, ran, waited = ThreadHistory(1, "worker"), 0, 0
    for number in range(400):
        kind = (number * 7919) % 11
        history.readings.append(reading(number * 1000, ran, waited=waited, runnable=kind > 3, processor=kind % 2))
        ran += (1000, 600, 0, 250)[kind % 4] if kind > 3 else 0
        waited += 400 if kind in (5, 9) else 0
    spans = running_spans(history.readings)
    for before, after in pairwise(spans):
        assert before.start_ns + before.duration_ns <= after.start_ns
    lasted = sum(it.duration_ns for it in spans if it.name != WAITS)
    assert 0.9 * ran <= lasted <= ran


def test_tracks_are_of_the_threads_that_ran_and_begin_with_the_inferences() -> None:
    ran = ThreadHistory(12, "python", [asleep(0, 0), asleep(1000, 1000), reading(2000, 1000), asleep(3000, 3000)])
    slept = ThreadHistory(13, "OMP", [asleep(0, 7), asleep(3000, 7)])
    (track,) = tracks([ran, slept], 500, 2500)
    assert (track.name, track.kind) == ("python 12", TrackKind.THREAD)
    assert placed(track.spans) == [("running on cpu 0", 0, 500), ("running on cpu 0", 500, 1500)]


def test_counters_are_sums_of_all_threads_from_zero_on() -> None:
    first = ThreadHistory(1, "a", [asleep(0, 5_000_000), asleep(2000, 6_000_000)])
    # It began later, and ended before the other one.
    second = ThreadHistory(2, "b", [asleep(1000, 0), asleep(1500, 2_000_000)])
    first.counts += [(0, (10, 2, 100, 0)), (2000, (14, 2, 130, 1))]
    second.counts += [(1000, (0, 0, 0, 0)), (1500, (1, 3, 7, 0))]
    found = {it.name: it for it in counters([first, second], 500, 5000)}
    assert (found["running"].times_ns, found["running"].unit) == ((0, 1000, 1500), "ms")
    assert {name: it.values for name, it in found.items()} == {
        "running": (0.0, 2.0, 3.0),
        "waiting for a processor": (0.0,),
        "voluntary context switches": (0.0, 1.0, 5.0),
        "involuntary context switches": (0.0, 3.0),
        "minor page faults": (0.0, 7.0, 37.0),
        "major page faults": (0.0, 1.0),
    }


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
        tracks, counters = watch.activity(start_ns, end_ns)
    ran_ns = [sum(it.duration_ns for it in track.spans if it.name != WAITS) for track in tracks]
    # New threads are found within 32 readings. What they did before is not seen.
    assert 0.1 * 2 * COMPUTE_SECONDS <= sum(ran_ns) / 1e9 <= 1.2 * 2 * COMPUTE_SECONDS
    for track in tracks:
        assert all(0 <= it.start_ns <= it.start_ns + it.duration_ns <= end_ns - start_ns for it in track.spans)
        processors = {value for span in track.spans for name, value in span.details if name == "processor"}
        assert processors <= set(range(os.cpu_count() or 1))
    running = next(it for it in counters if it.name == "running")
    assert list(running.values) == sorted(running.values)
    switches = next(it for it in counters if it.name == "voluntary context switches")
    assert switches.values[-1] > 0


def test_a_process_that_is_gone_is_refused_in_one_line() -> None:
    with computing() as process:
        pid = process.pid
    with pytest.raises(TraceError, match="no thread can be read in /proc/"):
        ThreadWatch(pid).__enter__()


def test_a_process_that_ends_meanwhile_ends_no_watch() -> None:
    with computing() as process, ThreadWatch(process.pid) as watch:
        process.kill()
        process.wait()
        # The watch looks every 2 ms, from now on at a process that is gone.
        time.sleep(0.1)
    assert watch.activity(0, time.monotonic_ns())[1]


def test_a_linux_that_counts_no_run_times_is_refused(tmp_path: Path) -> None:
    thread = tmp_path / "7" / "task" / "7"
    thread.mkdir(parents=True)
    for name in ("comm", "stat", "status"):
        (thread / name).write_text("")
    with pytest.raises(TraceError, match="does not count the run time of threads"):
        ThreadWatch(7, proc=tmp_path).__enter__()


def test_other_systems_than_linux_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "platform", "darwin")
    with pytest.raises(TraceError, match="the thread level needs /proc of Linux"):
        ThreadWatch(os.getpid()).__enter__()


def test_each_perf_event_is_counted_or_named_with_the_reason() -> None:
    with computing() as process:
        with PerfEvents(process.pid) as events:
            compute(process)
        totals, missing = events.totals
    counted = [name.replace("_", "-") for name, _ in totals]
    refused = [name for line in missing for name in line.partition(":")[0].split(", ")]
    assert sorted((*counted, *refused)) == sorted(it.name for it in EVENTS)
    assert all(isinstance(value, int) and value >= 0 for _, value in totals)
    assert all(line.partition(": ")[2] for line in missing)
