import time
from pathlib import Path

import pytest

from dlbricks_tui.host.fingerprint import HostFiles
from dlbricks_tui.host.noise import SOURCES, NoiseVerdict, disturbances, findings
from tests.host.hosts import CPU, c5_large

BY_NAME = {source.name: source for source in SOURCES}


@pytest.mark.parametrize(
    ("source", "files", "verdict", "told"),
    [
        ("frequency governor", {}, NoiseVerdict.QUIET, "performance"),
        (
            "frequency governor",
            {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"},
            NoiseVerdict.NOISY,
            "performance, powersave",
        ),
        ("turbo", {}, NoiseVerdict.NOISY, "on"),
        ("turbo", {f"{CPU}/intel_pstate/no_turbo": "1"}, NoiseVerdict.QUIET, "off"),
        ("hyper-threading", {}, NoiseVerdict.NOISY, "on"),
        ("time quota", {}, NoiseVerdict.QUIET, "none"),
        (
            "time quota",
            {"sys/fs/cgroup/user.slice/cpu.max": "50000 100000", "sys/fs/cgroup/user.slice/cpu.stat": "nr_throttled 7"},
            NoiseVerdict.NOISY,
            "0.5 cores, stopped 7 times so far",
        ),
        ("temperature", {"sys/class/thermal/thermal_zone0/temp": "45000"}, NoiseVerdict.QUIET, "45 degrees Celsius"),
        (
            "temperature",
            {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3"},
            NoiseVerdict.NOISY,
            "cores slowed 3 times",
        ),
        ("virtual machine", {}, NoiseVerdict.NOISY, "yes"),
        ("transparent huge pages", {}, NoiseVerdict.QUIET, "madvise"),
        (
            "transparent huge pages",
            {"sys/kernel/mm/transparent_hugepage/enabled": "[always] never"},
            NoiseVerdict.NOISY,
            "always",
        ),
        ("scattered memory", {}, NoiseVerdict.QUIET, "0.0 GB free in pieces below 64 KB"),
        (
            "scattered memory",
            {"proc/buddyinfo": "Node 0, zone DMA 1 0 0\nNode 0, zone Normal 95364 62644 28389 13222 7484 1034\n"},
            NoiseVerdict.NOISY,
            "1.8 GB free in pieces below 64 KB",
        ),
        ("swap", {}, NoiseVerdict.QUIET, "none"),
        ("swap", {"proc/meminfo": "SwapTotal: 4096 kB\nSwapFree: 1024 kB"}, NoiseVerdict.NOISY, "3 MiB in use"),
        ("NUMA balancing", {}, NoiseVerdict.QUIET, "one node"),
        (
            "NUMA balancing",
            {"sys/devices/system/node/node1/cpulist": "2", "proc/sys/kernel/numa_balancing": "1"},
            NoiseVerdict.NOISY,
            "2 nodes, memory moves",
        ),
        ("clock", {}, NoiseVerdict.QUIET, "tsc"),
        (
            "clock",
            {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
            NoiseVerdict.NOISY,
            "hpet",
        ),
    ],
)
def test_a_source_of_noise_reports_its_state(
    tmp_path: Path, source: str, files: dict[str, str], verdict: NoiseVerdict, told: str
) -> None:
    found = BY_NAME[source].find(c5_large(tmp_path, files))
    assert found.verdict is verdict
    assert told in found.state
    assert bool(found.cure) == (verdict is not NoiseVerdict.QUIET)


def test_unreadable_noise_sources_are_unknown_and_say_how_to_read_them(tmp_path: Path) -> None:
    of_the_process = {"bound to cores"}
    for found in findings(HostFiles(tmp_path)):
        if found.source not in of_the_process:
            assert found.verdict is NoiseVerdict.UNKNOWN, found
            assert found.state == "unknown"
            assert found.cure


def test_every_source_has_an_effect_and_a_cure() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    assert all(source.effect and source.cure for source in SOURCES)


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
