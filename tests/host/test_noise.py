import os
import time
from pathlib import Path

import pytest

from dlbricks_tui.host.noise import (
    SOURCES,
    Contention,
    HostLoad,
    LoadMeter,
    NoiseVerdict,
    competing_threads,
    contention,
    contention_between,
    disturbances,
    findings,
    wait_until_idle,
)
from dlbricks_tui.host_files import HostFiles
from dlbricks_tui.wording.runs import load_in_words
from tests.host.hosts import CPU, c5_large

BY_NAME = {source.name: source for source in SOURCES}
QUIET, NOISY = NoiseVerdict.QUIET, NoiseVerdict.NOISY
GOVERNOR = f"{CPU}/cpu1/cpufreq/scaling_governor"
HUGE_PAGES = "sys/kernel/mm/transparent_hugepage/enabled"
GROUP = "sys/fs/cgroup/user.slice"
HALF_A_CORE = {f"{GROUP}/cpu.max": "50000 100000", f"{GROUP}/cpu.stat": "nr_throttled 7"}
SCATTERED = "Node 0, zone DMA 1 0 0\nNode 0, zone Normal 95364 62644 28389 13222 7484 1034\n"
TWO_NODES = {"sys/devices/system/node/node1/cpulist": "2", "proc/sys/kernel/numa_balancing": "1"}
CLOCK = "sys/devices/system/clocksource/clocksource0/current_clocksource"


@pytest.mark.parametrize(
    ("source", "files", "verdict", "told"),
    [
        ("frequency governor", {}, QUIET, "performance"),
        ("frequency governor", {GOVERNOR: "powersave"}, NOISY, "performance, powersave"),
        ("turbo", {}, NOISY, "on"),
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "1"}, QUIET, "off"),
        ("hyper-threading", {}, NOISY, "on"),
        ("time quota", {}, QUIET, "none"),
        ("time quota", HALF_A_CORE, NOISY, "0.5 cores, stopped 7 times so far"),
        ("temperature", {"sys/class/thermal/thermal_zone0/temp": "45000"}, QUIET, "45 degrees Celsius"),
        ("temperature", {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3"}, NOISY, "cores slowed 3 times"),
        ("virtual machine", {}, NOISY, "yes"),
        ("transparent huge pages", {}, QUIET, "madvise"),
        ("transparent huge pages", {HUGE_PAGES: "[always] never"}, NOISY, "always"),
        ("scattered memory", {}, QUIET, "0.0 GB free in pieces below 64 KB"),
        ("scattered memory", {"proc/buddyinfo": SCATTERED}, NOISY, "1.8 GB free in pieces below 64 KB"),
        ("swap", {}, QUIET, "none"),
        ("swap", {"proc/meminfo": "SwapTotal: 4096 kB\nSwapFree: 1024 kB"}, NOISY, "3 MiB in use"),
        ("NUMA balancing", {}, QUIET, "one node"),
        ("NUMA balancing", TWO_NODES, NOISY, "2 nodes, memory moves"),
        ("clock", {}, QUIET, "tsc"),
        ("clock", {CLOCK: "hpet"}, NOISY, "hpet"),
    ],
)
def test_a_source_of_noise_reports_its_state(
    tmp_path: Path, source: str, files: dict[str, str], verdict: NoiseVerdict, told: str
) -> None:
    found = BY_NAME[source].find(c5_large(tmp_path, files))
    assert found.verdict is verdict
    assert told in found.state
    assert bool(found.cure) == (verdict is not QUIET)


def test_unreadable_noise_sources_are_unknown_and_say_how_to_read_them(tmp_path: Path) -> None:
    # As a thermal zone without a sensor reports.
    zone = tmp_path / "sys/class/thermal/thermal_zone0/temp"
    zone.parent.mkdir(parents=True)
    zone.write_text("0\n")
    for found in findings(HostFiles(tmp_path)):
        # That is of this process.
        if found.source != "bound to cores":
            assert found.verdict is NoiseVerdict.UNKNOWN, found
            assert found.state == "unknown" and found.cure and found.effect


def test_a_host_is_disturbed_by_other_load_and_by_stolen_time(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    found = c5_large(tmp_path)

    def passes(times: str) -> tuple[str, ...]:
        def pass_time(_: float) -> None:
            (tmp_path / "proc/stat").write_text(f"cpu  {times}\n")

        c5_large(tmp_path)
        monkeypatch.setattr(time, "sleep", pass_time)
        return disturbances(found)

    assert passes("101 0 50 10099 20 0 5 0 0 0") == ()
    assert passes("140 0 50 10060 20 0 5 0 0 0") == ("the processors are 40% busy",)
    assert passes("100 0 50 10090 20 0 5 10 0 0") == ("10.0% stolen now",)


def test_a_host_that_does_not_tell_its_load_is_not_known_to_be_quiet(tmp_path: Path) -> None:
    (tmp_path / "proc").mkdir()
    assert disturbances(HostFiles(tmp_path)) == ("the load is unknown",)


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


def stat(*cores: tuple[int, int, int]) -> str:
    """Return the kernel's file for cores with so many ticks of work, of rest and stolen ones."""
    lines = [f"cpu{at} {work} 0 0 {rest} 0 0 0 {stolen} 0 0" for at, (work, rest, stolen) in enumerate(cores)]
    return "\n".join(["cpu  1 2 3 4 5 6 7 8 9 10", *lines, "intr 17 0"])


class Host:
    """A host whose time and processor times a test sets."""

    def __init__(self, root: Path) -> None:
        self.now = 100.0
        self._file = root / "proc" / "stat"
        self._file.parent.mkdir()
        self.meter = LoadMeter(HostFiles(root), lambda: self.now)

    def after(self, seconds: float, text: str) -> HostLoad | None:
        self.now += seconds
        self._file.write_text(text)
        return self.meter.look()


def test_the_load_is_that_between_two_looks_of_the_cores_that_were_there_at_both(tmp_path: Path) -> None:
    host = Host(tmp_path)
    assert host.after(0, stat((100, 900, 0), (0, 1000, 0))) is None
    found = host.after(1, stat((190, 910, 0), (10, 1070, 20), (5, 5, 0)))
    assert found == HostLoad((0.9, 0.1), (0.0, 0.2)) and (found.cores, found.busy_cores) == (2, 1.0)
    assert load_in_words(found) == "1.0 of 2 cores busy, 10 % taken by other guests"
    assert load_in_words(HostLoad((0.5,), (0.0,))) == "0.5 of 1 core busy"


def test_the_host_is_looked_at_once_in_a_second(tmp_path: Path) -> None:
    host = Host(tmp_path)
    host.after(0, stat((0, 0, 0)))
    first = host.after(1, stat((50, 50, 0)))
    assert host.after(0.9, stat((150, 50, 0))) is first
    assert host.after(0.1, stat((150, 50, 0))) == HostLoad((1.0,), (0.0,))


@pytest.mark.parametrize("text", ["", "cpu0 1 2", "cpu0 a b c d e f g h", "intr 1"])
def test_a_host_that_does_not_tell_has_no_load(tmp_path: Path, text: str) -> None:
    host = Host(tmp_path)
    host.after(0, text)
    assert host.after(1, text) is None
