from collections.abc import Callable
from pathlib import Path

import pytest

from dlbricks_tui.host.host_files import HostFiles
from dlbricks_tui.host.noise import (
    SOURCES,
    Clock,
    Governor,
    Heat,
    HugePages,
    HyperThreading,
    NoiseSource,
    NumaBalancing,
    OtherLoad,
    StolenTime,
    Swap,
    TimeQuota,
    Turbo,
    Verdict,
    VirtualMachine,
    findings,
)
from tests.host.hosts import CPU, c5_large


@pytest.mark.parametrize(
    ("source", "files", "verdict", "told"),
    [
        (Governor(), {}, Verdict.QUIET, "performance"),
        (Governor(), {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"}, Verdict.NOISY, "performance, powersave"),
        (Turbo(), {}, Verdict.NOISY, "on"),
        (Turbo(), {f"{CPU}/intel_pstate/no_turbo": "1"}, Verdict.QUIET, "off"),
        (HyperThreading(), {}, Verdict.NOISY, "on"),
        (TimeQuota(), {}, Verdict.QUIET, "none"),
        (
            TimeQuota(),
            {"sys/fs/cgroup/user.slice/cpu.max": "50000 100000", "sys/fs/cgroup/user.slice/cpu.stat": "nr_throttled 7"},
            Verdict.NOISY,
            "0.5 cores, stopped 7 times so far",
        ),
        (Heat(), {"sys/class/thermal/thermal_zone0/temp": "45000"}, Verdict.QUIET, "45 degrees Celsius"),
        (Heat(), {f"{CPU}/cpu0/thermal_throttle/core_throttle_count": "3"}, Verdict.NOISY, "cores slowed 3 times"),
        (VirtualMachine(), {}, Verdict.NOISY, "yes"),
        (HugePages(), {}, Verdict.QUIET, "madvise"),
        (HugePages(), {"sys/kernel/mm/transparent_hugepage/enabled": "[always] never"}, Verdict.NOISY, "always"),
        (Swap(), {}, Verdict.QUIET, "none"),
        (Swap(), {"proc/meminfo": "SwapTotal: 4096 kB\nSwapFree: 1024 kB"}, Verdict.NOISY, "3 MiB in use"),
        (NumaBalancing(), {}, Verdict.QUIET, "one node"),
        (
            NumaBalancing(),
            {"sys/devices/system/node/node1/cpulist": "2", "proc/sys/kernel/numa_balancing": "1"},
            Verdict.NOISY,
            "2 nodes, memory moves",
        ),
        (Clock(), {}, Verdict.QUIET, "tsc"),
        (
            Clock(),
            {"sys/devices/system/clocksource/clocksource0/current_clocksource": "hpet"},
            Verdict.NOISY,
            "hpet",
        ),
    ],
)
def test_a_source_tells_its_state(
    tmp_path: Path, source: NoiseSource, files: dict[str, str], verdict: Verdict, told: str
) -> None:
    found = source.find(c5_large(tmp_path, files))
    assert found.verdict is verdict
    assert told in found.state
    assert bool(found.cure) == (verdict is not Verdict.QUIET)


@pytest.mark.parametrize(
    ("source", "later", "verdict"),
    [
        (OtherLoad, "cpu  100 0 50 10100 20 0 5 0 0 0", Verdict.QUIET),
        (OtherLoad, "cpu  150 0 50 10050 20 0 5 0 0 0", Verdict.NOISY),
        (StolenTime, "cpu  100 0 50 10100 20 0 5 0 0 0", Verdict.QUIET),
        (StolenTime, "cpu  100 0 50 10095 20 0 5 5 0 0", Verdict.NOISY),
    ],
)
def test_load_and_stolen_time_are_watched_for_a_moment(
    tmp_path: Path, source: Callable[[Callable[[float], None]], NoiseSource], later: str, verdict: Verdict
) -> None:
    host = c5_large(tmp_path)

    def time_passes(_seconds: float) -> None:
        (tmp_path / "proc/stat").write_text(later)

    assert source(time_passes).find(host).verdict is verdict


def test_unreadable_sources_are_unknown_and_have_a_cure(tmp_path: Path) -> None:
    of_the_process = {"bound to cores"}
    for found in findings(HostFiles(tmp_path)):
        if found.source not in of_the_process:
            assert found.verdict is Verdict.UNKNOWN, found
            assert found.state == "unknown"
            assert found.cure


def test_every_source_has_an_effect_and_a_cure() -> None:
    assert len({source.name for source in SOURCES}) == len(SOURCES)
    assert all(source.effect and source.cure for source in SOURCES)
