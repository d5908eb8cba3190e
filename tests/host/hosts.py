"""Hosts that are not this one: trees of files as kernels show them."""

from collections.abc import Mapping
from pathlib import Path

from dlbricks_tui.host_files import HostFiles

CPU = "sys/devices/system/cpu"

# What a two-core Nitro instance shows; times are ticks of all cores.
C5_LARGE: Mapping[str, str] = {
    "proc/cpuinfo": "processor\t: 0\nmodel name\t: Intel(R) Xeon(R) Platinum 8124M CPU @ 3.00GHz\n"
    "flags\t\t: fpu avx avx2 avx512f hypervisor\n\nprocessor\t: 1\nmodel name\t: another\n",
    "proc/meminfo": "MemTotal:        3884120 kB\nMemFree: 1 kB\nSwapTotal:  0 kB\nSwapFree:  0 kB\n",
    "proc/stat": "cpu  100 0 50 10000 20 0 5 0 0 0\ncpu0 1 1 1 1 1 1 1 1 1 1\n",
    "proc/self/cgroup": "0::/user.slice\n",
    "proc/1/cgroup": "0::/init.scope\n",
    "proc/sys/kernel/osrelease": "6.1.0-13-cloud-amd64\n",
    "etc/os-release": 'ID=debian\nPRETTY_NAME="Debian GNU/Linux 12"\n',
    "sys/class/dmi/id/sys_vendor": "Amazon EC2\n",
    "sys/class/dmi/id/product_name": "c5.large\n",
    f"{CPU}/smt/active": "1\n",
    f"{CPU}/intel_pstate/no_turbo": "0\n",
    f"{CPU}/cpu0/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu1/cpufreq/scaling_governor": "performance\n",
    f"{CPU}/cpu0/cache/index3/size": "25344K\n",
    "sys/devices/system/node/node0/cpulist": "0-1\n",
    "sys/devices/system/clocksource/clocksource0/current_clocksource": "tsc\n",
    "proc/buddyinfo": "Node 0, zone   Normal      8      4      2      1      0      3   3213\n",
    "sys/kernel/mm/transparent_hugepage/enabled": "always [madvise] never\n",
}


def host(root: Path, files: Mapping[str, str]) -> HostFiles:
    """The host that shows these files."""
    for path, content in files.items():
        (root / path).parent.mkdir(parents=True, exist_ok=True)
        (root / path).write_text(content)
    return HostFiles(root)


def c5_large(root: Path, changes: Mapping[str, str] | None = None) -> HostFiles:
    """The instance, with some files changed or added."""
    return host(root, {**C5_LARGE, **(changes or {})})
