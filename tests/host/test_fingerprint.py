from pathlib import Path

import pytest

from dlbricks_tui.host.fingerprint import UNKNOWN, fingerprint, host_facts, instruction_sets
from dlbricks_tui.host_files import HostFiles
from tests.host.hosts import CPU, c5_large, host


def test_an_ec2_instance_is_named_after_its_type(tmp_path: Path) -> None:
    system = fingerprint(c5_large(tmp_path), usable_cores=2)
    assert system.instance_type == "c5.large"
    assert system.name == "c5.large, 2 cores"
    assert system.id.startswith("c5.large-2c-")
    assert system.cpu == "Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz"
    assert system.memory_bytes == 3884120 * 1024
    switches = {"governor": "performance", "turbo": True, "hyper_threading": True, "virtual": True}
    software = {"kernel": "6.1.0-13-cloud-amd64", "os": "Debian GNU/Linux 12", "container": "none"}
    assert dict(system.facts).items() >= {**switches, **software, "vectors": "avx512"}.items()


def test_without_a_type_the_processor_names_the_system(tmp_path: Path) -> None:
    system = fingerprint(c5_large(tmp_path, {"sys/class/dmi/id/sys_vendor": "Dell Inc."}), usable_cores=4)
    assert system.instance_type == ""
    assert system.id.startswith("intel-xeon-platinum-8124m-4c-")


def test_unreadable_facts_are_unknown_and_never_guessed(tmp_path: Path) -> None:
    facts = dict(fingerprint(HostFiles(tmp_path), usable_cores=1).facts)
    unknown = ("governor", "turbo", "hyper_threading", "vectors", "virtual", "container", "vendor", "last_level_cache")
    assert {name: facts[name] for name in unknown} == dict.fromkeys(unknown, UNKNOWN)


def test_settings_that_affect_latencies_change_the_system_and_a_new_kernel_does_not(tmp_path: Path) -> None:
    def identity(name: str, changes: dict[str, str]) -> str:
        return fingerprint(c5_large(tmp_path / name, changes), usable_cores=2).id

    plain = identity("plain", {})
    assert identity("kernel", {"proc/sys/kernel/osrelease": "6.9"}) == plain
    assert identity("powersave", {f"{CPU}/cpu1/cpufreq/scaling_governor": "powersave"}) != plain
    assert identity("turbo", {f"{CPU}/intel_pstate/no_turbo": "1"}) != plain
    assert identity("threads", {f"{CPU}/smt/active": "0"}) != plain
    assert identity("quota", {"sys/fs/cgroup/user.slice/cpu.max": "50000 100000"}) != plain
    assert fingerprint(c5_large(tmp_path / "bound"), usable_cores=1).id != plain


@pytest.mark.parametrize("atoms", [True, False], ids=["Intel", "Arm"])
def test_as_many_cores_of_another_kind_are_another_system(
    atoms: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    mixed = {"sys/devices/cpu_atom/cpus": "2-3\n"}
    if not atoms:
        mixed = {f"{CPU}/cpu{it}/cpu_capacity": capacity for it, capacity in enumerate(("1024", "1024", "446", "446"))}
    here = c5_large(tmp_path, {f"{CPU}/online": "0-3\n", **mixed})
    alike = c5_large(tmp_path / "alike", {f"{CPU}/online": "0-3\n"})

    def bound(*cores: int, shown: HostFiles = here) -> str:
        monkeypatch.setattr("os.sched_getaffinity", lambda _: {*cores}, raising=False)
        return fingerprint(shown, usable_cores=len(cores)).id

    assert len({bound(0, 1), bound(2, 3), bound(0, 2), bound(0, 1, shown=alike)}) == 4
    assert bound(0, 1, 2, 3) == bound(0, 1, 2, 3, shown=alike)
    assert bound(0, 1, shown=alike) == bound(2, 3, shown=alike)


def test_limits_of_enclosing_control_groups_apply_in_both_versions(tmp_path: Path) -> None:
    second = {
        "proc/self/cgroup": "0::/a/b\n",
        "sys/fs/cgroup/a/b/cpu.max": "max 100000",
        "sys/fs/cgroup/a/cpu.max": "150000 100000",
        "sys/fs/cgroup/a/memory.max": "1073741824",
        "sys/fs/cgroup/a/memory.current": "5000",
        "sys/fs/cgroup/a/memory.stat": "anon 3000\ninactive_file 2000",
    }
    first = {
        "proc/self/cgroup": "4:memory:/c\n3:cpu,cpuacct:/c\n",
        "sys/fs/cgroup/cpu/c/cpu.cfs_quota_us": "300000",
        "sys/fs/cgroup/cpu/c/cpu.cfs_period_us": "100000",
        "sys/fs/cgroup/memory/c/memory.limit_in_bytes": "2147483648",
        "sys/fs/cgroup/memory/c/memory.usage_in_bytes": "5000",
        "sys/fs/cgroup/memory/c/memory.stat": "inactive_file 1\ntotal_inactive_file 2000",
    }
    for name, files, quota, memory in (("second", second, 1.5, 1 << 30), ("first", first, 3.0, 2 << 30)):
        here = c5_large(tmp_path / name, {**files, "proc/meminfo": "MemTotal: 9999999 kB\nMemAvailable: 9000000 kB\n"})
        assert here.available_memory_bytes == memory - 3000
        system = fingerprint(here, usable_cores=2)
        assert dict(system.facts)["quota_cores"] == quota
        assert (system.cores, system.cores_to_use) == (2, min(2, int(quota)))
        assert system.memory_bytes == memory


def test_an_arm_processor_without_a_name_is_named_by_its_part_numbers(tmp_path: Path) -> None:
    described = "processor: 0\nCPU implementer\t: 0x41\nCPU part\t: 0xd40\nFeatures\t: fp asimd sve\n"
    system = fingerprint(host(tmp_path, {"proc/cpuinfo": described}), usable_cores=8)
    assert system.cpu == "ARM 0x41 0xd40"
    assert dict(system.facts)["vectors"] == "sve"


def test_the_instruction_sets_are_those_whose_every_instruction_the_processor_has(tmp_path: Path) -> None:
    def sets(name: str, flags: str) -> list[str]:
        shown = host(tmp_path / name, {"proc/cpuinfo": f"flags\t\t: fpu {flags}\n"})
        return [it.value for it in instruction_sets(shown)]

    skylake = "sse4_1 avx avx2 fma avx512f avx512bw avx512vl avx512dq"
    assert sets("skylake", skylake) == ["sse41", "avx", "avx2", "avx512_core", "all"]
    assert sets("cascade-lake", f"{skylake} avx512_vnni")[-2:] == ["avx512_core_vnni", "all"]
    assert sets("knights-landing", "sse4_1 avx avx2 fma avx512f") == ["sse41", "avx", "avx2", "all"]
    assert sets("graviton", "asimd sve") == ["all"]


def test_results_are_kept_with_what_may_change_on_a_host(tmp_path: Path) -> None:
    shown = c5_large(tmp_path, {"proc/cpuinfo": "model name\t: Xeon\nmicrocode\t: 0x2007006\n"})
    assert dict(host_facts(fingerprint(shown, usable_cores=2), shown)) == {
        "cpu": "Xeon",
        "microcode": "0x2007006",
        "kernel": "6.1.0-13-cloud-amd64",
        "governor": "performance",
        "turbo": True,
        "os": "Debian GNU/Linux 12",
        "container": "none",
    }
